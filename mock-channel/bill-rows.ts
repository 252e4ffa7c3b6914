import { createHash } from 'node:crypto';
import type { BillExtraRow, BillKey, BillRowChange, Column, GeneratedRows } from './bill-types';
import type { BookRecord, Dialect } from './books';
import type { BusinessZone } from './business-zone';
import type { Ledger } from './ledger';

/** A row of a trade bill, in neither dialect's words. */
export interface BillRow {
  kind: BillExtraRow['kind'];
  status: 'succeeded' | 'processing' | 'failed';
  occurredAt: string;
  outTradeNo: string | null;
  channelTradeNo: string | null;
  outRefundNo: string | null;
  channelRefundNo: string | null;
  amountMinor: number;
  currency: string;
  feeMinor: number | null;
  subject: string;
  cells?: Partial<Record<Column, string>>;
  quotes?: 'auto' | 'never' | 'always';
}

/** Sums of one currency: payments and refunds by kind, fees over all rows. Minor units. */
export interface Totals {
  currency: string;
  payments: number;
  paymentsMinor: number;
  refunds: number;
  refundsMinor: number;
  feesMinor: number;
}

/** What the channel keeps of an amount: hundredths of a percent, half up. */
export function feeOf(amountMinor: number, basisPoints: number): number {
  return Number((BigInt(amountMinor) * BigInt(basisPoints) + 5_000n) / 10_000n);
}

/** The row of one record of the books; undefined when no bill lists it. */
export function rowOfRecord(
  record: BookRecord,
  ledger: Ledger,
  basisPoints: number,
): BillRow | undefined {
  const row = (
    kind: BillRow['kind'],
    about: { outTradeNo: string; channelTradeNo: string; amountMinor: number; currency: string },
    feeMinor: number,
  ): BillRow => ({
    kind,
    status: 'succeeded',
    occurredAt: record.businessAt ?? record.at,
    outTradeNo: about.outTradeNo,
    channelTradeNo: about.channelTradeNo,
    outRefundNo: null,
    channelRefundNo: null,
    amountMinor: about.amountMinor,
    currency: about.currency,
    feeMinor,
    subject: ledger.trade(about.outTradeNo, record.dialect)?.subject ?? '',
  });
  switch (record.type) {
    case 'captured':
      return row('payment', record, feeOf(record.amountMinor, basisPoints));
    case 'reversed':
      return row('reversal', record, 0);
    case 'reinstated':
      return row('reinstatement', record, 0);
    case 'refund_accepted': {
      const refund = ledger.refund(record.outRefundNo, record.dialect);
      if (!refund || refund.status === 'failed') return undefined;
      const isWaiting = refund.status === 'processing' || refund.status === 'abnormal';
      const { outRefundNo, channelRefundNo } = refund;
      const fee = -feeOf(record.amountMinor, basisPoints);
      const status = isWaiting ? 'processing' : 'succeeded';
      return { ...row('refund', record, fee || 0), status, outRefundNo, channelRefundNo };
    }
    case 'refund_returned': {
      const refund = ledger.refund(record.outRefundNo, record.dialect);
      const channelRefundNo = refund?.channelRefundNo ?? null;
      const { outRefundNo } = record;
      return { ...row('refund_return', record, 0), outRefundNo, channelRefundNo };
    }
    default:
      return undefined;
  }
}

export function fits(row: BillRow, { match }: BillRowChange): boolean {
  return (
    (match.outTradeNo === undefined || match.outTradeNo === row.outTradeNo) &&
    (match.outRefundNo === undefined || match.outRefundNo === row.outRefundNo) &&
    (match.channelTradeNo === undefined || match.channelTradeNo === row.channelTradeNo) &&
    (match.kind === undefined || match.kind === row.kind)
  );
}

/** What the changes make of a row: none, itself, changed, or more than one. */
export function changed(row: BillRow, changes: readonly BillRowChange[]): BillRow[] {
  let copies = 1;
  let now = row;
  for (const change of changes) {
    if (!fits(row, change)) continue;
    if (change.do === 'drop' || change.do === 'next_day') return [];
    if (change.do === 'duplicate') copies += 1;
    now = { ...now, ...definedOnly(change.set ?? {}) };
  }
  return Array.from({ length: copies }, () => now);
}

function definedOnly<Value extends object>(value: Value): Value {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as Value;
}

/** A row that the books do not have; what it does not say is made up, the same way every time. */
export function extraRow(
  key: BillKey,
  index: number,
  { kind, ...given }: BillExtraRow,
  zone: BusinessZone,
  basisPoints: number,
): BillRow {
  const digest = createHash('sha256').update(`${key.dialect} ${key.day} ${index}`).digest('hex');
  const digits = (BigInt(`0x${digest.slice(0, 16)}`) % 10n ** 18n).toString().padStart(18, '0');
  const prefix = key.day.replaceAll('-', '');
  const ofRefund = kind === 'refund' || kind === 'refund_return';
  const amountMinor = given.amountMinor ?? (kind === 'unknown' ? -321 : 1_000);
  const fee = kind === 'payment' || kind === 'refund' ? feeOf(amountMinor, basisPoints) : 0;
  return {
    kind,
    status: 'succeeded',
    occurredAt: new Date(zone.noonOf(key.day)).toISOString(),
    outTradeNo: kind === 'payment' || ofRefund ? `ORPHAN${digest.slice(0, 12)}` : null,
    channelTradeNo: `${prefix}88${digits}`,
    outRefundNo: ofRefund ? `ORPHANR${digest.slice(0, 12)}` : null,
    channelRefundNo: ofRefund ? `${prefix}89${digits}` : null,
    amountMinor,
    currency: 'CNY',
    feeMinor: kind === 'refund' ? -fee || 0 : fee,
    subject: '',
    ...definedOnly(given),
  };
}

/** Rows made by arithmetic alone (PROTOCOL.md section 3), so that other books can be made alike. */
export function* generatedRows(
  day: string,
  { count, seed }: GeneratedRows,
  zone: BusinessZone,
  basisPoints: number,
): Generator<BillRow> {
  const noon = zone.noonOf(day);
  const prefix = `${day.replaceAll('-', '')}77${String(seed).padStart(9, '0')}`;
  const times = Array.from({ length: Math.min(count, 3_600) }, (_, second) =>
    new Date(noon + second * 1_000).toISOString(),
  );
  for (let index = 0; index < count; index += 1) {
    const nine = String(index).padStart(9, '0');
    const amountMinor = 100 + ((seed * 31 + index * 7_919) % 1_000_000);
    yield {
      kind: 'payment',
      status: 'succeeded',
      occurredAt: times[index % 3_600] ?? '',
      outTradeNo: `GEN${seed}X${nine}`,
      channelTradeNo: prefix + nine,
      outRefundNo: null,
      channelRefundNo: null,
      amountMinor,
      currency: 'CNY',
      feeMinor: Math.floor((amountMinor * basisPoints + 5_000) / 10_000),
      subject: 'generated',
    };
  }
}

/** Adds up rows as they pass. */
export class Adder {
  rows = 0;
  private readonly byCurrency = new Map<string, Totals>();

  add(row: BillRow): void {
    this.rows += 1;
    let totals = this.byCurrency.get(row.currency);
    if (!totals) {
      totals = {
        currency: row.currency,
        payments: 0,
        paymentsMinor: 0,
        refunds: 0,
        refundsMinor: 0,
        feesMinor: 0,
      };
      this.byCurrency.set(row.currency, totals);
    }
    totals.feesMinor += row.feeMinor ?? 0;
    if (row.kind === 'payment') {
      totals.payments += 1;
      totals.paymentsMinor += row.amountMinor;
    } else if (row.kind === 'refund') {
      totals.refunds += 1;
      totals.refundsMinor += row.amountMinor;
    }
  }

  totals(): Totals[] {
    return [...this.byCurrency.values()].sort((a, b) => (a.currency < b.currency ? -1 : 1));
  }
}

/** Whether a record of the books can change a bill. */
export function isOfBill(record: BookRecord, dialect: Dialect): boolean {
  return record.dialect === dialect && record.type !== 'request' && record.type in OF_BILL;
}

const OF_BILL = {
  captured: true,
  reversed: true,
  reinstated: true,
  refund_accepted: true,
  refund_executed: true,
  refund_refused: true,
  refund_abnormal: true,
  refund_returned: true,
};
