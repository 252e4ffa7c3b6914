import { openDeskSession, readDeskSession } from '../../db/desk-sessions';
import { GLANCE, LAG, readCallbackLag, readGlance, readSuccess, SUCCESS } from '../../db/desk';
import { hashApiKey } from '../../db/merchants';
import { withTransaction } from '../../db/transaction';
import {
  insertCapture,
  insertOrder,
  insertPayRecord,
  insertRefund,
  insertRow,
} from '../support/rows';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';

let database: StatementDatabase;
beforeEach(async () => {
  database = await createStatementDatabase();
});
afterEach(() => database?.end());

type Row = Record<string, unknown>;
const pool = () => database.pool as never;

async function paid(at: string, said: Row = {}, captured: Row = {}): Promise<Row> {
  const order = await insertOrder(pool(), { status: 'paid', paid_at: at, created_at: at, ...said });
  const money = { amount_minor: order['amount_minor'], currency: order['currency'] };
  const record = await insertPayRecord(pool(), order, { ...money, status: 'paid' });
  return insertCapture(pool(), record, { ...money, paid_at: at, settles: true, ...captured });
}

describe('today at a glance', () => {
  it('counts what was paid and refunded on the zone’s own day, and what waits now, per currency', async () => {
    const zone = 'Asia/Shanghai';
    const of = (date: string) => readGlance(database.pool, { date, zone });
    const money = { amount_minor: 10_000, currency: 'CNY' };
    await paid('2026-05-11T15:59:59Z', money);
    // Midnight in Shanghai: the first instant of the 12th.
    const first = await paid('2026-05-11T16:00:00Z', money);
    await paid('2026-05-12T15:59:59Z', { amount_minor: 500, currency: 'JPY' });
    await paid('2026-05-12T16:00:00Z', money);
    // Money that pays nothing, and money that was taken back, is not paid.
    await paid('2026-05-12T01:00:00Z', money, { settles: false, kind: 'held' });
    await paid('2026-05-12T01:00:00Z', money, { status: 'reversed', reversed_minor: 10_000 });
    await insertRefund(pool(), first, {
      ...{ amount_minor: 2_500, currency: 'CNY', status: 'succeeded' },
      ...{ first_sent_at: '2026-05-12T03:00:00Z', finished_at: '2026-05-13T03:00:00Z' },
    });
    await insertRefund(pool(), first, {
      ...{ amount_minor: 1, currency: 'CNY', status: 'processing' },
      ...{ first_sent_at: '2026-05-12T03:00:00Z' },
    });
    await insertOrder(pool(), { status: 'created', ...money });
    await insertOrder(pool(), { status: 'paying', ...money });
    await insertOrder(pool(), { status: 'review', ...money });
    await insertOrder(pool(), { status: 'closed', ...money });
    const waits = [
      { what: 'open', currency: 'CNY', count: 2, sumMinor: '20000' },
      { what: 'review', currency: 'CNY', count: 1, sumMinor: '10000' },
    ];
    expect(await of('2026-05-12')).toEqual([
      waits[0],
      { what: 'paid', currency: 'CNY', count: 1, sumMinor: '10000' },
      { what: 'paid', currency: 'JPY', count: 1, sumMinor: '500' },
      { what: 'refunded', currency: 'CNY', count: 1, sumMinor: '2500' },
      waits[1],
    ]);
    expect(await of('2026-05-14')).toEqual(waits);
  });

  it('adds up to more than JavaScript can count', async () => {
    const money = { amount_minor: Number.MAX_SAFE_INTEGER, currency: 'CNY' };
    await insertOrder(pool(), { status: 'created', ...money });
    await insertOrder(pool(), { status: 'created', ...money });
    expect(await readGlance(database.pool, { date: '2026-05-12', zone: 'UTC' })).toEqual([
      { what: 'open', currency: 'CNY', count: 2, sumMinor: '18014398509481982' },
    ]);
  });
});

describe('the charts', () => {
  it('have a bucket for every hour or day, also where nothing was', async () => {
    const now = Date.now();
    const ago = (hours: number) => new Date(now - hours * 3_600_000).toISOString();
    await paid(ago(0));
    await insertOrder(pool(), { status: 'closed', created_at: ago(0) });
    await paid(ago(2));
    await paid(ago(30));
    const hours = await readSuccess(database.pool, { unit: 'hour', count: 24, zone: 'UTC' });
    expect(hours).toHaveLength(24);
    expect(hours.at(-1)).toMatchObject({ orders: 2, paid: 1 });
    expect(hours.at(-2)).toMatchObject({ orders: 0, paid: 0 });
    expect(hours.at(-3)).toMatchObject({ orders: 1, paid: 1 });
    expect(hours.reduce((sum, { orders }) => sum + orders, 0)).toBe(3);
    const days = await readSuccess(database.pool, { unit: 'day', count: 14, zone: 'Asia/Kolkata' });
    expect(days).toHaveLength(14);
    expect(days.reduce((sum, { paid }) => sum + paid, 0)).toBe(3);
    // A day begins at the zone's own midnight.
    expect(days.every(({ at }) => at.endsWith('T18:30:00.000Z'))).toBe(true);
  });

  it('say how long callbacks waited, half of them and 95 of 100', async () => {
    const insert = (seconds: number | null, i: number) =>
      insertRow(pool(), 'channel_callbacks', {
        channel: 'ch-a',
        fact_sha256: Buffer.alloc(32, i),
        fact: {},
        our_no: `N${i}`,
        raw_body: Buffer.from(''),
        status: seconds === null ? 'stored' : 'applied',
        received_at: new Date(Date.now() - 60_000).toISOString(),
        applied_at:
          seconds === null ? null : new Date(Date.now() - 60_000 + seconds * 1_000).toISOString(),
      });
    for (const [i, seconds] of [1, 2, 3, null].entries()) await insert(seconds, i + 1);
    const lag = await readCallbackLag(database.pool, { unit: 'day', count: 2, zone: 'UTC' });
    const all = lag.filter(({ callbacks }) => callbacks > 0);
    expect(all).toMatchObject([{ callbacks: 3 }]);
    expect(all[0]!.medianS).toBeCloseTo(2, 1);
    expect(all[0]!.p95S).toBeCloseTo(2.9, 1);
    expect(lag.find(({ callbacks }) => callbacks === 0)).toMatchObject({
      medianS: null,
      p95S: null,
    });
  });

  it('and the figures read by index what they show, not all that ever was', async () => {
    const used = await withTransaction(database.pool, async (client) => {
      await client.query(MANY_DAYS);
      await client.query('set local enable_seqscan = off');
      const indexes: string[] = [];
      for (const [sql, values] of [
        [GLANCE, ['2026-05-12', 'UTC']],
        [SUCCESS, ['hour', 24, 'UTC']],
        [LAG, ['hour', 24, 'UTC']],
      ] as const) {
        const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain ${sql}`, [
          ...values,
        ]);
        const lines = rows.map((row) => row['QUERY PLAN']);
        expect(lines.filter((line) => /Seq Scan/.test(line))).toEqual([]);
        indexes.push(...lines.map((line) => /Index Scan (?:using|on) (\w+)/.exec(line)?.[1] ?? ''));
      }
      return indexes;
    });
    expect(used.filter(Boolean)).toEqual(
      expect.arrayContaining([
        'captures_by_instant',
        'refunds_by_instant',
        expect.stringMatching(/^orders_by_status/),
        'orders_by_day',
        'channel_callbacks_by_day',
      ]),
    );
  });
});

/** Three months of 40 orders a day, each paid and refunded. */
const MANY_DAYS = `
  set local session_replication_role = replica;
  create temporary table d on commit drop as
    select i, now() - (3600 - i) * interval '36 minutes' as at from generate_series(1, 3600) i;
  insert into orders (merchant_id, order_id, amount_minor, currency, subject, expires_at, status,
      created_at, paid_at)
    select 'shop', 'm' || i, 100, 'CNY', 's', at, 'paid', at, at from d;
  insert into pay_records (merchant_id, order_id, channel, request_no, out_trade_no, amount_minor,
      currency, status)
    select 'shop', 'm' || i, 'ch-a', 'k', 'M' || i, 100, 'CNY', 'paid' from d;
  insert into captures (merchant_id, order_id, channel, pay_record_id, channel_trade_no,
      amount_minor, currency, settles, kind, learnt_from, paid_at)
    select r.merchant_id, r.order_id, channel, pay_record_id, 'T' || i, 100, 'CNY', true, 'settling',
      'callback', at from d join pay_records r on r.order_id = 'm' || i;
  insert into refunds (merchant_id, order_id, capture_id, channel, refund_no, out_refund_no,
      amount_minor, currency, origin, status, first_sent_at)
    select merchant_id, c.order_id, capture_id, channel, 'r', 'R' || i, 100, 'CNY', 'merchant',
      'succeeded', at from d join captures c on c.order_id = 'm' || i;
  insert into channel_callbacks (channel, fact_sha256, fact, our_no, raw_body, status, received_at,
      applied_at)
    select 'ch-a', sha256(i::text::bytea), '{}', 'M' || i, '', 'applied', at, at from d;
  analyze orders, captures, refunds, channel_callbacks`;

describe('a session of the desk', () => {
  it('clears away ended ones, and only those', async () => {
    const hash = hashApiKey('psk_operator');
    await insertRow(pool(), 'api_keys', {
      ...{ key_id: 'op', merchant_id: 'shop', key_sha256: hash, scopes: ['operator'] },
    });
    const [one, two] = [
      await openDeskSession(database.pool, 'op'),
      await openDeskSession(database.pool, 'op'),
    ];
    await database.pool.query(
      `update desk_sessions set expires_at = now() where token_sha256 = sha256($1::bytea)`,
      [one],
    );
    const three = await openDeskSession(database.pool, 'op');
    expect(await readDeskSession(database.pool, one)).toBeUndefined();
    for (const token of [two, three]) {
      expect(await readDeskSession(database.pool, token)).toMatchObject({
        caller: { keyId: 'op', merchantId: 'shop', scopes: ['operator'] },
      });
    }
    const { rows } = await database.pool.query('select count(*)::int as n from desk_sessions');
    expect(rows).toEqual([{ n: 2 }]);
  });
});
