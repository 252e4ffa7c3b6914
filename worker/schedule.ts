import type { Client } from '@temporalio/client';
import { ScheduleAlreadyRunning, ScheduleOverlapPolicy } from '@temporalio/client';
import { sweepScheduleId } from '../workflows/ids';
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
  const spec = { intervals: [{ every: input.everyMs }] };
  const action = {
    type: 'startWorkflow',
    workflowType: 'sweep',
    workflowId: scheduleId,
    taskQueue: input.taskQueue,
    args: [sweepInput],
    workflowRunTimeout: '5m',
    staticSummary: 'find orders that nobody carries',
  } as const;
  // A sweep that hangs must not make later ones disappear: the newest one is let in.
  const policies = { overlap: ScheduleOverlapPolicy.CANCEL_OTHER, catchupWindow: '1m' } as const;
  try {
    await client.schedule.create({ scheduleId, spec, action, policies });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    const handle = client.schedule.getHandle(scheduleId);
    await handle.update((existing) => ({ ...existing, spec, action, policies }));
  }
}
