import { setTimeout as delay } from 'node:timers/promises';
import { webhookIdOf } from '../../db/notifications';
import { inParallel } from '../support/in-parallel';
import { SagaProcesses } from '../support/processes-saga';
import type { Answer } from '../support/saga';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

/** The whole size runs in the long run. */
const ORDERS = process.env['FULL'] ? 1_000 : 20;
const AT_ONCE = process.env['FULL'] ? 24 : 12;
/** Longer than a killed worker's orders take to be noticed (3 s), so that they get on between two kills. */
const KILL_EVERY_MS = process.env['FULL'] ? 10_000 : 5_000;
const KILLS_MIN = 3;
const BOUND_MS = 40_000 + ORDERS * 600;
/** Every so many orders have a refund, so that they have two events to tell in order. */
const REFUND_EVERY = 4;

describe('workers killed while they tell merchants', () => {
  let saga: Saga;
  let processes: SagaProcesses;
  beforeAll(async () => {
    saga = await Saga.start({
      workers: 0,
      policy: { callTimeoutMs: 2_000, maxCallsPerSecond: 1_000, maxConcurrentCalls: 100 },
      mock: { autoApprove: { afterMs: 100 } },
      env: { NOTIFY_LADDER_MS: Array.from({ length: 30 }, () => '200').join(',') },
    });
    processes = new SagaProcesses(saga);
  });
  afterAll(async () => {
    await saga?.stop().finally(() => processes?.end());
  });

  it(
    `loses no event of ${ORDERS} orders, and keeps each order’s events in order`,
    async () => {
      // A fifth of the answers is a refusal; the ladder is long enough that all arrive in the end.
      let asked = 0;
      saga.merchant.answer = () => (++asked % 5 === 0 ? 503 : 200);
      const orders = Array.from({ length: ORDERS }, (_, i) => `told-${i}`);
      let isDone = false;
      let kills = 0;
      const killing = (async () => {
        let worker = await processes.startWorker();
        while (!isDone || kills < KILLS_MIN) {
          await delay(KILL_EVERY_MS);
          await worker.kill();
          kills++;
          worker = await processes.startWorker();
        }
      })();
      try {
        await inParallel(orders, AT_ONCE, live);
      } finally {
        isDone = true;
        await killing;
      }
      await inParallel(orders, 8, (orderId) => saga.untilSettled(orderId, BOUND_MS));

      const rows = await saga.rows<{
        merchantId: string;
        orderId: string;
        eventType: string;
        subjectNo: string;
        status: string;
        tries: number;
      }>(
        `select merchant_id as "merchantId", order_id as "orderId", event_type as "eventType",
           subject_no as "subjectNo", status, tries from notifications`,
      );
      expect(rows).toHaveLength(ORDERS + Math.ceil(ORDERS / REFUND_EVERY));
      const received = new Set(saga.merchant.received.map(({ id }) => id));
      const lost = rows.filter((row) => row.status !== 'sent' || !received.has(webhookIdOf(row)));
      expect(lost).toEqual([]);
      for (const orderId of orders) {
        const seqs = saga.merchant.effects(orderId).map(({ seq }) => seq);
        expect([orderId, ...seqs]).toEqual([orderId, ...seqs.map((_, i) => i + 1)]);
      }
      expect(kills).toBeGreaterThanOrEqual(KILLS_MIN);
      // Every try that came to an end is logged; one that died with its worker cannot be.
      const [log] = await saga.rows<{ refused: number; taken: number }>(
        `select count(*) filter (where status = 503)::int as refused,
           count(*) filter (where status = 200)::int as taken from notification_tries`,
      );
      expect(log!.taken).toBeGreaterThanOrEqual(rows.length);
      expect(log!.refused).toBeGreaterThan(0);
      if (process.env['FULL']) {
        console.info(
          `${ORDERS} orders, ${rows.length} events, ${kills} kills, ${lost.length} lost, ` +
            `${saga.merchant.received.length - received.size} told twice`,
        );
      }
    },
    BOUND_MS * 2,
  );

  /** A shop that repeats its requests until they are answered. */
  async function live(orderId: string): Promise<void> {
    await saga.createOrder({ order_id: orderId });
    const answered = (what: string, ask: () => Promise<Answer>) =>
      waitFor(
        what,
        async () => {
          const { status, body } = await ask();
          if (status > 201) throw new Error(`${status} ${JSON.stringify(body)}`);
          return true;
        },
        BOUND_MS,
      );
    await answered(`${orderId} answered`, () => saga.pay(orderId));
    await saga.untilOrder(orderId, 'paid', BOUND_MS);
    if (Number(orderId.replace('told-', '')) % REFUND_EVERY !== 0) return;
    await answered(`refund of ${orderId} answered`, () => saga.refund(orderId, 'R1', 1_000));
    await saga.untilRefund(orderId, 'R1', 'succeeded', BOUND_MS);
  }
});
