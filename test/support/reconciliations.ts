import { addDays, dayAt, noonOf } from '../../domain/business-day';
import { reconciliationWorkflowId } from '../../workflows/ids';
import type { DayResult } from '../../workflows/reconciliation-day';
import type { Saga } from './saga';
import { waitFor } from './wait';

export type ChannelName = 'mock-a' | 'mock-b';
export const CHANNELS: readonly ChannelName[] = ['mock-a', 'mock-b'];

/**
 * A zone whose clocks show about this hour now. At six in the morning yesterday's bill is not overdue
 * yet, and "24 hours ago" is far from midnight, whenever the test runs.
 */
export function zoneAtHour(hour: number): string {
  const ahead = ((((hour - new Date().getUTCHours()) % 24) + 36) % 24) - 12;
  // POSIX counts westwards.
  return ahead === 0 ? 'Etc/GMT' : `Etc/GMT${ahead > 0 ? '-' : '+'}${Math.abs(ahead)}`;
}

/** The business date so many days before today, in the saga's zone. */
export function daysAgo(saga: Saga, days: number): string {
  return addDays(dayAt(new Date(), saga.timeZone), -days);
}

/** An instant of the date: its noon, or so long after it. */
export function instantOf(saga: Saga, day: string, afterNoonMs = 0): string {
  return new Date(noonOf(day, saga.timeZone).getTime() + afterNoonMs).toISOString();
}

/** A report as the API gives it. */
export interface Report {
  channel: string;
  day: string;
  status: string;
  dry_run: boolean;
  reason: string | null;
  bill: { sha256: string; rows: number; row_errors: number } | null;
  rejected: { fault: string; message: string } | null;
  by_kind: Record<string, number>;
  by_status: Record<string, number>;
  totals: Totals[];
  differences: ReportedDifference[];
}

export interface ReportedDifference {
  kind: string;
  subject: string;
  status: string;
  reason: string;
  order_id: string | null;
  refund_no: string | null;
  line_no: number | null;
  ours: Record<string, unknown> | null;
  channel_says: Record<string, unknown> | null;
  resolution: string | null;
}

interface Sums {
  rows: number;
  net_minor: number;
}
export interface Totals {
  currency: string;
  file: Sums;
  matched: Sums;
  differences: Sums;
  unknown: Sums;
  ours_only: Sums;
}

export function dayHandle(saga: Saga, channel: string, day: string) {
  return saga.client.workflow.getHandle(reconciliationWorkflowId({ channel, day }, saga.taskQueue));
}

/** Asks for it as an operator does, waits until its run has ended, and reads the report. */
export async function reconcile(
  saga: Saga,
  channel: ChannelName,
  day: string,
  options: { dryRun?: boolean } = {},
): Promise<Report> {
  await begin(saga, channel, day, options);
  await ended(saga, channel, day);
  return report(saga, channel, day);
}

export async function begin(
  saga: Saga,
  channel: ChannelName,
  day: string,
  options: { dryRun?: boolean } = {},
): Promise<void> {
  const { dryRun } = options;
  const { status, body } = await saga.call('POST', '/ops/reconciliations', {
    channel,
    day,
    ...(dryRun === undefined ? {} : { dry_run: dryRun }),
  });
  if (status !== 202 && status !== 200) {
    throw new Error(`reconciliation: ${status} ${JSON.stringify(body)}`);
  }
}

export function ended(saga: Saga, channel: string, day: string): Promise<DayResult> {
  return dayHandle(saga, channel, day).result() as Promise<DayResult>;
}

export async function report(saga: Saga, channel: string, day: string): Promise<Report> {
  const { body } = await saga.call('GET', `/ops/reconciliations/${day}?channel=${channel}`);
  const [found] = body.reports as Report[];
  if (!found) throw new Error(`${channel} has no report of ${day}`);
  return found;
}

/** What stands, in short: `kind status`, sorted. */
export function standing({ differences }: Report): string[] {
  return differences
    .filter(({ status }) => status !== 'resolved')
    .map(({ kind, status }) => `${kind} ${status}`)
    .sort();
}

/** Every row of the file in one class: matched + differences + unknown = file, to the minor unit. */
export function expectWhole({ totals, bill }: Report): void {
  for (const { file, matched, differences, unknown } of totals) {
    expect(matched.rows + differences.rows + unknown.rows).toBe(file.rows);
    expect(matched.net_minor + differences.net_minor + unknown.net_minor).toBe(file.net_minor);
  }
  expect(totals.reduce((rows, { file }) => rows + file.rows, 0)).toBe(bill?.rows);
}

/** An order paid at the channel on the given date, as the channel's clock has it. */
export async function paidOn(
  saga: Saga,
  channel: ChannelName,
  day: string,
  fields: Parameters<Saga['createOrder']>[0] = {},
  afterNoonMs = 0,
): Promise<{ orderId: string; outTradeNo: string; tradeNo: string }> {
  const paying = await payingAt(saga, channel, fields);
  await saga.mock.capture({
    outTradeNo: paying.outTradeNo,
    at: instantOf(saga, day, afterNoonMs),
  });
  await saga.untilOrder(paying.orderId, 'paid');
  const [record] = await saga.records(paying.orderId);
  return { ...paying, tradeNo: record?.channel_trade_no ?? '' };
}

/** An order that its payer may pay now. */
export async function payingAt(
  saga: Saga,
  channel: ChannelName,
  fields: Parameters<Saga['createOrder']>[0] = {},
): Promise<{ orderId: string; outTradeNo: string }> {
  const orderId = await saga.createOrder(fields);
  await saga.pay(orderId, 'K1', { channel });
  return { orderId, outTradeNo: await saga.outTradeNo(orderId) };
}

/** A refund of a paid order that the channel dates on the given day, and that has succeeded. */
export async function refundedOn(
  saga: Saga,
  day: string,
  orderId: string,
  refundNo: string,
  amountMinor: number,
): Promise<string> {
  await saga.mock.configure({
    businessClockOffsetMs: Date.parse(instantOf(saga, day)) - Date.now(),
  });
  await saga.refund(orderId, refundNo, amountMinor);
  await saga.untilRefund(orderId, refundNo, 'succeeded');
  await saga.mock.configure({ businessClockOffsetMs: 0 });
  const [row] = await saga.rows<{ out_refund_no: string }>(
    `select out_refund_no from refunds
     where merchant_id = $1::text and order_id = $2::text and refund_no = $3::text`,
    saga.merchantId,
    orderId,
    refundNo,
  );
  return row?.out_refund_no ?? '';
}

/** Open cases about no order, by what they are about. */
export function billCases(saga: Saga, channel: string, day: string) {
  return saga.rows<{ subject_no: string; summary: string; evidence: unknown[]; status: string }>(
    `select subject_no, summary, evidence, status from cases
     where channel = $1::text and order_id is null and subject_no like $2::text
     order by case_id`,
    channel,
    `bill:${day}:%`,
  );
}

/** Until the date's run shows this status. */
export function untilRun(
  saga: Saga,
  channel: string,
  day: string,
  status: string,
  boundMs?: number,
) {
  return waitFor(
    `${channel} ${day} ${status}`,
    async () => {
      const [row] = await saga.rows<{ status: string; reason: string | null }>(
        `select status, reason from reconciliation_runs
         where channel = $1::text and business_date = $2::date`,
        channel,
        day,
      );
      if (row?.status !== status) throw new Error(`it is ${row?.status ?? 'not begun'}`);
      return row;
    },
    boundMs,
  );
}
