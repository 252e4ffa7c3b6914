/**
 * Orders for half an hour at 70 % of the knee: memory, connections, backlog and latency must not grow,
 * and the books must be right in the end.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { lineOf } from '../scripts/books/findings';
import { PROJECT_FOLDER } from '../scripts/servers/temporal';
import { waitFor } from '../test/support/wait';
import { Durations, openLoad } from './open-load';
import type { Percentiles } from './open-load';
import { assertKeepable, describeRig, describeSource, keepResult, rigLine } from './results';
import type { SagaResult } from './saga';
import { readOptions } from './saga/options';
import { ShopOrders } from './saga/orders';
import { usageOf } from './saga/process-usage';
import { startBenchServers } from './saga/servers';
import type { BenchServers } from './saga/servers';
import { startBenchStack } from './saga/stack';
import type { BenchStack } from './saga/stack';
import { growthOf } from './soak/growth';
import type { Growth, GrowthBound, Sample } from './soak/growth';

/** What is looked at again and again, and how much of a rise is none. */
const BOUNDS = {
  worker_rss_mib: { shareMax: 0.05, room: 10 },
  worker_heap_mib: { shareMax: 0.05, room: 5 },
  api_rss_mib: { shareMax: 0.05, room: 10 },
  // Idle ones are closed after ten seconds: a short burst leaves some.
  connections: { shareMax: 0, room: 3 },
  /** Orders begun and not told yet; news that nobody has read; events that wait for the shop. */
  under_way: { shareMax: 0.2, room: 3 },
  unread_news: { shareMax: 0.2, room: 3 },
  untold_events: { shareMax: 0.2, room: 3 },
  /** From the planned send of an order to the shop's having heard that it is paid, by window. */
  p50_ms: { shareMax: 0.1, room: 10 },
  p99_ms: { shareMax: 0.25, room: 50 },
} satisfies Record<string, GrowthBound>;
type Figure = keyof typeof BOUNDS;

export interface SoakResult {
  minutes: number;
  rate: number;
  orders: { sent: number; paid: number; failed: number; errors: Record<string, number> };
  paid: Percentiles;
  growth: Record<Figure, Growth>;
  /** Figures that grew by more than their bound. */
  grown: string[];
  series: Record<Figure, Sample[]>;
  checked: number;
  violations: number;
}

const NUMBERS = { minutes: 30, rate: 0, 'window-seconds': 30 };
const FULL_MINUTES = 30;
const SHARE_OF_KNEE = 0.7;
const IN_FLIGHT_MAX = 5_000;
const SETTLED_WITHIN_MS = 300_000;
const VIOLATIONS_TOLD = 20;

export async function soak(args: readonly string[]): Promise<SoakResult> {
  const options = readOptions(args, NUMBERS, ['write', 'temporal-postgres', 'test-servers']);
  const onPostgres = options['temporal-postgres'];
  const rate = options.rate > 0 ? options.rate : rateOfKnee(onPostgres ? 'saga-postgres' : 'saga');
  const keeping = { fullSize: options.minutes >= FULL_MINUTES, write: options.write };
  const source = describeSource();
  assertKeepable(keeping, source);
  const servers = await startBenchServers({
    temporalPostgres: onPostgres,
    testServers: options['test-servers'],
  });
  const ends: (() => Promise<unknown>)[] = [() => servers.end()];
  try {
    const stack = await startBenchStack(servers, { payersPay: true });
    ends.unshift(() => stack.end());
    const result = await measure(servers, stack, {
      minutes: options.minutes,
      rate,
      windowMs: options['window-seconds'] * 1_000,
    });
    const rig = describeRig(servers.versions);
    print(result, rigLine(rig, source));
    const kept = keepResult('soak', result, { rig, source, keeping });
    if (kept !== undefined) console.log(`kept as ${kept}`);
    return result;
  } finally {
    for (const end of ends) await end().catch((error: unknown) => console.error(error));
  }
}

/** 70 % of the knee that `npm run bench -- saga` found last on this machine. */
function rateOfKnee(name: string): number {
  const file = join(PROJECT_FOLDER, 'bench', 'results', `${name}.json`);
  if (!existsSync(file)) throw new Error(`run the bench ${name} first, or name --rate`);
  const { knee } = JSON.parse(readFileSync(file, 'utf8')) as SagaResult;
  return Math.round(knee.per_second * SHARE_OF_KNEE * 10) / 10;
}

async function measure(
  servers: BenchServers,
  stack: BenchStack,
  { minutes, rate, windowMs }: { minutes: number; rate: number; windowMs: number },
): Promise<SoakResult> {
  const { saga } = stack;
  const shop = new ShopOrders(saga, 's', true);
  const series = Object.fromEntries(
    Object.keys(BOUNDS).map((name) => [name, [] as Sample[]]),
  ) as Record<Figure, Sample[]>;
  const count = Math.max(1, Math.round(rate * minutes * 60));
  const startedAt = performance.now();
  let window = new Durations();
  let underWay = 0;
  const act = async (index: number) => {
    underWay++;
    try {
      await shop.orderUntilPaid();
      window.record(performance.now() - (startedAt + (index * 1_000) / rate));
    } finally {
      underWay--;
    }
  };
  const over = new AbortController();
  const looking = (async () => {
    while (!over.signal.aborted) {
      await delay(windowMs, undefined, { signal: over.signal }).catch(() => undefined);
      if (over.signal.aborted) return;
      const last = window.percentiles();
      window = new Durations();
      // The garbage collection behind the heap's figure falls into the next window, as it does in each.
      const seen = await look(servers, stack);
      const at = Math.round((performance.now() - startedAt) / 100) / 10;
      const values = { ...seen, under_way: underWay, p50_ms: last.p50_ms, p99_ms: last.p99_ms };
      for (const [name, value] of Object.entries(values) as [Figure, number][])
        series[name].push({ at_s: at, value });
      console.log(
        `${at.toFixed(0).padStart(6)} s  ${last.count} paid, p50 ${last.p50_ms} ms, p99 ${last.p99_ms} ms, ` +
          `worker ${values.worker_rss_mib} MiB, ${values.connections} connections, ${underWay} under way`,
      );
    }
  })();
  let load;
  try {
    load = await openLoad({ act, perSecond: rate, count, inFlightMax: IN_FLIGHT_MAX });
  } finally {
    over.abort();
    await looking;
    shop.close();
  }
  await waitFor(
    'nothing to be left to do',
    async () => (await saga.rows('select 1 from orders_with_work limit 1')).length === 0,
    SETTLED_WITHIN_MS,
  );
  await saga.mock.waitUntilIdle({ timeoutMs: 10_000 });
  const { checked, violations } = await saga.checkBooks();
  for (const violation of violations.slice(0, VIOLATIONS_TOLD)) console.log(lineOf(violation));
  const [paid] = await saga.rows<{ count: number }>(
    `select count(*) from orders where status = 'paid'`,
  );
  const growth = Object.fromEntries(
    (Object.keys(BOUNDS) as Figure[]).map((name) => [name, growthOf(series[name], BOUNDS[name])]),
  ) as Record<Figure, Growth>;
  return {
    minutes,
    rate,
    orders: {
      sent: load.sent,
      paid: paid?.count ?? 0,
      failed: load.failed,
      errors: load.errors,
    },
    paid: load.latency,
    growth,
    grown: Object.entries(growth).flatMap(([name, { grows }]) => (grows ? [name] : [])),
    series,
    checked,
    violations: violations.length,
  };
}

/** The system as it stands, from outside. */
async function look(servers: BenchServers, { saga, api, worker, memory }: BenchStack) {
  const [row] = await saga.rows<Record<'connections' | 'unread' | 'untold', number>>(
    `select
       (select count(*) from pg_stat_activity where datname = current_database()
         and application_name like 'payment-%') as connections,
       (select count(*) from channel_callbacks where status = 'stored') as unread,
       (select count(*) from notifications where status = 'pending') as untold`,
  );
  const { heapBytes } = await memory();
  const rss = (pid: number) => mib(usageOf(pid)?.rssBytes ?? 0);
  return {
    worker_rss_mib: rss(worker.pid),
    worker_heap_mib: mib(heapBytes),
    api_rss_mib: rss(api.pid),
    connections: row?.connections ?? 0,
    unread_news: row?.unread ?? 0,
    untold_events: row?.untold ?? 0,
  };
}

function mib(bytes: number): number {
  return Math.round((bytes / 2 ** 20) * 10) / 10;
}

function print(result: SoakResult, rig: string): void {
  const { orders, paid } = result;
  console.log(`\n${rig}`);
  console.log(
    `${result.minutes} minutes at ${result.rate} orders per second: ${orders.sent} sent, ${orders.paid} paid, ` +
      `${orders.failed} failed ${orders.failed > 0 ? JSON.stringify(orders.errors) : ''}\n` +
      `until paid: p50 ${paid.p50_ms} ms, p99 ${paid.p99_ms} ms, at most ${paid.max_ms} ms\n`,
  );
  console.log('second half'.padEnd(20) + ['middle', 'rise', 'bound'].map(cell).join(''));
  for (const [name, { middle, rise, bound, grows }] of Object.entries(result.growth)) {
    console.log(
      name.padEnd(20) + [middle, rise, bound].map(cell).join('') + (grows ? '  grows' : ''),
    );
  }
  console.log(`\nbooks: ${result.checked} checked, ${result.violations} violated`);
}

function cell(value: string | number): string {
  return String(value).padStart(12);
}
