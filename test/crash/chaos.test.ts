import { setTimeout as delay } from 'node:timers/promises';
import { seededDie } from '../../mock-channel/faults';
import { ageOrder } from '../support/age-order';
import { inParallel } from '../support/in-parallel';
import { SagaProcesses } from '../support/processes-saga';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';
import { faultsOfOrder, pictureOf } from './chaos-books';
import { CALL_TIMEOUT_MS, liftFaults, setFaults } from './chaos-faults';
import { OrderScript } from './chaos-script';

/** The whole size runs in the long run. */
const ORDERS = process.env['FULL'] ? 300 : 20;
/** Orders whose scripts run beside each other. */
const AT_ONCE = 12;
/** CHAOS_SEED repeats a run's dice; the machine's timing is never the same twice. */
const SEED = Number(process.env['CHAOS_SEED'] ?? 20_260);
const SETTLE_MS = process.env['FULL'] ? 300_000 : 40_000;
/** A server gives a workflow task to another worker this long after its own was killed. */
const TASK_TIMEOUT_MS = 10_000;
/** Orders whose whole story a failure tells. */
const MOST_TOLD = 6;

describe('everything at once', () => {
  let saga: Saga;
  let processes: SagaProcesses;
  beforeAll(async () => {
    saga = await Saga.start({
      apis: 2,
      workers: 1,
      policy: {
        callTimeoutMs: CALL_TIMEOUT_MS,
        notFoundGraceMs: CALL_TIMEOUT_MS + 1_000,
        maxCallsPerSecond: 1_000,
        maxConcurrentCalls: 200,
        refundCaseAfterMs: 6_000,
      },
      mock: {
        latencyMs: 5,
        callbackLadderMs: [200, 400, 800, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000],
      },
    });
    processes = new SagaProcesses(saga);
  });
  afterAll(async () => {
    await saga?.stop().finally(() => processes?.end());
  });

  it(
    `keeps every minor unit of ${ORDERS} orders in its place`,
    async () => {
      const die = seededDie(SEED);
      const scripts = Array.from({ length: ORDERS }, (_, i) => new OrderScript(saga, SEED, i));
      await setFaults(saga, SEED);
      let isOver = false;
      const killing = killWorkers(saga, processes, die, () => isOver);
      // A worker that dies is missed for as long as its tasks take to time out, so any answer of this
      // phase may be "unknown, repeat"; afterwards none may.
      await saga.outage(() => inParallel(scripts, AT_ONCE, (script) => script.run()));
      isOver = true;
      await killing;

      await liftFaults(saga, die);
      await told(saga, scripts, () => endEveryOrder(saga, scripts));
      const faults: string[] = [];
      await inParallel(scripts, 8, async ({ orderId }) => {
        faults.push(...(await faultsOfOrder(saga, orderId)));
      });
      const broken = await saga.final.check();
      if (broken) faults.push(broken.message);
      faults.push(...serverErrors(saga));
      if (faults.length > 0) throw new Error(await report(saga, scripts, faults));
    },
    SETTLE_MS * 3,
  );
});

/** Workers are stopped, started and killed while orders are on their way, until `isOver`. */
async function killWorkers(
  saga: Saga,
  processes: SagaProcesses,
  die: () => number,
  isOver: () => boolean,
): Promise<void> {
  let child = await processes.startWorker();
  for (let round = 0; round < 3 || !isOver(); round++) {
    await delay(1_000 + die() * 2_000);
    // Of two workers one dies; what it was doing is unknown until the server gives it to the other.
    await saga.outage(async () => {
      await child.kill();
      child = await processes.startWorker();
      await saga.stopWorkers();
      await delay(die() * 500);
      await saga.startWorker();
      if (!isOver()) await delay(TASK_TIMEOUT_MS / 5);
    });
    if (isOver() && round >= 1) break;
  }
  await saga.outage(() => child.kill());
}

/**
 * Orders that still wait for their payer get one, or are cancelled: so that nothing is left that looks
 * alive and is not.
 */
async function endEveryOrder(saga: Saga, scripts: readonly OrderScript[]): Promise<void> {
  const overdue = new Set<string>();
  await inParallel(scripts, 8, async (script) => {
    const { orderId } = script;
    await waitFor(
      `${orderId} ends`,
      async () => {
        const { status } = await saga.order(orderId);
        if (status === 'created' || status === 'paying') {
          if (script.below(2) === 0) await payUp(saga, orderId);
          else await cancelForGood(saga, orderId);
        } else if (!overdue.has(orderId) && (await hasUnknownAttempt(saga, orderId))) {
          overdue.add(orderId);
          await ageOrder(saga, orderId, '1 hour');
        }
        return untilSettledOrHeld(saga, orderId);
      },
      SETTLE_MS,
    );
  });
  await waitFor(
    'no run is open without work',
    async () => {
      const open: string[] = [];
      const query = `MerchantId = '${saga.merchantId}' and ExecutionStatus = 'Running'`;
      const working = await saga.rows<{ order_id: string }>(
        'select order_id from orders_with_work',
      );
      for await (const run of saga.client.workflow.list({ query })) {
        if (!working.some((row) => run.workflowId.includes(`:${row.order_id}`)))
          open.push(run.workflowId);
      }
      if (open.length > 0) throw new Error(`open: ${open.join(', ')}`);
      return true;
    },
    SETTLE_MS,
  );
}

/**
 * Nothing left to do, or nothing but a refund that the channel takes no more (it took the money back
 * itself meanwhile) and that a person has been told of.
 */
async function untilSettledOrHeld(saga: Saga, orderId: string): Promise<boolean> {
  const work = await saga.rows<{ reason: string }>(
    `select reason from orders_with_work where merchant_id = $1::text and order_id = $2::text`,
    saga.merchantId,
    orderId,
  );
  // One case per order: what it is about is in its evidence.
  const isHeld = (await saga.openCases(orderId)).some((open) =>
    JSON.stringify(open).includes('refund_overdue'),
  );
  const rest = work.filter(({ reason }) => !(reason === 'refund' && isHeld));
  if (rest.length > 0) throw new Error(`work of ${orderId}: ${JSON.stringify(rest)}`);
  return true;
}

/** Of an order that needs it no more: what the channel does not know may still arrive until the deadline. */
async function hasUnknownAttempt(saga: Saga, orderId: string): Promise<boolean> {
  const found = await saga.rows(
    `select from pay_records where merchant_id = $1::text and order_id = $2::text
       and status in ('created', 'submitting', 'pending') and last_fact_state = 'not_found'`,
    saga.merchantId,
    orderId,
  );
  return found.length > 0;
}

/** An attempt that never arrived may still do so until the deadline: then that is over, too. */
async function cancelForGood(saga: Saga, orderId: string): Promise<void> {
  const { status } = await saga.cancel(orderId);
  if (status === 202) await ageOrder(saga, orderId, '1 hour');
}

async function payUp(saga: Saga, orderId: string): Promise<void> {
  await saga.pay(orderId, 'last', { channel: 'mock-a' });
  const outTradeNo = (await saga.records(orderId)).at(-1)?.out_trade_no;
  // One that never arrived is not waited for here: only a cancel, drawn next time, ends it.
  const trade = outTradeNo && (await saga.mock.trade(outTradeNo).catch(() => undefined));
  // Paid or closed: then it is not for the payer any more.
  if (trade) await saga.mock.approve(outTradeNo).catch(() => undefined);
}

/** Whatever was asked twice, no caller met an error of ours; 503 only while a worker was killed. */
function serverErrors(saga: Saga): string[] {
  return saga.journal
    .filter(({ status, outage }) => status !== null && status >= 500 && !(status === 503 && outage))
    .map(({ method, path, status, at }) => `${method} ${path} was answered ${status} at ${at}`);
}

async function told(
  saga: Saga,
  scripts: readonly OrderScript[],
  run: () => Promise<void>,
): Promise<void> {
  try {
    await run();
  } catch (error) {
    throw new Error(await report(saga, scripts, [(error as Error).message]), { cause: error });
  }
}

/** The seed, what is wrong, and what was done to the orders that are named. */
async function report(
  saga: Saga,
  scripts: readonly OrderScript[],
  faults: readonly string[],
): Promise<string> {
  const all = faults.join('\n  ');
  const named = scripts.filter(({ orderId }) => new RegExp(`\\b${orderId}\\b`).test(all));
  const traces = await Promise.all(
    named.slice(0, MOST_TOLD).map(async ({ orderId, trace }) => {
      const picture = await pictureOf(saga, orderId);
      return `${orderId}\n    ${trace.join('\n    ')}\n    ${picture}`;
    }),
  );
  return `with CHAOS_SEED=${SEED}:\n  ${all}\n\n  ${traces.join('\n  ')}`;
}
