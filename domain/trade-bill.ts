/**
 * A trade bill is the channel's list of one business date. An adapter reads the channel's file into
 * these lines, one shape whatever the format; amounts are minor units, instants ISO 8601 in UTC.
 */

/**
 * `payment`: money taken. `refund`: money given back by us. `reversal`: money the channel took back.
 * `adjustment`: an entry or a suspense row the channel made by hand. `unknown`: a row of a type nobody
 * knows. `error`: a row that cannot be read; its `error` says why.
 */
export type BillLineKind = 'payment' | 'refund' | 'reversal' | 'adjustment' | 'unknown' | 'error';

/** What the bill says became of a row. Payments and reversals are `succeeded`. */
export type BillLineStatus = 'succeeded' | 'processing' | 'failed' | 'unknown';

export interface BillLine {
  /** Line of the file (1 is the first) on which the row begins, for the person who looks. */
  lineNo: number;
  kind: BillLineKind;
  status: BillLineStatus;
  outTradeNo: string | null;
  channelTradeNo: string | null;
  outRefundNo: string | null;
  channelRefundNo: string | null;
  /** Not negative, but for adjustments and unknown rows; null when the row has none that can be read. */
  amountMinor: number | null;
  currency: string | null;
  /** What the channel kept (negative: gave back); null when the file leaves it empty. */
  feeMinor: number | null;
  /** When it happened by the channel's clock; null when the file does not say. */
  occurredAt: string | null;
  /** The channel's own words for type and status, as evidence, at most 64 characters. */
  word: string;
  /** Of an `error` row: which cell could not be read and what it said, at most 200 characters. */
  error: string | null;
}

/**
 * The bill's own sums of one currency, as its summary states them. Minor units. Payments and refunds
 * are the rows of that kind, whatever their status and as often as they stand; refunds are positive;
 * fees are those of all rows, an empty one counting as nothing.
 */
export interface BillTotals {
  currency: string;
  payments: number;
  paymentsMinor: number;
  refunds: number;
  refundsMinor: number;
  feesMinor: number;
}

/** Why a whole file cannot be used. */
export type BillFault =
  | 'wrong_hash'
  | 'cut_off'
  | 'wrong_columns'
  | 'wrong_encoding'
  | 'too_big'
  | 'unreadable'
  | 'wrong_day';

/** A file that cannot be used as a whole: nothing of it counts. The message is for a person. */
export class TradeBillError extends Error {
  override name = 'TradeBillError';
  constructor(
    readonly fault: BillFault,
    message: string,
  ) {
    super(message);
  }
}
