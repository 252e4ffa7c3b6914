import pg from 'pg';
import { compareDay } from '../../db/reconciliation';
import { loadTradeBill } from '../../db/trade-bills';
import { DIFFERENCE_KINDS } from '../../domain/differences';
import type { BillLine } from '../../domain/trade-bill';
import { TradeBillError } from '../../domain/trade-bill';
import { aBill, aLine } from '../support/bills';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';
import { waitFor } from '../support/wait';

const DAY = '2026-05-02';
let database: StatementDatabase;

beforeAll(async () => {
  database = await createStatementDatabase({ bulk: true });
});
afterAll(() => database?.end());

const load = (source: ReturnType<typeof aBill>, day = DAY, onProgress?: (rows: number) => void) =>
  loadTradeBill(database.pool, { channel: 'ch-a', day, source, ...(onProgress && { onProgress }) });

async function rows<T>(sql: string, ...values: unknown[]): Promise<T[]> {
  return (await database.pool.query(sql, values)).rows as T[];
}
const billsOf = (day: string) =>
  rows<{ status: string; line_count: number }>(
    `select status, line_count from trade_bills where channel = 'ch-a' and business_date = $1::date
     order by bill_id`,
    day,
  );
const tables = async () =>
  (
    await rows<{ n: number }>(
      `select count(*)::int as n from pg_class where relname like 'trade_bill_lines_%' and relkind = 'r'`,
    )
  )[0]?.n;
const linesOf = (billId: number) =>
  rows<Record<string, unknown>>(
    `select line_no, kind, status, out_trade_no, channel_trade_no, out_refund_no, channel_refund_no,
       amount_minor, currency, fee_minor, occurred_at, word, error
     from trade_bill_lines where bill_id = $1::bigint order by line_no`,
    billId,
  );

describe('loading a trade bill', () => {
  it('keeps every field as it was read, whatever characters it holds', async () => {
    const word = 'back\\slash \t tab \n line \r 中文 😀 `\'"';
    const lines: BillLine[] = [
      aLine({ outTradeNo: 'O1', channelTradeNo: '\\N', word }),
      aLine({
        kind: 'refund',
        status: 'processing',
        outTradeNo: 'O1',
        channelTradeNo: 'T1',
        outRefundNo: 'R1',
        channelRefundNo: 'CR1',
        amountMinor: 9_007_199_254_740_991,
        feeMinor: -60,
      }),
      aLine({
        kind: 'error',
        status: 'unknown',
        amountMinor: null,
        currency: null,
        feeMinor: null,
        occurredAt: null,
        word: 'half a pair: \ud83d and nul: \0',
        error: 'amount: "1,000"',
      }),
      aLine({ kind: 'adjustment', amountMinor: -321, word: '' }),
    ];
    const loaded = await load(aBill(lines));
    expect(loaded).toMatchObject({ status: 'loaded', rows: 4, rowErrors: 1 });
    const kept = await linesOf(loaded.billId);
    expect(kept.map((row) => row['word'])).toEqual([
      word,
      'PAID',
      'half a pair: \ufffd and nul: \ufffd',
      '',
    ]);
    expect(kept[0]).toMatchObject({ line_no: 2, out_trade_no: 'O1', channel_trade_no: '\\N' });
    expect(kept[1]).toMatchObject({
      kind: 'refund',
      status: 'processing',
      out_refund_no: 'R1',
      channel_refund_no: 'CR1',
      amount_minor: 9_007_199_254_740_991,
      fee_minor: -60,
      occurred_at: '2026-05-01T12:00:00.000Z',
      error: null,
    });
    expect(kept[2]).toMatchObject({
      amount_minor: null,
      currency: null,
      fee_minor: null,
      occurred_at: null,
      error: 'amount: "1,000"',
    });
  });

  it('the same file again changes nothing, also when it is loaded while it is loaded', async () => {
    const day = '2026-05-03';
    const source = () => aBill([aLine({ outTradeNo: 'A', channelTradeNo: 'A' })]);
    const both = await Promise.all([load(source(), day), load(source(), day)]);
    expect(both.map(({ status }) => status).sort()).toEqual(['loaded', 'unchanged']);
    expect(both[0]?.billId).toBe(both[1]?.billId);
    const before = await tables();
    expect(await load(source(), day)).toMatchObject({ status: 'unchanged', rows: 1 });
    expect(await billsOf(day)).toEqual([{ status: 'loaded', line_count: 1 }]);
    expect(await tables()).toBe(before);
  });

  it('a newer file supersedes the older one, and an older one that is sent again is the newest', async () => {
    const day = '2026-05-04';
    const first = () => aBill([aLine({ channelTradeNo: 'A' })]);
    await load(first(), day);
    await load(aBill([aLine({ channelTradeNo: 'A' }), aLine({ channelTradeNo: 'B' })]), day);
    expect(await billsOf(day)).toEqual([
      { status: 'superseded', line_count: 1 },
      { status: 'loaded', line_count: 2 },
    ]);
    expect(await load(first(), day)).toMatchObject({ status: 'loaded' });
    expect((await billsOf(day)).map(({ status }) => status)).toEqual([
      'superseded',
      'superseded',
      'loaded',
    ]);
  });

  it('a file without rows is a bill', async () => {
    const day = '2026-05-05';
    expect(await load(aBill([]), day)).toMatchObject({ status: 'loaded', rows: 0 });
    const counts = await compareDay(database.pool, { channel: 'ch-a', day, feeBasisPoints: 60 });
    expect(counts).toMatchObject({ rows: 0, open: 0 });
  });

  it('of a file that cannot be used nothing is kept but why, once; the bill before it counts on', async () => {
    const day = '2026-05-06';
    await load(aBill([aLine({ channelTradeNo: 'A' })]), day);
    const before = await tables();
    const broken = () =>
      aBill([aLine({ channelTradeNo: 'B' })], {
        fault: new TradeBillError('cut_off', 'the file ends in line 3'),
      });
    expect(await load(broken(), day)).toMatchObject({
      status: 'rejected',
      fault: 'cut_off',
      message: 'the file ends in line 3',
      rows: 0,
    });
    const again = await load(broken(), day);
    expect(again.status).toBe('rejected');
    expect(await tables()).toBe(before);
    expect((await billsOf(day)).map(({ status }) => status)).toEqual(['loaded', 'rejected']);
    expect(
      await compareDay(database.pool, { channel: 'ch-a', day, feeBasisPoints: 0 }),
    ).toMatchObject({ rows: 1 });
  });

  it('a refused file alone is never compared', async () => {
    const day = '2026-05-07';
    await load(aBill([], { fault: new TradeBillError('wrong_hash', 'another hash') }), day);
    await expect(
      compareDay(database.pool, { channel: 'ch-a', day, feeBasisPoints: 0 }),
    ).rejects.toThrow('no bill of ch-a for 2026-05-07 is loaded');
  });

  it('an error that is not the file’s is thrown, and nothing was changed', async () => {
    const day = '2026-05-08';
    const before = await tables();
    await expect(
      load(aBill([aLine()], { fault: new Error('the line went dead') }), day),
    ).rejects.toThrow('the line went dead');
    expect(await billsOf(day)).toEqual([]);
    expect(await tables()).toBe(before);
    expect(await load(aBill([aLine()]), day)).toMatchObject({ status: 'loaded' });
  });

  it('a row PostgreSQL cannot take ends the load with its error, and nothing was changed', async () => {
    const day = '2026-05-09';
    const bad = { ...aLine(), lineNo: 3_000_000_000 };
    await expect(load(aBill([aLine(), bad], { batch: 1 }), day)).rejects.toThrow(/out of range/);
    expect(await billsOf(day)).toEqual([]);
    // The connection is of use again.
    expect(await load(aBill([aLine()]), day)).toMatchObject({ status: 'loaded' });
  });

  it('a connection that dies in the middle of the COPY leaves nothing', async () => {
    const day = '2026-05-10';
    const before = await tables();
    const lines = Array.from({ length: 5_000 }, (_, i) => aLine({ channelTradeNo: `T${i}` }));
    let batches = 0;
    const killed = load(
      aBill(lines, {
        batch: 500,
        async between() {
          if (++batches !== 5) return;
          await database.pool.query(
            `select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and query like 'copy trade_bill_lines_%'`,
          );
        },
      }),
      day,
    );
    await expect(killed).rejects.toThrow();
    await waitFor(
      'the table of the broken load to be gone',
      async () => (await tables()) === before,
    );
    expect(await billsOf(day)).toEqual([]);
    expect(await load(aBill(lines), day)).toMatchObject({ status: 'loaded', rows: 5_000 });
  });

  it('tells its progress, and has the rows and their sums', async () => {
    const day = '2026-05-11';
    const heard: number[] = [];
    const lines = Array.from({ length: 25 }, (_, i) =>
      aLine({ channelTradeNo: `T${i}`, amountMinor: Number.MAX_SAFE_INTEGER }),
    );
    const { billId } = await load(aBill(lines, { batch: 10 }), day, (n) => heard.push(n));
    expect(heard).toEqual([10, 20, 25]);
    const [bill] = await rows<{ sums: { paymentsMinor: string }[] }>(
      `select sums from trade_bills where bill_id = $1::bigint`,
      billId,
    );
    // Exact beyond what a number can hold.
    expect(bill?.sums).toEqual([
      expect.objectContaining({
        currency: 'CNY',
        payments: 25,
        paymentsMinor: String(25n * BigInt(Number.MAX_SAFE_INTEGER)),
        feesMinor: '1500',
      }),
    ]);
  });

  it('its statements may take longer than the pool allows others', async () => {
    const pool = new pg.Pool({
      connectionString: (database.pool as unknown as { options: pg.PoolConfig }).options
        .connectionString,
      statement_timeout: 200,
      query_timeout: 300,
    });
    try {
      const slow = aBill([aLine({ channelTradeNo: 'A' }), aLine({ channelTradeNo: 'B' })], {
        batch: 1,
        between: () => new Promise((resolve) => setTimeout(resolve, 250)),
      });
      const loaded = await loadTradeBill(pool, {
        channel: 'ch-a',
        day: '2026-05-12',
        source: slow,
      });
      expect(loaded).toMatchObject({ status: 'loaded', rows: 2 });
    } finally {
      await pool.end();
    }
  });

  it('holds no more of a large bill than of a small one', async () => {
    // What is asserted is that batches are asked for only as they are taken.
    let given = 0;
    let taken = 0;
    const source = {
      ...aBill([]),
      async *lines() {
        for (let i = 0; i < 200; i++) {
          given += 1;
          yield Array.from({ length: 500 }, (_, k) =>
            aLine({ lineNo: i * 500 + k + 2, channelTradeNo: `T${i}-${k}` }),
          );
        }
      },
    };
    let ahead = 0;
    await load(source, '2026-05-13', () => {
      taken += 1;
      ahead = Math.max(ahead, given - taken);
    });
    expect(taken).toBe(200);
    expect(ahead).toBeLessThanOrEqual(1);
  });

  it('the words of kinds are those of the table', async () => {
    const [check] = await rows<{ definition: string }>(
      `select pg_get_constraintdef(oid) as definition from pg_constraint
       where conname = 'differences_kind_check'`,
    );
    const inSchema = [...(check?.definition ?? '').matchAll(/'([a-z_]+)'/g)].map((m) => m[1]);
    expect(inSchema.sort()).toEqual([...DIFFERENCE_KINDS].sort());
  });
});
