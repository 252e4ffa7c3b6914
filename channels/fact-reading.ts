import type {
  LearntFrom,
  PaymentFact,
  PaymentFactState,
  RefundFact,
  RefundFactState,
} from '../domain/channel-facts';
import { isAmountMinor, isCurrency } from '../domain/money';

/** Where a fact comes from; the adapter knows it before it reads the message. */
export interface FactSource {
  channel: string;
  learntFrom: LearntFrom;
  learntAt: Date;
  eventId: string | null;
}

/** A payment's fields as the channel spelt them; undefined where it gave none. */
export interface PaymentFields {
  accountId: string | undefined;
  appId: string | undefined;
  word: string | undefined;
  outTradeNo: string | undefined;
  channelTradeNo: string | undefined;
  currency: string | undefined;
  /** Each an amount, or absent, or something that is not exactly an amount. */
  amount: ReadAmount;
  payerTotal: ReadAmount;
  reversed: ReadAmount;
  paidAt: string | undefined;
}

export interface RefundFields {
  accountId: string | undefined;
  appId: string | undefined;
  word: string | undefined;
  outRefundNo: string | undefined;
  channelRefundNo: string | undefined;
  outTradeNo: string | undefined;
  channelTradeNo: string | undefined;
  currency: string | undefined;
  amount: ReadAmount;
  refusalCode: string | undefined;
}

export type ReadAmount = number | 'absent' | 'unreadable';

/** A fact, or the name of the field without which the message proves nothing. */
export type ReadFact<Fact> = { fact: Fact } | { missing: string };

/** Evidence is cut at this length. Source: domain/channel-facts.ts. */
const LONGEST_WORD = 64;

/**
 * Makes a fact of a payment message, or names what it lacks. Nothing is filled in: a message about
 * money without both numbers, amount and currency is no fact. A word we do not know is a fact of
 * state `unknown`, whatever else is missing: it says that the channel said something.
 */
export function readPaymentFact(
  source: FactSource,
  words: Readonly<Record<string, PaymentFactState>>,
  fields: PaymentFields,
): ReadFact<PaymentFact> {
  const { word, outTradeNo, channelTradeNo, currency, amount, payerTotal, reversed } = fields;
  if (word === undefined) return { missing: 'status' };
  if (outTradeNo === undefined || !isOurNumber(outTradeNo)) return { missing: 'out_trade_no' };
  const state = translate(words, word);
  const paidAt = fields.paidAt === undefined ? null : readInstant(fields.paidAt);
  if (state !== 'unknown') {
    if (!isChannelNumber(channelTradeNo)) return { missing: 'channel trade number' };
    if (currency === undefined || !isCurrency(currency)) return { missing: 'currency' };
    if (!isAmountMinor(amount)) return { missing: 'amount' };
    if (payerTotal === 'unreadable') return { missing: 'payer total' };
    if (reversed === 'unreadable') return { missing: 'reversed amount' };
    // Absent would mean "all of it"; this kind of channel always says how much.
    if (state === 'reversed' && reversed === 'absent') return { missing: 'reversed amount' };
    if (paidAt === undefined) return { missing: 'time of payment' };
  }
  return {
    fact: {
      kind: 'payment',
      ...origin(source, fields, word),
      state,
      outTradeNo,
      channelTradeNo: isChannelNumber(channelTradeNo) ? channelTradeNo : null,
      amountMinor: isAmountMinor(amount) ? amount : null,
      currency: currency !== undefined && isCurrency(currency) ? currency : null,
      payerTotalMinor: amountOrNull(payerTotal),
      reversedMinor: amountOrNull(reversed),
      paidAt: paidAt ?? null,
    },
  };
}

/** The same for a refund message. */
export function readRefundFact(
  source: FactSource,
  words: Readonly<Record<string, RefundFactState>>,
  fields: RefundFields,
): ReadFact<RefundFact> {
  const { word, outRefundNo, channelRefundNo, outTradeNo, channelTradeNo, currency, amount } =
    fields;
  if (word === undefined) return { missing: 'status' };
  if (outRefundNo === undefined || !isOurNumber(outRefundNo)) return { missing: 'out_refund_no' };
  const state = translate(words, word);
  if (state !== 'unknown') {
    if (!isChannelNumber(channelRefundNo)) return { missing: 'channel refund number' };
    if (currency === undefined || !isCurrency(currency)) return { missing: 'currency' };
    if (!isAmountMinor(amount)) return { missing: 'amount' };
  }
  return {
    fact: {
      kind: 'refund',
      ...origin(source, fields, word),
      state,
      outRefundNo,
      channelRefundNo: isChannelNumber(channelRefundNo) ? channelRefundNo : null,
      outTradeNo: outTradeNo !== undefined && isOurNumber(outTradeNo) ? outTradeNo : null,
      channelTradeNo: isChannelNumber(channelTradeNo) ? channelTradeNo : null,
      amountMinor: isAmountMinor(amount) ? amount : null,
      currency: currency !== undefined && isCurrency(currency) ? currency : null,
      refusalCode: fields.refusalCode?.slice(0, LONGEST_WORD) ?? null,
    },
  };
}

/** The channel says it has no such payment; the word is its code. */
export function paymentNotFound(source: FactSource, outTradeNo: string, code: string): PaymentFact {
  return {
    kind: 'payment',
    ...origin(source, {}, code),
    state: 'not_found',
    outTradeNo,
    channelTradeNo: null,
    amountMinor: null,
    currency: null,
    payerTotalMinor: null,
    reversedMinor: null,
    paidAt: null,
  };
}

/** What a channel says about a refund in a refusal: no such refund, or not enough balance. */
export function refundWithoutRecord(
  source: FactSource,
  state: 'not_found' | 'not_enough_balance',
  numbers: { outRefundNo: string; outTradeNo: string },
  code: string,
): RefundFact {
  return {
    kind: 'refund',
    ...origin(source, {}, code),
    state,
    outRefundNo: numbers.outRefundNo,
    channelRefundNo: null,
    outTradeNo: numbers.outTradeNo,
    channelTradeNo: null,
    amountMinor: null,
    currency: null,
    refusalCode: state === 'not_enough_balance' ? code : null,
  };
}

function origin(source: FactSource, named: { accountId?: string; appId?: string }, word: string) {
  return {
    channel: source.channel,
    accountId: named.accountId ?? null,
    appId: named.appId ?? null,
    learntFrom: source.learntFrom,
    learntAt: source.learntAt.toISOString(),
    word: word.slice(0, LONGEST_WORD),
    eventId: source.eventId,
  };
}

/** Own properties only, so that the word `constructor` is as unknown as any other. */
function translate<State extends string>(
  words: Readonly<Record<string, State>>,
  word: string,
): State | 'unknown' {
  return (Object.hasOwn(words, word) ? words[word] : undefined) ?? 'unknown';
}

/** Numbers we send are at most 32 letters and digits; a message with another one is not about us. */
function isOurNumber(text: string): boolean {
  return /^[A-Za-z0-9]{1,32}$/.test(text);
}

function isChannelNumber(text: string | undefined): text is string {
  return text !== undefined && /^[A-Za-z0-9_-]{1,64}$/.test(text);
}

function amountOrNull(amount: ReadAmount): number | null {
  return typeof amount === 'number' ? amount : null;
}

/** ISO 8601 with a zone, normalised to UTC; undefined when it is not. */
export function readInstant(text: string): string | undefined {
  const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;
  const at = iso.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : new Date(at).toISOString();
}
