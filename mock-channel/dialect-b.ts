import { randomBytes } from 'node:crypto';
import { isAmountMinor, isCurrency } from '../domain/money';
import type { Operation } from './books';
import type { CallbackOverrides } from './control-types';
import {
  callbackKey,
  claimedTimestamp,
  isDate,
  isInstant,
  isTimely,
  OUR_NUMBER,
  spoilSignature,
  type Account,
  type Content,
  type DialectFormat,
  type IncomingRequest,
  type Notice,
  type ReadCall,
  type Reading,
  type WireMessage,
} from './dialect';
import { tradeState, type RefundStatus, type TradeState } from './ledger';
import { encryptResource, hmacHex, keyOfSerial, keySerial, sameHex } from './signing';

const TRADE_WORDS: Record<TradeState, string> = {
  pending: 'NOTPAY',
  under_review: 'UNDER_REVIEW',
  paid: 'SUCCESS',
  failed: 'PAYERROR',
  closed: 'CLOSED',
  reversed: 'REVERSED',
  reinstated: 'REINSTATED',
};

const REFUND_WORDS: Record<RefundStatus, string> = {
  processing: 'PROCESSING',
  succeeded: 'SUCCESS',
  failed: 'CLOSED',
  abnormal: 'ABNORMAL',
  returned: 'RETURNED',
};

const ROUTES: { method: string; path: RegExp; operation: Exclude<Operation, 'unknown'> }[] = [
  { method: 'POST', path: /^\/v3\/pay\/transactions$/, operation: 'create' },
  { method: 'GET', path: /^\/v3\/pay\/transactions\/out-trade-no\/([^/]+)$/, operation: 'query' },
  {
    method: 'POST',
    path: /^\/v3\/pay\/transactions\/out-trade-no\/([^/]+)\/close$/,
    operation: 'close',
  },
  { method: 'POST', path: /^\/v3\/refund\/domestic\/refunds$/, operation: 'refund' },
  { method: 'GET', path: /^\/v3\/refund\/domestic\/refunds\/([^/]+)$/, operation: 'refund_query' },
  { method: 'GET', path: /^\/v3\/bill\/tradebill$/, operation: 'bill' },
  { method: 'GET', path: /^\/v3\/bill\/files\/[^/]+$/, operation: 'bill_file' },
];

/** Dialect mock-b: JSON, minor units, encrypted callbacks (PROTOCOL.md section 2). */
export const dialectB: DialectFormat = {
  dialect: 'mock-b',
  acknowledgement: { contentType: 'application/json', body: '{"code":"SUCCESS","message":"OK"}' },
  tradeNoField: 'transaction_id',
  refundNoField: 'refund_id',
  closedWord: TRADE_WORDS.closed,
  paidWord: TRADE_WORDS.paid,
  readRequest,

  tradeContent(account, trade, capture) {
    return {
      appid: account.appId,
      mchid: account.accountId,
      out_trade_no: trade.outTradeNo,
      transaction_id: capture?.channelTradeNo ?? trade.channelTradeNo,
      trade_state: TRADE_WORDS[tradeState(trade, capture)],
      description: trade.subject,
      amount: {
        total: capture?.amountMinor ?? trade.amountMinor,
        currency: capture?.currency ?? trade.currency,
        ...(capture ? { payer_total: capture.payerTotalMinor } : {}),
      },
      ...(capture
        ? {
            success_time: capture.capturedAt,
            refunded: capture.refundedMinor,
            reversed: capture.reversedMinor,
          }
        : {}),
    };
  },

  refundContent(account, refund, trade) {
    const capture = trade.captures.find((one) => one.channelTradeNo === refund.channelTradeNo);
    return {
      mchid: account.accountId,
      refund_id: refund.channelRefundNo,
      out_refund_no: refund.outRefundNo,
      transaction_id: refund.channelTradeNo,
      out_trade_no: refund.outTradeNo,
      status: REFUND_WORDS[refund.status],
      amount: {
        refund: refund.amountMinor,
        total: capture?.amountMinor ?? trade.amountMinor,
        currency: refund.currency,
      },
      ...(refund.finishedAt ? { success_time: refund.finishedAt } : {}),
      ...(refund.failCode ? { fail_code: refund.failCode } : {}),
    };
  },

  payParameters: (trade, payUrl) =>
    trade.payMethod === 'redirect' ? { redirect_url: payUrl } : { code_url: payUrl },
  setWord: (content, kind, word) => ({ ...content, [wordField(kind)]: word }),
  wordOf: (content, kind) => String(content[wordField(kind)]),
  refusal: (code, why) => ({ code, message: why }),
  answerText: (content) => JSON.stringify(content),
  signAnswer: (account, body) => ({
    headers: signedHeaders(account.keys.current, body, {}, new Date()),
    body,
  }),
  billAnswer: (account, bill) => ({
    content: {
      mchid: account.accountId,
      bill_date: bill.day,
      file_name: bill.fileName,
      hash_type: 'SHA256',
      hash_value: bill.sha256,
      download_path: bill.path,
      ...(bill.totals && {
        totals: bill.totals.map((one) => ({
          currency: one.currency,
          payments: one.payments,
          payments_amount: one.paymentsMinor,
          refunds: one.refunds,
          refunds_amount: one.refundsMinor,
          fees: one.feesMinor,
        })),
      }),
    },
  }),
  buildCallback,
};

function wordField(kind: 'payment' | 'refund'): string {
  return kind === 'payment' ? 'trade_state' : 'status';
}

function signedHeaders(
  key: string,
  body: Buffer,
  overrides: CallbackOverrides,
  now: Date,
): Record<string, string> {
  const nonce = randomBytes(16).toString('hex');
  const timestamp = claimedTimestamp(overrides, now);
  const signed = (bytes: Buffer): string =>
    hmacHex(
      key,
      Buffer.concat([Buffer.from(`${timestamp ?? ''}\n${nonce}\n`), bytes, Buffer.from('\n')]),
    );
  const signature = spoilSignature(
    signed(body),
    () => signed(Buffer.from('{"id":"another"}')),
    overrides.signature,
  );
  const signType = overrides.signType === undefined ? 'HMAC-SHA256' : overrides.signType;
  const contentType =
    overrides.contentType === undefined ? 'application/json' : overrides.contentType;
  const headers: Record<string, string | null | undefined> = {
    'content-type': contentType,
    'mockpay-timestamp': timestamp,
    'mockpay-nonce': nonce,
    'mockpay-serial': keySerial(key),
    'mockpay-signature-type': signType,
    'mockpay-signature': signature,
  };
  return Object.fromEntries(
    Object.entries(headers).filter((entry): entry is [string, string] => entry[1] != null),
  );
}

type Json = Record<string, unknown>;

function readRequest(account: Account, request: IncomingRequest, now: Date): Reading {
  const url = new URL(`http://mock-b${request.path}`);
  const route = ROUTES.find((one) => one.method === request.method && one.path.test(url.pathname));
  const operation = route?.operation ?? 'unknown';
  const inPath = route?.path.exec(url.pathname)?.[1] ?? null;
  const body = request.method === 'GET' ? {} : parseObject(request.body);
  const text = (name: string): string => {
    const value = body?.[name];
    return typeof value === 'string' ? value : '';
  };
  const ofPathRefund = operation === 'refund_query';
  const outTradeNo = ofPathRefund ? '' : (inPath ?? text('out_trade_no'));
  const outRefundNo = ofPathRefund ? (inPath ?? '') : text('out_refund_no');
  const refuse = (
    code: 'INVALID_SIGNATURE' | 'INVALID_REQUEST' | 'ACCOUNT_MISMATCH',
    why: string,
  ): Reading => ({
    ok: false,
    code,
    why,
    operation,
    outTradeNo: outTradeNo || null,
    outRefundNo: outRefundNo || null,
  });

  const unauthorised = checkAuthorization(account, request, now);
  if (unauthorised) return refuse('INVALID_SIGNATURE', unauthorised);
  if (!body) return refuse('INVALID_REQUEST', 'the body is not a JSON object');
  const mchid = request.method === 'GET' ? url.searchParams.get('mchid') : text('mchid');
  if (mchid !== account.accountId) return refuse('ACCOUNT_MISMATCH', 'mchid is not ours');
  if (operation === 'create' && text('appid') !== account.appId) {
    return refuse('ACCOUNT_MISMATCH', 'appid is not ours');
  }
  if (operation === 'bill') {
    const day = url.searchParams.get('bill_date') ?? '';
    return isDate(day) ? { ok: true, call: { operation, day } } : refuse('INVALID_REQUEST', 'day');
  }
  if (operation === 'bill_file') return { ok: true, call: { operation, path: request.path } };
  const call = readCall(operation, body, outTradeNo, outRefundNo);
  return typeof call === 'string' ? refuse('INVALID_REQUEST', call) : { ok: true, call };
}

/** @returns what is wrong with the request's signature, or undefined */
function checkAuthorization(
  account: Account,
  request: IncomingRequest,
  now: Date,
): string | undefined {
  const header = request.headers['authorization'];
  const scheme = 'MOCKPAY-HMAC-SHA256 ';
  if (typeof header !== 'string' || !header.startsWith(scheme)) return 'no Authorization';
  const parts = new Map<string, string>();
  for (const [, name, value] of header.slice(scheme.length).matchAll(/([a-z]+)="([^"]*)"/g)) {
    if (name !== undefined && value !== undefined) parts.set(name, value);
  }
  const part = (name: string): string => parts.get(name) ?? '';
  if (part('mchid') !== account.accountId) return 'mchid of the Authorization is not ours';
  const key = keyOfSerial(account.keys, part('serial'));
  if (key === undefined) return 'unknown key serial';
  const signed = Buffer.concat([
    Buffer.from(`${request.method}\n${request.path}\n${part('timestamp')}\n${part('nonce')}\n`),
    request.body,
    Buffer.from('\n'),
  ]);
  if (!sameHex(hmacHex(key, signed), part('signature'))) return 'signature';
  return isTimely(part('timestamp'), now) ? undefined : 'timestamp';
}

/** The call, or what is wrong with it. */
function readCall(
  operation: Operation,
  body: Json,
  outTradeNo: string,
  outRefundNo: string,
): ReadCall | string {
  const text = (name: string): string | null => {
    const value = body[name];
    return typeof value === 'string' ? value : null;
  };
  const ofRefund = operation === 'refund' || operation === 'refund_query';
  if (ofRefund && !OUR_NUMBER.test(outRefundNo)) return 'out_refund_no';
  if (operation !== 'refund_query' && !OUR_NUMBER.test(outTradeNo)) return 'out_trade_no';
  const amount = (body['amount'] ?? {}) as Json;
  const currency = amount['currency'];
  switch (operation) {
    case 'create': {
      const expiresAt = text('time_expire') ?? '';
      const subject = text('description') ?? '';
      const method = text('method') ?? 'native';
      if (!isAmountMinor(amount['total'])) return 'amount.total';
      if (typeof currency !== 'string' || !isCurrency(currency)) return 'amount.currency';
      if (!isInstant(expiresAt)) return 'time_expire';
      if (subject === '') return 'description';
      if (method !== 'native' && method !== 'web') return 'method';
      return {
        operation,
        order: {
          dialect: 'mock-b',
          outTradeNo,
          subject,
          amountMinor: amount['total'],
          currency,
          expiresAt: new Date(expiresAt).toISOString(),
          payMethod: method === 'web' ? 'redirect' : 'qr_code',
          returnUrl: text('return_url'),
        },
      };
    }
    case 'query':
    case 'close':
      return { operation, outTradeNo };
    case 'refund':
      if (!isAmountMinor(amount['refund'])) return 'amount.refund';
      if (!isAmountMinor(amount['total'])) return 'amount.total';
      if (typeof currency !== 'string' || !isCurrency(currency)) return 'amount.currency';
      return {
        operation,
        order: {
          dialect: 'mock-b',
          outTradeNo,
          outRefundNo,
          channelTradeNo: text('transaction_id'),
          amountMinor: amount['refund'],
          currency,
        },
      };
    case 'refund_query':
      return { operation, outRefundNo, outTradeNo: null };
    case 'bill':
    case 'bill_file':
    case 'unknown':
      return 'no such address';
  }
}

function parseObject(bytes: Buffer): Json | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Json)
      : undefined;
  } catch {
    return undefined;
  }
}

function buildCallback(
  account: Account,
  notice: Notice,
  overrides: CallbackOverrides,
  now: Date,
): WireMessage {
  const key = callbackKey(account.keys, overrides.key);
  const content = overriddenContent(notice, overrides);
  let plaintext = overrides.resourceText ?? JSON.stringify(content);
  if (overrides.bareTradeNo) plaintext = withBareNumber(plaintext, 'transaction_id');
  const word = String(content[wordField(notice.kind)] ?? '');
  const payment = notice.kind === 'payment';
  const envelope = {
    id: overrides.notifyId ?? notice.noticeId,
    create_time: now.toISOString(),
    event_type: `${payment ? 'TRANSACTION' : 'REFUND'}.${word}`,
    resource_type: 'encrypt-resource',
    resource: encryptResource(key, plaintext, payment ? 'transaction' : 'refund'),
  };
  const body =
    overrides.bodyBase64 === undefined
      ? Buffer.from(JSON.stringify(envelope), 'utf8')
      : Buffer.from(overrides.bodyBase64, 'base64');
  return { headers: signedHeaders(key, body, overrides, now), body };
}

/** Takes the quotes off a field that holds digits only. */
export function withBareNumber(json: string, field: string): string {
  return json.replace(new RegExp(`"${field}":"([0-9]+)"`), `"${field}":$1`);
}

function overriddenContent(notice: Notice, overrides: CallbackOverrides): Content {
  const content = structuredClone(notice.content);
  const amountField = notice.kind === 'payment' ? 'amount.total' : 'amount.refund';
  const changes: Record<string, unknown> = {
    [amountField]: overrides.amountText ?? overrides.amountMinor,
    'amount.currency': overrides.currency,
    [wordField(notice.kind)]: overrides.word,
    out_trade_no: overrides.outTradeNo,
    out_refund_no: overrides.outRefundNo,
    transaction_id: overrides.channelTradeNo,
    mchid: overrides.accountId,
    appid: overrides.appId,
    description: overrides.subject,
    ...overrides.fields,
  };
  for (const [path, value] of Object.entries(changes)) {
    if (value !== undefined) setPath(content, path.split('.'), value);
  }
  return content;
}

function setPath(target: Content, path: string[], value: unknown): void {
  const [head, ...rest] = path;
  if (head === undefined) return;
  if (rest.length > 0) {
    const inner = target[head];
    const next = typeof inner === 'object' && inner !== null ? (inner as Content) : {};
    target[head] = next;
    setPath(next, rest, value);
  } else if (value === null) delete target[head];
  else target[head] = value;
}
