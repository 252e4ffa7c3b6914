/**
 * A worker that reconciles one bill, in a process of its own so that its memory can be told: the
 * product's workflows and activities, and a channel whose bill comes from a file through its adapter's
 * own reader. Prints one line of JSON and ends.
 */
import { createReadStream } from 'node:fs';
import { Client, Connection } from '@temporalio/client';
import type { WorkflowHandle } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { createActivities } from '../activities';
import type { PaymentChannel } from '../channels/contract';
import { parseExactJson } from '../channels/exact-json';
import { openMockBBill } from '../channels/mock-b-bill';
import { adapters } from '../channels/registry';
import type { ChannelRegistry, ConfiguredChannel } from '../channels/registry';
import { readChannelRows } from '../db/channels';
import { createPool } from '../db/transaction';
import { workerOptions } from '../worker/run';
import type { WorkerConfig } from '../worker/config';
import { dayStartOptions, DAY_WORKFLOW_TYPE } from '../workflows/start-options';
import { CHANNEL, FEE_BASIS_POINTS } from './reconcile-books';

export interface WorkerInput {
  databaseUrl: string;
  temporalAddress: string;
  temporalNamespace: string;
  workflowBundle: string;
  day: string;
  gzipFile: string;
  sha256: string;
  totals: Record<string, unknown>[];
}

export interface WorkerOutput {
  /** The dry run from its start to its report. */
  tookMs: number;
  /** Of its longer steps, from their start on the worker to their end. */
  stepsMs: Record<string, number>;
  /** Of parent and child together. */
  transitions: number;
  maxRssKiB: number;
}

async function main(input: WorkerInput): Promise<WorkerOutput> {
  Runtime.install({ logger: new DefaultLogger('WARN') });
  const pool = (statementTimeoutMs: number, bulk = false) =>
    createPool({
      databaseUrl: input.databaseUrl,
      max: 4,
      connectionTimeoutMs: 10_000,
      statementTimeoutMs,
      applicationName: 'bench',
      bulk,
      onIdleError: () => undefined,
    });
  const [steps, bills] = [pool(2_500), pool(3_600_000, true)];
  const connection = await Connection.connect({ address: input.temporalAddress });
  const client = new Client({ connection, namespace: input.temporalNamespace });
  const nativeConnection = await NativeConnection.connect({ address: input.temporalAddress });
  const taskQueue = `bench-${process.pid}`;
  const hold = new Hold();
  const worker = await Worker.create({
    connection: nativeConnection,
    namespace: input.temporalNamespace,
    taskQueue,
    activities: createActivities({
      pool: steps,
      channels: await channelFromFile(steps, input, hold),
      client,
      taskQueue,
      numberSecret: 'bench',
      notifications: {
        ladderMs: [1_000],
        timeoutMs: 1_000,
        resolveSecret: () => Promise.resolve(''),
      },
      fulfilment: undefined as never,
      postToMerchant: () => Promise.reject(new Error('no merchant is told anything here')),
      reconciliation: { pool: bills, heartbeatMs: 30_000, stallMs: 60_000 },
    }),
    ...workerOptions({
      workflowBundle: input.workflowBundle,
      cachedRuns: 10,
      shutdownGraceMs: 1_000,
    } as WorkerConfig),
  });
  const ended = worker.run();
  const began = performance.now();
  const day = await client.workflow.start(
    DAY_WORKFLOW_TYPE,
    dayStartOptions({ channel: CHANNEL, day: input.day, dryRun: true, actor: 'bench' }, taskQueue),
  );
  // The parent finds the date due, tries to start the child, and learns that it runs already; the child
  // is held at its download meanwhile, which is no part of what it took.
  const parent = await client.workflow.start('reconciliation', {
    workflowId: `reconciliation-${taskQueue}`,
    taskQueue,
    args: [{ daysBack: 1 }],
  });
  const { started } = (await parent.result()) as { started: number };
  if (started !== 0) throw new Error('the parent started a run of its own');
  hold.release();
  const ending = (await day.result()) as { status: string };
  if (ending.status !== 'done') throw new Error(`the reconciliation ended ${ending.status}`);
  const tookMs = performance.now() - began - hold.heldMs;
  const maxRssKiB = process.resourceUsage().maxRSS;
  const stepsMs = await stepsOf(day, hold.heldMs);
  let transitions = 0;
  for (const run of [day, parent])
    transitions += Number((await run.describe()).raw.workflowExecutionInfo?.stateTransitionCount);
  worker.shutdown();
  await ended;
  await Promise.all([nativeConnection.close(), connection.close(), steps.end(), bills.end()]);
  return { tookMs, stepsMs, transitions, maxRssKiB };
}

/** How long each activity took, by the server's clock; the first of them was held. */
async function stepsOf(day: WorkflowHandle, heldMs: number): Promise<Record<string, number>> {
  const { events } = await day.fetchHistory();
  const names = new Map<string, string>();
  const began = new Map<string, number>();
  const stepsMs: Record<string, number> = {};
  for (const event of events ?? []) {
    const at = Number(event.eventTime?.seconds) * 1_000 + (event.eventTime?.nanos ?? 0) / 1e6;
    const started = event.activityTaskStartedEventAttributes;
    const scheduled = event.activityTaskScheduledEventAttributes;
    const completed = event.activityTaskCompletedEventAttributes;
    if (scheduled) names.set(String(event.eventId), scheduled.activityType?.name ?? '');
    if (started) began.set(String(started.scheduledEventId), at);
    if (!completed) continue;
    const id = String(completed.scheduledEventId);
    const name = names.get(id) ?? id;
    stepsMs[name] = at - (began.get(id) ?? at) - (name === 'loadBill' ? heldMs : 0);
  }
  return stepsMs;
}

/** Stops whoever passes it until it is released. */
class Hold {
  heldMs = 0;
  release: () => void = () => undefined;
  private released = new Promise<void>((resolve) => (this.release = resolve));

  async pass(): Promise<void> {
    const began = performance.now();
    await this.released;
    this.heldMs = performance.now() - began;
  }
}

/** The registry's view of one channel whose bill comes from the file as if it were downloaded. */
async function channelFromFile(
  pool: ReturnType<typeof createPool>,
  input: WorkerInput,
  hold: Hold,
): Promise<ChannelRegistry> {
  const adapter = adapters['mock-b'];
  const row = (await readChannelRows(pool)).find(({ channel }) => channel === CHANNEL);
  if (!adapter || !row) throw new Error('the channel of the bench is not there');
  const said = parseExactJson(
    JSON.stringify({
      download_path: '/bill',
      hash_type: 'SHA256',
      hash_value: input.sha256,
      bill_date: input.day,
      file_name: 'bench.csv.gz',
      totals: input.totals,
    }),
  );
  if (!said) throw new Error('the answer about the bill is no JSON');
  const channel = {
    openTradeBill: async ({ day }) => {
      await hold.pass();
      return openMockBBill({ row, day }, { code: 'success', json: said }, () =>
        Promise.resolve({
          exchange: {
            result: 'answer',
            status: 200,
            headers: {},
            body: createReadStream(input.gzipFile),
          },
          readAnswer: () => {
            throw new Error('the file is there');
          },
        }),
      );
    },
  } as Pick<PaymentChannel, 'openTradeBill'> as PaymentChannel;
  const policy = { ...adapter.defaultPolicy, feeBasisPoints: FEE_BASIS_POINTS };
  const configured: ConfiguredChannel = { row, policy, channel };
  return {
    get: (name) => Promise.resolve(name === CHANNEL ? configured : undefined),
    all: () => Promise.resolve([configured]),
  };
}

main(JSON.parse(process.env['BENCH_INPUT'] ?? '{}') as WorkerInput).then(
  (output) => {
    console.log(JSON.stringify(output));
    process.exit(0);
  },
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
