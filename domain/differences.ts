/**
 * What a trade bill and our books may disagree about, and the rule that says so for one pair of a
 * bill row and our side of it. The comparison of a whole bill does the same in SQL
 * (db/comparison-rule.ts); one table of cases is put to both (test/db/comparison-table.test.ts).
 */
import type { CaptureKind } from './orders';
import type { CaptureStatus, RefundState } from './states';
import type { BillLineKind, BillLineStatus } from './trade-bill';

export const DIFFERENCE_KINDS = [
  'row_error',
  'unknown_row',
  'adjustment',
  'duplicate_row',
  'channel_only',
  'ours_only',
  'duplicate_payment',
  'currency',
  'amount',
  'status',
  'refund_channel_only',
  'refund_ours_only',
  'refund_amount',
  'refund_status',
  'fee',
  'file_total',
] as const;
export type DifferenceKind = (typeof DIFFERENCE_KINDS)[number];

/** A row this near to a midnight of the channel's zone may stand in the neighbour's bill. */
export const NEAR_MIDNIGHT_MS = 2 * 3_600_000;
/** The bills of so many days before and after are searched for the other side. */
export const SUSPENSE_DAYS = 3;
/** After the end of the business date; half a day longer than the third later bill should take. */
export const SUSPENSE_MS = 3.5 * 86_400_000;

/** One row of the bill. */
export interface LineSide {
  kind: BillLineKind;
  status: BillLineStatus;
  amountMinor: number | null;
  currency: string | null;
  feeMinor: number | null;
  /** The how-manyth row of this kind and this number of the channel, 1 the first. */
  appearance: number;
  /** Its date is not ours, and the bill of ours (or an earlier one) has the same row. */
  inOtherBill: boolean;
  /** Of a reversal: what all reversal rows of this trade in the bill add up to. */
  reversedMinor: number;
  /** The row names the number of an attempt of ours, and it is not the attempt that got this money. */
  namesOther: boolean;
  /** Without a capture: the order that the row's number belongs to was paid by another one. */
  orderPaid: boolean;
  /**
   * Of a refund row with our number: it is not the refund that is ours, because the channel's own number
   * is another than we know, or another row (of this bill or of our date's) is that refund.
   */
  secondRefund: boolean;
}

/** The capture that a payment or a reversal row finds, or that no row of the bill finds. */
export interface CaptureSide {
  amountMinor: number;
  currency: string;
  kind: CaptureKind;
  settles: boolean;
  status: CaptureStatus;
  reservedMinor: number;
  refundedMinor: number;
  reversedMinor: number;
  /** It was taken back after the business date had ended, so the bill cannot know. */
  reversedLater: boolean;
}

/** The refund that a refund row finds, or that no row of the bill finds. */
export interface RefundSide {
  amountMinor: number;
  currency: string;
  status: RefundState;
  /** The channel answered a question about it after this reconciliation had begun. */
  answeredSince: boolean;
}

/** Of what only we have: where else it may be. */
export interface Elsewhere {
  /** Another day's bill has the row. */
  pairedElsewhere: boolean;
  nearMidnight: boolean;
  /** The time in which another bill may bring it is over. */
  poolOver: boolean;
}

export type ComparedPair =
  | { line: LineSide; capture: CaptureSide | null; refund: RefundSide | null }
  | { line: null; capture: CaptureSide; refund: null; elsewhere: Elsewhere }
  | { line: null; capture: null; refund: RefundSide; elsewhere: Elsewhere };

export type Classification =
  | { class: 'matched' }
  | {
      class: DifferenceKind;
      standing: 'open' | 'waiting' | 'suspense';
      /** A finer word where the kind does not say it all. */
      reason: string;
    };

/** A refund under way on both sides: never a case of reconciliation's own. */
export const STILL_PROCESSING = 'processing';

const MATCHED: Classification = { class: 'matched' };
const open = (kind: DifferenceKind, reason = ''): Classification => ({
  class: kind,
  standing: 'open',
  reason,
});
const waiting = (kind: DifferenceKind, reason: string): Classification => ({
  class: kind,
  standing: 'waiting',
  reason,
});

/**
 * The one class of a pair; the first that fits, from what makes a row unusable to what is only a
 * matter of cents: unreadable, unknown and manual rows → the same row twice → only one side has it →
 * given back twice → currency → amount → state → paid twice → fee. `feeBasisPoints` 0: fees are not
 * compared.
 */
export function classify(pair: ComparedPair, feeBasisPoints: number): Classification {
  if (pair.line === null) {
    const kind = pair.capture ? 'ours_only' : 'refund_ours_only';
    const { pairedElsewhere, nearMidnight, poolOver } = pair.elsewhere;
    if (pairedElsewhere) return MATCHED;
    if (nearMidnight && !poolOver) return { class: kind, standing: 'suspense', reason: '' };
    return open(kind);
  }
  const { line, capture, refund } = pair;
  switch (line.kind) {
    case 'error':
      return open('row_error');
    case 'adjustment':
      return open('adjustment');
    case 'unknown':
      return open('unknown_row');
    case 'payment':
      return classifyPayment(line, capture, feeBasisPoints);
    case 'reversal':
      return classifyReversal(line, capture);
    case 'refund':
      return classifyRefund(line, refund, feeBasisPoints);
  }
}

function classifyPayment(
  line: LineSide,
  capture: CaptureSide | null,
  feeBasisPoints: number,
): Classification {
  if (line.status !== 'succeeded') return open('unknown_row', 'state');
  if (line.appearance > 1) return open('duplicate_row', 'repeated');
  if (line.inOtherBill) return open('duplicate_row', 'other_bill');
  if (!capture) {
    return line.orderPaid ? open('duplicate_payment', 'second_trade') : open('channel_only');
  }
  if (line.currency !== capture.currency) return open('currency');
  if (line.amountMinor !== capture.amountMinor) return open('amount');
  if (line.namesOther) return open('status', 'number_of_another');
  if (capture.status === 'reversed' && line.reversedMinor === 0 && !capture.reversedLater)
    return open('status', 'reversed_here');
  if (isSurplus(capture)) {
    const { amountMinor, reservedMinor, refundedMinor, reversedMinor } = capture;
    if (refundedMinor + reversedMinor < amountMinor) {
      return reservedMinor + refundedMinor + reversedMinor >= amountMinor
        ? waiting('duplicate_payment', 'being_refunded')
        : open('duplicate_payment', 'surplus');
    }
  }
  return classifyFee(line, feeBasisPoints, 1);
}

function classifyReversal(line: LineSide, capture: CaptureSide | null): Classification {
  if (line.status !== 'succeeded') return open('unknown_row', 'state');
  if (line.appearance > 1) return open('duplicate_row', 'repeated');
  if (!capture) return open('channel_only', 'reversal');
  if (line.currency !== capture.currency) return open('currency');
  return capture.reversedMinor < line.reversedMinor ? open('status', 'not_reversed_here') : MATCHED;
}

function classifyRefund(
  line: LineSide,
  refund: RefundSide | null,
  feeBasisPoints: number,
): Classification {
  if (line.appearance > 1) return open('duplicate_row', 'repeated');
  if (line.inOtherBill) return open('duplicate_row', 'other_bill');
  if (!refund) return open('refund_channel_only');
  if (line.secondRefund) return open('refund_channel_only', 'second_refund');
  if (line.currency !== refund.currency || line.amountMinor !== refund.amountMinor)
    return open('refund_amount');
  const succeededHere = refund.status === 'succeeded' || refund.status === 'returned';
  switch (line.status) {
    case 'succeeded':
      if (!succeededHere) return open('refund_status', 'not_succeeded_here');
      return classifyFee(line, feeBasisPoints, -1);
    case 'processing':
      // The file was frozen when it was made; what a query or a callback said since is newer.
      if (succeededHere) return MATCHED;
      if (refund.status === 'failed' || refund.status === 'abnormal')
        return open('refund_status', 'not_processing_here');
      // Under way on both sides: the channel is asked, and if it says so too, there is time.
      return refund.answeredSince
        ? waiting('refund_status', STILL_PROCESSING)
        : open('refund_status', STILL_PROCESSING);
    case 'failed':
      return refund.status === 'failed' ? MATCHED : open('refund_status', 'failed_there');
    case 'unknown':
      return open('refund_status', 'unknown_word');
  }
}

function classifyFee(line: LineSide, feeBasisPoints: number, sign: 1 | -1): Classification {
  if (feeBasisPoints === 0) return MATCHED;
  if (line.feeMinor === null) return open('fee', 'missing');
  const due = sign * expectedFeeMinor(line.amountMinor ?? 0, feeBasisPoints);
  return line.feeMinor === due ? MATCHED : open('fee', 'wrong');
}

/** Surplus that is to be given back; what a case holds, and what was taken back early, is not. */
function isSurplus(capture: CaptureSide): boolean {
  return (
    !capture.settles && (capture.kind === 'surplus_duplicate' || capture.kind === 'surplus_late')
  );
}

/**
 * What the channel keeps of a payment: amount × rate, rounded half up to a minor unit. Exact for every
 * amount: no product leaves the safe integers. `feeBasisPoints` at most 10,000.
 */
export function expectedFeeMinor(amountMinor: number, feeBasisPoints: number): number {
  const tenThousands = Math.floor(amountMinor / 10_000);
  const rest = amountMinor % 10_000;
  return tenThousands * feeBasisPoints + Math.floor((rest * feeBasisPoints + 5_000) / 10_000);
}

/**
 * What can be asked at the channel about a difference of a known order, so that the order's own
 * workflow may settle the answer: the attempt, the refund, or nothing that would help.
 */
export function questionOf(kind: DifferenceKind): 'payment' | 'refund' | 'nothing' {
  switch (kind) {
    case 'channel_only':
    case 'ours_only':
    case 'duplicate_payment':
    case 'currency':
    case 'amount':
    case 'status':
      return 'payment';
    case 'refund_ours_only':
    case 'refund_amount':
    case 'refund_status':
      return 'refund';
    // A refund that we never made has no number of ours to ask by; the rest is about the file alone.
    case 'refund_channel_only':
    case 'row_error':
    case 'unknown_row':
    case 'adjustment':
    case 'duplicate_row':
    case 'fee':
    case 'file_total':
      return 'nothing';
  }
}

/** Kinds about the file rather than about one payment: one case per bill and kind holds them all. */
export const BILL_KINDS: readonly DifferenceKind[] = [
  'row_error',
  'unknown_row',
  'adjustment',
  'file_total',
  'duplicate_row',
];
