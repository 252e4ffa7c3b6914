import { randomBytes } from 'node:crypto';
import type {
  LearntFrom,
  PaymentFact,
  PaymentFactState,
  RefundFact,
  RefundFactState,
} from '../domain/channel-facts';
import type { ChannelRow } from '../domain/channel-policy';
import { MOCK_POLICY, gatewayOf, keyList, sharedKeysOf } from './adapter';
import type { AdapterDeps, ChannelAdapter } from './adapter';
import type {
  CallbackHeaders,
  CallbackReading,
  ChannelAnswer,
  PayParameters,
  PayParametersHolder,
  PaymentChannel,
} from './contract';
import { hasValue, parseExactJson, readInteger, readObject, readText } from './exact-json';
import type { ExactJsonObject } from './exact-json';
import {
  paymentNotFound,
  readPaymentFact,
  readRefundFact,
  refundWithoutRecord,
} from './fact-reading';
import type { FactSource, PaymentFields, ReadAmount, RefundFields } from './fact-reading';
import { readRetryAfter, sortByHttp, unreadable } from './http-answer';
import type { NoAnswer } from './http-answer';
import type { HttpExchange, HttpRequest } from './http-client';
import { hmacHex, isFresh, isSignedWithAny } from './message-authenticity';
import { openMockBBill } from './mock-b-bill';
import { keySerial, openResource } from './mock-b-cipher';
import { isAlreadyKnown, refusedRefundState } from './mock-refusals';

/*
 * Dialect `mock-b`: JSON, integer minor units, signatures with a key serial in headers, callbacks
 * with an encrypted body. Protocol: mock-channel/PROTOCOL.md, section 2.
 */

const SCHEME = 'MOCKPAY-HMAC-SHA256';
const SIGNATURE_TYPE = 'HMAC-SHA256';

const PAYMENT_WORDS: Readonly<Record<string, PaymentFactState>> = {
  NOTPAY: 'pending',
  UNDER_REVIEW: 'pending',
  SUCCESS: 'paid',
  CLOSED: 'closed',
  PAYERROR: 'failed',
  REVERSED: 'reversed',
  REINSTATED: 'reinstated',
};

const REFUND_WORDS: Readonly<Record<string, RefundFactState>> = {
  PROCESSING: 'processing',
  SUCCESS: 'succeeded',
  CLOSED: 'failed',
  ABNORMAL: 'abnormal',
  RETURNED: 'returned',
};

/** What the channel answered, once its signature is verified. */
type Answer =
  | { code: 'success'; json: ExactJsonObject }
  | { code: 'refusal'; word: string; sentence: string; retryAfterMs: number | null };

type SignedHeaders = Record<string, string | string[] | undefined>;

export const mockB: ChannelAdapter = { defaultPolicy: MOCK_POLICY, create: createMockB };

/**
 * A channel that speaks `mock-b`. The row's `gatewayUrl` is the server's address without a path;
 * secrets: `current`, and `previous` while a key is being changed.
 *
 * @throws ChannelConfigurationError when the secret `current` is missing
 */
export function createMockB(
  row: ChannelRow,
  secrets: Record<string, string>,
  deps: AdapterDeps,
): PaymentChannel {
  const keys = sharedKeysOf(row, secrets);
  const gateway = gatewayOf(row);
  const keyBySerial = new Map(keyList(keys).map((key) => [keySerial(key), key]));
  const byMerchant = `?mchid=${encodeURIComponent(row.accountId)}`;

  const sourceOf = (learntFrom: LearntFrom): FactSource => ({
    channel: row.channel,
    learntFrom,
    learntAt: deps.now(),
    eventId: null,
  });

  function requestOf(
    method: 'GET' | 'POST',
    pathAndQuery: string,
    content: object | undefined,
    signal: AbortSignal | undefined,
  ): HttpRequest {
    const body = content === undefined ? '' : JSON.stringify(content);
    const timestamp = String(Math.floor(deps.now().getTime() / 1_000));
    // Names this sending, not the payment: the same call sent again carries a new one.
    const nonce = randomBytes(16).toString('hex');
    const signature = hmacHex(
      keys.current,
      [method, pathAndQuery, timestamp, nonce, body, ''].join('\n'),
    );
    const claims = { mchid: row.accountId, serial: keySerial(keys.current), timestamp, nonce };
    const authorization = Object.entries({ ...claims, signature })
      .map(([name, value]) => `${name}="${value}"`)
      .join(',');
    return {
      method,
      url: new URL(pathAndQuery, gateway).href,
      headers: {
        accept: 'application/json',
        authorization: `${SCHEME} ${authorization}`,
        ...(content === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: Buffer.from(body),
      signal,
    };
  }

  /** Signs and sends one call; the answer comes back verified or not at all. */
  async function call(
    method: 'GET' | 'POST',
    pathAndQuery: string,
    content: object | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Answer | NoAnswer> {
    return readAnswer(await deps.http(requestOf(method, pathAndQuery, content, signal)));
  }

  function readAnswer(exchange: HttpExchange): Answer | NoAnswer {
    const sorted = sortByHttp(exchange, deps.now());
    if ('noAnswer' in sorted) return sorted.noAnswer;
    const { status, headers, body: answer } = sorted.readable;
    // The window on the timestamp is for callbacks, which anybody may send again; an answer comes
    // on our own connection, and a clock that is off must not turn every answer into "unknown".
    if (!verifiedKey(keyBySerial, headers, answer)) {
      return unreadable(`unsigned_answer: http_${status}`);
    }
    const json = parseExactJson(answer.toString('utf8'));
    if (!json) return unreadable('answer_not_json');
    if (status < 300) return { code: 'success', json };
    const word = readText(json, 'code');
    if (word === undefined) return unreadable('answer_without_code');
    const retryAfterMs = readRetryAfter(headers['retry-after'], deps.now());
    return { code: 'refusal', word, sentence: readText(json, 'message') ?? '', retryAfterMs };
  }

  async function paymentCall(
    learntFrom: LearntFrom,
    outTradeNo: string,
    said: Answer | NoAnswer,
  ): Promise<ChannelAnswer<PaymentFact> & PayParametersHolder> {
    if ('outcome' in said) return said;
    if (said.code === 'refusal') {
      if (said.word !== 'TRADE_NOT_EXIST' || learntFrom === 'submit') return refused(said.word);
      const fact = paymentNotFound(sourceOf(learntFrom), outTradeNo, said.word);
      return { outcome: 'answered', fact };
    }
    const reading = readPaymentFact(sourceOf(learntFrom), PAYMENT_WORDS, paymentFields(said.json));
    if ('missing' in reading) return unreadable(`answer_without: ${reading.missing}`);
    if (reading.fact.outTradeNo !== outTradeNo) return unreadable('other_number');
    const payParameters = learntFrom === 'submit' ? payParametersOf(said.json) : undefined;
    return { outcome: 'answered', fact: reading.fact, ...(payParameters && { payParameters }) };
  }

  function refundAnswer(
    learntFrom: LearntFrom,
    numbers: { outRefundNo: string; outTradeNo: string },
    said: Answer | NoAnswer,
  ): ChannelAnswer<RefundFact> {
    if ('outcome' in said) return said;
    const source = sourceOf(learntFrom);
    if (said.code === 'refusal') {
      const state = refusedRefundState(learntFrom, said.word);
      if (state === undefined) return refused(said.word);
      return { outcome: 'answered', fact: refundWithoutRecord(source, state, numbers, said.word) };
    }
    const reading = readRefundFact(source, REFUND_WORDS, refundFields(said.json));
    if ('missing' in reading) return unreadable(`answer_without: ${reading.missing}`);
    if (reading.fact.outRefundNo !== numbers.outRefundNo) return unreadable('other_number');
    return { outcome: 'answered', fact: reading.fact };
  }

  const transactions = '/v3/pay/transactions';
  const byOurNumber = (outTradeNo: string) =>
    `${transactions}/out-trade-no/${encodeURIComponent(outTradeNo)}`;
  const refunds = '/v3/refund/domestic/refunds';

  return {
    async createPayment(attempt) {
      const content = {
        appid: row.appId,
        mchid: row.accountId,
        out_trade_no: attempt.outTradeNo,
        description: attempt.subject,
        time_expire: attempt.expiresAt,
        amount: { total: attempt.amountMinor, currency: attempt.currency },
        method: attempt.method ?? undefined,
        return_url: attempt.returnUrl ?? undefined,
        payer_client_ip: attempt.clientIp ?? undefined,
      };
      const said = await call('POST', transactions, content, attempt.signal);
      return paymentCall('submit', attempt.outTradeNo, said);
    },
    async queryPayment({ outTradeNo, signal }) {
      const said = await call('GET', byOurNumber(outTradeNo) + byMerchant, undefined, signal);
      return paymentCall('query', outTradeNo, said);
    },
    async closePayment({ outTradeNo, signal }) {
      const content = { mchid: row.accountId };
      const said = await call('POST', `${byOurNumber(outTradeNo)}/close`, content, signal);
      return paymentCall('close', outTradeNo, said);
    },
    async createRefund(refund) {
      const content = {
        mchid: row.accountId,
        out_trade_no: refund.outTradeNo,
        transaction_id: refund.channelTradeNo,
        out_refund_no: refund.outRefundNo,
        reason: refund.reason === '' ? undefined : refund.reason,
        amount: {
          refund: refund.amountMinor,
          total: refund.captureAmountMinor,
          currency: refund.currency,
        },
      };
      return refundAnswer('submit', refund, await call('POST', refunds, content, refund.signal));
    },
    async queryRefund(query) {
      const path = `${refunds}/${encodeURIComponent(query.outRefundNo)}${byMerchant}`;
      return refundAnswer('query', query, await call('GET', path, undefined, query.signal));
    },
    async openTradeBill({ day, signal }) {
      const path = `/v3/bill/tradebill${byMerchant}&bill_date=${encodeURIComponent(day)}`;
      const said = await call('GET', path, undefined, signal);
      return openMockBBill({ row, day }, said, async (filePath) => {
        const exchange = await deps.download(requestOf('GET', filePath, undefined, signal));
        return { exchange, readAnswer };
      });
    },
    readCallback(rawBody, headers, now) {
      try {
        return readMockBCallback(row.channel, keyBySerial, rawBody, headers, now);
      } catch {
        return { ok: false, status: 400, reason: 'unreadable' };
      }
    },
    acknowledgement: {
      status: 200,
      contentType: 'application/json',
      body: '{"code":"SUCCESS","message":"OK"}',
    },
    defaultPolicy: MOCK_POLICY,
    callbackContentType: 'application/json',
  };
}

/** The key that signed the body, by the serial in the headers; undefined when it did not. */
function verifiedKey(
  keyBySerial: ReadonlyMap<string, string>,
  headers: SignedHeaders,
  body: Buffer,
): string | undefined {
  const header = (name: string) => {
    const value = headers[`mockpay-${name}`];
    return typeof value === 'string' ? value : undefined;
  };
  const [timestamp, nonce, signature] = [header('timestamp'), header('nonce'), header('signature')];
  const key = keyBySerial.get(header('serial') ?? '');
  const isComplete =
    header('signature-type') === SIGNATURE_TYPE &&
    timestamp !== undefined &&
    nonce !== undefined &&
    signature !== undefined;
  if (key === undefined || !isComplete) return undefined;
  const isSigned = isSignedWithAny([key], signature, [`${timestamp}\n${nonce}\n`, body, '\n']);
  return isSigned ? key : undefined;
}

function readMockBCallback(
  channel: string,
  keyBySerial: ReadonlyMap<string, string>,
  rawBody: Buffer,
  headers: CallbackHeaders,
  now: Date,
): CallbackReading {
  const key = verifiedKey(keyBySerial, headers, rawBody);
  if (key === undefined) return { ok: false, status: 401, reason: 'bad_signature' };
  if (!isFresh(headers['mockpay-timestamp'], now)) {
    return { ok: false, status: 401, reason: 'timestamp' };
  }
  const notice = parseUtf8Json(rawBody);
  const resource = notice && readObject(notice, 'resource');
  if (!notice || !resource) return { ok: false, status: 400, reason: 'malformed' };
  const plaintext = openResource(key, resource);
  const content = plaintext && parseUtf8Json(plaintext);
  if (!content) return { ok: false, status: 400, reason: 'resource' };

  // The authenticated label and the label outside must agree on what is inside.
  const eventType = readText(notice, 'event_type') ?? '';
  const kind = readText(resource, 'associated_data');
  const isTransaction = kind === 'transaction' && eventType.startsWith('TRANSACTION.');
  const isRefund = kind === 'refund' && eventType.startsWith('REFUND.');
  if (!isTransaction && !isRefund) return { ok: false, status: 400, reason: 'event_type' };

  const eventId = readText(notice, 'id') ?? null;
  const source: FactSource = { channel, learntFrom: 'callback', learntAt: now, eventId };
  const reading = isTransaction
    ? readPaymentFact(source, PAYMENT_WORDS, paymentFields(content))
    : readRefundFact(source, REFUND_WORDS, refundFields(content));
  if ('missing' in reading) return { ok: false, status: 400, reason: `no ${reading.missing}` };
  return { ok: true, fact: reading.fact };
}

function parseUtf8Json(bytes: Buffer): ExactJsonObject | undefined {
  try {
    return parseExactJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

function paymentFields(json: ExactJsonObject): PaymentFields {
  const amount = readObject(json, 'amount') ?? {};
  return {
    accountId: readText(json, 'mchid'),
    appId: readText(json, 'appid'),
    word: readText(json, 'trade_state'),
    outTradeNo: readText(json, 'out_trade_no'),
    channelTradeNo: readText(json, 'transaction_id'),
    currency: readText(amount, 'currency'),
    amount: readAmount(amount, 'total'),
    payerTotal: readAmount(amount, 'payer_total'),
    reversed: readAmount(json, 'reversed'),
    paidAt: readText(json, 'success_time'),
  };
}

function refundFields(json: ExactJsonObject): RefundFields {
  const amount = readObject(json, 'amount') ?? {};
  return {
    accountId: readText(json, 'mchid'),
    appId: readText(json, 'appid'),
    word: readText(json, 'status'),
    outRefundNo: readText(json, 'out_refund_no'),
    channelRefundNo: readText(json, 'refund_id'),
    outTradeNo: readText(json, 'out_trade_no'),
    channelTradeNo: readText(json, 'transaction_id'),
    currency: readText(amount, 'currency'),
    amount: readAmount(amount, 'refund'),
    refusalCode: readText(json, 'fail_code'),
  };
}

function payParametersOf(json: ExactJsonObject): PayParameters | undefined {
  const code = readText(json, 'code_url');
  if (code !== undefined) return { type: 'qr_code', value: code, expiresAt: null };
  const url = readText(json, 'redirect_url');
  if (url === undefined || !/^https?:\/\//.test(url)) return undefined;
  return { type: 'redirect', value: url, expiresAt: null };
}

function readAmount(json: ExactJsonObject, key: string): ReadAmount {
  if (!hasValue(json, key)) return 'absent';
  const minor = readInteger(json, key);
  return minor === undefined || minor < 0 ? 'unreadable' : minor;
}

function refused(word: string): ChannelAnswer<never> {
  return { outcome: 'refused', code: word.slice(0, 64), alreadyKnown: isAlreadyKnown(word) };
}
