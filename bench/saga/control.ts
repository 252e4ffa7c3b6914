import { join } from 'node:path';
import { together } from '../../db/transaction';
import { Client, Connection } from '@temporalio/client';
import { startProcess } from '../../scripts/servers/children';
import type { OwnProcess } from '../../scripts/servers/children';
import { freePort } from '../../scripts/servers/wait';
import type { ControlCounts } from './control-worker';
import { HttpClient } from './http-client';
import type { BenchServers } from './servers';
import { probe } from './stack';
import type { WorkerMemory } from './stack';

/** How often the control's worker is asked how many orders it has finished. */
const ASK_EVERY_MS = 20;
const FINISHED_WITHIN_MS = 120_000;

/** The control: a front as the API is, a worker as the product's, and nothing in between. */
export interface Control {
  front: OwnProcess;
  worker: OwnProcess;
  taskQueue: string;
  /** One order through the control, until its run has nothing left to do but end. */
  order(id: string): Promise<void>;
  counts(): Promise<ControlCounts>;
  memory(): Promise<WorkerMemory>;
  /** A client of its own to the same server; whoever asks closes it. */
  client(): Promise<{ client: Client; close(): Promise<void> }>;
  end(): Promise<void>;
}

/** @param cachedRuns as the product's worker has it in the same run */
export async function startControl(
  servers: BenchServers,
  logFolder: string,
  cachedRuns = 500,
): Promise<Control> {
  const taskQueue = `control-${process.pid}`;
  const common = {
    TEMPORAL_ADDRESS: servers.temporalAddress,
    TEMPORAL_NAMESPACE: servers.temporalNamespace,
    TEMPORAL_TASK_QUEUE: taskQueue,
  };
  const [frontPort, workerPort] = [await freePort(), await freePort()];
  const { memory, env } = await probe();
  const frontStarting = startProcess({
    name: 'control-front',
    script: 'bench/saga/control-front.ts',
    logFile: join(logFolder, 'control-front.log'),
    readyUrl: `http://127.0.0.1:${frontPort}/healthz`,
    env: { ...common, API_PORT: String(frontPort) },
  });
  const workerStarting = startProcess({
    name: 'control-worker',
    script: 'bench/saga/control-worker.ts',
    logFile: join(logFolder, 'control-worker.log'),
    readyUrl: `http://127.0.0.1:${workerPort}/healthz`,
    env: {
      ...common,
      ...env,
      WORKFLOW_BUNDLE: servers.controlBundle,
      WORKER_HEALTH_PORT: String(workerPort),
      WORKER_CACHED_RUNS: String(cachedRuns),
    },
  });
  const [front, worker] = await together([frontStarting, workerStarting]);
  const http = new HttpClient();
  const base = `http://127.0.0.1:${frontPort}/orders`;
  const counts = async () => {
    const response = await fetch(`http://127.0.0.1:${workerPort}/counts`);
    return (await response.json()) as ControlCounts;
  };
  const finished = new Finished(counts);
  return {
    front,
    worker,
    taskQueue,
    counts,
    memory,
    async client() {
      const connection = await Connection.connect({ address: servers.temporalAddress });
      return {
        client: new Client({ connection, namespace: servers.temporalNamespace }),
        close: () => connection.close(),
      };
    },
    async order(id) {
      await http.expect([201], `${base}/${id}`, '');
      await http.expect([201], `${base}/${id}/payments`, '');
      await http.expect([200], `${base}/${id}/news`, '');
      await finished.one();
    },
    async end() {
      finished.stop();
      http.close();
      await Promise.all([front.kill(), worker.kill()]);
    },
  };
}

/**
 * Who waits for the end of an order, in the order in which they began to wait. Which run ended is not
 * asked, as that would cost the server a long poll per order; that as many ended as began is enough
 * for orders a second.
 */
class Finished {
  private readonly waiting: (() => void)[] = [];
  /** Ends that were seen before their order began to wait. */
  private early = 0;
  private seen = 0;
  private asking: Promise<void> | undefined;
  private stopped = false;

  constructor(private readonly counts: () => Promise<ControlCounts>) {}

  async one(): Promise<void> {
    this.asking ??= this.ask();
    if (this.early > 0) {
      this.early--;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`not ended within ${FINISHED_WITHIN_MS} ms`)),
        FINISHED_WITHIN_MS,
      );
      this.waiting.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  stop(): void {
    this.stopped = true;
  }

  private async ask(): Promise<void> {
    while (!this.stopped) {
      const { tell } = await this.counts();
      for (; this.seen < tell; this.seen++) {
        const first = this.waiting.shift();
        if (first) first();
        else this.early++;
      }
      await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
    }
  }
}
