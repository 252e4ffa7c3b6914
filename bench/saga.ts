/**
 * The saga whole: orders through API, workflow, mock channel, callback and notification, beside a
 * control workflow that asks as much of Temporal and does nothing.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { together } from '../db/transaction';
import { orderWorkflowId } from '../workflows/ids';
import { closedLoad, openLoad } from './open-load';
import type { Percentiles } from './open-load';
import { assertKeepable, describeRig, describeSource, keepResult, rigLine } from './results';
import { startControl } from './saga/control';
import type { Control } from './saga/control';
import { databaseCounts, perOrder, topStatements } from './saga/database-counts';
import { historyCost, median } from './saga/history-cost';
import type { HistoryCost } from './saga/history-cost';
import { findKnee, lineOfStep, rounded } from './saga/knee';
import type { Knee } from './saga/knee';
import { readOptions } from './saga/options';
import { ShopOrders } from './saga/orders';
import { CpuWatch } from './saga/process-usage';
import { printSaga } from './saga/print';
import { startBenchServers } from './saga/servers';
import type { BenchServers } from './saga/servers';
import { CHANNEL_DELAY_MS, PAYER_DELAY_MS, pidsOf, startBenchStack } from './saga/stack';
import type { BenchStack } from './saga/stack';
import { startCosts } from './saga/starts';
import type { StartCost } from './saga/starts';

/** Milliseconds of processor time for one order, by process. */
export type CpuPerOrder = Record<string, number>;

export interface Round {
  saga_per_s: number;
  control_per_s: number;
  ratio: number;
  saga_cpu_ms: CpuPerOrder;
  control_cpu_ms: CpuPerOrder;
}

export interface SagaResult {
  temporal: string;
  channel_delay_ms: number;
  payer_delay_ms: number;
  /** Orders paid in all of the run. */
  orders: number;
  /** Orders per second, by open-model steps. */
  knee: Knee;
  /** At 70 % of the knee, open model. */
  at_70_percent: {
    rate: number;
    /** From the planned send of the order to the shop's having heard that it is paid. */
    paid: Percentiles;
    failed: number;
    commits_per_order: { all: number; writing: number };
    cpu_ms_per_order: CpuPerOrder;
    orders_per_core_second: number;
  };
  rounds: Round[];
  /** Median of the saga's orders per second through that of the control's. */
  ratio: number;
  per_order: { saga: HistoryCost; control: HistoryCost };
  worker_cpu_ms_per_start: StartCost;
  /** An order's start through a bare one's. */
  start_ratio: number;
}

const SHARE_OF_KNEE = 0.7;
const STEP_FACTOR = 1.25;
/** An order that is paid later than this is late for its payer, whatever the throughput. */
const PAID_WITHIN_MS = 3_000;
const IN_FLIGHT_MAX = 2_000;
const DESCRIBED = 50;
const NUMBERS = {
  /** Of each open-model step and of each round. */
  seconds: 20,
  rounds: 5,
  /** The first step, orders per second. */
  from: 5,
  steps: 14,
  clients: 64,
  /** Runs started to learn the cost of a start. */
  starts: 1_000,
};
const SWITCHES = ['temporal-postgres', 'statements', 'test-servers', 'write'] as const;

export async function saga(args: readonly string[]): Promise<SagaResult> {
  const options = readOptions(args, NUMBERS, SWITCHES);
  const fullSize = Object.entries(NUMBERS).every(
    ([name, value]) => options[name as keyof typeof NUMBERS] >= value,
  );
  const keeping = { fullSize, write: options.write };
  const source = describeSource();
  assertKeepable(keeping, source);
  const folder = mkdtempSync(join(tmpdir(), 'payment-saga-bench-logs-'));
  const servers = await startBenchServers({
    temporalPostgres: options['temporal-postgres'],
    statements: options.statements,
    testServers: options['test-servers'],
  });
  const ends: (() => Promise<unknown>)[] = [() => servers.end()];
  try {
    const keep = <Started extends { end(): Promise<unknown> }>(started: Started): Started => {
      ends.unshift(() => started.end());
      return started;
    };
    const [stack, control] = await together([
      startBenchStack(servers, { payersPay: true }).then(keep),
      startControl(servers, folder).then(keep),
    ]);
    const result = await measure(servers, stack, control, options);
    const rig = describeRig(servers.versions);
    printSaga(result, rigLine(rig, source));
    if (options.statements) console.table(await topStatements(stack.saga.pool));
    const name = options['temporal-postgres'] ? 'saga-postgres' : 'saga';
    const kept = keepResult(name, result, { rig, source, keeping });
    if (kept !== undefined) console.log(`kept as ${kept}`);
    return result;
  } finally {
    for (const end of ends) await end().catch((error: unknown) => console.error(error));
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure(
  servers: BenchServers,
  stack: BenchStack,
  control: Control,
  options: typeof NUMBERS & { statements: boolean },
): Promise<SagaResult> {
  const { saga } = stack;
  const shop = new ShopOrders(saga, 'o');
  const seconds = options.seconds * 1_000;
  const act = () => shop.orderUntilPaid();
  let controls = 0;
  const controlAct = () => control.order(`c-${++controls}`);
  const closed = (one: () => Promise<void>, forMsMax: number) =>
    closedLoad({ act: one, count: 1_000_000, clients: options.clients, forMsMax });

  console.log('warming up');
  await closed(act, Math.min(10_000, seconds));
  await closed(controlAct, Math.min(10_000, seconds));

  console.log('stepping up to the knee, orders per second');
  const run = (perSecond: number) =>
    openLoad({
      act,
      perSecond,
      count: Math.max(1, Math.round(perSecond * options.seconds)),
      inFlightMax: IN_FLIGHT_MAX,
    });
  const knee = await findKnee({
    from: options.from,
    factor: STEP_FACTOR,
    stepsMax: options.steps,
    p99MsMax: PAID_WITHIN_MS,
    run,
    onStep: (step) => console.log(`  ${lineOfStep(step)}`),
  });

  const ours = pidsOf(servers, { api: stack.api, worker: stack.worker });
  const theirs = pidsOf(servers, { front: control.front, worker: control.worker });
  const rate = Math.max(0.5, rounded(knee.per_second * SHARE_OF_KNEE));
  console.log(`measuring at ${rate} orders per second`);
  const watch = new CpuWatch(ours);
  // Backends tell their counters only now and then.
  await delay(1_500);
  const before = await databaseCounts(saga.pool);
  watch.begin();
  const firstOfRate = shop.made + 1;
  const paid = await run(rate);
  const lastOfRate = shop.made;
  const cpu = perOrderOf(watch.end(), paid.succeeded);
  await delay(1_500);
  const commits = perOrder(before, await databaseCounts(saga.pool), paid.succeeded);

  const rounds: Round[] = [];
  for (let round = 1; round <= options.rounds; round++) {
    const watched = async (one: () => Promise<void>, pids: typeof ours) => {
      const used = new CpuWatch(pids);
      used.begin();
      const load = await closed(one, seconds);
      return { load, cpu: perOrderOf(used.end(), load.succeeded) };
    };
    const a = await watched(act, ours);
    const b = await watched(controlAct, theirs);
    const ratio = a.load.per_second / b.load.per_second;
    rounds.push({
      saga_per_s: rounded(a.load.per_second),
      control_per_s: rounded(b.load.per_second),
      ratio: Math.round(ratio * 1_000) / 1_000,
      saga_cpu_ms: a.cpu,
      control_cpu_ms: b.cpu,
    });
    console.log(
      `round ${round}: saga ${rounded(a.load.per_second)}, control ${rounded(b.load.per_second)} orders per second`,
    );
    for (const { load } of [a, b]) if (load.failed > 0) console.log(load.errors);
  }
  const ratio =
    median(rounds.map((one) => one.saga_per_s)) / median(rounds.map((one) => one.control_per_s));

  const [paidOrders] = await saga.rows<{ count: number }>(
    `select count(*) from orders where status = 'paid'`,
  );
  // Under more load than they can take runs do several things in one task: that would flatter them.
  const firstControl = controls + 1;
  const sample = Math.min(DESCRIBED, lastOfRate - firstOfRate + 1);
  await openLoad({ act: controlAct, perSecond: rate, count: sample, inFlightMax: DESCRIBED });
  const described = (merchantId: string, prefix: string, from: number, to: number) =>
    historyCost(
      saga.client,
      Array.from({ length: Math.min(DESCRIBED, to - from + 1) }, (_, i) =>
        orderWorkflowId({ merchantId, orderId: `${prefix}-${to - i}` }),
      ),
    );
  const perOrderCost = {
    saga: await described(saga.merchantId, 'o', firstOfRate, lastOfRate),
    control: await described('control', 'c', firstControl, controls),
  };
  console.log('counting what a start costs');
  const starts = await startCosts(stack, control, {
    count: options.starts,
    rounds: Math.min(3, options.rounds),
    idleMs: Math.min(5_000, seconds / 4),
  });
  shop.close();
  const total = Object.entries(cpu).reduce((sum, [, ms]) => sum + ms, 0);
  return {
    temporal: servers.versions.temporal,
    channel_delay_ms: CHANNEL_DELAY_MS,
    payer_delay_ms: PAYER_DELAY_MS,
    orders: paidOrders?.count ?? 0,
    knee,
    at_70_percent: {
      rate,
      paid: paid.latency,
      failed: paid.failed,
      commits_per_order: commits,
      cpu_ms_per_order: cpu,
      orders_per_core_second: Math.round((1_000 / total) * 10) / 10,
    },
    rounds,
    ratio: Math.round(ratio * 1_000) / 1_000,
    per_order: perOrderCost,
    worker_cpu_ms_per_start: starts,
    start_ratio: Math.round((starts.order / starts.bare) * 100) / 100,
  };
}

function perOrderOf(used: Record<string, number>, orders: number): CpuPerOrder {
  return Object.fromEntries(
    Object.entries(used).map(([name, ms]) => [
      name,
      Math.round((ms / Math.max(1, orders)) * 100) / 100,
    ]),
  );
}
