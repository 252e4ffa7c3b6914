/**
 * Sees to it that every business date of every channel gets its report.
 *
 * Trigger: a Temporal Schedule, often. Messages: none.
 * Children: one `reconcileDay` per channel and date that ended without a report, abandoned; one that
 * runs already is ours. Ends: when they have started. It also puts what is overdue before a person,
 * whatever the children do: one that hangs delays neither that nor another day.
 */
import { TypedSearchAttributes } from '@temporalio/common';
import type { DueDay } from '../activities/reconciliation';
import { step } from './activities';
import { startAbandoned } from './children';
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

function startDay({ channel, day, workflowId }: DueDay): Promise<boolean> {
  return startAbandoned<typeof reconcileDay>('reconcileDay', {
    workflowId,
    args: [{ channel, day, dryRun: false, actor: 'schedule' }],
    typedSearchAttributes: new TypedSearchAttributes([{ key: CHANNEL, value: channel }]),
    staticSummary: `reconcile ${channel}, ${day}`,
  });
}
