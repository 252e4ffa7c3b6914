import type { ChannelPolicy } from '../domain/channel-policy';
import type { ChannelFact, PaymentFact, RefundFact } from '../domain/channel-facts';
import type { BillLine, BillTotals } from '../domain/trade-bill';

/**
 * What the saga needs of a payment channel. One adapter per channel protocol; every method may be
 * called again with the same argument. A plug-in author implements this interface and runs the
 * conformance kit (channels/conformance.ts) against it.
 */
export interface PaymentChannel {
  /** Opens the payment at the channel under our number; the same number again is the same trade. */
  createPayment(attempt: PaymentAttempt): Promise<ChannelAnswer<PaymentFact> & PayParametersHolder>;
  /** State `not_found` is an answer, not an error. */
  queryPayment(query: PaymentQuery): Promise<ChannelAnswer<PaymentFact>>;
  /** Asks the channel to take no more money under this number. "Already paid" is state `paid`. */
  closePayment(query: PaymentQuery): Promise<ChannelAnswer<PaymentFact>>;
  createRefund(refund: RefundAttempt): Promise<ChannelAnswer<RefundFact>>;
  queryRefund(query: RefundQuery): Promise<ChannelAnswer<RefundFact>>;
  /** The bill of one business date of the channel's own zone. `not_ready` is an answer. */
  openTradeBill(request: TradeBillRequest): Promise<TradeBillAnswer>;
  /** Pure: verifies the signature over the raw bytes, then reads. Never does I/O, never throws. */
  readCallback(rawBody: Buffer, headers: CallbackHeaders, now: Date): CallbackReading;
  /** Exactly what the channel wants to hear once its callback is safely stored. */
  readonly acknowledgement: { status: number; contentType: string; body: string };
  /** The waits and limits this kind of channel wants, unless its row in `channels` overrides them. */
  readonly defaultPolicy: ChannelPolicy;
  /** The media type its callbacks come in, without parameters; another one is answered 415. */
  readonly callbackContentType: string;
}

/**
 * The results of a channel call, kept apart because each allows something else:
 * - `answered`: the channel said something definite about the number.
 * - `refused`: a definite refusal of this call; nothing was done *by this call* (an earlier send
 *   may still have worked). `alreadyKnown`: "already exists", "already paid", "already processed":
 *   only a query tells what is true.
 * - `never_left`: the call surely never left this machine (refused connection, open breaker, full
 *   bulkhead, past its own time limit). Safe to send again.
 * - `unknown`: anything else: a timeout, a dropped connection, 5xx, 429, an answer we cannot read.
 *
 * `trouble`: the channel itself seems sick (no connection, timeout, reset, 5xx). Only this counts
 * towards opening the circuit breaker; `reason` is a short word for logs and metrics.
 */
export type ChannelAnswer<Fact> =
  | { outcome: 'answered'; fact: Fact }
  | { outcome: 'refused'; code: string; alreadyKnown: boolean }
  | { outcome: 'never_left'; reason: string; retryAfterMs: number | null; trouble?: boolean }
  | { outcome: 'unknown'; reason: string; retryAfterMs: number | null; trouble?: boolean };

/** What the payer's browser or app needs next; present when the channel handed it out. */
export interface PayParametersHolder {
  payParameters?: PayParameters;
}

export interface PayParameters {
  type: 'redirect' | 'qr_code' | 'sdk';
  /** For `redirect` a URL to open, for `qr_code` the text of the code, for `sdk` JSON text. */
  value: string;
  /** ISO 8601 UTC; null: as long as the attempt lives. */
  expiresAt: string | null;
}

export interface PaymentAttempt {
  outTradeNo: string;
  amountMinor: number;
  currency: string;
  subject: string;
  /** The order's deadline, handed on as the channel's own expiry. ISO 8601 UTC. */
  expiresAt: string;
  method: string | null;
  returnUrl: string | null;
  clientIp: string | null;
  payer: Record<string, string> | null;
  signal?: AbortSignal;
}

export interface PaymentQuery {
  outTradeNo: string;
  /** Needed to read decimal amounts where the channel's answer names no currency. */
  currency: string;
  signal?: AbortSignal;
}

export interface RefundAttempt {
  outRefundNo: string;
  outTradeNo: string;
  channelTradeNo: string;
  amountMinor: number;
  /** The capture's amount: channels want both. */
  captureAmountMinor: number;
  currency: string;
  reason: string;
  signal?: AbortSignal;
}

export interface RefundQuery {
  outRefundNo: string;
  outTradeNo: string;
  currency: string;
  signal?: AbortSignal;
}

export interface TradeBillRequest {
  /** `2026-05-01`, in the channel's own zone. */
  day: string;
  /** Ends the download too. */
  signal?: AbortSignal;
}

/**
 * `not_ready`: the channel has not made it yet, in whatever words (no bill, does not exist, zero bytes).
 * The other outcomes as for any call.
 */
export type TradeBillAnswer =
  | { outcome: 'ready'; bill: TradeBillSource }
  | { outcome: 'not_ready'; reason: string; retryAfterMs: number | null }
  | Exclude<ChannelAnswer<never>, { outcome: 'answered' }>;

/** A bill that is being downloaded: read once, from its first line to its end, in little memory. */
export interface TradeBillSource {
  /** The channel's own name of the file. */
  fileName: string;
  /**
   * Every row of the file in batches: rows read plus `error` rows are the rows of the file. Headers
   * and summaries are no rows.
   * @throws TradeBillError when the file cannot be used as a whole, also after lines were given out
   */
  lines(): AsyncIterable<BillLine[]>;
  /** What is known once `lines()` has ended: SHA-256 (hex) and size as sent, the stated sums if any. */
  end(): { sha256: string; bytes: number; totals: BillTotals[] | null };
}

/** Names in lower case. */
export type CallbackHeaders = Record<string, string | undefined>;

/** A verified fact, or why not: the HTTP status the inbox answers with and a word for the log. */
export type CallbackReading =
  { ok: true; fact: ChannelFact } | { ok: false; status: 400 | 401; reason: string };
