/** The table of the rule, case by case, as rows of a bill and of our books: SQL must say the same. */
import { compareDay } from '../../db/reconciliation';
import { loadTradeBill } from '../../db/trade-bills';
import type { CaptureSide, ComparedPair, LineSide, RefundSide } from '../../domain/differences';
import type { BillLine } from '../../domain/trade-bill';
import { aBill, aLine } from '../support/bills';
import { DIFFERENCE_CASES } from '../support/difference-cases';
import {
  insertCapture,
  insertOrder,
  insertPayRecord,
  insertRefund,
  insertRow,
} from '../support/rows';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';

const DAY = '2026-05-02';
const NOON = '2026-05-02T12:00:00Z';
const NEAR_MIDNIGHT = '2026-05-02T23:00:00Z';
const DAY_BEFORE = '2026-05-01T12:00:00Z';
const IN_TIME = '2026-05-03T08:00:00Z';
const TOO_LATE = '2026-05-06T12:00:01Z';

let database: StatementDatabase;

beforeAll(async () => {
  database = await createStatementDatabase({ bulk: true });
});
afterAll(() => database?.end());

/** The rows of one case, at a channel of its own. */
class Scene {
  lines: BillLine[] = [];
  otherLines: BillLine[] = [];
  otherDay = '2026-05-03';
  now = IN_TIME;
  /** The line that the case is about, and no other. */
  lineNo: number | null = null;

  constructor(readonly channel: string) {}

  private get client() {
    return database.pool as never;
  }
  private no = (of: string) => `${of}${this.channel.replace('-', '')}`;

  async build(pair: ComparedPair): Promise<void> {
    await insertRow(this.client, 'channels', {
      channel: this.channel,
      adapter: 'mock-a',
      account_id: 'acc',
      app_id: 'app',
      gateway_url: 'http://127.0.0.1:9',
    });
    if (pair.line === null) {
      const { pairedElsewhere, nearMidnight, poolOver } = pair.elsewhere;
      const at = nearMidnight ? NEAR_MIDNIGHT : NOON;
      if (pair.capture) await this.capture(pair.capture, at);
      else await this.refund(pair.refund, at);
      if (poolOver) this.now = TOO_LATE;
      if (pairedElsewhere) this.otherLines = [this.line(pair.capture ? 'payment' : 'refund')];
      return;
    }
    const { line, capture, refund } = pair;
    if (line.inOtherBill) {
      this.otherDay = '2026-05-01';
      this.otherLines = [this.said(line)];
    }
    const at = line.inOtherBill ? DAY_BEFORE : NOON;
    if (capture) await this.capture(capture, at);
    if (refund) await this.refund(refund, at);
    if (line.orderPaid) await this.orderPaidOtherwise();
    for (let i = 1; i < line.appearance; i++)
      this.lines.push({ ...this.said(line), amountMinor: 10_000 });
    if (line.kind === 'payment' && line.reversedMinor > 0)
      this.lines.push(this.said({ ...line, kind: 'reversal', feeMinor: null }));
    this.lines.push(this.said(line));
    this.lineNo = this.lines.length + 1;
    if (line.namesOther) {
      const other = await insertPayRecord(this.client, await insertOrder(this.client), {
        channel: this.channel,
      });
      this.lines[this.lines.length - 1]!.outTradeNo = String(other['out_trade_no']);
    }
  }

  private line(kind: 'payment' | 'refund' | 'reversal'): BillLine {
    return aLine({
      kind,
      outTradeNo: this.no('O'),
      channelTradeNo: this.no('T'),
      outRefundNo: kind === 'refund' ? this.no('R') : null,
      channelRefundNo: kind === 'refund' ? this.no('CR') : null,
      feeMinor: kind === 'refund' ? -60 : 60,
    });
  }

  private said(line: LineSide): BillLine {
    const { kind, status, amountMinor, currency, feeMinor } = line;
    const ofMoney = kind === 'payment' || kind === 'refund' || kind === 'reversal';
    return {
      ...this.line(ofMoney ? kind : 'payment'),
      ...{ kind, status, amountMinor, currency, feeMinor },
      ...(line.secondRefund ? { channelRefundNo: this.no('CX') } : {}),
    };
  }

  private async capture(side: CaptureSide, at: string): Promise<Record<string, unknown>> {
    const order = await insertOrder(this.client, { status: 'paid' });
    const record = await insertPayRecord(this.client, order, {
      channel: this.channel,
      out_trade_no: this.no('O'),
      status: 'paid',
    });
    const capture = await insertCapture(this.client, record, {
      channel_trade_no: this.no('T'),
      amount_minor: side.amountMinor,
      currency: side.currency,
      kind: side.kind,
      settles: side.settles,
      status: side.status,
      reserved_minor: side.reservedMinor,
      refunded_minor: side.refundedMinor,
      reversed_minor: side.reversedMinor,
      paid_at: at,
    });
    if (side.status === 'reversed') {
      await insertRow(this.client, 'order_events', {
        merchant_id: 'shop',
        order_id: order['order_id'],
        subject: 'capture',
        subject_id: String(capture['capture_id']),
        from_status: 'captured',
        to_status: 'reversed',
        cause: 'reversed',
        actor: this.channel,
        created_at: side.reversedLater ? IN_TIME : NOON,
      });
    }
    return capture;
  }

  private async refund(side: RefundSide, at: string): Promise<void> {
    // Taken long before the date, so that the bill need not have it.
    const capture = await this.capture(
      {
        ...side,
        status: 'captured',
        kind: 'settling',
        settles: true,
        reservedMinor: 0,
        refundedMinor: 0,
        reversedMinor: 0,
        reversedLater: false,
      },
      '2026-04-01T12:00:00Z',
    );
    await insertRefund(this.client, capture, {
      out_refund_no: this.no('R'),
      channel_refund_no: this.no('CR'),
      amount_minor: side.amountMinor,
      currency: side.currency,
      status: side.status,
      first_sent_at: at,
      ...(side.answeredSince
        ? {
            last_call: 'query',
            last_fact_state: 'processing',
            last_call_at: '2099-01-01T00:00:00Z',
          }
        : { last_call: 'submit', last_fact_state: 'processing', last_call_at: NOON }),
    });
  }

  private async orderPaidOtherwise(): Promise<void> {
    const order = await insertOrder(this.client, { status: 'paid' });
    const record = await insertPayRecord(this.client, order, {
      channel: this.channel,
      out_trade_no: this.no('O'),
      status: 'paid',
    });
    await insertCapture(this.client, record, { paid_at: '2026-04-01T12:00:00Z' });
  }
}

let last = 0;

describe('the comparison in SQL', () => {
  it.each(DIFFERENCE_CASES.map((c) => [c.name, c.expected, c] as const))(
    '%s: %s',
    async (_name, expected, { pair, feeBasisPoints }) => {
      const scene = new Scene(`t-${++last}`);
      await scene.build(pair);
      const { channel } = scene;
      if (scene.otherLines.length > 0) {
        await loadTradeBill(database.pool, {
          channel,
          day: scene.otherDay,
          source: aBill(scene.otherLines),
        });
      }
      await loadTradeBill(database.pool, { channel, day: DAY, source: aBill(scene.lines) });
      const counts = await compareDay(database.pool, {
        channel,
        day: DAY,
        feeBasisPoints,
        now: scene.now,
      });
      const { rows } = await database.pool.query<Record<string, unknown>>(
        `select concat_ws(' ', kind, status, nullif(reason, '')) as said, line_no
         from differences where channel = $1::text and line_no is not distinct from $2::int`,
        [channel, scene.lineNo],
      );
      expect(rows.map(({ said }) => said)).toEqual(expected === 'matched' ? [] : [expected]);
      expect(counts.rows).toBe(scene.lines.length);
    },
  );
});
