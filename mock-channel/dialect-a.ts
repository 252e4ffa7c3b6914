import { decode, encode } from 'iconv-lite';
import { formatDecimal, isCurrency, parseDecimal } from '../domain/money';
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
import {
  hmacHex,
  parseRawForm,
  sameHex,
  signedBytes,
  writeRawForm,
  type RawParameter,
} from './signing';

const TRADE_WORDS: Record<TradeState, string> = {
  pending: 'WAIT_BUYER_PAY',
  under_review: 'UNDER_REVIEW',
  paid: 'TRADE_SUCCESS',
  failed: 'TRADE_FAILED',
  closed: 'TRADE_CLOSED',
  reversed: 'TRADE_REVERSED',
  reinstated: 'TRADE_REINSTATED',
};

const REFUND_WORDS: Record<RefundStatus, string> = {
  processing: 'REFUND_PROCESSING',
  succeeded: 'REFUND_SUCCESS',
  failed: 'REFUND_FAIL',
  abnormal: 'REFUND_ABNORMAL',
  returned: 'REFUND_RETURNED',
};

const OPERATIONS: Record<string, Exclude<Operation, 'unknown'>> = {
  'trade.create': 'create',
  'trade.query': 'query',
  'trade.close': 'close',
  'refund.create': 'refund',
  'refund.query': 'refund_query',
  'bill.download': 'bill',
};

const FORM = 'application/x-www-form-urlencoded';
const bytes = (text: string): Buffer => Buffer.from(text, 'utf8');

/** Dialect mock-a: form-encoded, decimal text, signed over raw bytes (PROTOCOL.md section 1). */
export const dialectA: DialectFormat = {
  dialect: 'mock-a',
  acknowledgement: { contentType: 'text/plain', body: 'success' },
  tradeNoField: 'trade_no',
  refundNoField: 'refund_no',
  closedWord: TRADE_WORDS.closed,
  paidWord: TRADE_WORDS.paid,
  readRequest,

  tradeContent(account, trade, capture) {
    const currency = capture?.currency ?? trade.currency;
    const content: Content = {
      app_id: account.appId,
      seller_id: account.accountId,
      out_trade_no: trade.outTradeNo,
      trade_no: capture?.channelTradeNo ?? trade.channelTradeNo,
      trade_status: TRADE_WORDS[tradeState(trade, capture)],
      total_amount: formatDecimal(capture?.amountMinor ?? trade.amountMinor, currency),
      currency,
      subject: trade.subject,
    };
    if (!capture) return content;
    return {
      ...content,
      payer_total: formatDecimal(capture.payerTotalMinor, currency),
      gmt_payment: capture.capturedAt,
      refunded_amount: formatDecimal(capture.refundedMinor, currency),
      reversed_amount: formatDecimal(capture.reversedMinor, currency),
    };
  },

  refundContent(account, refund) {
    return {
      app_id: account.appId,
      seller_id: account.accountId,
      out_trade_no: refund.outTradeNo,
      trade_no: refund.channelTradeNo,
      out_refund_no: refund.outRefundNo,
      refund_no: refund.channelRefundNo,
      refund_amount: formatDecimal(refund.amountMinor, refund.currency),
      currency: refund.currency,
      refund_status: REFUND_WORDS[refund.status],
      ...(refund.finishedAt ? { gmt_refund: refund.finishedAt } : {}),
      ...(refund.failCode ? { fail_code: refund.failCode } : {}),
    };
  },

  payParameters: (_trade, payUrl) => ({ pay_url: payUrl }),
  setWord: (content, kind, word) => ({ ...content, [wordField(kind)]: word }),
  wordOf: (content, kind) => String(content[wordField(kind)]),

  refusal: (code, why, numbers) => ({
    code: '40004',
    msg: 'Business Failed',
    sub_code: code,
    sub_msg: why,
    ...numbers,
  }),

  answerText: (content) =>
    JSON.stringify('sub_code' in content ? content : { code: '10000', msg: 'Success', ...content }),

  signAnswer: (account, body) => ({
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'x-mock-a-sign-type': 'HMAC-SHA256',
      'x-mock-a-sign': hmacHex(account.keys.current, body),
    },
    body,
  }),

  billAnswer: (account, { day, charset, fileName }) => ({
    headers: {
      'content-type': `text/csv; charset=${charset}`,
      'x-mock-a-bill-date': day,
      'x-mock-a-bill-name': fileName,
      'x-mock-a-sign-type': 'HMAC-SHA256',
      'x-mock-a-sign': hmacHex(
        account.keys.current,
        `${account.accountId}\n${day}\n${charset}\n${fileName}\n`,
      ),
    },
  }),

  buildCallback,
};

function wordField(kind: 'payment' | 'refund'): string {
  return kind === 'payment' ? 'trade_status' : 'refund_status';
}

function readRequest(account: Account, request: IncomingRequest, now: Date): Reading {
  const form = parseRawForm(request.body);
  const charset = form && rawValue(form, 'charset')?.toString('latin1').toLowerCase();
  const fields = new Map<string, string>();
  for (const { key, value } of form ?? []) {
    fields.set(
      key.toString('latin1'),
      charset === 'gbk' ? decode(value, 'gbk') : value.toString('utf8'),
    );
  }
  const field = (name: string): string => fields.get(name) ?? '';
  const operation = OPERATIONS[field('method')] ?? 'unknown';
  const refuse = (
    code: 'INVALID_SIGNATURE' | 'INVALID_REQUEST' | 'ACCOUNT_MISMATCH',
    why: string,
  ): Reading => ({
    ok: false,
    code,
    why,
    operation,
    outTradeNo: fields.get('out_trade_no') ?? null,
    outRefundNo: fields.get('out_refund_no') ?? null,
  });

  if (request.method !== 'POST' || request.path !== '/gateway') {
    return refuse('INVALID_REQUEST', 'the address is POST /gateway');
  }
  if (!form || fields.size !== form.length) {
    return refuse('INVALID_REQUEST', 'malformed escape, or a parameter twice');
  }
  if (field('sign_type') !== 'HMAC-SHA256') return refuse('INVALID_SIGNATURE', 'sign_type');
  const signed = signedBytes(form);
  const keys = [account.keys.current, account.keys.previous].filter((key) => key !== null);
  if (!keys.some((key) => sameHex(hmacHex(key, signed), field('sign')))) {
    return refuse('INVALID_SIGNATURE', 'sign does not fit the parameters');
  }
  if (!isTimely(field('timestamp'), now)) return refuse('INVALID_SIGNATURE', 'timestamp');
  if (charset !== undefined && charset !== 'utf-8' && charset !== 'gbk') {
    return refuse('INVALID_REQUEST', 'charset is utf-8 or gbk');
  }
  if (field('app_id') !== account.appId || field('seller_id') !== account.accountId) {
    return refuse('ACCOUNT_MISMATCH', 'app_id or seller_id is not ours');
  }
  const call = readCall(operation, field);
  return typeof call === 'string' ? refuse('INVALID_REQUEST', call) : { ok: true, call };
}

/** The call, or what is wrong with it. */
function readCall(operation: Operation, field: (name: string) => string): ReadCall | string {
  if (operation === 'bill') {
    const day = field('bill_date');
    return isDate(day) ? { operation, day } : 'bill_date';
  }
  const outTradeNo = field('out_trade_no');
  const outRefundNo = field('out_refund_no');
  const ofRefund = operation === 'refund' || operation === 'refund_query';
  if (ofRefund && !OUR_NUMBER.test(outRefundNo)) return 'out_refund_no';
  if (operation !== 'refund_query' && !OUR_NUMBER.test(outTradeNo)) return 'out_trade_no';
  const currency = field('currency');
  const amountMinor = isCurrency(currency)
    ? parseDecimal(field(operation === 'create' ? 'total_amount' : 'refund_amount'), currency)
    : undefined;
  const amountOk = amountMinor !== undefined && amountMinor >= 1;
  switch (operation) {
    case 'create': {
      if (!amountOk) return 'total_amount or currency';
      if (!isInstant(field('time_expire'))) return 'time_expire';
      if (field('subject') === '') return 'subject';
      if (!['', 'redirect'].includes(field('product'))) return 'product';
      return {
        operation,
        order: {
          dialect: 'mock-a',
          outTradeNo,
          subject: field('subject'),
          amountMinor,
          currency,
          expiresAt: new Date(field('time_expire')).toISOString(),
          payMethod: 'redirect',
          returnUrl: field('return_url') || null,
        },
      };
    }
    case 'query':
    case 'close':
      return { operation, outTradeNo };
    case 'refund':
      if (!amountOk) return 'refund_amount or currency';
      return {
        operation,
        order: {
          dialect: 'mock-a',
          outTradeNo,
          outRefundNo,
          channelTradeNo: field('trade_no') || null,
          amountMinor,
          currency,
        },
      };
    case 'refund_query':
      return { operation, outRefundNo, outTradeNo: outTradeNo || null };
    case 'bill_file':
    case 'unknown':
      return 'method';
  }
}

function rawValue(form: RawParameter[], name: string): Buffer | undefined {
  return form.find(({ key }) => key.toString('latin1') === name)?.value;
}

function buildCallback(
  account: Account,
  notice: Notice,
  overrides: CallbackOverrides,
  now: Date,
): WireMessage {
  const charset = overrides.charset ?? 'utf-8';
  const charsetIn = overrides.charsetIn ?? 'both';
  const timestamp = claimedTimestamp(overrides, now);
  const fields: Content = {
    notify_id: overrides.notifyId ?? notice.noticeId,
    notify_type: notice.kind === 'payment' ? 'trade_status_sync' : 'refund_status_sync',
    notify_time: new Date(
      now.getTime() + (overrides.timestampShiftSeconds ?? 0) * 1000,
    ).toISOString(),
    ...(timestamp === undefined ? {} : { timestamp }),
    ...(charsetIn === 'field' || charsetIn === 'both' ? { charset } : {}),
    ...notice.content,
    ...overriddenContent(notice, overrides),
  };
  for (const [name, value] of Object.entries(overrides.fields ?? {})) {
    if (value === null) delete fields[name];
    else fields[name] = value;
  }
  const form =
    overrides.resourceText === undefined
      ? Object.entries(fields).map(([name, value]) => ({
          key: bytes(name),
          value: charset === 'gbk' ? encode(String(value), 'gbk') : bytes(String(value)),
        }))
      : (parseRawForm(bytes(overrides.resourceText)) ?? []);
  const key = callbackKey(account.keys, overrides.key);
  const sign = spoilSignature(
    hmacHex(key, signedBytes(form)),
    () => hmacHex(key, 'out_trade_no=another'),
    overrides.signature,
  );
  const signType = overrides.signType === undefined ? 'HMAC-SHA256' : overrides.signType;
  if (signType !== null) form.push({ key: bytes('sign_type'), value: bytes(signType) });
  if (sign !== undefined) form.push({ key: bytes('sign'), value: bytes(sign) });
  const contentType =
    overrides.contentType === undefined
      ? FORM + (charsetIn === 'header' || charsetIn === 'both' ? `; charset=${charset}` : '')
      : overrides.contentType;
  return {
    headers: contentType === null ? {} : { 'content-type': contentType },
    body:
      overrides.bodyBase64 === undefined
        ? writeRawForm(form)
        : Buffer.from(overrides.bodyBase64, 'base64'),
  };
}

function overriddenContent(notice: Notice, overrides: CallbackOverrides): Content {
  const changed: Content = {};
  const set = (name: string, value: string | undefined): void => {
    if (value !== undefined) changed[name] = value;
  };
  const currency = overrides.currency ?? notice.currency;
  const amount =
    overrides.amountText ??
    (overrides.amountMinor === undefined
      ? undefined
      : formatDecimal(overrides.amountMinor, currency));
  set(notice.kind === 'payment' ? 'total_amount' : 'refund_amount', amount);
  set('currency', overrides.currency);
  set(wordField(notice.kind), overrides.word);
  set('out_trade_no', overrides.outTradeNo);
  set('out_refund_no', overrides.outRefundNo);
  set('trade_no', overrides.channelTradeNo);
  set('seller_id', overrides.accountId);
  set('app_id', overrides.appId);
  set('subject', overrides.subject);
  return changed;
}
