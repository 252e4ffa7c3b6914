import type {
  LearntFrom,
  PaymentFact,
  PaymentFactState,
  RefundFact,
  RefundFactState,
} from '../domain/channel-facts';
import type { ChannelRow } from '../domain/channel-policy';
import { formatDecimal, isCurrency, parseDecimal } from '../domain/money';
import { MOCK_POLICY, gatewayOf, keyList, sharedKeysOf } from './adapter';
import type { AdapterDeps, ChannelAdapter } from './adapter';
import type {
  CallbackHeaders,
  CallbackReading,
  ChannelAnswer,
  PayParametersHolder,
  PaymentChannel,
} from './contract';
import { parseExactJson, readText } from './exact-json';
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
import { isFresh, isSignedWithAny } from './message-authenticity';
import type { SharedKeys } from './message-authenticity';
import { openMockABill } from './mock-a-bill';
import {
  SIGN_TYPE,
  asciiField,
  bytesToSign,
  decodeForm,
  parseFormBytes,
  signedForm,
} from './mock-a-form';
import { isAlreadyKnown, refusedRefundState } from './mock-refusals';

/*
 * Dialect `mock-a`: form-encoded requests and callbacks, amounts as decimal text, JSON answers.
 * Protocol: mock-channel/PROTOCOL.md, section 1.
 */

const PAYMENT_WORDS: Readonly<Record<string, PaymentFactState>> = {
  WAIT_BUYER_PAY: 'pending',
  UNDER_REVIEW: 'pending',
  TRADE_SUCCESS: 'paid',
  TRADE_CLOSED: 'closed',
  TRADE_FAILED: 'failed',
  TRADE_REVERSED: 'reversed',
  TRADE_REINSTATED: 'reinstated',
};

const REFUND_WORDS: Readonly<Record<string, RefundFactState>> = {
  REFUND_PROCESSING: 'processing',
  REFUND_SUCCESS: 'succeeded',
  REFUND_FAIL: 'failed',
  REFUND_ABNORMAL: 'abnormal',
  REFUND_RETURNED: 'returned',
};

/** Reads a field of a message: own name → text, undefined when absent or empty. */
type Fields = (name: string) => string | undefined;

/** What the channel answered, once its signature is verified. */
type Answer =
  | { code: 'success'; read: Fields }
  | { code: 'refusal'; word: string; sentence: string; retryAfterMs: number | null };

export const mockA: ChannelAdapter = { defaultPolicy: MOCK_POLICY, create: createMockA };

/**
 * A channel that speaks `mock-a`. The row's `gatewayUrl` is the server's address without a path;
 * secrets: `current`, and `previous` while a key is being changed.
 *
 * @throws ChannelConfigurationError when the secret `current` is missing
 */
export function createMockA(
  row: ChannelRow,
  secrets: Record<string, string>,
  deps: AdapterDeps,
): PaymentChannel {
  const keys = sharedKeysOf(row, secrets);
  const gateway = new URL('/gateway', gatewayOf(row)).href;

  const sourceOf = (learntFrom: LearntFrom): FactSource => ({
    channel: row.channel,
    learntFrom,
    learntAt: deps.now(),
    eventId: null,
  });

  function requestOf(
    method: string,
    parameters: Record<string, string | null>,
    signal: AbortSignal | undefined,
  ): HttpRequest {
    const body = signedForm(keys, {
      app_id: row.appId,
      seller_id: row.accountId,
      method,
      charset: 'utf-8',
      timestamp: String(Math.floor(deps.now().getTime() / 1_000)),
      ...withoutNulls(parameters),
    });
    return {
      method: 'POST',
      url: gateway,
      headers: { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' },
      body,
      signal,
    };
  }

  /** Signs and sends one call; the answer comes back verified or not at all. */
  async function call(
    method: string,
    parameters: Record<string, string | null>,
    signal: AbortSignal | undefined,
  ): Promise<Answer | NoAnswer> {
    return readAnswer(await deps.http(requestOf(method, parameters, signal)));
  }

  function readAnswer(exchange: HttpExchange): Answer | NoAnswer {
    const sorted = sortByHttp(exchange, deps.now());
    if ('noAnswer' in sorted) return sorted.noAnswer;
    const { headers, body: answer, status } = sorted.readable;

    const signType = headers['x-mock-a-sign-type'];
    const sign = headers['x-mock-a-sign'];
    const isSigned =
      signType === SIGN_TYPE &&
      typeof sign === 'string' &&
      isSignedWithAny(keyList(keys), sign, [answer]);
    if (!isSigned) return unreadable(`unsigned_answer: http_${status}`);

    const json = parseExactJson(answer.toString('utf8'));
    if (!json) return unreadable('answer_not_json');
    const read: Fields = (name) => readText(json, name);
    if (read('code') === '10000' && status < 300) return { code: 'success', read };
    const word = read('sub_code');
    if (status < 400 || word === undefined) return unreadable('answer_without_code');
    const retryAfterMs = readRetryAfter(headers['retry-after'], deps.now());
    return { code: 'refusal', word, sentence: read('sub_msg') ?? '', retryAfterMs };
  }

  async function paymentCall(
    method: string,
    learntFrom: LearntFrom,
    outTradeNo: string,
    parameters: Record<string, string | null>,
    signal: AbortSignal | undefined,
  ): Promise<{ answer: ChannelAnswer<PaymentFact>; read?: Fields }> {
    const said = await call(method, { out_trade_no: outTradeNo, ...parameters }, signal);
    if ('outcome' in said) return { answer: said };
    if (said.code === 'refusal') {
      if (said.word === 'TRADE_NOT_EXIST' && learntFrom !== 'submit') {
        const fact = paymentNotFound(sourceOf(learntFrom), outTradeNo, said.word);
        return { answer: { outcome: 'answered', fact } };
      }
      return { answer: refused(said.word) };
    }
    const reading = readPaymentFact(sourceOf(learntFrom), PAYMENT_WORDS, paymentFields(said.read));
    if ('missing' in reading) return { answer: unreadable(`answer_without: ${reading.missing}`) };
    if (reading.fact.outTradeNo !== outTradeNo) return { answer: unreadable('other_number') };
    return { answer: { outcome: 'answered', fact: reading.fact }, read: said.read };
  }

  async function refundCall(
    method: string,
    learntFrom: LearntFrom,
    numbers: { outRefundNo: string; outTradeNo: string },
    parameters: Record<string, string | null>,
    signal: AbortSignal | undefined,
  ): Promise<ChannelAnswer<RefundFact>> {
    const said = await call(
      method,
      { out_refund_no: numbers.outRefundNo, out_trade_no: numbers.outTradeNo, ...parameters },
      signal,
    );
    if ('outcome' in said) return said;
    const source = sourceOf(learntFrom);
    if (said.code === 'refusal') {
      const state = refusedRefundState(learntFrom, said.word);
      if (state === undefined) return refused(said.word);
      return { outcome: 'answered', fact: refundWithoutRecord(source, state, numbers, said.word) };
    }
    const reading = readRefundFact(source, REFUND_WORDS, refundFields(said.read));
    if ('missing' in reading) return unreadable(`answer_without: ${reading.missing}`);
    if (reading.fact.outRefundNo !== numbers.outRefundNo) return unreadable('other_number');
    return { outcome: 'answered', fact: reading.fact };
  }

  return {
    async createPayment(attempt): Promise<ChannelAnswer<PaymentFact> & PayParametersHolder> {
      const { answer, read } = await paymentCall(
        'trade.create',
        'submit',
        attempt.outTradeNo,
        {
          total_amount: formatDecimal(attempt.amountMinor, attempt.currency),
          currency: attempt.currency,
          subject: attempt.subject,
          time_expire: attempt.expiresAt,
          product: attempt.method,
          return_url: attempt.returnUrl,
          client_ip: attempt.clientIp,
        },
        attempt.signal,
      );
      const url = read?.('pay_url');
      if (url === undefined || !/^https?:\/\//.test(url)) return answer;
      return { ...answer, payParameters: { type: 'redirect', value: url, expiresAt: null } };
    },
    async queryPayment({ outTradeNo, signal }) {
      return (await paymentCall('trade.query', 'query', outTradeNo, {}, signal)).answer;
    },
    async closePayment({ outTradeNo, signal }) {
      return (await paymentCall('trade.close', 'close', outTradeNo, {}, signal)).answer;
    },
    createRefund: (refund) =>
      refundCall(
        'refund.create',
        'submit',
        refund,
        {
          trade_no: refund.channelTradeNo,
          refund_amount: formatDecimal(refund.amountMinor, refund.currency),
          currency: refund.currency,
          refund_reason: refund.reason === '' ? null : refund.reason,
        },
        refund.signal,
      ),
    queryRefund: (query) => refundCall('refund.query', 'query', query, {}, query.signal),
    openTradeBill: async ({ day, signal }) =>
      openMockABill(
        { row, keys: keyList(keys), day },
        await deps.download(requestOf('bill.download', { bill_date: day }, signal)),
        readAnswer,
      ),
    readCallback(rawBody, headers, now) {
      try {
        return readMockACallback(row.channel, keys, rawBody, headers, now);
      } catch {
        return { ok: false, status: 400, reason: 'unreadable' };
      }
    },
    acknowledgement: { status: 200, contentType: 'text/plain; charset=utf-8', body: 'success' },
    defaultPolicy: MOCK_POLICY,
    callbackContentType: 'application/x-www-form-urlencoded',
  };
}

function readMockACallback(
  channel: string,
  keys: SharedKeys,
  rawBody: Buffer,
  headers: CallbackHeaders,
  now: Date,
): CallbackReading {
  const fields = parseFormBytes(rawBody);
  // A broken form has no bytes that a signature could have been made over.
  if (!fields) return { ok: false, status: 401, reason: 'broken_form' };
  const sign = asciiField(fields, 'sign');
  const isSigned =
    sign !== undefined && isSignedWithAny(keyList(keys), sign, [bytesToSign(fields)]);
  if (!isSigned) return { ok: false, status: 401, reason: 'bad_signature' };
  if (asciiField(fields, 'sign_type') !== SIGN_TYPE) {
    return { ok: false, status: 401, reason: 'sign_type' };
  }
  if (!isFresh(asciiField(fields, 'timestamp'), now)) {
    return { ok: false, status: 401, reason: 'timestamp' };
  }

  const texts = decodeForm(fields, headers['content-type']);
  if (!texts) return { ok: false, status: 400, reason: 'undecodable' };
  const read: Fields = (name) => texts.get(name) || undefined;
  const eventId = read('notify_id') ?? null;
  const source: FactSource = { channel, learntFrom: 'callback', learntAt: now, eventId };
  const type = read('notify_type');
  if (type !== 'trade_status_sync' && type !== 'refund_status_sync') {
    return { ok: false, status: 400, reason: 'notify_type' };
  }
  const reading =
    type === 'trade_status_sync'
      ? readPaymentFact(source, PAYMENT_WORDS, paymentFields(read))
      : readRefundFact(source, REFUND_WORDS, refundFields(read));
  if ('missing' in reading) return { ok: false, status: 400, reason: `no ${reading.missing}` };
  return { ok: true, fact: reading.fact };
}

function paymentFields(read: Fields): PaymentFields {
  const currency = read('currency');
  return {
    accountId: read('seller_id'),
    appId: read('app_id'),
    word: read('trade_status'),
    outTradeNo: read('out_trade_no'),
    channelTradeNo: read('trade_no'),
    currency,
    amount: readAmount(read('total_amount'), currency),
    payerTotal: readAmount(read('payer_total'), currency),
    reversed: readAmount(read('reversed_amount'), currency),
    paidAt: read('gmt_payment'),
  };
}

function refundFields(read: Fields): RefundFields {
  const currency = read('currency');
  return {
    accountId: read('seller_id'),
    appId: read('app_id'),
    word: read('refund_status'),
    outRefundNo: read('out_refund_no'),
    channelRefundNo: read('refund_no'),
    outTradeNo: read('out_trade_no'),
    channelTradeNo: read('trade_no'),
    currency,
    amount: readAmount(read('refund_amount'), currency),
    refusalCode: read('fail_code'),
  };
}

function readAmount(text: string | undefined, currency: string | undefined): ReadAmount {
  if (text === undefined) return 'absent';
  if (currency === undefined || !isCurrency(currency)) return 'unreadable';
  const minor = parseDecimal(text, currency);
  return minor === undefined || minor < 0 ? 'unreadable' : minor;
}

function refused(word: string): ChannelAnswer<never> {
  return { outcome: 'refused', code: word.slice(0, 64), alreadyKnown: isAlreadyKnown(word) };
}

function withoutNulls(parameters: Record<string, string | null>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(parameters).filter((entry): entry is [string, string] => entry[1] !== null),
  );
}
