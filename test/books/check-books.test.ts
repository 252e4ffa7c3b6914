import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WorkflowIdReusePolicy } from '@temporalio/common';
import type { BooksCheck } from '../../scripts/books/check';
import { checkBooks } from '../../scripts/books/check';
import type { Invariant } from '../../scripts/books/findings';
import { lineOf } from '../../scripts/books/findings';
import type { JournalLine } from '../../scripts/books/journal';
import { PROJECT_FOLDER } from '../../scripts/servers/temporal';
import type { BookRecord } from '../../mock-channel/books';
import { ORDER_WORKFLOW_TYPE, orderStartOptions } from '../../workflows/start-options';
import { FinalCheck } from '../support/final-check';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

describe('the books checker', () => {
  let saga: Saga;
  let folder: string;
  beforeAll(async () => {
    saga = await Saga.start();
    folder = mkdtempSync(join(tmpdir(), 'check-books-'));
  });
  afterAll(async () => {
    saga?.final.skip('every invariant was broken on purpose');
    await saga?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** What the checker says of invariant and subject, with parts of its input replaced. */
  async function violations(
    invariant: Invariant,
    about: string,
    change: Partial<BooksCheck> = {},
  ): Promise<string[]> {
    const found = await checkBooks({ ...saga.final.input(), ...change });
    return found.violations
      .filter((v) => v.invariant === invariant && lineOf(v).includes(about))
      .map(({ message }) => message);
  }

  /** Changes rows as nobody may: without triggers, without foreign keys. */
  async function force(sql: string, ...values: unknown[]): Promise<void> {
    const client = await saga.pool.connect();
    try {
      await client.query('set session_replication_role = replica');
      const { rowCount } = await client.query(sql, values);
      expect(rowCount).toBe(1);
    } finally {
      await client.query('reset session_replication_role');
      client.release();
    }
  }

  const doctored = async (change: (record: BookRecord) => BookRecord[]) => {
    const records = (await saga.mock.books()).flatMap(change);
    return { channelBooks: () => Promise.resolve(records) };
  };

  /** Paid, told, nothing left to do. */
  async function paidOrder() {
    const paid = await saga.paidOrder();
    await saga.untilSettled(paid.orderId);
    return paid;
  }

  async function refundedOrder() {
    const paid = await paidOrder();
    await saga.refund(paid.orderId, 'R1', 3_000);
    await saga.untilRefund(paid.orderId, 'R1', 'succeeded');
    await saga.untilSettled(paid.orderId);
    const [row] = await saga.rows<{ out_refund_no: string }>(
      `select out_refund_no from refunds where order_id = $1::text`,
      paid.orderId,
    );
    return { ...paid, outRefundNo: row?.out_refund_no ?? '' };
  }

  function runCli(...args: string[]): Promise<{ code: number | null; lines: string[] }> {
    const child = spawn(
      process.execPath,
      [
        ...['--import', 'tsx', 'scripts/check-books.ts'],
        ...['--database-url', saga.env['DATABASE_URL'] ?? ''],
        ...['--temporal', saga.env['TEMPORAL_ADDRESS'] ?? ''],
        ...['--namespace', saga.env['TEMPORAL_NAMESPACE'] ?? ''],
        ...['--merchant', saga.merchantId, '--grace-ms', '0'],
        ...args,
      ],
      { cwd: PROJECT_FOLDER, stdio: ['ignore', 'pipe', 'inherit'] },
    );
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    return new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => resolve({ code, lines: output.trim().split('\n') }));
    });
  }

  function writeLines(name: string, lines: readonly unknown[]): string {
    const file = join(folder, name);
    writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    return file;
  }

  it('finds nothing after an order of every ending, and says how much it looked at', async () => {
    await refundedOrder();
    const { outTradeNo, orderId } = await paidOrder();
    await saga.mock.capture({ outTradeNo });
    await waitFor('the second capture refunded', async () => {
      const books = await saga.books(orderId);
      return books.refunds.count === 1;
    });
    const cancelled = await saga.createOrder();
    await saga.pay(cancelled);
    await saga.cancel(cancelled);
    const open = await saga.createOrder();
    await saga.pay(open);
    const reviewed = await saga.createOrder();
    await saga.pay(reviewed);
    await saga.mock.capture({ outTradeNo: await saga.outTradeNo(reviewed), amountMinor: 9_000 });
    await saga.untilOrder(reviewed, 'review');
    await saga.untilSettled(orderId);
    const { checked, violations: found } = await saga.checkBooks();
    expect(found).toEqual([]);
    // Five orders, four captures, two refunds, each under several invariants, and the requests.
    expect(checked).toBeGreaterThan(60);
  });

  it('ends with exit code 0 and the counts when all is well', async () => {
    const books = writeLines('books.jsonl', await saga.mock.books());
    const journal = writeLines('journal.jsonl', saga.journal);
    const { code, lines } = await runCli('--books', books, '--journal', journal);
    expect(lines).toEqual([expect.stringMatching(/^\d+ checked, 0 violated$/)]);
    expect(code).toBe(0);
  });

  it('ends with exit code 1 and names a capture that the books have otherwise', async () => {
    const { outTradeNo } = await paidOrder();
    const records = (await saga.mock.books()).map((record) =>
      record.type === 'captured' && record.outTradeNo === outTradeNo
        ? { ...record, amountMinor: 10_001 }
        : record,
    );
    const { code, lines } = await runCli('--books', writeLines('doctored.jsonl', records));
    expect(lines).toEqual([
      expect.stringMatching(
        /^I2 capture mock-a\/\d+: the channel captured 10001 CNY, our books say 10000 CNY$/,
      ),
      expect.stringMatching(/^I2 currency CNY: \d+ captured at the channel, \d+ in our books/),
      expect.stringMatching(/^\d+ checked, 2 violated$/),
    ]);
    expect(code).toBe(1);
  });

  it('I1: names an order that two captures settle, or that is paid by none', async () => {
    const { orderId, outTradeNo } = await paidOrder();
    await force(
      `update captures set settles = false where order_id = $1::text and settles`,
      orderId,
    );
    expect(await violations('I1', orderId)).toEqual(['is paid, but no capture settles it']);
    await force(`update captures set settles = true where order_id = $1::text`, orderId);
    expect(await violations('I1', orderId)).toEqual([]);

    await saga.mock.capture({ outTradeNo });
    await waitFor('two captures', async () => (await saga.captures(orderId)).length === 2);
    await saga.untilSettled(orderId);
    await saga.pool.query('drop index captures_one_settles');
    await force(
      `update captures set settles = true where order_id = $1::text and not settles`,
      orderId,
    );
    expect(await violations('I1', orderId)).toContain('2 captures settle it, one may');
  });

  it('I2: names a capture that our books lost, and one that the channel never made', async () => {
    const { orderId, outTradeNo } = await paidOrder();
    const without = await doctored((r) =>
      r.type === 'captured' && r.outTradeNo === outTradeNo ? [] : [r],
    );
    const [tradeNo] = (await saga.records(orderId)).map((r) => r.channel_trade_no ?? '');
    expect(await violations('I2', tradeNo ?? '', without)).toEqual([
      'our books hold 10000 CNY that the channel never captured',
    ]);
    await force(`delete from captures where order_id = $1::text`, orderId);
    expect(await violations('I2', tradeNo ?? '')).toEqual([
      `the channel captured 10000 CNY under ${outTradeNo}, our books do not have it`,
    ]);
  });

  it('I3: names a refund paid twice under one number, over the capture, or unknown to us', async () => {
    const { outRefundNo, orderId } = await refundedOrder();
    const again = (times: number) =>
      doctored((r) =>
        r.type === 'refund_executed' && r.outRefundNo === outRefundNo ? Array(times).fill(r) : [r],
      );
    expect(await violations('I3', outRefundNo, await again(2))).toEqual([
      'the channel paid it 2 times',
    ]);
    const [tradeNo] = (await saga.records(orderId)).map((r) => r.channel_trade_no ?? '');
    expect(await violations('I3', tradeNo ?? '', await again(5))).toEqual([
      '15000 refunded or under way at the channel, 10000 CNY captured',
    ]);
    const more = await doctored((r) =>
      r.type === 'refund_executed' && r.outRefundNo === outRefundNo
        ? [r, ...foreignRefund(r, 'F1', 8_000)]
        : [r],
    );
    expect(await violations('I3', tradeNo ?? '', more)).toEqual([
      '11000 refunded or under way at the channel, 10000 CNY captured',
    ]);
    expect(await violations('I3', 'mock-a/F1', more)).toEqual([
      'the channel paid 8000, our books do not have it',
    ]);
    const unpaid = await doctored((r) =>
      r.type === 'refund_executed' && r.outRefundNo === outRefundNo ? [] : [r],
    );
    expect(await violations('I3', outRefundNo, unpaid)).toEqual([
      expect.stringContaining('is succeeded here, the channel never paid it'),
    ]);
  });

  it('I4: names money that belongs to no order, refund or case', async () => {
    const { orderId } = await paidOrder();
    await force(`update orders set status = 'closed' where order_id = $1::text`, orderId);
    expect(await violations('I4', `/${orderId})`)).toEqual([
      expect.stringMatching(/^10000 CNY of 10000 CNY belong to no paid order, refund/),
    ]);

    const other = await refundedOrder();
    const [tradeNo] = (await saga.records(other.orderId)).map((r) => r.channel_trade_no ?? '');
    await force(
      `update captures set reserved_minor = 500 where order_id = $1::text`,
      other.orderId,
    );
    await force(
      `update captures set refunded_minor = 4000 where order_id = $1::text`,
      other.orderId,
    );
    expect(await violations('I4', tradeNo ?? '')).toEqual([
      '500 reserved, but refunds under way carry 0',
      '4000 refunded in our books, 3000 at the channel',
    ]);
  });

  it('I5: names a state that moved without a trace, and a move that no rule allows', async () => {
    const { orderId } = await paidOrder();
    await force(`update orders set status = 'created' where order_id = $1::text`, orderId);
    expect(await violations('I5', `order ${saga.merchantId}/${orderId}`)).toEqual([
      'its history ends in paid, the row says created',
    ]);
    await saga.pool.query(
      `insert into order_events (merchant_id, order_id, subject, subject_id, from_status, to_status,
         cause, actor)
       values ($1::text, $2::text, 'order', $2::text, 'paid', 'created', 'by hand', 'nobody')`,
      [saga.merchantId, orderId],
    );
    expect(await violations('I5', `order ${saga.merchantId}/${orderId}`)).toEqual([
      'it moved from paid to created, which no rule allows',
    ]);
    await saga.pool.query(
      `insert into allowed_moves (subject, from_status, to_status) values ('order', 'paid', 'created')`,
    );
    expect(await violations('I5', 'order paid>created')).toEqual([
      'the schema allows it, the table of moves does not',
    ]);
  });

  it('I6: names an acknowledged request without a row, and an order nobody looks after', async () => {
    const { orderId } = await refundedOrder();
    const line = (path: string, answer: unknown): JournalLine => ({
      ...{ at: '2026-01-01T00:00:00.000Z', method: 'POST', path, key: null, request: {} },
      ...{ status: 201, answer },
    });
    const journal = [
      line('/v1/orders', { order_id: 'ghost', amount: 1 }),
      line(`/v1/orders/${orderId}/payments`, { out_trade_no: 'NOSUCHNUMBER' }),
      line(`/v1/orders/${orderId}/refunds`, { refund_no: 'R9', amount: 1 }),
      line(`/v1/orders/${orderId}/refunds`, { refund_no: 'R1', amount: 2_999 }),
    ];
    expect(await violations('I6', 'request', { journal })).toEqual([
      'was answered 201, there is no order ghost',
      'was answered 201 with number NOSUCHNUMBER, no pay record has it',
      'was answered 201, there is no refund R9',
      'was answered with amount 2999, the refund has 3000',
    ]);

    await force(`update orders set status = 'review' where order_id = $1::text`, orderId);
    expect(await violations('I6', `order ${saga.merchantId}/${orderId}`)).toEqual([
      'is review, without work and without an open case',
      'waits for a person in no open case',
    ]);
  });

  it('I7: names a second run, and an order with work that nobody will pick up', async () => {
    const orderId = await saga.createOrder();
    await saga.pay(orderId);
    const ref = { merchantId: saga.merchantId, orderId };
    const second = await saga.client.workflow.start(ORDER_WORKFLOW_TYPE, {
      ...orderStartOptions(
        { ...ref, amountMinor: 10_000, currency: 'CNY', status: 'paying' },
        // Nobody polls there, so it stays open.
        `${saga.taskQueue}-nobody`,
      ),
      workflowId: `second:${saga.merchantId}:${orderId}`,
      workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
    });
    await waitFor('both runs listed', async () =>
      (await violations('I7', orderId)).some((message) => message.startsWith('has 2 open runs')),
    );
    await second.terminate();

    const { orderId: left } = await paidOrder();
    await saga.handle(left).result();
    await saga.stopWorkers();
    await force(
      `update notifications set status = 'pending', next_due_at = now() - interval '10 minutes'
       where order_id = $1::text and event_type = 'order.paid'`,
      left,
    );
    await waitFor('the closed run to leave the list', async () =>
      (await violations('I7', left)).some((message) =>
        /^has work \(notification\) and no open run, due 60\d s ago$/.test(message),
      ),
    );
    expect(await violations('I7', left, { pickUpMs: 700_000 })).toEqual([]);
    await force(
      `update notifications set status = 'sent' where order_id = $1::text and event_type = 'order.paid'`,
      left,
    );
    await saga.startWorker();
  });

  it('I8: names an order told paid twice, never, or without being paid', async () => {
    const { orderId } = await paidOrder();
    const [first] = saga.merchant.effects(orderId, 'order.paid');
    if (!first) throw new Error('the merchant was not told');
    const received = [first, { ...first, id: 'evt_999999' }, { ...first, subject: 'other' }];
    expect(await violations('I8', orderId, { received })).toEqual([
      expect.stringContaining('tells different things'),
      expect.stringContaining('there is no such notification'),
      'the merchant was told order.paid under 2 ids',
    ]);

    await force(
      `delete from notifications where order_id = $1::text and event_type = 'order.paid'`,
      orderId,
    );
    expect(await violations('I8', orderId, { received: [] })).toEqual([
      'was paid, order.paid is not written',
    ]);
    const unpaid = await saga.createOrder();
    await force(
      `insert into notifications (merchant_id, order_id, seq, event_type, payload, status)
       values ($1::text, $2::text, 1, 'order.paid', '{}', 'kept')`,
      saga.merchantId,
      unpaid,
    );
    expect(await violations('I8', unpaid)).toEqual(['order.paid is written, it was never paid']);
  });

  it('I10: names a 500, and a 503 for a request that had been acknowledged', async () => {
    const line = (status: number, outage?: boolean): JournalLine => ({
      ...{ at: new Date().toISOString(), method: 'POST', path: '/v1/orders/x/payments', key: 'K1' },
      ...{ request: { channel: 'mock-a' }, status, answer: {}, ...(outage ? { outage } : {}) },
    });
    const say = (journal: JournalLine[]) => violations('I10', 'request', { journal });
    expect(await say([line(500)])).toEqual(['was answered 500']);
    expect(await say([line(500, true)])).toEqual(['was answered 500']);
    expect(await say([line(502)])).toEqual(['was answered 502']);
    expect(await say([line(201), line(503)])).toEqual([
      'was answered 503 although the same request had been acknowledged before',
    ]);
    expect(await say([line(503), line(201), line(200)])).toEqual([]);
    expect(await say([line(201), line(503, true)])).toEqual([]);
  });

  it('fails a test at its end with every violation by name, and one expected in vain', async () => {
    const broken = await saga.final.check(0);
    for (const invariant of ['I1', 'I2', 'I4', 'I5', 'I6', 'I8']) {
      expect(broken?.message).toMatch(new RegExp(`^ {2}${invariant} `, 'm'));
    }
    const other = new FinalCheck(saga);
    for (const { invariant, subject } of (await other.look()).violations) {
      other.expect({ invariant, about: subject, why: 'broken above' });
    }
    expect(await other.check(0)).toBeUndefined();
    other.expect({ invariant: 'I3', about: 'no such refund', why: 'shown to be missed' });
    expect((await other.check(0))?.message).toMatch(/I3 about no such refund was expected/);
  });
});

function foreignRefund(
  record: Extract<BookRecord, { type: 'refund_executed' }>,
  outRefundNo: string,
  amountMinor: number,
): BookRecord[] {
  return [
    { ...record, type: 'refund_accepted', channelRefundNo: '1', outRefundNo, amountMinor },
    { ...record, outRefundNo, amountMinor },
  ];
}
