import { findRedis } from '../../bench/redis-server';
import { strategies } from '../../bench/strategies';
import { strategyNamed } from '../../bench/strategies/kinds';
import type { StrategiesResult } from '../../bench/strategies/figures';
import { snowflake } from '../../bench/strategies/snowflake';
import { stallOf, workOf } from '../../bench/strategies/work';

/** Small enough for every run of the tests: shapes and double effects, never a time. */
const SMALL = [
  ...['--orders', '100', '--clients', '20', '--fault-orders', '60', '--lease-ms', '250'],
  ...['--only', '0,1,3,4,6', '--faults', 'stalled_client,postgres_restarted'],
];

describe('the strategies at a small size', () => {
  let result: StrategiesResult;
  beforeAll(async () => {
    jest.spyOn(console, 'log').mockReturnValue(undefined);
    result = await strategies(SMALL);
  }, 300_000);
  afterAll(() => jest.restoreAllMocks());

  const figuresOf = (name: string) => {
    const found = result.strategies.find((strategy) => strategy.name === name);
    if (!found) throw new Error(`no figures of ${name}`);
    return found;
  };

  test('every strategy asked for is in the result, with figures of the stated shape', () => {
    expect(result).toMatchObject({ orders: 100, clients: 20, fault_orders: 60, seed: 1 });
    expect(result.strategies.map(({ number }) => number)).toEqual([0, 1, 3, 4, 6]);
    const count = expect.any(Number) as number;
    for (const name of ['unprotected', 'unique_order_number', 'stored_answers', 'attempt_key']) {
      expect(figuresOf(name)).toMatchObject({
        ...{ orders_per_s: count, of_floor: count, p50_ms: count, p95_ms: count, p99_ms: count },
        ...{ max_ms: count, errors: count, double_effects: count, redis_ops_per_order: 0 },
        cpu_ms_per_order: { node: count },
        gc_pauses: { count, max_ms: count },
        pool_wait_ms: { p50: count, p99: count },
        faults: {
          redis_killed: { not_run: 'not asked for' },
          stalled_client: { orders: 60, double_effects: count, errors: count },
          postgres_restarted: { orders: 60, double_effects: count, errors: count },
        },
      });
    }
    // Two commits to create and pay at the least, of which no strategy has fewer.
    for (const { commits_per_order: commits } of result.strategies)
      if (commits !== undefined) expect(commits).toBeGreaterThanOrEqual(2);
    expect(result.floor).toMatchObject({
      inserts_per_s: count,
      at_equal_commits: { commits_per_order: count, orders_per_s: count },
      attempt_key_ratio: count,
    });
  });

  test('the control pays twice, so a double effect is seen when there is one', () => {
    const { double_effects: doubles, extra_charges: extra } = figuresOf('unprotected');
    const duplicated = Array.from({ length: 100 }, (_, index) => workOf(1, index)).filter(
      ({ duplicateAfterMs }) => duplicateAfterMs !== undefined,
    );
    expect(doubles).toBe(duplicated.length);
    expect(extra).toBe(duplicated.length);
  });

  test.each(['unique_order_number', 'stored_answers', 'attempt_key'])(
    '%s pays no order twice and loses none, with a stalled client and a restarted database too',
    (name) => {
      const { faults, ...plain } = figuresOf(name);
      for (const run of [plain, faults.stalled_client, faults.postgres_restarted])
        expect(run).toMatchObject({
          ...{ double_effects: 0, charged_not_booked: 0, booked_not_charged: 0 },
        });
      expect(plain.lost).toBe(0);
      expect(faults.stalled_client).toMatchObject({ lost_orders: 0 });
      expect(faults.postgres_restarted).toMatchObject({ lost_orders: 0 });
      // The database was away, and its clients noticed.
      const restarted = faults.postgres_restarted;
      expect(restarted && 'errors' in restarted && restarted.errors).toBeGreaterThan(0);
    },
  );

  test('what needs Redis runs with it, and says "not run" and why without', () => {
    const lock = figuresOf('redis_lock');
    const found = findRedis();
    if ('missing' in found) {
      expect(lock.not_run).toBe(found.missing);
      expect(lock.faults.stalled_client).toEqual({ not_run: found.missing });
      expect(result.floor.redis_set_nx_per_s).toEqual({ not_run: found.missing });
    } else {
      expect(lock).toMatchObject({ double_effects: 0, lost: 0 });
      expect(lock.redis_ops_per_order).toBeGreaterThanOrEqual(2);
      expect(result.floor.redis_set_nx_per_s).toBeGreaterThan(0);
    }
  });
});

test('one order in five is delivered twice, and the same seed makes the same work', () => {
  const work = Array.from({ length: 10_000 }, (_, index) => workOf(7, index));
  const twice = work.filter(({ duplicateAfterMs }) => duplicateAfterMs !== undefined).length;
  expect(Math.abs(twice - 2_000)).toBeLessThan(150);
  const again = work.slice(0, 100).map(({ index }) => workOf(7, index));
  expect(again).toEqual(work.slice(0, 100));
  expect(workOf(8, 1)).not.toEqual(workOf(7, 1));
  const stalls = work.map(({ index }) => stallOf(7, index, 10));
  for (const where of ['before_the_call', 'after_the_effect'] as const)
    expect(Math.abs(stalls.filter((stall) => stall === where).length - 500)).toBeLessThan(100);
});

test('order numbers never repeat, also when the clock steps back or a millisecond is full', () => {
  const times = [1_000, 1_000, 990, 1_001, 1_000];
  let now = Date.UTC(2026, 0, 1);
  const next = snowflake(5, () => now + (times.shift() ?? 0));
  const few = Array.from({ length: 5 }, next);
  now += 2_000;
  const many = Array.from({ length: 10_000 }, next);
  const numbers = [...few, ...many];
  expect(new Set(numbers).size).toBe(numbers.length);
  expect([...numbers].sort((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1))).toEqual(numbers);
  expect(BigInt(numbers.at(-1)!) < 2n ** 63n).toBe(true);
  expect(() => snowflake(1_024)).toThrow(RangeError);
});

test('a strategy goes by its name or its number', () => {
  expect(strategyNamed('6')).toBe('attempt_key');
  expect(strategyNamed('redis-lock')).toBe('redis_lock');
  expect(() => strategyNamed('7')).toThrow('no strategy 7');
});
