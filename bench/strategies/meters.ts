/** What a run costs, read from where it is counted anyway: /proc, the servers' own statistics, V8. */
import { readdirSync, readFileSync } from 'node:fs';
import { PerformanceObserver } from 'node:perf_hooks';
import pg from 'pg';
import type { Pool } from '../../db/transaction';
import { Durations } from '../open-load';
import type { Percentiles } from '../open-load';
import { connectRedis } from './redis-client';

/** Linux counts processor time in hundredths of a second wherever the kernel talks to programs. */
const TICKS_PER_S = 100;

interface ProcessTimes {
  parent: number;
  /** Own time and that of children who ended. */
  cpuS: number;
}

function timesOf(pid: number): ProcessTimes | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may hold blanks; fields are counted from after it (proc(5)).
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [user, system, childUser, childSystem] = fields.slice(11, 15).map(Number);
    return {
      parent: Number(fields[1]),
      cpuS: ((user ?? 0) + (system ?? 0) + (childUser ?? 0) + (childSystem ?? 0)) / TICKS_PER_S,
    };
  } catch {
    return undefined;
  }
}

/** The process and all below it. */
function treeOf(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync('/proc').filter((entry) => /^[0-9]+$/.test(entry))) {
    const times = timesOf(Number(name));
    if (times) children.set(times.parent, [...(children.get(times.parent) ?? []), Number(name)]);
  }
  const found = [root];
  for (const pid of found) found.push(...(children.get(pid) ?? []));
  return found;
}

/** Processor seconds of a process tree so far; null where there is no /proc. */
export function treeCpuS(root: number): number | null {
  if (!timesOf(process.pid)) return null;
  return treeOf(root).reduce((sum, pid) => sum + (timesOf(pid)?.cpuS ?? 0), 0);
}

/**
 * Memory of a process tree in MiB, shared pages divided among those who share them (Pss); null where it
 * may not be read.
 */
export function treeMemoryMib(root: number): number | null {
  try {
    const kib = treeOf(root).map((pid) => {
      const [, pss] = /^Pss:\s+([0-9]+) kB$/m.exec(
        readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'),
      )!;
      return Number(pss);
    });
    return Math.round(kib.reduce((sum, one) => sum + one, 0) / 1024);
  } catch {
    return null;
  }
}

/** Transactions committed in a database, read from another one so that reading adds none. */
export async function commitsOf(adminUrl: string, database: string): Promise<number> {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ commits: string }>(
      `select xact_commit::text as commits from pg_stat_database where datname = $1::text`,
      [database],
    );
    return Number(rows[0]?.commits ?? 0);
  } finally {
    await client.end();
  }
}

/** Commands that a Redis server has carried out so far. */
export async function redisCommands(url: string): Promise<number> {
  const client = await connectRedis(url);
  try {
    const [, count] = /total_commands_processed:([0-9]+)/.exec(await client.info('stats')) ?? [];
    return Number(count);
  } finally {
    client.destroy();
  }
}

export interface GcPauses {
  count: number;
  total_ms: number;
  max_ms: number;
}

/** Counts the pauses of this process's garbage collector until the returned function is called. */
export function watchGc(): () => GcPauses {
  const pauses: GcPauses = { count: 0, total_ms: 0, max_ms: 0 };
  const note = (list: Pick<PerformanceObserverEntryList, 'getEntries'>) => {
    for (const { duration } of list.getEntries()) {
      pauses.count++;
      pauses.total_ms += duration;
      pauses.max_ms = Math.max(pauses.max_ms, duration);
    }
  };
  const observer = new PerformanceObserver(note);
  observer.observe({ entryTypes: ['gc'] });
  return () => {
    note({ getEntries: () => observer.takeRecords() });
    observer.disconnect();
    return {
      count: pauses.count,
      total_ms: Math.round(pauses.total_ms),
      max_ms: Math.round(pauses.max_ms * 10) / 10,
    };
  };
}

type PerformanceObserverEntryList = Parameters<
  ConstructorParameters<typeof PerformanceObserver>[0]
>[0];

/** Measures how long callers wait for a connection of the pool, also those inside `pool.query`. */
export function watchPool(pool: Pool): () => Percentiles {
  const waits = new Durations();
  const connect = pool.connect.bind(pool) as (...args: unknown[]) => unknown;
  const measured = (callback?: (...args: unknown[]) => void): unknown => {
    const asked = performance.now();
    const had = () => waits.record(performance.now() - asked);
    if (callback) {
      return connect((...args: unknown[]) => {
        had();
        callback(...args);
      });
    }
    return (connect() as Promise<unknown>).finally(had);
  };
  pool.connect = measured as typeof pool.connect;
  return () => waits.percentiles();
}
