import { closeRun, compareDay, beginRun } from '../../db/reconciliation';
import { readReport } from '../../db/reconciliation-reports';
import { loadTradeBill } from '../../db/trade-bills';
import type { Pool } from '../../db/transaction';
import type { BillLine, BillTotals } from '../../domain/trade-bill';
import { aBill, aLine } from './bills';
import { insertCapture, insertOrder, insertPayRecord, insertRefund, insertRow } from './rows';

type Row = Record<string, unknown>;

let last = 0;

/** A channel of its own with our books of it and the bills it gives, for tests of statements. */
export class ReconciledChannel {
  private constructor(
    private readonly pool: Pool,
    readonly channel: string,
  ) {}

  static async make(pool: Pool, said: Row = {}): Promise<ReconciledChannel> {
    const channel = `r-${++last}`;
    await insertRow(pool as never, 'channels', {
      channel,
      adapter: 'mock-a',
      account_id: 'acc',
      app_id: 'app',
      gateway_url: 'http://127.0.0.1:9',
      ...said,
    });
    return new ReconciledChannel(pool, channel);
  }

  /** An order paid at this instant, and the row that a bill has of it. */
  async paid(at: string, said: { amountMinor?: number; currency?: string } = {}) {
    const no = `${this.channel.replace('-', '')}N${++last}`;
    const amountMinor = said.amountMinor ?? 10_000;
    const currency = said.currency ?? 'CNY';
    const money = { amount_minor: amountMinor, currency };
    const order = await insertOrder(this.pool as never, { ...money, status: 'paid' });
    const record = await insertPayRecord(this.pool as never, order, {
      ...money,
      channel: this.channel,
      out_trade_no: `O${no}`,
      channel_trade_no: `T${no}`,
      status: 'paid',
    });
    const capture = await insertCapture(this.pool as never, record, {
      ...money,
      channel_trade_no: `T${no}`,
      paid_at: at,
    });
    const line = aLine({
      outTradeNo: `O${no}`,
      channelTradeNo: `T${no}`,
      amountMinor,
      currency,
      feeMinor: Math.floor((amountMinor * 60 + 5_000) / 10_000),
      occurredAt: new Date(at).toISOString(),
    });
    return { order, record, capture, line, orderId: String(order['order_id']) };
  }

  /** A refund of all of the capture, sent at this instant, and the row that a bill has of it. */
  async refunded(capture: Row, at: string, said: Row = {}) {
    const amountMinor = Number(capture['amount_minor']);
    const refund = await insertRefund(this.pool as never, capture, {
      amount_minor: amountMinor,
      currency: capture['currency'],
      status: 'succeeded',
      first_sent_at: at,
      finished_at: at,
      channel_refund_no: `CR${++last}`,
      ...said,
    });
    const line = aLine({
      kind: 'refund',
      channelTradeNo: String(capture['channel_trade_no']),
      outRefundNo: String(refund['out_refund_no']),
      channelRefundNo: String(refund['channel_refund_no']),
      amountMinor,
      currency: String(capture['currency']),
      feeMinor: -Math.floor((amountMinor * 60 + 5_000) / 10_000),
      occurredAt: new Date(at).toISOString(),
    });
    return { refund, line };
  }

  load(day: string, lines: BillLine[], options: { totals?: BillTotals[]; fileName?: string } = {}) {
    return loadTradeBill(this.pool, { channel: this.channel, day, source: aBill(lines, options) });
  }

  compare(day: string, options: { now?: string; feeBasisPoints?: number } = {}) {
    return compareDay(this.pool, { channel: this.channel, day, feeBasisPoints: 60, ...options });
  }

  /** Begins, loads, compares and closes, as a run does. */
  async reconcile(
    day: string,
    lines: BillLine[],
    options: { dryRun?: boolean; now?: string } = {},
  ) {
    const dryRun = options.dryRun ?? false;
    await beginRun(this.pool, { channel: this.channel, day, dryRun });
    await this.load(day, lines);
    await this.compare(day, options.now === undefined ? {} : { now: options.now });
    return closeRun(this.pool, { channel: this.channel, day, dryRun });
  }

  async report(day: string) {
    const report = await readReport(this.pool, this.channel, day);
    if (!report) throw new Error(`no report of ${day}`);
    return report;
  }

  /** `kind status subject` of each difference of the date, resolved ones too. */
  async differences(day: string): Promise<string[]> {
    const { differences } = await this.report(day);
    return differences.map(({ kind, status, subject }) => `${kind} ${status} ${subject}`);
  }

  /** `subject_no kind` of the channel's cases, or of the order's. */
  async cases(orderId: string | null = null): Promise<Row[]> {
    const { rows } = await this.pool.query<Row>(
      `select subject_no, kind, summary, evidence, status, version from cases
       where channel = $1::text and order_id is not distinct from $2::text order by case_id`,
      [this.channel, orderId],
    );
    return rows;
  }
}
