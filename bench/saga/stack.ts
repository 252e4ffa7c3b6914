import { join } from 'node:path';
import { MOCK_POLICY } from '../../channels/adapter';
import type { OwnProcess } from '../../scripts/servers/children';
import type { ApiProcess, WorkerProcess } from '../../scripts/servers/processes';
import { together } from '../../db/transaction';
import { freePort } from '../../scripts/servers/wait';
import { SagaProcesses } from '../../test/support/processes-saga';
import { Saga } from '../../test/support/saga';
import type { BenchServers } from './servers';

/** The mock channel answers every call after so long: what a near payment provider takes. */
export const CHANNEL_DELAY_MS = 20;
/** A payer pays this long after the order reached the channel, where payers pay by themselves. */
export const PAYER_DELAY_MS = 50;
/** No poll of an order that waits falls into a measurement: callbacks are what pays here. */
const POLL_MS = 600_000;

export interface BenchStack {
  saga: Saga;
  api: ApiProcess;
  worker: WorkerProcess;
  /** The worker's memory after a garbage collection in all of its threads. */
  memory(): Promise<WorkerMemory>;
  /** Ends the processes of ours; the servers stay. */
  end(): Promise<void>;
}

export interface WorkerMemory {
  rssBytes: number;
  heapBytes: number;
  threads: number;
  /** Threads that did not answer in time: then the heap is not whole. */
  threadsMissing: number;
}

export interface BenchStackOptions {
  /** Payers pay by themselves; else whoever runs the bench says when. */
  payersPay: boolean;
  /** Runs that the worker keeps in memory; its default is 500. */
  cachedRuns?: number;
  /** Added to what the processes are told. */
  env?: Record<string, string>;
}

/**
 * The saga as it would run in production (default pools, ladders, schedules and logs), API and worker
 * as processes of their own. The channel, the shop and the load live in this process.
 */
export async function startBenchStack(
  servers: BenchServers,
  options: BenchStackOptions,
): Promise<BenchStack> {
  const saga = await Saga.start({
    apis: 0,
    workers: 0,
    policy: {
      ...MOCK_POLICY,
      pollLadderMs: [POLL_MS],
      // The brake protects a real channel; here it would be measured in place of the saga.
      maxCallsPerSecond: 10_000,
      maxConcurrentCalls: 1_000,
    },
    mock: {
      latencyMs: CHANNEL_DELAY_MS,
      callbackLadderMs: [1_000, 2_000, 5_000, 10_000, 30_000],
      autoApprove: options.payersPay ? { afterMs: PAYER_DELAY_MS } : null,
    },
    env: {
      CHANNELS_REFRESH_MS: '5000',
      RELAY_EVERY_MS: '1000',
      SWEEP_EVERY_MS: '20000',
      SWEEP_PAST_DUE_MS: '60000',
      LOG_LEVEL: 'info',
      WORKER_CACHED_RUNS: String(options.cachedRuns ?? 500),
      TEMPORAL_ADDRESS: servers.temporalAddress,
      ...options.env,
    },
  });
  const processes = new SagaProcesses(saga);
  const end = async () => {
    await processes.end();
    await saga.end();
  };
  try {
    const { memory, env } = await probe();
    // The API takes what it is told now, before the probe of the worker is in the environment.
    const starting = processes.startApi();
    Object.assign(saga.env, env);
    const [api, worker] = await together([starting, processes.startWorker()]);
    return { saga, api, worker, memory, end };
  } catch (error) {
    await end();
    throw error;
  }
}

/** What makes a worker tell its memory, and the question. */
export async function probe() {
  const port = await freePort();
  return {
    env: {
      MEMORY_PROBE_PORT: String(port),
      NODE_OPTIONS: `--require ${JSON.stringify(join(__dirname, 'memory-probe.cjs'))}`,
    },
    async memory(): Promise<WorkerMemory> {
      const response = await fetch(`http://127.0.0.1:${port}/`);
      return (await response.json()) as WorkerMemory;
    },
  };
}

/** The pids whose processor time a bench counts, by the name it has in tables. */
export function pidsOf(
  servers: BenchServers,
  own: Record<string, OwnProcess>,
): Record<string, number | undefined> {
  return {
    ...Object.fromEntries(Object.entries(own).map(([name, { pid }]) => [name, pid])),
    postgres: servers.postgresPid,
    temporal: servers.temporalPid,
    temporal_postgres: servers.temporalPostgresPid,
    load: process.pid,
  };
}
