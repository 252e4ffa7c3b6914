import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { ScheduleAlreadyRunning, ScheduleOverlapPolicy } from '@temporalio/client';
import { reconciliationScheduleId, sweepScheduleId } from '../workflows/ids';
import type { ReconciliationInput } from '../workflows/reconciliation';
import type { SweepInput } from '../workflows/sweep';

/** Runs that ended by force are looked for this many sweeps back, so that a late sweep misses none. */
const LOOK_BACK_SWEEPS = 10;

/**
 * Makes sure that the sweep's schedule exists as configured. Two workers, or two deployments, end
 * with one schedule.
 */
export async function ensureSweepSchedule(
  client: Client,
  input: { taskQueue: string; everyMs: number; pastDueMs: number },
): Promise<void> {
  const scheduleId = sweepScheduleId(input.taskQueue);
  const sweepInput: SweepInput = {
    pastDueMs: input.pastDueMs,
    lookBackMs: Math.max(120_000, LOOK_BACK_SWEEPS * input.everyMs),
  };
  await ensureSchedule(client, {
    scheduleId,
    everyMs: input.everyMs,
    taskQueue: input.taskQueue,
    workflowType: 'sweep',
    args: [sweepInput],
    summary: 'find orders that nobody carries',
  });
}

/** Likewise the schedule that gives every business date of every channel its reconciliation. */
export async function ensureReconciliationSchedule(
  client: Client,
  input: { taskQueue: string; everyMs: number; daysBack: number },
): Promise<void> {
  const reconciliationInput: ReconciliationInput = { daysBack: input.daysBack };
  await ensureSchedule(client, {
    scheduleId: reconciliationScheduleId(input.taskQueue),
    everyMs: input.everyMs,
    taskQueue: input.taskQueue,
    workflowType: 'reconciliation',
    args: [reconciliationInput],
    summary: 'reconcile the dates that have no report',
  });
}

async function ensureSchedule(
  client: Client,
  input: {
    /** Also the id of the workflow that it starts. */
    scheduleId: string;
    everyMs: number;
    taskQueue: string;
    workflowType: string;
    args: unknown[];
    summary: string;
  },
): Promise<void> {
  const { scheduleId } = input;
  const spec = { intervals: [{ every: input.everyMs }] };
  const action = {
    type: 'startWorkflow',
    workflowType: input.workflowType,
    workflowId: scheduleId,
    taskQueue: input.taskQueue,
    args: input.args,
    workflowRunTimeout: '5m',
    staticSummary: input.summary,
  } as const;
  // A round that hangs must not make later ones disappear: the newest one is let in.
  const policies = { overlap: ScheduleOverlapPolicy.CANCEL_OTHER, catchupWindow: '1m' } as const;
  try {
    await client.schedule.create({ scheduleId, spec, action, policies });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    const handle = client.schedule.getHandle(scheduleId);
    await retried(() => handle.update((existing) => ({ ...existing, spec, action, policies })));
  }
}

const TRIES = 5;
const AGAIN_AFTER_MS = 1_000;

/** A server under load may not be able to describe a schedule for a moment; a worker must start anyhow. */
async function retried(work: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (tries === TRIES) throw error;
      await delay(AGAIN_AFTER_MS);
    }
  }
}
