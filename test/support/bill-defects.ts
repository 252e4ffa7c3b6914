import type { DifferenceKind } from '../../domain/differences';
import type { MockChannelControl } from '../../mock-channel/control-client';
import type { BillKey } from '../../mock-channel/bill-types';

/** What a defect is about: a payment of the bill, and a refund of it for the kinds of refunds. */
export interface DefectSubject {
  outTradeNo: string;
  /** The capture's number at the channel. */
  channelTradeNo: string;
  amountMinor: number;
  /** Default 60 basis points of the amount, half up. */
  feeMinor?: number;
  outRefundNo?: string;
  refundMinor?: number;
}

type MakeDefect = (
  control: MockChannelControl,
  bill: BillKey,
  about: DefectSubject,
) => Promise<unknown>;

const refundOf = ({ outRefundNo }: DefectSubject): { outRefundNo: string } => {
  if (outRefundNo === undefined) throw new Error('this defect needs a refund');
  return { outRefundNo };
};
const paymentOf = ({ outTradeNo }: DefectSubject) => ({ outTradeNo, kind: 'payment' as const });

/**
 * For each kind of difference the control call that makes exactly this one, in a bill that is right
 * but for it. The sums that the bill states fit its rows as they then stand. Both dialects.
 */
export const BILL_DEFECTS: Readonly<Record<DifferenceKind, MakeDefect>> = {
  channel_only: (control, bill) => control.addBillRow(bill, { kind: 'payment' }),
  ours_only: (control, bill, about) => control.dropBillRow(bill, paymentOf(about)),
  amount: (control, bill, about) =>
    control.changeBillRow(bill, paymentOf(about), { amountMinor: about.amountMinor + 1 }),
  currency: (control, bill, about) =>
    control.changeBillRow(bill, paymentOf(about), { currency: 'USD' }),
  status: (control, bill, about) =>
    control.changeBillRow(bill, paymentOf(about), { status: 'failed' }),
  fee: (control, bill, about) =>
    control.changeBillRow(bill, paymentOf(about), { feeMinor: feeMinorOf(about) + 1 }),
  duplicate_payment: (control, bill, { outTradeNo, amountMinor }) =>
    control.addBillRow(bill, { kind: 'payment', outTradeNo, amountMinor }),
  duplicate_row: (control, bill, about) => control.duplicateBillRow(bill, paymentOf(about)),
  refund_channel_only: (control, bill, { outTradeNo, channelTradeNo }) =>
    control.addBillRow(bill, { kind: 'refund', outTradeNo, channelTradeNo, amountMinor: 1 }),
  refund_ours_only: (control, bill, about) => control.dropBillRow(bill, refundOf(about)),
  refund_amount: (control, bill, about) =>
    control.changeBillRow(bill, refundOf(about), { amountMinor: (about.refundMinor ?? 0) + 1 }),
  refund_status: (control, bill, about) =>
    control.changeBillRow(bill, refundOf(about), { status: 'failed' }),
  file_total: (control, bill) =>
    control.spoilBill(bill, { totalsOff: { currency: 'CNY', paymentsMinor: 1 } }),
  // A row of no money of ours, so that the unreadable amount is the only thing wrong.
  row_error: (control, bill) =>
    control.addBillRow(bill, { kind: 'adjustment', amountMinor: 0, cells: { amount: '1.234,56' } }),
  unknown_row: (control, bill) => control.addBillRow(bill, { kind: 'unknown', amountMinor: -321 }),
  adjustment: (control, bill) => control.addBillRow(bill, { kind: 'adjustment', amountMinor: 500 }),
};

/** The ways in which a fee differs: missing in two spellings, wrong by 0.01. */
export const FEE_DEFECTS: Readonly<Record<'empty' | 'dash' | 'off_by_one', MakeDefect>> = {
  empty: (control, bill, about) =>
    control.changeBillRow(bill, paymentOf(about), { feeMinor: null }),
  dash: (control, bill, about) =>
    control.changeBillRow(bill, paymentOf(about), { feeMinor: null, cells: { fee: '-' } }),
  off_by_one: BILL_DEFECTS.fee,
};

function feeMinorOf({ amountMinor, feeMinor }: DefectSubject): number {
  return feeMinor ?? Math.floor((amountMinor * 60 + 5_000) / 10_000);
}

/** The day before today in a zone, `2026-05-01`: the newest bill there can be. */
export function yesterdayIn(timeZone: string): string {
  const today = new Intl.DateTimeFormat('en-CA', { timeZone }).format(new Date());
  return new Date(Date.parse(`${today}T00:00:00Z`) - 86_400_000).toISOString().slice(0, 10);
}
