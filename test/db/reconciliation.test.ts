import { reviseSuspense } from '../../db/reconciliation';
import { billLinesOfOrder, differencesOfOrder, listReports } from '../../db/reconciliation-reports';
import { aLine } from '../support/bills';
import { ReconciledChannel } from '../support/reconciled-day';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';

const D = '2026-05-02';
const NOON = '2026-05-02T12:00:00Z';

let database: StatementDatabase;

beforeAll(async () => {
  database = await createStatementDatabase({ bulk: true });
});
afterAll(() => database?.end());

const channel = (said: Record<string, unknown> = {}) => ReconciledChannel.make(database.pool, said);
const run = (sql: string, ...values: unknown[]) => database.pool.query(sql, values);

describe('comparing a date', () => {
  it('an empty bill of a day without orders has no difference; of a day with three exactly three', async () => {
    const ch = await channel();
    expect(await ch.reconcile('2026-05-01', [])).toMatchObject({ rows: 0, open: 0, cases: 0 });
    for (const at of [NOON, NOON, NOON]) await ch.paid(at);
    await ch.load(D, []);
    expect(await ch.compare(D)).toMatchObject({ rows: 0, open: 3, byKind: { ours_only: 3 } });
  });

  it('B98: two equal payments are two matches, the same row twice is one difference, however often', async () => {
    const ch = await channel();
    const [one, two] = [
      await ch.paid(NOON, { amountMinor: 990 }),
      await ch.paid(NOON, { amountMinor: 990 }),
    ];
    const lines = [one.line, two.line, { ...two.line }];
    await ch.load(D, lines);
    await Promise.all([ch.compare(D), ch.compare(D)]);
    await ch.load(D, lines);
    const counts = await ch.compare(D);
    expect(counts).toMatchObject({ rows: 3, open: 1, byKind: { duplicate_row: 1 } });
    const { totals, differencesTotal } = await ch.report(D);
    expect(differencesTotal).toBe(1);
    expect(totals).toEqual([
      expect.objectContaining({
        currency: 'CNY',
        matched: { rows: 2, netMinor: 1_980 },
        differences: { rows: 1, netMinor: 990 },
      }),
    ]);
  });

  it('compared again the same differences are the same rows, and one that is gone is resolved', async () => {
    const ch = await channel();
    const [a, b] = [await ch.paid(NOON), await ch.paid(NOON)];
    const lines = [
      { ...a.line, amountMinor: 1 },
      { ...b.line, feeMinor: null },
    ];
    await ch.load(D, lines);
    await ch.compare(D);
    const ids = () =>
      run(
        `select difference_id, first_seen_at from differences where channel = $1 order by 1`,
        ch.channel,
      );
    const before = (await ids()).rows;
    const report = JSON.stringify(await ch.report(D));
    await ch.compare(D);
    expect((await ids()).rows).toEqual(before);
    expect(JSON.stringify(await ch.report(D))).toBe(report);
    await run(
      `update captures set amount_minor = 1 where capture_id = $1`,
      a.capture['capture_id'],
    );
    await ch.load(D, [
      { ...a.line, amountMinor: 1, feeMinor: 0 },
      { ...b.line, feeMinor: null },
    ]);
    expect(await ch.compare(D)).toMatchObject({ open: 1, byKind: { fee: 1 } });
    expect(await ch.differences(D)).toEqual([
      `amount resolved ${a.line.channelTradeNo}`,
      `fee open ${b.line.channelTradeNo}`,
    ]);
    // And back again: the same row, open.
    await run(
      `update captures set amount_minor = 2 where capture_id = $1`,
      a.capture['capture_id'],
    );
    expect(await ch.compare(D)).toMatchObject({ open: 2 });
    expect((await ids()).rows).toEqual(before);
  });

  it('matched and differences and unknown are the file, to the cent and per currency', async () => {
    const ch = await channel();
    const [cny, jpy, short] = [
      await ch.paid(NOON, { amountMinor: 2_500_000 }),
      await ch.paid(NOON, { amountMinor: 2_000, currency: 'JPY' }),
      await ch.paid(NOON, { amountMinor: 700 }),
    ];
    const refund = await ch.refunded(cny.capture, NOON);
    await ch.load(D, [
      cny.line,
      { ...jpy.line, amountMinor: 200_000 },
      refund.line,
      aLine({ kind: 'unknown', amountMinor: -321, feeMinor: null }),
      aLine({ kind: 'adjustment', amountMinor: -77, currency: 'USD', feeMinor: null }),
      aLine({
        kind: 'error',
        status: 'unknown',
        amountMinor: null,
        currency: null,
        feeMinor: null,
      }),
      aLine({ channelTradeNo: 'T-nobody', outTradeNo: 'O-nobody', amountMinor: 55, feeMinor: 0 }),
    ]);
    await ch.compare(D);
    const { totals } = await ch.report(D);
    const none = { rows: 0, netMinor: 0 };
    expect(totals).toEqual([
      {
        currency: '',
        file: expect.objectContaining({ rows: 1, netMinor: 0 }) as unknown,
        matched: none,
        differences: none,
        unknown: { rows: 1, netMinor: 0 },
        oursOnly: none,
      },
      {
        currency: 'CNY',
        file: {
          rows: 4,
          netMinor: 55 - 321,
          paymentsMinor: 2_500_055,
          refundsMinor: 2_500_000,
          reversalsMinor: 0,
          otherMinor: -321,
          feesMinor: 0,
        },
        matched: { rows: 2, netMinor: 0 },
        differences: { rows: 1, netMinor: 55 },
        unknown: { rows: 1, netMinor: -321 },
        oursOnly: { rows: 1, netMinor: 700 },
      },
      expect.objectContaining({ currency: 'JPY', differences: { rows: 1, netMinor: 200_000 } }),
      expect.objectContaining({ currency: 'USD', unknown: { rows: 1, netMinor: -77 } }),
    ]);
    expect(await ch.differences(D)).toContain(`ours_only open ${short.line.channelTradeNo}`);
  });

  it('stated sums that are not those of the rows are one difference per currency', async () => {
    const ch = await channel();
    const { line } = await ch.paid(NOON);
    const totals = (paymentsMinor: number) => [
      { currency: 'CNY', payments: 1, paymentsMinor, refunds: 0, refundsMinor: 0, feesMinor: 60 },
    ];
    await ch.load(D, [line], { totals: totals(10_001) });
    expect(await ch.compare(D)).toMatchObject({ open: 1, byKind: { file_total: 1 } });
    expect((await ch.report(D)).differences[0]).toMatchObject({
      subject: 'CNY',
      channelSays: { stated: { paymentsMinor: 10_001 }, summed: { paymentsMinor: '10000' } },
    });
    await ch.load(D, [line], { totals: totals(10_000) });
    expect(await ch.compare(D)).toMatchObject({ open: 0, byKind: {} });
  });

  it('a newer file is compared, not the one it supersedes', async () => {
    const ch = await channel();
    const { line } = await ch.paid(NOON);
    await ch.load(D, [{ ...line, amountMinor: 1 }]);
    expect(await ch.compare(D)).toMatchObject({ open: 1 });
    await ch.load(D, [line]);
    expect(await ch.compare(D)).toMatchObject({ open: 0 });
  });

  it('a row without the channel’s number is found by ours, and one with a mangled number of ours by theirs', async () => {
    const ch = await channel();
    const [a, b] = [await ch.paid(NOON), await ch.paid(NOON)];
    const refund = await ch.refunded(a.capture, NOON);
    await ch.load(D, [
      { ...a.line, channelTradeNo: null },
      { ...b.line, outTradeNo: 'mangled' },
      { ...refund.line, outRefundNo: null },
    ]);
    expect(await ch.compare(D)).toMatchObject({ rows: 3, open: 0, suspense: 0 });
  });

  it('an older callback of ours with another date is found whatever its date', async () => {
    const ch = await channel();
    const { line } = await ch.paid('2026-04-02T12:00:00Z');
    await ch.load(D, [line]);
    expect(await ch.compare(D)).toMatchObject({ open: 0 });
  });

  it('the other channel’s books and bills are no part of it', async () => {
    const [ch, other] = [await channel(), await channel()];
    const { line } = await other.paid(NOON);
    await ch.load(D, [line]);
    expect(await ch.compare(D)).toMatchObject({ open: 1, byKind: { channel_only: 1 } });
    expect((await ch.report(D)).differences[0]).toMatchObject({ orderId: null, ours: null });
  });

  it('what stands in the books of an order says so, with both sides as evidence', async () => {
    const ch = await channel();
    const { line, orderId } = await ch.paid(NOON);
    await ch.load(D, [{ ...line, amountMinor: 1 }], { fileName: 'may.csv' });
    await ch.compare(D);
    const ref = { merchantId: 'shop', orderId };
    expect(await differencesOfOrder(database.pool, ref)).toEqual([
      expect.objectContaining({
        channel: ch.channel,
        day: D,
        kind: 'amount',
        lineNo: 2,
        ours: expect.objectContaining({
          amount_minor: 10_000,
          paid_at: '2026-05-02T12:00:00.000Z',
        }) as unknown,
        channelSays: expect.objectContaining({
          file: 'may.csv',
          line: 2,
          amount_minor: 1,
        }) as unknown,
      }),
    ]);
    expect(await billLinesOfOrder(database.pool, ref)).toEqual([
      expect.objectContaining({ day: D, fileName: 'may.csv', lineNo: 2, amountMinor: 1 }),
    ]);
    const list = await listReports(database.pool, { from: D, to: D, channel: ch.channel });
    expect(list).toEqual([expect.objectContaining({ day: D, byKind: { amount: 1 } })]);
    expect(list[0]).not.toHaveProperty('totals');
  });
});

describe('pairing across dates', () => {
  const LATE = '2026-05-02T23:30:00Z';

  it('a payment near midnight waits, and the neighbour’s bill explains it', async () => {
    const ch = await channel();
    const { line } = await ch.paid(LATE);
    await ch.load(D, []);
    expect(await ch.compare(D, { now: '2026-05-03T02:00:00Z' })).toMatchObject({
      open: 0,
      suspense: 1,
    });
    await ch.load('2026-05-03', [line]);
    expect(await ch.compare('2026-05-03')).toMatchObject({ open: 0, suspense: 0 });
    const [difference] = (await ch.report(D)).differences;
    expect(difference).toMatchObject({
      status: 'resolved',
      resolution: 'the bill of 2026-05-03 has it',
    });
    // Compared anew it is no difference at all.
    expect(await ch.compare(D)).toMatchObject({ open: 0, suspense: 0 });
  });

  it('a bill loaded earlier explains it too, also far from midnight', async () => {
    const ch = await channel();
    const { line } = await ch.paid(NOON);
    await ch.load('2026-04-30', [line]);
    await ch.load(D, []);
    expect(await ch.compare(D)).toMatchObject({ open: 0, suspense: 0, byKind: {} });
  });

  it('a bill four dates away explains nothing', async () => {
    const ch = await channel();
    const { line } = await ch.paid(NOON);
    await ch.load('2026-05-06', [line]);
    await ch.load(D, []);
    expect(await ch.compare(D)).toMatchObject({ open: 1, byKind: { ours_only: 1 } });
  });

  it('the same row in the bills of two dates is once a match and once a duplicate', async () => {
    const ch = await channel();
    const { line } = await ch.paid(LATE);
    await ch.load(D, [line]);
    await ch.load('2026-05-03', [line]);
    expect(await ch.compare(D)).toMatchObject({ open: 0 });
    expect(await ch.compare('2026-05-03')).toMatchObject({ byKind: { duplicate_row: 1 } });
  });

  it('after the third later bill without it, or after three and a half days, it is a case', async () => {
    const ch = await channel();
    const [a, b] = [await ch.paid(LATE), await ch.paid('2026-05-07T00:10:00Z')];
    await ch.reconcile(D, [], { now: '2026-05-03T02:00:00Z' });
    await ch.reconcile('2026-05-07', [], { now: '2026-05-08T02:00:00Z' });
    const revise = (now: string) => reviseSuspense(database.pool, ch.channel, { now });
    expect(await revise('2026-05-04T00:00:00Z')).toEqual({ resolved: 0, cases: 0 });
    for (const day of ['2026-05-03', '2026-05-04', '2026-05-05']) {
      expect(await ch.cases(a.orderId)).toEqual([]);
      await ch.reconcile(day, [], { now: '2026-05-04T00:00:00Z' });
    }
    expect(await revise('2026-05-04T00:00:00Z')).toEqual({ resolved: 0, cases: 1 });
    expect(await ch.differences(D)).toEqual([`ours_only case ${a.line.channelTradeNo}`]);
    expect(await ch.cases(a.orderId)).toEqual([
      expect.objectContaining({ kind: 'reconciliation', subject_no: a.line.outTradeNo }),
    ]);
    expect(await revise('2026-05-11T11:59:59Z')).toEqual({ resolved: 0, cases: 0 });
    expect(await revise('2026-05-11T12:00:00Z')).toEqual({ resolved: 0, cases: 1 });
    expect(await revise('2026-05-20T12:00:00Z')).toEqual({ resolved: 0, cases: 0 });
    expect(await ch.cases(b.orderId)).toHaveLength(1);
  });

  it('of a dry run nothing becomes a case, however long it waits', async () => {
    const ch = await channel();
    await ch.paid(LATE);
    await ch.reconcile(D, [], { now: '2026-05-03T02:00:00Z', dryRun: true });
    expect(
      await reviseSuspense(database.pool, ch.channel, { now: '2027-01-01T00:00:00Z' }),
    ).toEqual({
      resolved: 0,
      cases: 0,
    });
  });

  it('a refund near midnight waits likewise, by when it was sent or when it ended', async () => {
    const ch = await channel();
    const { capture } = await ch.paid('2026-04-02T12:00:00Z');
    const { line } = await ch.refunded(capture, NOON, { finished_at: '2026-05-03T01:00:00Z' });
    await ch.load(D, []);
    expect(await ch.compare(D, { now: '2026-05-03T02:00:00Z' })).toMatchObject({ suspense: 1 });
    await ch.load('2026-05-03', [line]);
    await ch.compare('2026-05-03');
    expect(await ch.differences(D)).toEqual([`refund_ours_only resolved ${line.outRefundNo}`]);
  });

  it('B03: a second payment is listed while it is given back, and not any more after that', async () => {
    const ch = await channel();
    const { line, capture } = await ch.paid(NOON);
    await run(
      `update captures set settles = false, kind = 'surplus_duplicate', reserved_minor = amount_minor
       where capture_id = $1`,
      capture['capture_id'],
    );
    expect(await ch.reconcile(D, [line])).toMatchObject({ open: 0, waiting: 1, cases: 0 });
    expect(await ch.differences(D)).toEqual([`duplicate_payment waiting ${line.channelTradeNo}`]);
    await run(
      `update captures set reserved_minor = 0, refunded_minor = amount_minor where capture_id = $1`,
      capture['capture_id'],
    );
    expect(await reviseSuspense(database.pool, ch.channel)).toEqual({ resolved: 1, cases: 0 });
    expect(await ch.differences(D)).toEqual([`duplicate_payment resolved ${line.channelTradeNo}`]);
  });

  it('a surplus whose refund came to nothing is put before a person', async () => {
    const ch = await channel();
    const { line, capture, orderId } = await ch.paid(NOON);
    await run(
      `update captures set settles = false, kind = 'surplus_duplicate', reserved_minor = amount_minor
       where capture_id = $1`,
      capture['capture_id'],
    );
    await ch.reconcile(D, [line]);
    await run(
      `update captures set reserved_minor = 0 where capture_id = $1`,
      capture['capture_id'],
    );
    expect(await reviseSuspense(database.pool, ch.channel)).toEqual({ resolved: 0, cases: 1 });
    expect(await ch.cases(orderId)).toHaveLength(1);
  });
});
