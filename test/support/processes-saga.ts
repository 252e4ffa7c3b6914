import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OwnProcess } from '../../scripts/servers/children';
import { startApi, startWorker } from '../../scripts/servers/processes';
import type { ApiProcess, WorkerProcess } from '../../scripts/servers/processes';
import type { Saga } from './saga';
import { waitFor } from './wait';

/**
 * Workers and APIs as processes of their own beside a Saga, on its servers, database and channel: to
 * be stopped, frozen and killed.
 */
export class SagaProcesses {
  private readonly folder = mkdtempSync(join(tmpdir(), 'payment-saga-processes-'));
  private readonly started: OwnProcess[] = [];

  constructor(private readonly saga: Saga) {}

  /** @param failpoints as db/failpoint.ts reads them: `settle:before#o1@2` */
  async startWorker(failpoints: readonly string[] = []): Promise<WorkerProcess> {
    return this.keep(await startWorker(this.surroundings(failpoints)));
  }

  /** An API that shops and channels use from now on, after those that are there. */
  async startApi(failpoints: readonly string[] = []): Promise<ApiProcess> {
    const api = this.keep(await startApi(this.surroundings(failpoints)));
    this.saga.apis.push({ url: api.url, stop: () => api.stop() });
    await this.saga.pointCallbacks();
    return api;
  }

  /** Nobody calls this API any more. */
  async forgetApi(api: ApiProcess): Promise<void> {
    this.saga.apis = this.saga.apis.filter(({ url }) => url !== api.url);
    await this.saga.pointCallbacks();
  }

  /** Waits until the process has arrived at a failpoint: its name, and the order it is for. */
  untilAt(process: OwnProcess, point: string, orderId?: string): Promise<true> {
    const line = `FAILPOINT ${point}${orderId === undefined ? '' : ` ${orderId}`}\n`;
    return waitFor(`${process.name} at ${line.trim()}`, () => {
      if (logOf(process).includes(line)) return true as const;
      if (!process.running) throw new Error(`${process.name} ended: ${logOf(process)}`);
      return undefined;
    });
  }

  /** Ends whatever still runs. */
  async end(): Promise<void> {
    await Promise.all(this.started.map((process) => process.kill()));
    rmSync(this.folder, { recursive: true, force: true });
  }

  private keep<Process extends OwnProcess>(process: Process): Process {
    this.started.push(process);
    return process;
  }

  private surroundings(failpoints: readonly string[]) {
    const { saga } = this;
    const named = (name: string) => String(saga.env[name]);
    return {
      databaseUrl: named('DATABASE_URL'),
      temporalAddress: named('TEMPORAL_ADDRESS'),
      temporalNamespace: named('TEMPORAL_NAMESPACE'),
      taskQueue: saga.taskQueue,
      logFolder: join(this.folder, String(this.started.length)),
      env: {
        ...saga.env,
        FAILPOINT: failpoints.length === 0 ? undefined : failpoints.join(','),
      },
    };
  }
}

function logOf(process: OwnProcess): string {
  return readFileSync(process.logFile, 'utf8');
}

/** How a process ended, and how long that took from now. */
export async function timed(
  process: OwnProcess,
  end: () => Promise<void>,
): Promise<{ code: number | null; signal: NodeJS.Signals | null; tookMs: number }> {
  const startedAt = Date.now();
  await end();
  return { ...(await process.ended), tookMs: Date.now() - startedAt };
}
