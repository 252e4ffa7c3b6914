import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startProcess } from '../../scripts/servers/children';
import type { PostgresServer } from '../../scripts/servers/postgres';
import { startPostgres } from '../../scripts/servers/postgres';
import type { ApiProcess, WorkerProcess } from '../../scripts/servers/processes';
import { expectAlwaysTrue, figuresOf, money } from '../support/figures';
import { SagaProcesses } from '../support/processes-saga';
import {
  begin,
  daysAgo,
  ended,
  expectWhole,
  paidOn,
  report,
  untilRun,
} from '../support/reconciliations';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

const AT_ONCE = 8;
/** Enough that loading takes a moment. */
const GENERATED_ROWS = process.env['FULL'] ? 200_000 : 100_000;

describe('a PostgreSQL server that is restarted', () => {
  let server: PostgresServer;
  let saga: Saga;
  let processes: SagaProcesses;
  let api: ApiProcess;
  let worker: WorkerProcess;
  beforeAll(async () => {
    server = await startPostgres();
    const database = {
      url: server.databaseUrl(),
      name: 'postgres',
      drop: () => server.end(),
    };
    await migrated(database.url);
    saga = await Saga.start({
      apis: 0,
      workers: 0,
      database,
      mock: { callbackLadderMs: Array<number>(20).fill(500) },
    });
    processes = new SagaProcesses(saga);
    api = await processes.startApi();
    worker = await processes.startWorker();
  });
  afterAll(async () => {
    try {
      await saga?.stop();
    } finally {
      await processes?.end();
      if (server?.running) await server.end();
    }
  });

  async function migrated(databaseUrl: string): Promise<void> {
    const folder = mkdtempSync(join(tmpdir(), 'payment-saga-migrate-'));
    const process = await startProcess({
      name: 'migrate',
      script: 'db/migrate.ts',
      logFile: join(folder, 'migrate.log'),
      env: { DATABASE_URL: databaseUrl },
    });
    expect(await process.ended).toMatchObject({ code: 0 });
    rmSync(folder, { recursive: true });
  }

  /** The very processes of the beginning, and both well. */
  async function expectSameProcesses(): Promise<void> {
    for (const { pid, running } of [api, worker]) {
      expect(running).toBe(true);
      expect(() => process.kill(pid, 0)).not.toThrow();
    }
    expect((await fetch(`${api.url}/healthz`)).status).toBe(200);
    expect((await fetch(worker.healthUrl)).status).toBe(200);
  }

  const untilServed = (what: string, ask: () => Promise<{ status: number }>) =>
    waitFor(what, async () => {
      const { status } = await saga.outage(ask);
      expect(status).not.toBe(500);
      return status < 300;
    });

  async function pending() {
    const orderId = await saga.createOrder();
    expect((await saga.pay(orderId)).status).toBeLessThan(300);
    return { orderId, outTradeNo: await saga.outTradeNo(orderId) };
  }

  it('B131: idle connections break: the processes stay, and the next order is paid', async () => {
    const { orderId, outTradeNo } = await pending();
    await server.restart();
    await expectSameProcesses();
    await saga.mock.approve(outTradeNo);
    await saga.untilOrder(orderId, 'paid');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({ cap: money(1, 10_000), evt: 1 });
    await untilServed('a new order', async () => saga.pay(await saga.createOrder()));
    await expectSameProcesses();
  });

  it('B131: during PAY, callbacks and refunds: 503 meanwhile, and all end paid and refunded once', async () => {
    const each = <T>(make: () => Promise<T>) =>
      Promise.all(Array.from({ length: AT_ONCE }, () => make()));
    const toPay = await each(() => saga.createOrder());
    const toNotify = await each(pending);
    const toRefund = await each(async () => (await saga.paidOrder()).orderId);

    // Busy connections: everything at once, and the server goes down under it.
    const busy = saga.outage(() =>
      Promise.all([
        ...toPay.map((orderId) => saga.pay(orderId)),
        ...toRefund.map((orderId) => saga.refund(orderId, 'R1', 2_500)),
      ]),
    );
    const approving = Promise.all(toNotify.map(({ outTradeNo }) => saga.mock.approve(outTradeNo)));
    await server.stop('fast');
    for (const { status } of await busy) expect([200, 201, 202, 503]).toContain(status);
    await approving;

    await saga.outage(async () => {
      expect((await saga.pay(toPay[0]!)).status).toBe(503);
      expect((await saga.refund(toRefund[0]!, 'R1', 2_500)).status).toBe(503);
      expect((await saga.status(toPay[0]!)).status).toBe(503);
      const [told] = await saga.mock.sendCallback({ outTradeNo: toNotify[0]!.outTradeNo });
      expect(told).toMatchObject({ httpStatus: 503, acknowledged: false });
    });
    await expectSameProcesses();

    await server.restart();
    for (const orderId of toPay) {
      await untilServed(`PAY of ${orderId}`, () => saga.pay(orderId));
      const outTradeNo = await saga.outTradeNo(orderId);
      // 202 is an answer, too: the attempt is stored, and may reach the channel a moment later.
      await waitFor(`${orderId} is at the channel`, async () => {
        return (await saga.books(orderId)).trades > 0;
      });
      await saga.mock.approve(outTradeNo);
    }
    for (const orderId of toRefund) {
      await untilServed(`REFUND of ${orderId}`, () => saga.refund(orderId, 'R1', 2_500));
    }
    for (const orderId of [...toPay, ...toNotify.map((order) => order.orderId)]) {
      await saga.untilOrder(orderId, 'paid');
      await expectAlwaysTrue(saga, orderId);
      expect(await figuresOf(saga, orderId)).toMatchObject({
        status: 'paid',
        cap: money(1, 10_000),
        ref: money(0, 0),
        rows: 1,
        settling: 1,
        evt: 1,
      });
    }
    for (const orderId of toRefund) {
      await saga.untilRefund(orderId, 'R1', 'succeeded');
      await expectAlwaysTrue(saga, orderId);
      expect(await figuresOf(saga, orderId)).toMatchObject({
        status: 'paid',
        cap: money(1, 10_000),
        ref: money(1, 2_500),
        evt: 1,
      });
      expect((await saga.books(orderId)).refundNumbers).toHaveLength(1);
    }
    await expectSameProcesses();
  });

  it('B131: during RECON: the bill is loaded anew, whole and once, and the processes stay', async () => {
    const day = daysAgo(saga, 20);
    const bill = { dialect: 'mock-b', day } as const;
    for (let i = 0; i < 2; i++) await paidOn(saga, 'mock-b', day);
    await saga.mock.generateBillRows({ ...bill, count: GENERATED_ROWS, seed: 1 });
    await saga.mock.prepareBill(bill);
    await begin(saga, 'mock-b', day, { dryRun: true });
    await waitFor('the bill is being loaded', async () => {
      const busy = await saga.rows(
        `select from pg_stat_activity where query like 'copy trade_bill_lines%' and state = 'active'`,
      );
      return busy.length > 0;
    });
    await server.stop('fast');
    await expectSameProcesses();
    await server.restart();
    await untilRun(saga, 'mock-b', day, 'done', 60_000);
    await ended(saga, 'mock-b', day);
    const found = await report(saga, 'mock-b', day);
    expect(found.bill).toMatchObject({ rows: GENERATED_ROWS + 2, row_errors: 0 });
    expect(found.by_kind).toEqual({ channel_only: GENERATED_ROWS });
    expect(found.totals).toMatchObject([{ matched: { rows: 2, net_minor: 20_000 } }]);
    expectWhole(found);
    const bills = await saga.rows(`select status from trade_bills`);
    expect(bills).toEqual([{ status: 'loaded' }]);
    await expectSameProcesses();
  }, 120_000);
});
