/**
 * Sees to it that every business date of every channel gets its report.
 *
 * Trigger: a Temporal Schedule, often. Messages: none.
 * Children: one `reconcileDay` per channel and date that ended without a report, abandoned; one that
 * runs already is ours. Ends: when they have started. It also puts what is overdue before a person,
 * whatever the children do: one that hangs delays neither that nor another day.
 */
import { ParentClosePolicy, startChild, WorkflowIdReusePolicy } from '@temporalio/workflow';
import { TypedSearchAttributes, WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import type { DueDay } from '../activities/reconciliation';
import { step } from './activities';
import type { reconcileDay } from './reconciliation-day';
import { CHANNEL } from './search-attributes';

export interface ReconciliationInput {
  /** How many days back dates without a report are looked for. */
  daysBack: number;
}

export async function reconciliation(input: ReconciliationInput): Promise<{ started: number }> {
  const { due } = await step(
    'listDueReconciliations',
    { daysBack: input.daysBack },
    'which dates have no report, and what is overdue',
  );
  const started = await Promise.all(due.map(startDay));
  return { started: started.filter(Boolean).length };
}

/** Waits only until the child has started: one not yet started when its parent closes never would. */
async function startDay({ channel, day, workflowId }: DueDay): Promise<boolean> {
  try {
    await startChild<typeof reconcileDay>('reconcileDay', {
      workflowId,
      args: [{ channel, day, dryRun: false, actor: 'schedule' }],
      parentClosePolicy: ParentClosePolicy.ABANDON,
      workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
      typedSearchAttributes: new TypedSearchAttributes([{ key: CHANNEL, value: channel }]),
      staticSummary: `reconcile ${channel}, ${day}`,
    });
    return true;
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    return false;
  }
}
