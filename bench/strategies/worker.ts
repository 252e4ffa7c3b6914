/**
 * Runs of a strategy (or of a floor) in a process of their own. One that is measured has the process to
 * itself, so that processor time, memory and garbage collection are its alone. The clients and the channel run in it too: on two cores a third process
 * would only take time from the other two, and what they cost is the same for every strategy.
 */
import { rmSync } from 'node:fs';
import { createPool } from '../../db/transaction';
import type { Pool } from '../../db/transaction';
import { closedLoad, openLoad } from '../open-load';
import { countEffects, LoggingChannel } from './channel';
import { Clients } from './client';
import { KINDS } from './kinds';
import { treeCpuS, treeMemoryMib, watchGc, watchPool } from './meters';
import { connectRedis } from './redis-client';
import type { RedisClient } from './redis-client';
import { POOL_SIZE } from './job';
import type { Job, ToParent, ToWorker, WorkerInput, WorkerOutput } from './job';
import type { Strategy } from './strategy';
import { indexOf, stallOf, workOf } from './work';

const MESSAGES_TOLD = 8;
const FLOOR_TABLE = `create table floor_rows (
  order_no bigint primary key, order_id text not null, amount_minor bigint not null)`;
const FLOOR_INSERT = `insert into floor_rows (order_no, order_id, amount_minor)
  values ($1::bigint, $2::text, $3::bigint)`;

async function run(input: WorkerInput): Promise<WorkerOutput> {
  const pool = createPool({
    databaseUrl: input.databaseUrl,
    max: POOL_SIZE,
    // As long as a client waits: a full pool is seen in the latencies, not as an error of its own.
    connectionTimeoutMs: input.times.clientTimeout,
    statementTimeoutMs: 30_000,
    applicationName: 'bench',
    onIdleError: () => undefined,
  });
  const redis = input.redis && (await connectRedis(input.redis.url));
  try {
    return await measured(input, pool, redis);
  } finally {
    redis?.destroy();
    await pool.end();
  }
}

async function measured(
  input: WorkerInput,
  pool: Pool,
  redis: RedisClient | undefined,
): Promise<WorkerOutput> {
  const { orders, ordersAtRate, clients: clientCount, seed, stalls } = input;
  const channel = new LoggingChannel({
    orders,
    logFile: input.logFile,
    delayMs: input.channelDelayMs,
    stallMs: stalls?.ms ?? 0,
    stallOf: (index) => stalls && stallOf(seed, index, stalls.oneIn),
  });
  const { job } = input;
  const deps = { pool, channel, redis, times: input.times };
  const strategy = job.job === 'strategy' ? KINDS[job.name].make(deps) : undefined;
  const clients =
    strategy &&
    new Clients(strategy, {
      times: input.times,
      twoPages: input.twoPages,
      onOver: ({ index }) => channel.forget(index),
    });
  const order = clients
    ? (index: number) => clients.order(workOf(seed, index))
    : await floorAct(job, pool, redis);
  await strategy?.setUp();
  await fillPool(pool);

  const act = withHarm(input.harmAt, order);
  const endPool = watchPool(pool);
  const endGc = watchGc();
  const cpuBefore = cpuOf(input);
  const closed = await closedLoad({ clients: clientCount, count: orders - ordersAtRate, act });
  await clients?.settled();
  const cpuAfter = cpuOf(input);
  const rest = { gc: endGc(), poolWaits: endPool(), memoryMib: memoryOf(input) };
  const ratePerS =
    'perSecond' in input.rate ? input.rate.perSecond : closed.per_second * input.rate.share;
  const atRate =
    ordersAtRate === 0
      ? undefined
      : await openLoad({
          perSecond: ratePerS,
          count: ordersAtRate,
          inFlightMax: clientCount,
          act: (index) => act(orders - ordersAtRate + index),
        });
  await clients?.settled();
  await channel.end();
  return {
    closed,
    atRate,
    ratePerS: atRate && ratePerS,
    cpuS: {
      node: cpuAfter.node - cpuBefore.node,
      postgres: difference(cpuAfter.postgres, cpuBefore.postgres),
      redis: difference(cpuAfter.redis, cpuBefore.redis),
    },
    ...rest,
    clients: clients?.counts,
    messages: Object.fromEntries(
      [...(clients?.messages ?? [])].sort(([, a], [, b]) => b - a).slice(0, MESSAGES_TOLD),
    ),
    effects: await judge(input, strategy, channel),
  };
}

/** Every connection made and greeted before anything is measured. */
async function fillPool(pool: Pool): Promise<void> {
  const all = await Promise.all(Array.from({ length: POOL_SIZE }, () => pool.connect()));
  for (const client of all) client.release();
}

/** The least that a strategy could do: rows of one unique number, or a key set once. */
async function floorAct(
  job: Job,
  pool: Pool,
  redis: RedisClient | undefined,
): Promise<(index: number) => Promise<unknown>> {
  if (job.job === 'redis_floor') {
    if (!redis) throw new Error('the floor of Redis needs Redis');
    return (index) => redis.set(`floor:${index}`, '1', { condition: 'NX' });
  }
  const perOrder = job.job === 'insert_floor' ? job.insertsPerOrder : 0;
  await pool.query(FLOOR_TABLE);
  return async (index) => {
    // 5.4 inserts per order: five for most, six for two in five.
    const [from, to] = [Math.floor(index * perOrder), Math.floor((index + 1) * perOrder)];
    for (let n = from; n < to; n++) await pool.query(FLOOR_INSERT, [n, `b${index}`, index]);
  };
}

/**
 * Before an order at one of the places: the parent does its harm, and whoever comes after goes on only
 * then, so that harm always meets a run under way.
 */
function withHarm(
  harmAt: readonly number[],
  act: (index: number) => Promise<unknown>,
): (index: number) => Promise<unknown> {
  if (harmAt.length === 0) return act;
  const harms = harmAt.map((at, harm) => ({ at, done: once(() => askForHarm(harm)) }));
  return async (index) => {
    for (const { at, done } of harms) if (index >= at) await done();
    return act(index);
  };
}

function askForHarm(harm: number): Promise<void> {
  return new Promise((resolve) => {
    const listen = (message: ToWorker) => {
      if (!('harmed' in message) || message.harmed !== harm) return;
      process.off('message', listen);
      resolve();
    };
    process.on('message', listen);
    tell({ harm });
  });
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

function cpuOf({ postgresPid, redis }: WorkerInput): WorkerOutput['cpuS'] {
  const { user, system } = process.cpuUsage();
  return {
    node: (user + system) / 1e6,
    postgres: treeCpuS(postgresPid),
    redis: redis ? treeCpuS(redis.pid) : null,
  };
}

function memoryOf({ postgresPid, redis }: WorkerInput): WorkerOutput['memoryMib'] {
  return {
    nodePeak: Math.round(process.resourceUsage().maxRSS / 1024),
    postgres: treeMemoryMib(postgresPid),
    redis: redis ? treeMemoryMib(redis.pid) : null,
  };
}

function difference(after: number | null, before: number | null): number | null {
  return after === null || before === null ? null : after - before;
}

/** Holds the effect log against the strategy's own books. */
async function judge(
  input: WorkerInput,
  strategy: Strategy | undefined,
  { neverLeft, stalled }: LoggingChannel,
): Promise<WorkerOutput['effects']> {
  const charges = await countEffects(input.logFile, input.orders);
  // Counted: a run that is broken off later must not leave it behind.
  rmSync(input.logFile);
  const booked = new Uint8Array(input.orders);
  for (const orderId of (await strategy?.paidOrders()) ?? []) booked[indexOf(orderId)] = 1;
  const effects = {
    ...{ orders_charged: 0, double_effects: 0, extra_charges: 0 },
    ...{ charged_not_booked: 0, booked_not_charged: 0, never_left: neverLeft, stalled },
  };
  charges.forEach((count, index) => {
    if (count > 0) effects.orders_charged++;
    if (count > 1) effects.double_effects++;
    effects.extra_charges += Math.max(0, count - 1);
    if (count > 0 && booked[index] === 0) effects.charged_not_booked++;
    if (count === 0 && booked[index] === 1) effects.booked_not_charged++;
  });
  return effects;
}

function tell(message: ToParent): void {
  process.send?.(message);
}

// Nothing is left to do for a parent that has gone.
process.once('disconnect', () => process.exit(1));
process.on('message', (message: ToWorker) => {
  if (!('input' in message)) return;
  run(message.input).then(
    (output) => tell({ output }),
    (error: unknown) => tell({ failed: error instanceof Error ? (error.stack ?? '') : 'unknown' }),
  );
});
