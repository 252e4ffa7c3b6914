/**
 * Ways to be idempotent, compared: the same orders, created, paid and delivered twice, through each
 * strategy, beside floors measured in the same run; then again with faults. What counts is the channel's
 * append-only effect log: an order charged more than once is a double effect, whatever the books say.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { assertKeepable, describeRig, describeSource, keepResult, rigLine } from './results';
import type { StrategyName } from './strategies/kinds';
import { KINDS, STRATEGY_NAMES, strategyNamed } from './strategies/kinds';
import { Parts } from './strategies/parts';
import { FAULT_NAMES, isRun, TRIAL_NAMES } from './strategies/figures';
import type {
  FaultResult,
  FloorResult,
  Measured,
  NotRun,
  StrategiesResult,
  StrategyResult,
  TrialName,
} from './strategies/figures';
import { startServers } from './strategies/rig';
import { startWorker } from './strategies/run-worker';
import type { Worker } from './strategies/run-worker';
import type { Servers } from './strategies/rig';
import {
  alikeOf,
  insertFloor,
  measure,
  pgbenchFloor,
  redisFloor,
  underFault,
} from './strategies/runs';
import type { Options } from './strategies/runs';
import { printTables } from './strategies/table';

const FULL = { orders: 1_000_000, clients: 5_000, faultOrders: 100_000 };
/** Of what a strategy reaches at most: busy, and not yet queueing. */
const RATE_SHARE = 0.7;
const LEASE_MS = 2_000;
const CHANNEL_DELAY_MS = 20;
/** Turns of a floor: enough for a steady figure. */
const FLOOR_TURNS_MAX = 100_000;
/** The whole work is not needed where the fault can reach nothing. */
const HARMLESS_SHARE = 0.1;
const CACHE = join(__dirname, '..', '.cache');

export async function strategies(args: readonly string[]): Promise<StrategiesResult> {
  const asked = readArgs(args);
  const { options, only, trials, resume, write, fullSize } = asked;
  const source = describeSource();
  const keeping = { fullSize, write };
  assertKeepable(keeping, source);
  const parts = new Parts(CACHE, { options, only, trials }, source.commit, resume);
  const servers = await startServers();
  // What faults show needs no process of its own each time.
  const trialWorker = startWorker();
  try {
    const rig = describeRig(servers.about);
    console.log(rigLine(rig, source));
    const result = await runAll(servers, trialWorker, asked, parts);
    printTables(result);
    console.log(`\n${rigLine(rig, source)}`);
    const kept = keepResult('strategies', result, { rig, source, keeping });
    if (kept) console.log(`kept as ${kept}`);
    parts.done();
    return result;
  } finally {
    trialWorker.end();
    await servers.end();
  }
}

function readArgs(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      orders: { type: 'string' },
      clients: { type: 'string' },
      rate: { type: 'string' },
      seed: { type: 'string' },
      only: { type: 'string' },
      faults: { type: 'string' },
      'fault-orders': { type: 'string' },
      'lease-ms': { type: 'string' },
      'channel-delay-ms': { type: 'string' },
      resume: { type: 'boolean' },
      write: { type: 'boolean' },
    },
  });
  const whole = (name: keyof typeof values, otherwise: number, least: number) => {
    const value = Number(values[name] ?? otherwise);
    if (!Number.isSafeInteger(value) || value < least)
      throw new Error(`--${name} wants a whole number, ${least} or more`);
    return value;
  };
  const options: Options = {
    orders: whole('orders', FULL.orders, 10),
    clients: whole('clients', FULL.clients, 1),
    rate: values.rate === undefined ? { share: RATE_SHARE } : { perSecond: whole('rate', 0, 1) },
    seed: whole('seed', 1, 0),
    faultOrders: whole('fault-orders', FULL.faultOrders, 10),
    leaseMs: whole('lease-ms', LEASE_MS, 50),
    channelDelayMs: whole('channel-delay-ms', CHANNEL_DELAY_MS, 0),
  };
  const trials = values.faults?.split(',').map(trialNamed) ?? TRIAL_NAMES;
  const only = values.only?.split(',').map(strategyNamed) ?? STRATEGY_NAMES;
  return {
    options,
    only,
    trials,
    resume: values.resume === true,
    write: values.write === true,
    fullSize:
      options.orders >= FULL.orders &&
      options.clients >= FULL.clients &&
      options.faultOrders >= FULL.faultOrders &&
      STRATEGY_NAMES.every((name) => only.includes(name)) &&
      TRIAL_NAMES.every((name) => trials.includes(name)),
  };
}

interface Asked {
  options: Options;
  only: readonly StrategyName[];
  trials: readonly TrialName[];
}

function trialNamed(word: string): TrialName {
  const name = TRIAL_NAMES.find((one) => one === word.replaceAll('-', '_'));
  if (!name) throw new Error(`no fault ${word}: one of ${TRIAL_NAMES.join(', ')}`);
  return name;
}

type Figures = Awaited<ReturnType<typeof measure>>;

async function runAll(
  servers: Servers,
  trialWorker: Worker,
  { options, only, trials }: Asked,
  parts: Parts,
): Promise<StrategiesResult> {
  const { redis, pgbench } = servers;
  const floorTurns = Math.min(options.orders, FLOOR_TURNS_MAX);
  const bareFloor = (round: string) =>
    parts.part(`floor ${round}`, () => insertFloor(servers, options, floorTurns, 1));
  const bareRounds = [await bareFloor('before')];
  const pgbenchPerS = pgbench
    ? await parts.part('floor pgbench', () => pgbenchFloor(servers, pgbench, floorTurns))
    : { not_run: 'no pgbench on the PATH' };
  const setNxPerS =
    'url' in redis
      ? await parts.part('floor redis', () => redisFloor(servers, options, floorTurns))
      : { not_run: redis.missing };

  const runs: { result: StrategyResult; figures: Figures | undefined }[] = [];
  let equal: FloorResult['at_equal_commits'];
  for (const name of only) {
    const { number, usesRedis } = KINDS[name];
    if (usesRedis && !('url' in redis)) {
      runs.push({ result: notRun(name, redis.missing), figures: undefined });
      continue;
    }
    const figures = await parts.part(`${name} measured`, () => measure(servers, options, name));
    if (name === 'attempt_key') equal = await equalFloor(servers, options, parts, figures);
    const tried = async (trial: TrialName) =>
      trials.includes(trial)
        ? faultOf(servers, trialWorker, options, parts, name, trial)
        : { not_run: 'not asked for' };
    const faults: StrategyResult['faults'] = {};
    for (const fault of FAULT_NAMES) faults[fault] = await tried(fault);
    runs.push({ result: { name, number, faults, two_pages: await tried('two_pages') }, figures });
  }
  bareRounds.push(await bareFloor('after'));

  const inserts = mean(bareRounds);
  const ours = runs.find(({ result }) => result.name === 'attempt_key')?.figures;
  return {
    orders: options.orders,
    clients: options.clients,
    seed: options.seed,
    rate:
      'share' in options.rate
        ? `${options.rate.share * 100} % of each strategy's own knee`
        : `${options.rate.perSecond}/s for all`,
    fault_orders: options.faultOrders,
    alike: alikeOf(options),
    floor: {
      inserts_per_s: Math.round(inserts),
      inserts_per_s_rounds: bareRounds,
      at_equal_commits: equal,
      attempt_key_ratio: equal && ours && ratio(ours.orders_per_s, equal.orders_per_s),
      pgbench_per_s: pgbenchPerS,
      redis_set_nx_per_s: setNxPerS,
    },
    strategies: runs.map(({ result, figures }) => ({
      ...result,
      ...(figures && withRatios(figures, inserts)),
    })),
  };
}

function withRatios(figures: Figures, insertsPerS: number): Measured {
  const { orders_per_s: perS, commits_per_order: commits } = figures;
  return {
    ...figures,
    of_floor: ratio(perS, insertsPerS),
    of_floor_at_equal_commits: ratio(perS * commits, insertsPerS),
  };
}

function notRun(name: StrategyName, reason: string): StrategyResult {
  const faults = Object.fromEntries(FAULT_NAMES.map((fault) => [fault, { not_run: reason }]));
  const two_pages = { not_run: reason };
  return { name, number: KINDS[name].number, not_run: reason, faults, two_pages };
}

/** The bare loop with as many commits per order as ours has, twice. */
async function equalFloor(
  servers: Servers,
  options: Options,
  parts: Parts,
  { commits_per_order: commits }: Figures,
): Promise<FloorResult['at_equal_commits']> {
  const turns = Math.ceil(Math.min(options.orders, FLOOR_TURNS_MAX / commits));
  const rounds: number[] = [];
  for (const round of ['first', 'second'])
    rounds.push(
      await parts.part(`floor at equal commits, ${round}`, () =>
        insertFloor(servers, options, turns, commits),
      ),
    );
  return { commits_per_order: commits, orders_per_s: Math.round(mean(rounds)), rounds };
}

async function faultOf(
  servers: Servers,
  worker: Worker,
  options: Options,
  parts: Parts,
  name: StrategyName,
  fault: TrialName,
): Promise<FaultResult | NotRun> {
  const { redis } = servers;
  if (fault === 'redis_killed' && !('url' in redis)) return { not_run: redis.missing };
  const matters = fault !== 'two_pages' && (fault !== 'redis_killed' || KINDS[name].usesRedis);
  const orders = Math.ceil(options.faultOrders * (matters ? 1 : HARMLESS_SHARE));
  const result = await parts.part(`${name} ${fault}`, () =>
    underFault(servers, worker, options, name, fault, orders),
  );
  if (isRun(result)) console.log(`  ${JSON.stringify(result)}`);
  return result;
}

function ratio(ours: number, floor: number): number {
  return Math.round((ours / floor) * 1_000) / 1_000;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
