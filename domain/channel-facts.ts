/**
 * A channel fact is what a channel told us about an attempt, a capture or a refund, in one shape
 * whatever the way it came: callback, query, close, the answer to a submit, a trade bill, an
 * operator's evidence. Facts are plain JSON (they cross Temporal's payload boundary): instants are
 * ISO 8601 text in UTC, amounts are integers of minor units, absent is null.
 */

/** The way a fact reached us. */
export type LearntFrom = 'submit' | 'callback' | 'query' | 'close' | 'trade_bill' | 'operator';

/**
 * State of a payment in the channel's own words, translated.
 * `not_found`: the channel has no such number (yet). `reversed`: the channel took a capture back
 * (a chargeback too). `reinstated`: it gave it back to us. `unknown`: a word we do not know.
 */
export type PaymentFactState =
  'pending' | 'paid' | 'failed' | 'closed' | 'not_found' | 'reversed' | 'reinstated' | 'unknown';

/**
 * State of a refund. `not_enough_balance` is repeatable; `abnormal`: the channel says a person must
 * act; `returned`: the money came back to us after success.
 */
export type RefundFactState =
  | 'processing'
  | 'succeeded'
  | 'failed'
  | 'not_enough_balance'
  | 'abnormal'
  | 'returned'
  | 'not_found'
  | 'unknown';

interface FactOrigin {
  channel: string;
  /** The provider account and app the channel names in its message; null when it names none. */
  accountId: string | null;
  appId: string | null;
  learntFrom: LearntFrom;
  /** When we learnt it. ISO 8601, UTC. */
  learntAt: string;
  /** The channel's own word for the state, kept as evidence (at most 64 characters). */
  word: string;
  /** The channel's id of the notice, when it gives one. */
  eventId: string | null;
}

export interface PaymentFact extends FactOrigin {
  kind: 'payment';
  state: PaymentFactState;
  outTradeNo: string;
  channelTradeNo: string | null;
  /** The order's amount as the channel reports it (the payer's own total apart). */
  amountMinor: number | null;
  currency: string | null;
  /** What the payer really paid, coupons deducted; null when the channel does not say. */
  payerTotalMinor: number | null;
  /** For `reversed`: how much was taken back so far in all; null means the whole capture. */
  reversedMinor: number | null;
  /** When the money was taken, by the channel's clock. ISO 8601, UTC. */
  paidAt: string | null;
}

export interface RefundFact extends FactOrigin {
  kind: 'refund';
  state: RefundFactState;
  outRefundNo: string;
  channelRefundNo: string | null;
  /** Numbers of the payment the refund belongs to, when the channel names them. */
  outTradeNo: string | null;
  channelTradeNo: string | null;
  amountMinor: number | null;
  currency: string | null;
  /** The channel's code for a refusal, e.g. `BALANCE_NOT_ENOUGH`; null otherwise. */
  refusalCode: string | null;
}

export type ChannelFact = PaymentFact | RefundFact;

/**
 * The text as PostgreSQL can keep it: neither `text` nor `jsonb` takes U+0000 or half a surrogate pair
 * (a cut through an emoji makes one), and a fact must not be lost for such a character.
 */
export function storableText(text: string): string {
  return text.replaceAll('\0', '\uFFFD').replace(/\p{Surrogate}/gu, '\uFFFD');
}

/** The fact with every text as PostgreSQL can keep it. */
export function storableFact<Fact extends ChannelFact>(fact: Fact): Fact {
  return Object.fromEntries(
    Object.entries(fact).map(([name, value]): [string, unknown] => [
      name,
      typeof value === 'string' ? storableText(value) : value,
    ]),
  ) as unknown as Fact;
}
