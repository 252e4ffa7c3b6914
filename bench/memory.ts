/**
 * What an open order costs its worker in memory while it waits for payment, beside a run that only
 * waits; whether a capped cache stays flat; and that all of them are paid in the end.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { inParallel } from '../test/support/in-parallel';
import { waitFor } from '../test/support/wait';
import { orderStartOptions } from '../workflows/start-options';
import { printMemory } from './memory/print';
import { assertKeepable, describeRig, describeSource, keepResult, rigLine } from './results';
import { startControl } from './saga/control';
import { readOptions } from './saga/options';
import { ShopOrders } from './saga/orders';
import { startBenchServers } from './saga/servers';
import type { BenchServers } from './saga/servers';
import { startBenchStack } from './saga/stack';
import type { WorkerMemory } from './saga/stack';

/** One look at a worker with so many open runs. */
export interface MemoryPoint {
  open: number;
  rss_bytes: number;
  heap_bytes: number;
}

/** What one more open run costs, from the least squares line through the points. Bytes. */
export interface MemoryCurve {
  points: MemoryPoint[];
  rss_per_run: number;
  heap_per_run: number;
}

export interface MemoryResult {
  /** Runs the worker may keep when all are to stay in memory, and when it is capped. */
  cached_runs: { all: number; capped: number };
  orders: MemoryCurve;
  bare: MemoryCurve;
  /** Orders through bare runs, by heap and by resident memory. */
  heap_ratio: number;
  rss_ratio: number;
  capped: MemoryCurve;
  /** Resident memory with the cap at the most orders through that at the fewest above the cap. */
  capped_growth: number;
  finished: { opened: number; paid: number };
}

/** At so many open runs, each looked at after so long, by a worker that may keep so many in memory. */
interface Looks {
  levels: number[];
  settleMs: number;
  cachedRuns: number;
}

const NUMBERS = { orders: 10_000, fewer: 2_000, cap: 500, 'settle-ms': 2_000 };
/** Room above the runs that are to stay: the sweep's and those of the warm-up. */
const SPARE_RUNS = 500;
const AT_ONCE = 24;
const WARM_UP_MAX = 100;
/** Far above the time the whole bench takes: no order runs into its deadline. */
const EXPIRES_IN_S = 6 * 3_600;
const FINISH_WITHIN_MS = 3_600_000;

export async function memory(args: readonly string[]): Promise<MemoryResult> {
  const options = readOptions(args, NUMBERS, ['write', 'temporal-postgres', 'test-servers']);
  const { orders, fewer, cap, 'settle-ms': settleMs } = options;
  if (!(cap <= fewer && fewer < orders))
    throw new Error('--cap, --fewer and --orders must rise: 500, 2000, 10000');
  const keeping = { fullSize: orders >= NUMBERS.orders, write: options.write };
  const source = describeSource();
  assertKeepable(keeping, source);
  const servers = await startBenchServers({
    temporalPostgres: options['temporal-postgres'],
    testServers: options['test-servers'],
  });
  try {
    const levels = [0, fewer, orders];
    const all = await openOrders(servers, {
      ...{ levels, settleMs, name: 'all' },
      cachedRuns: orders + SPARE_RUNS,
    });
    const capped = await openOrders(servers, {
      ...{ levels, settleMs, name: 'capped' },
      cachedRuns: cap,
    });
    const bare = await bareRuns(servers, {
      ...{ levels, settleMs },
      cachedRuns: orders + SPARE_RUNS,
    });
    const result: MemoryResult = {
      cached_runs: { all: orders + SPARE_RUNS, capped: cap },
      orders: all.curve,
      bare,
      heap_ratio: ratioOf(all.curve.heap_per_run, bare.heap_per_run),
      rss_ratio: ratioOf(all.curve.rss_per_run, bare.rss_per_run),
      capped: capped.curve,
      capped_growth: ratioOf(
        capped.curve.points.at(-1)?.rss_bytes ?? 0,
        capped.curve.points[1]?.rss_bytes ?? 0,
      ),
      finished: { opened: all.opened + capped.opened, paid: all.paid + capped.paid },
    };
    const rig = describeRig(servers.versions);
    printMemory(result, rigLine(rig, source));
    const kept = keepResult('memory', result, { rig, source, keeping });
    if (kept !== undefined) console.log(`kept as ${kept}`);
    return result;
  } finally {
    await servers.end();
  }
}

/** Orders that wait for their payers, up to each level in turn; then all are paid and told. */
async function openOrders(
  servers: BenchServers,
  { levels, settleMs, cachedRuns, name }: Looks & { name: string },
): Promise<{ curve: MemoryCurve; opened: number; paid: number }> {
  const stack = await startBenchStack(servers, { payersPay: false, cachedRuns });
  const shop = new ShopOrders(stack.saga, `m-${name}`);
  // Runs in the middle of something that have no room in the cache wait for one another's time limits.
  const atOnce = Math.min(AT_ONCE, cachedRuns);
  try {
    // What a worker makes once (connections, compiled code) is there before the first look.
    const warm = Array.from({ length: warmUp(levels) }, () => shop.nextId());
    await open(shop, warm, atOnce);
    await finish(stack.saga, shop, warm, atOnce);
    const opened: string[] = [];
    const points: MemoryPoint[] = [];
    for (const level of levels) {
      const more = Array.from({ length: level - opened.length }, () => shop.nextId());
      await open(shop, more, atOnce);
      opened.push(...more);
      points.push(await look(level, settleMs, () => stack.memory()));
      console.log(lineOf(`orders, cache ${cachedRuns}`, points.at(-1)));
    }
    console.log(`paying ${opened.length} orders`);
    await finish(stack.saga, shop, opened, atOnce);
    const [row] = await stack.saga.rows<{ count: number }>(
      `select count(*) from orders where status = 'paid' and order_id = any($1::text[])`,
      opened,
    );
    return { curve: curveOf(points), opened: opened.length, paid: row?.count ?? 0 };
  } finally {
    shop.close();
    await stack.end();
  }
}

function warmUp(levels: readonly number[]): number {
  return Math.min(WARM_UP_MAX, levels.at(-1) ?? 0);
}

async function open(shop: ShopOrders, ids: readonly string[], atOnce: number): Promise<void> {
  await inParallel(ids, atOnce, (orderId) => shop.open(orderId, EXPIRES_IN_S));
}

type Saga = Awaited<ReturnType<typeof startBenchStack>>['saga'];

/** Every payer pays; ends when the shop was told of all of them and nothing is left to do. */
async function finish(
  saga: Saga,
  shop: ShopOrders,
  ids: readonly string[],
  atOnce: number,
): Promise<void> {
  const rows = await saga.rows<{ order_id: string; out_trade_no: string }>(
    `select order_id, out_trade_no from pay_records
     where merchant_id = $1::text and order_id = any($2::text[])`,
    saga.merchantId,
    ids,
  );
  await inParallel(rows, atOnce, async ({ order_id: orderId, out_trade_no: outTradeNo }) => {
    const told = shop.untilPaid(orderId);
    await saga.mock.approve(outTradeNo);
    await told;
  });
  await waitFor(
    'nothing to be left to do',
    async () =>
      (await saga.rows('select 1 from orders_with_work where order_id = any($1::text[])', ids))
        .length === 0,
    FINISH_WITHIN_MS,
  );
}

/** Runs that only wait, of the control's worker, made like the product's. */
async function bareRuns(
  servers: BenchServers,
  { levels, settleMs, cachedRuns }: Looks,
): Promise<MemoryCurve> {
  const folder = mkdtempSync(join(tmpdir(), 'payment-saga-bench-logs-'));
  const control = await startControl(servers, folder, cachedRuns);
  const client = await control.client();
  try {
    let started = 0;
    const start = async (count: number) => {
      const ids = Array.from({ length: count }, () => `bare-${++started}`);
      await inParallel(ids, AT_ONCE, async (orderId) => {
        const options = orderStartOptions(
          { merchantId: 'control', orderId, amountMinor: 1, currency: 'CNY', status: 'created' },
          control.taskQueue,
        );
        await client.client.workflow.start('bareWait', { ...options, args: [] });
      });
    };
    // Those of the warm-up stay, too: they are in every look.
    const warm = warmUp(levels);
    await start(warm);
    await delay(settleMs);
    const points: MemoryPoint[] = [];
    for (const level of levels) {
      await start(level - (started - warm));
      points.push(await look(level, settleMs, () => control.memory()));
      console.log(lineOf('bare runs', points.at(-1)));
    }
    return curveOf(points);
  } finally {
    await client.close();
    await control.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** After the last tasks are over; a thread that did not answer would make the heap too small. */
async function look(
  level: number,
  settleMs: number,
  ask: () => Promise<WorkerMemory>,
): Promise<MemoryPoint> {
  await delay(settleMs);
  const memory = await waitFor('every thread to tell its memory', async () => {
    const told = await ask();
    return told.threadsMissing === 0 && told;
  });
  return { open: level, rss_bytes: memory.rssBytes, heap_bytes: memory.heapBytes };
}

/** Least squares over the levels: what one more run costs. */
export function curveOf(points: MemoryPoint[]): MemoryCurve {
  const slope = (of: (point: MemoryPoint) => number) => {
    const mean = (figures: number[]) => figures.reduce((a, b) => a + b, 0) / figures.length;
    const [x, y] = [mean(points.map((point) => point.open)), mean(points.map(of))];
    const over = points.reduce((sum, point) => sum + (point.open - x) * (of(point) - y), 0);
    return Math.round(over / points.reduce((sum, point) => sum + (point.open - x) ** 2, 0));
  };
  return {
    points,
    rss_per_run: slope((point) => point.rss_bytes),
    heap_per_run: slope((point) => point.heap_bytes),
  };
}

function lineOf(what: string, point: MemoryPoint | undefined): string {
  const mib = (bytes = 0) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  return `  ${point?.open} ${what}: ${mib(point?.rss_bytes)} resident, ${mib(point?.heap_bytes)} heap`;
}

function ratioOf(ours: number, floor: number): number {
  return floor === 0 ? 0 : Math.round((ours / floor) * 1_000) / 1_000;
}
