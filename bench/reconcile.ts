/**
 * Reconciliation of a large bill: finds exactly what was made to differ, twice the same, beside the
 * least that any comparison of as many rows does; the memory of the process that loads; what it costs on
 * Temporal.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createPool } from '../db/transaction';
import { readReport } from '../db/reconciliation-reports';
import type { ReconciliationReport } from '../domain/reconciliation';
import { createTestDatabase } from '../test/support/database';
import type { TestDatabase } from '../test/support/database';
import { testServers } from '../test/support/servers';
import startServers from '../test/support/servers-start';
import stopServers from '../test/support/servers-stop';
import { CHANNEL, makeBooks } from './reconcile-books';
import type { BillOfBench } from './reconcile-books';
import { measureFloor } from './reconcile-floor';
import type { Floor } from './reconcile-floor';
import type { WorkerInput, WorkerOutput } from './reconcile-worker';

export interface ReconcileResult {
  rows: number;
  found: number;
  invented: number;
  wrong_kind: number;
  /** Time of the floor through ours: 1 would be as fast as the least there is. */
  ratio: number;
  /** Peak memory with all rows through that with a tenth of them. */
  rss_ratio: number;
  transitions: number;
}

const DIFFERENCES = 1_000;

export async function reconcile(args: readonly string[]): Promise<ReconcileResult> {
  const { values } = parseArgs({ args: [...args], options: { rows: { type: 'string' } } });
  const rows = Number(values.rows ?? '1000000');
  if (!Number.isSafeInteger(rows) || rows < 10_000)
    throw new Error('--rows wants a whole number, 10000 or more');
  const day = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
  const folder = mkdtempSync(join(tmpdir(), 'bench-reconcile-'));
  await startServers();
  const databases: TestDatabase[] = [];
  const make = async (count: number, differences: number) => {
    const database = await createTestDatabase();
    databases.push(database);
    console.log(`making books and a bill of ${count} rows`);
    return {
      database,
      bill: await makeBooks(database.url, { rows: count, differences, day, folder }),
    };
  };
  try {
    const small = await make(Math.floor(rows / 10), DIFFERENCES / 10);
    const large = await make(rows, DIFFERENCES);
    const smallRun = await runWorker(small.database, small.bill, day);
    const floors = [await measureFloor(large.database.url, { ...large.bill, day })];
    const largeRun = await runWorker(large.database, large.bill, day);
    const first = await readBack(large.database, day);
    const again = await runWorker(large.database, large.bill, day);
    const second = await readBack(large.database, day);
    floors.push(await measureFloor(large.database.url, { ...large.bill, day }));
    // Before and after ours: what else the machine does meets both.
    const floorMs = floors.reduce((sum, { totalMs }) => sum + totalMs, 0) / floors.length;
    const oursMs = largeRun.tookMs;
    const result: ReconcileResult = {
      rows: large.bill.rows,
      ...judge(first, large.bill.expected),
      ratio: rounded(floorMs / oursMs),
      rss_ratio: rounded(largeRun.maxRssKiB / smallRun.maxRssKiB),
      transitions: Math.max(largeRun.transitions, again.transitions),
    };
    if (JSON.stringify(first) !== JSON.stringify(second))
      throw new Error('compared again, the same bill and the same books gave another report');
    print(result, { floors, oursMs, againMs: again.tookMs, smallRun, largeRun });
    return result;
  } finally {
    for (const database of databases) await database.drop();
    await stopServers();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A fresh process each time, so that its peak is that of one bill. */
function runWorker(database: TestDatabase, bill: BillOfBench, day: string): Promise<WorkerOutput> {
  const { temporalAddress, temporalNamespace, workflowBundle } = testServers();
  const { gzipFile, sha256, totals } = bill;
  const input: WorkerInput = {
    ...{ databaseUrl: database.url, temporalAddress, temporalNamespace, workflowBundle },
    ...{ day, gzipFile, sha256, totals },
  };
  return new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      ['--import', 'tsx', join(__dirname, 'reconcile-worker.ts')],
      {
        env: { ...process.env, BENCH_INPUT: JSON.stringify(input) },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
    child.once('error', reject);
    child.once('exit', (code) =>
      code === 0
        ? resolve(JSON.parse(text.trim().split('\n').at(-1) ?? '') as WorkerOutput)
        : reject(new Error(`the worker of the bench ended with ${code}`)),
    );
  });
}

async function readBack(database: TestDatabase, day: string): Promise<ReconciliationReport> {
  const pool = createPool({
    databaseUrl: database.url,
    max: 1,
    connectionTimeoutMs: 10_000,
    statementTimeoutMs: 60_000,
    applicationName: 'bench',
    onIdleError: () => undefined,
  });
  try {
    const report = await readReport(pool, CHANNEL, day, { limit: 1_000_000 });
    if (report?.status !== 'done')
      throw new Error(`no report: ${report?.status} ${report?.reason}`);
    return report;
  } finally {
    await pool.end();
  }
}

/** Every difference that was made, found once under its kind; nothing else. */
function judge(report: ReconciliationReport, expected: readonly string[]) {
  const kindOf = new Map(
    expected
      .map((line) => line.split(/ (.*)/s) as [string, string])
      .map(([kind, subject]) => [subject, kind]),
  );
  let [found, invented, wrongKind] = [0, 0, 0];
  for (const { kind, subject } of report.differences) {
    // The second of two equal rows has the number of the first.
    const meant = kindOf.get(subject);
    if (meant === undefined) invented += 1;
    else if (meant === kind) found += 1;
    else wrongKind += 1;
  }
  return { found, invented, wrong_kind: wrongKind };
}

function print(
  result: ReconcileResult,
  figures: {
    floors: Floor[];
    oursMs: number;
    againMs: number;
    smallRun: WorkerOutput;
    largeRun: WorkerOutput;
  },
): void {
  const { floors, oursMs, againMs, smallRun, largeRun } = figures;
  const line = (name: string, ms: number) =>
    console.log(
      `${name.padEnd(34)}${(ms / 1000).toFixed(2).padStart(8)} s${Math.round(
        (result.rows / ms) * 1000,
      )
        .toString()
        .padStart(12)} rows/s`,
    );
  console.log(`\n${result.rows} rows, ${DIFFERENCES} of them made to differ\n`);
  line('fetch, load, compare, report', oursMs);
  for (const [step, ms] of Object.entries(largeRun.stepsMs)) line(`  ${step}`, ms);
  line('the same file again', againMs);
  for (const { totalMs, copyMs, analyzeMs, joinMs, differing } of floors) {
    line('floor: COPY + ANALYZE + full join', totalMs);
    console.log(
      `  (COPY ${Math.round(copyMs)} ms, ANALYZE ${Math.round(analyzeMs)} ms, ` +
        `join ${Math.round(joinMs)} ms; it counts ${differing} and cannot say what)`,
    );
  }
  console.log(
    `peak memory of the worker: ${Math.round(largeRun.maxRssKiB / 1024)} MiB, ` +
      `with a tenth of the rows ${Math.round(smallRun.maxRssKiB / 1024)} MiB\n`,
  );
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
