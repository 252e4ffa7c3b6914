import type { DifferenceKind } from './differences';

/** What is known of a difference where a sentence about it is made. */
export interface SpokenDifference {
  channel: string;
  day: string;
  kind: DifferenceKind;
  reason: string;
  subject: string;
  lineNo: number | null;
}

/** One sentence an operator can act on: what disagrees, about which number, and where it is written. */
export function sentenceOf(difference: SpokenDifference): string {
  const { channel, day, subject, lineNo } = difference;
  const where = `bill of ${day}${lineNo === null ? '' : `, line ${lineNo}`}`;
  return `${channel} (${where}): ${saying(difference)} ${subject}`;
}

function saying({ kind, reason }: SpokenDifference): string {
  switch (kind) {
    case 'channel_only':
      return reason === 'reversal'
        ? 'the channel took back money we never had:'
        : 'the channel took money that is not in our books:';
    case 'ours_only':
      return 'the bill does not have our payment';
    case 'amount':
      return 'another amount than ours for payment';
    case 'currency':
      return 'another currency than ours for payment';
    case 'status':
      switch (reason) {
        case 'reversed_here':
          return 'taken back in our books, but not in the bill: payment';
        case 'not_reversed_here':
          return 'the channel took back more than our books say of payment';
        default:
          return 'the bill puts it to another attempt than our books: payment';
      }
    case 'fee':
      return reason === 'missing' ? 'the fee is missing of' : 'another fee than agreed for';
    case 'duplicate_payment':
      return 'paid twice: payment';
    case 'duplicate_row':
      return reason === 'other_bill'
        ? 'the bill of another date has the same row:'
        : 'the same row again:';
    case 'refund_channel_only':
      return reason === 'second_refund'
        ? 'the channel gave back money a second time under the number of our refund'
        : 'the channel gave back money for a refund that is not in our books:';
    case 'refund_ours_only':
      return 'the bill does not have our refund';
    case 'refund_amount':
      return 'another amount or currency than ours for refund';
    case 'refund_status':
      return 'another state than ours for refund';
    case 'file_total':
      return 'the stated sums are not those of the rows, in';
    case 'row_error':
      return 'cannot be read:';
    case 'unknown_row':
      return 'of a kind nobody knows:';
    case 'adjustment':
      return 'entered by hand at the channel:';
  }
}
