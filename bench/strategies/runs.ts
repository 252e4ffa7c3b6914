/** The runs that the bench is made of: a floor, a strategy measured, a strategy under a fault. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { POOL_SIZE } from './job';
import type { WorkerInput, WorkerOutput } from './job';
import { KINDS } from './kinds';
import type { StrategyName } from './kinds';
import { commitsOf, redisCommands } from './meters';
import { runPgbench } from './pgbench';
import type { FaultResult, Measured, StrategiesResult, TrialName } from './figures';
import { emptyRedis } from './rig';
import type { Servers } from './rig';
import { runAlone } from './run-worker';
import type { Worker } from './run-worker';
import type { Times } from './strategy';
import { DUPLICATES_PER_100 } from './work';

export interface Options {
  orders: number;
  clients: number;
  rate: WorkerInput['rate'];
  seed: number;
  faultOrders: number;
  /** Of locks, claims and marks in the runs with faults. */
  leaseMs: number;
  channelDelayMs: number;
}

/** Latencies need no more; the rest of the orders are sent as fast as the clients go. */
const AT_RATE_SHARE = 0.1;
/** So few at once that a request is answered well within a lease, unless there is a fault. */
const FAULT_CLIENTS_MAX = 100;
/** A stall is this many leases long, and one order in a hundred has one; in a small run more have. */
const STALL_LEASES = 3;
const STALLS = { oneInMax: 100, least: 20 };
/** Long enough for a database that recovers on a busy machine, so that "lost" means lost. */
const PATIENCE_MS = 120_000;
const DOWN_MS = 500;
/** Where in the run harm is done, as shares of its orders; once in a run too small for more. */
const HARM_AT = [0.6, 0.3];
const ORDERS_FOR_TWO_HARMS = 1_000;
/** Without a fault nothing ends by its time, also with thousands of clients before twenty connections. */
const UNHURRIED: Times = { lease: 30_000, clientTimeout: 60_000, patience: 600_000 };

/** What is the same for every strategy, for the result. */
export function alikeOf({ clients, channelDelayMs, leaseMs }: Options): StrategiesResult['alike'] {
  return {
    pool_size: POOL_SIZE,
    duplicates_share: DUPLICATES_PER_100 / 100,
    channel_delay_ms: channelDelayMs,
    fault_clients: Math.min(clients, FAULT_CLIENTS_MAX),
    lease_ms: leaseMs,
    stall_ms: STALL_LEASES * leaseMs,
  };
}

/** Inserts (or turns of `insertsPerOrder` of them) per second by the bare loop. */
export function insertFloor(
  servers: Servers,
  options: Options,
  orders: number,
  insertsPerOrder: number,
): Promise<number> {
  return servers.withDatabase(false, async (url) => {
    const job = { job: 'insert_floor' as const, insertsPerOrder };
    const { closed } = await runAlone({ ...plainInput(servers, options, url), job, orders });
    return succeeded(closed);
  });
}

export function pgbenchFloor(servers: Servers, program: string, inserts: number): Promise<number> {
  return servers.withDatabase(false, async (url) => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(`
      create table floor_rows (
        order_no bigint primary key, order_id text not null, amount_minor bigint not null);
      create sequence floor_numbers cache 100`);
    await client.end();
    return Math.round(await runPgbench(program, url, inserts));
  });
}

export async function redisFloor(
  servers: Servers,
  options: Options,
  orders: number,
): Promise<number> {
  if ('url' in servers.redis) await emptyRedis(servers.redis);
  return servers.withDatabase(false, async (url) => {
    const job = { job: 'redis_floor' as const };
    const { closed } = await runAlone({ ...plainInput(servers, options, url), job, orders });
    return succeeded(closed);
  });
}

function succeeded({ failed, per_second: perSecond, errors }: WorkerOutput['closed']): number {
  if (failed > 0) throw new Error(`a floor failed ${failed} times: ${JSON.stringify(errors)}`);
  return Math.round(perSecond);
}

/** What the strategy does without faults; ratios to the floor are the caller's. */
export async function measure(
  servers: Servers,
  options: Options,
  name: StrategyName,
): Promise<Omit<Measured, 'of_floor' | 'of_floor_at_equal_commits'>> {
  const { redis } = servers;
  const { usesProductSchema = false } = KINDS[name];
  if ('url' in redis) await emptyRedis(redis);
  return servers.withDatabase(usesProductSchema, async (url, database) => {
    const admin = servers.postgres.databaseUrl();
    const count = async () => ({
      commits: await commitsOf(admin, database),
      commands: 'url' in redis ? await redisCommands(redis.url) : 0,
    });
    const before = await count();
    const began = performance.now();
    const output = await runAlone({
      ...plainInput(servers, options, url),
      job: { job: 'strategy', name },
      ordersAtRate: Math.floor(options.orders * AT_RATE_SHARE),
    });
    const tookS = Math.round((performance.now() - began) / 1_000);
    const after = await count();
    return measuredOf(output, {
      orders: options.orders,
      tookS,
      commits: after.commits - before.commits,
      // The two questions are commands of their own.
      commands: KINDS[name].usesRedis ? after.commands - before.commands - 2 : 0,
    });
  });
}

function measuredOf(
  output: WorkerOutput,
  run: { orders: number; tookS: number; commits: number; commands: number },
): Omit<Measured, 'of_floor' | 'of_floor_at_equal_commits'> {
  const { closed, atRate, cpuS, effects, clients, memoryMib, poolWaits } = output;
  const latency = (atRate ?? closed).latency;
  const perOrder = (seconds: number | null) =>
    seconds === null ? null : rounded((seconds * 1_000) / closed.sent);
  return {
    orders_per_s: rounded(closed.per_second, 1),
    rate_per_s: rounded(output.ratePerS ?? 0, 1),
    p50_ms: rounded(latency.p50_ms),
    p95_ms: rounded(latency.p95_ms),
    p99_ms: rounded(latency.p99_ms),
    max_ms: rounded(latency.max_ms),
    held_back: atRate?.held_back ?? 0,
    closed_p50_ms: rounded(closed.latency.p50_ms),
    closed_p99_ms: rounded(closed.latency.p99_ms),
    ...{ deliveries: 0, errors: 0, timeouts: 0, busy: 0, pages_reloaded: 0, lost: 0, ...clients },
    double_effects: effects.double_effects,
    extra_charges: effects.extra_charges,
    charged_not_booked: effects.charged_not_booked,
    booked_not_charged: effects.booked_not_charged,
    cpu_ms_per_order: {
      node: perOrder(cpuS.node) ?? 0,
      postgres: perOrder(cpuS.postgres),
      redis: perOrder(cpuS.redis),
    },
    memory_mib: {
      node_peak: memoryMib.nodePeak,
      postgres: memoryMib.postgres,
      redis: memoryMib.redis,
    },
    gc_pauses: output.gc,
    pool_wait_ms: {
      p50: rounded(poolWaits.p50_ms),
      p99: rounded(poolWaits.p99_ms),
      max: rounded(poolWaits.max_ms),
    },
    commits_per_order: rounded(run.commits / run.orders),
    redis_ops_per_order: rounded(run.commands / run.orders),
    messages: output.messages,
    took_s: run.tookS,
  };
}

/** The strategy under one fault, or with two pages of each order and no fault. */
export async function underFault(
  servers: Servers,
  worker: Worker,
  options: Options,
  name: StrategyName,
  fault: TrialName,
  orders: number,
): Promise<FaultResult> {
  const { redis, postgres } = servers;
  const { usesProductSchema = false } = KINDS[name];
  if ('url' in redis) await emptyRedis(redis);
  return servers.withDatabase(usesProductSchema, async (url) => {
    const recoveries: Promise<void>[] = [];
    const recover = async (restart: () => Promise<void>) => {
      await delay(DOWN_MS);
      await restart();
    };
    const harm = async (): Promise<void> => {
      // A server that has not come back from the first time cannot be killed a second time.
      await Promise.all(recoveries);
      if (fault === 'postgres_restarted') {
        await postgres.stop('immediate');
        recoveries.push(recover(() => postgres.restart()));
      } else if ('url' in redis) {
        await redis.kill();
        recoveries.push(recover(() => redis.restart()));
      }
      // Whether it came back is asked at the end, not by an exit of the process in between.
      recoveries.at(-1)?.catch(() => undefined);
    };
    const harms = fault === 'postgres_restarted' || fault === 'redis_killed';
    const began = performance.now();
    const output = await worker
      .run(
        {
          ...plainInput(servers, options, url),
          job: { job: 'strategy', name },
          orders,
          clients: alikeOf(options).fault_clients,
          times: {
            lease: options.leaseMs,
            clientTimeout: options.leaseMs,
            patience: PATIENCE_MS,
          },
          stalls: fault === 'stalled_client' ? stallsOf(orders, options.leaseMs) : undefined,
          twoPages: fault === 'two_pages',
          harmAt: harms ? harmAt(orders) : [],
        },
        harm,
      )
      .finally(() => Promise.allSettled(recoveries));
    await Promise.all(recoveries);
    const { effects, clients } = output;
    return {
      orders,
      double_effects: effects.double_effects,
      extra_charges: effects.extra_charges,
      errors: clients?.errors ?? 0,
      lost_orders: clients?.lost ?? 0,
      charged_not_booked: effects.charged_not_booked,
      booked_not_charged: effects.booked_not_charged,
      took_s: Math.round((performance.now() - began) / 1_000),
    };
  });
}

function stallsOf(orders: number, leaseMs: number): WorkerInput['stalls'] {
  const oneIn = Math.max(2, Math.min(STALLS.oneInMax, Math.floor(orders / STALLS.least)));
  return { oneIn, ms: STALL_LEASES * leaseMs };
}

function harmAt(orders: number): number[] {
  const shares = orders < ORDERS_FOR_TWO_HARMS ? HARM_AT.slice(0, 1) : HARM_AT;
  return shares.map((share) => Math.floor(share * orders)).sort((a, b) => a - b);
}

let logs = 0;

/** A closed run of the whole work without faults. */
function plainInput(
  { postgres, redis, folder }: Servers,
  options: Options,
  databaseUrl: string,
): Omit<WorkerInput, 'job'> {
  return {
    databaseUrl,
    postgresPid: postgres.pid,
    redis: 'url' in redis ? { url: redis.url, pid: redis.pid } : undefined,
    orders: options.orders,
    ordersAtRate: 0,
    clients: options.clients,
    rate: options.rate,
    seed: options.seed,
    times: UNHURRIED,
    channelDelayMs: options.channelDelayMs,
    stalls: undefined,
    twoPages: false,
    harmAt: [],
    logFile: join(folder, `effects-${++logs}.log`),
  };
}

function rounded(value: number, digits = 2): number {
  return Math.round(value * 10 ** digits) / 10 ** digits;
}
