import type { Client } from '@temporalio/client';
import type { Queryable } from '../db/transaction';
import type { Outstanding } from './outstanding';

export interface PartReport {
  ok: boolean;
  detail?: string;
}

/** The parts an order needs, each named. */
export interface Readiness {
  ok: boolean;
  parts: { database: PartReport; temporal: PartReport; workers: PartReport };
}

const ASK_WITHIN_MS = 2_000;

/** Asks every part, at the same time, and waits for none longer than two seconds. */
export async function readReadiness(
  client: Client,
  pool: Queryable,
  taskQueue: string,
  outstanding: Outstanding,
): Promise<Readiness> {
  const [database, temporal, workers] = await Promise.all([
    report(async () => {
      await pool.query('select 1');
    }),
    report(async () => {
      await outstanding.track(
        client.withDeadline(Date.now() + ASK_WITHIN_MS, () =>
          client.workflowService.getSystemInfo({}),
        ),
      );
    }),
    report(() => outstanding.track(countPollers(client, taskQueue))),
  ]);
  return { ok: database.ok && temporal.ok && workers.ok, parts: { database, temporal, workers } };
}

/** TASK_QUEUE_TYPE_WORKFLOW */
const WORKFLOW_QUEUE = 1;

async function countPollers(client: Client, taskQueue: string): Promise<string> {
  const queue = await client.withDeadline(Date.now() + ASK_WITHIN_MS, () =>
    client.workflowService.describeTaskQueue({
      namespace: client.options.namespace,
      taskQueue: { name: taskQueue },
      taskQueueType: WORKFLOW_QUEUE,
    }),
  );
  const pollers = queue.pollers?.length ?? 0;
  if (pollers === 0) throw new Error(`no worker polls the task queue ${taskQueue}`);
  return `${pollers} polling`;
}

async function report(ask: () => Promise<string | void>): Promise<PartReport> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`no answer within ${ASK_WITHIN_MS} ms`)),
      ASK_WITHIN_MS,
    );
  });
  const asked = ask();
  asked.catch(() => undefined);
  try {
    const detail = await Promise.race([asked, late]);
    return detail ? { ok: true, detail } : { ok: true };
  } catch (error) {
    return { ok: false, detail: error instanceof Error ? error.message : String(error) };
  } finally {
    clearTimeout(timer);
  }
}
