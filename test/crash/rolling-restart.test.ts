import { setTimeout as delay } from 'node:timers/promises';
import type { WorkerProcess } from '../../scripts/servers/processes';
import { inParallel } from '../support/in-parallel';
import { SagaProcesses, timed } from '../support/processes-saga';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

/** The whole size runs in the long run; half a minute is more than a normal one can give. */
const ORDERS = process.env['FULL'] ? 400 : 40;
const ORDERS_PER_SECOND = 20;
const GRACE_MS = 5_000;
const FORCE_MS = 5_000;
const AIR_MS = 3_000;
/** What a shop waits before it asks again; hundreds that asked at once would be the load themselves. */
const REPEAT_AFTER_MS = 500;
const BOUND_MS = 60_000 + ORDERS * 500;

describe('workers replaced one after the other under load', () => {
  let saga: Saga;
  let processes: SagaProcesses;
  beforeAll(async () => {
    saga = await Saga.start({
      workers: 0,
      policy: { callTimeoutMs: 2_000, maxCallsPerSecond: 1_000, maxConcurrentCalls: 100 },
      mock: { autoApprove: { afterMs: 200 }, latencyMs: 50 },
      env: { WORKER_SHUTDOWN_GRACE_MS: String(GRACE_MS) },
    });
    processes = new SagaProcesses(saga);
  });
  afterAll(async () => {
    await saga?.stop().finally(() => processes?.end());
  });

  it(
    `B112: ${ORDERS} orders at ${ORDERS_PER_SECOND} a second are each paid once`,
    async () => {
      const first = await Promise.all([processes.startWorker(), processes.startWorker()]);
      const orders = Array.from({ length: ORDERS }, (_, i) => `load-${i}`);
      const load = sendAtPace(saga, orders);
      const ends = await replace(processes, first);
      await load;

      for (const { code, signal, tookMs } of ends) {
        expect({ code, signal }).toEqual({ code: 0, signal: null });
        expect(tookMs).toBeLessThan(GRACE_MS + FORCE_MS + AIR_MS);
      }
      await inParallel(orders, 8, async (orderId) => {
        await saga.untilOrder(orderId, 'paid', BOUND_MS);
        await saga.untilSettled(orderId, BOUND_MS);
      });
      const numbers = (
        await saga.rows<{ no: string }>('select out_trade_no as no from pay_records')
      )
        .map(({ no }) => no)
        .sort();
      const books = await saga.mock.summary();
      expect(books.captures).toEqual({ count: ORDERS, sums: { CNY: ORDERS * 10_000 } });
      expect(books.refunds).toEqual({ count: 0, sums: {} });
      expect([...books.createNumbers].sort()).toEqual(numbers);
      await inParallel(orders, 8, async (orderId) => {
        expect({
          orderId,
          moves: await saga.moves(orderId),
          captures: (await saga.captures(orderId)).map((c) => [c.kind, c.amount_minor]),
          records: (await saga.records(orderId)).map((r) => r.status),
          told: saga.merchant.effects(orderId, 'order.paid').length,
        }).toEqual({
          orderId,
          moves: ['null>created', 'created>paying', 'paying>paid'],
          captures: [['settling', 10_000]],
          records: ['paid'],
          told: 1,
        });
      });
      // No order's run failed because a worker went away.
      const failed = [];
      for await (const run of saga.client.workflow.list({
        query: `MerchantId = '${saga.merchantId}' and ExecutionStatus in ('Failed', 'TimedOut')`,
      }))
        failed.push(run.workflowId);
      expect(failed).toEqual([]);
    },
    BOUND_MS * 2,
  );
});

/** One new order every 50 ms, whatever becomes of the others; each shop repeats until it is told. */
async function sendAtPace(saga: Saga, orders: readonly string[]): Promise<void> {
  await Promise.all(
    orders.map(async (orderId, i) => {
      await delay((i * 1_000) / ORDERS_PER_SECOND);
      await saga.createOrder({ order_id: orderId });
      await waitFor(
        `${orderId} answered`,
        async () => {
          const { status } = await saga.pay(orderId);
          if (status === 200 || status === 201) return true;
          await delay(REPEAT_AFTER_MS);
          return false;
        },
        BOUND_MS,
      );
    }),
  );
}

/** Stops each worker once its replacement polls; the load goes on meanwhile. */
async function replace(processes: SagaProcesses, workers: readonly WorkerProcess[]) {
  const ends = [];
  for (const worker of workers) {
    await processes.startWorker();
    ends.push(await timed(worker, () => worker.stop()));
  }
  return ends;
}
