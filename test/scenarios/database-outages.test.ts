import { createPool, withTransaction } from '../../db/transaction';
import { inParallel } from '../support/in-parallel';
import { Saga } from '../support/saga';
import { startTcpProxy } from '../support/tcp-proxy';
import type { TcpProxy } from '../support/tcp-proxy';
import { waitFor } from '../support/wait';

const POOL_SIZE = 5;
/** As published in the full run; five times the pools in any. */
const PAYERS = process.env['FULL'] ? 50 : 25;
const COPIES = 4;
/** Long enough that callers give up waiting for a connection; as published in the full run. */
const PAUSE_MS = process.env['FULL'] ? 10_000 : 4_000;
const TRANSACTIONS = 1_000;

describe('a database that freezes while the pools are small', () => {
  let saga: Saga;
  let proxy: TcpProxy;
  beforeAll(async () => {
    saga = await Saga.start({
      apis: 0,
      workers: 0,
      env: { API_POOL_SIZE: String(POOL_SIZE), WORKER_POOL_SIZE: String(POOL_SIZE) },
      mock: { callbackLadderMs: Array<number>(12).fill(1_500), callbackTimeoutMs: 20_000 },
    });
    const direct = new URL(String(saga.env['DATABASE_URL']));
    proxy = await startTcpProxy({ host: direct.hostname, port: Number(direct.port) });
    const through = new URL(direct);
    through.port = String(proxy.port);
    saga.env['DATABASE_URL'] = through.href;
    await saga.startApi();
    await saga.startWorker();
    await saga.pointCallbacks();
  });
  afterAll(async () => {
    proxy?.resume();
    try {
      await saga?.stop();
    } finally {
      await proxy?.close();
    }
  });

  async function apiPool(): Promise<Record<string, number>> {
    const text = await (await fetch(`${saga.apis[0]!.url}/metrics`)).text();
    const lines = text.matchAll(/^payment_pool_connections\{state="(\w+)"\} (\d+)$/gm);
    return Object.fromEntries([...lines].map(([, state, count]) => [state, Number(count)]));
  }

  /** Runs `act` while no byte passes to or from PostgreSQL for some of the time. */
  async function frozen<T>(act: () => Promise<T>): Promise<T> {
    proxy.pause();
    const thaw = new Promise<void>((resolve) => {
      setTimeout(() => {
        proxy.resume();
        resolve();
      }, PAUSE_MS);
    });
    const [result] = await Promise.all([saga.outage(act), thaw]);
    return result;
  }

  it(`B130: ${PAYERS * COPIES} callbacks and ${PAYERS} PAY on pools of five: 200 or 503, every order paid once, no connection lost`, async () => {
    const notified: string[] = [];
    const paying: string[] = [];
    const trades: string[] = [];
    // In peace no more than the pools carry: nobody waits for a connection yet.
    await inParallel(Array.from({ length: PAYERS }), POOL_SIZE, async () => {
      paying.push(await saga.createOrder());
      const orderId = await saga.createOrder();
      expect((await saga.pay(orderId)).status).toBeLessThan(300);
      notified.push(orderId);
      trades.push(await saga.outTradeNo(orderId));
    });
    for (const outTradeNo of trades) {
      await saga.mock.addFault({
        match: { operation: 'callback', outTradeNo },
        times: 1,
        do: { copies: COPIES },
      });
    }

    const answers = await frozen(async () => {
      const approved = trades.map((outTradeNo) => saga.mock.approve(outTradeNo));
      const asked = paying.map((orderId) => saga.pay(orderId));
      await Promise.all(approved);
      return Promise.all(asked);
    });
    for (const { status } of answers) expect([200, 201, 202, 503]).toContain(status);
    // 503 means "unknown, repeat under the same number".
    await inParallel(paying, POOL_SIZE, async (orderId) => {
      await waitFor(`${orderId} may be paid`, async () => {
        const { status } = await saga.outage(() => saga.pay(orderId));
        expect(status).not.toBe(500);
        return status < 300;
      });
      await saga.mock.approve(await saga.outTradeNo(orderId));
    });

    const orders = [...notified, ...paying];
    for (const orderId of orders) await saga.untilOrder(orderId, 'paid');
    for (const orderId of orders) await saga.untilSettled(orderId);
    const deliveries = await saga.mock.deliveries();
    expect(deliveries.length).toBeGreaterThanOrEqual(PAYERS * COPIES);
    for (const { httpStatus } of deliveries) expect([200, 503]).toContain(httpStatus);

    const [ours] = await saga.rows(
      `select count(*)::int as captures, count(distinct order_id)::int as orders,
         sum(amount_minor)::bigint as sum
       from captures where merchant_id = $1::text and settles`,
      saga.merchantId,
    );
    const due = { count: orders.length, sums: { CNY: orders.length * 10_000 } };
    expect(ours).toEqual({ captures: due.count, orders: due.count, sum: due.sums.CNY });
    const books = await saga.mock.summary();
    expect(books).toMatchObject({ captures: due, refunds: { count: 0 }, trades: due.count });
    for (const orderId of orders) {
      expect(saga.merchant.effects(orderId, 'order.paid')).toHaveLength(1);
    }
    await waitFor('every connection is back', async () => {
      const { total, idle, waiting } = await apiPool();
      return waiting === 0 && idle === total && total! <= POOL_SIZE;
    });
    const open = await saga.rows(
      `select pid from pg_stat_activity
       where datname = current_database() and state like 'idle in transaction%'`,
    );
    expect(open).toEqual([]);
    // Creating, freezing and paying 100 orders takes its time on a busy machine.
  }, 120_000);

  it('B130: of 1,000 transactions a third throws: no connection is lost, no statement is astray', async () => {
    const pool = createPool({
      databaseUrl: String(saga.env['DATABASE_URL']),
      max: POOL_SIZE,
      connectionTimeoutMs: 30_000,
      statementTimeoutMs: 10_000,
      applicationName: 'b130',
      onIdleError: () => undefined,
    });
    try {
      await pool.query('create table astray (n integer, part integer, xid xid8)');
      const insert = (part: number) =>
        `insert into astray values ($1::int, ${part}, pg_current_xact_id())`;
      const fails = (n: number) => n % 3 === 0;
      const results = await Promise.allSettled(
        Array.from({ length: TRANSACTIONS }, (_, n) =>
          withTransaction(pool, async (client) => {
            await client.query(insert(1), [n]);
            // Half of them fail in our code, the others in PostgreSQL.
            if (fails(n) && n % 2 === 0) throw new Error('ours');
            if (fails(n)) await client.query('select 1 / 0');
            await client.query(insert(2), [n]);
          }),
        ),
      );
      const thrown = results.flatMap(({ status }, n) => (status === 'rejected' ? [n] : []));
      expect(thrown).toEqual(Array.from({ length: TRANSACTIONS }, (_, n) => n).filter(fails));

      const { rows } = await pool.query<{ whole: number; transactions: number; rows: number }>(
        `select count(*)::int as whole, count(distinct xid)::int as transactions,
           sum(rows)::int as rows
         from (select n, min(xid::text) as xid, count(*) as rows from astray group by n
           having count(*) = 2 and min(xid::text) = max(xid::text)) t`,
      );
      const committed = TRANSACTIONS - thrown.length;
      expect(rows).toEqual([{ whole: committed, transactions: committed, rows: 2 * committed }]);
      const all = await pool.query<{ rows: number }>('select count(*)::int as rows from astray');
      expect(all.rows).toEqual([{ rows: 2 * committed }]);

      expect(pool.idleCount).toBe(pool.totalCount);
      expect(pool.totalCount).toBeLessThanOrEqual(POOL_SIZE);
      expect(pool.waitingCount).toBe(0);
      const open = await saga.rows(
        `select state from pg_stat_activity where application_name = 'b130' and state <> 'idle'`,
      );
      expect(open).toEqual([]);
    } finally {
      await pool.query('drop table if exists astray');
      await pool.end();
    }
  });
});
