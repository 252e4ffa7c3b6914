/** How a run starts and reaches the children that go on without it. */
import {
  getExternalWorkflowHandle,
  ParentClosePolicy,
  startChild,
  WorkflowIdReusePolicy,
} from '@temporalio/workflow';
import type { Workflow } from '@temporalio/workflow';
import type { TypedSearchAttributes } from '@temporalio/common';
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import { nudgeSignal } from './messages';

export interface AbandonedChild<T extends Workflow> {
  workflowId: string;
  args: Parameters<T>;
  typedSearchAttributes: TypedSearchAttributes;
  staticSummary: string;
}

/**
 * Starts a child and waits only until it has started: one not yet started when its parent closes
 * never would start. The child outlives its parent.
 *
 * @returns false when a run of that id is there already: it is the one wanted
 */
export async function startAbandoned<T extends Workflow>(
  workflowType: string,
  options: AbandonedChild<T>,
): Promise<boolean> {
  try {
    await startChild<(...args: unknown[]) => Promise<unknown>>(workflowType, {
      ...options,
      parentClosePolicy: ParentClosePolicy.ABANDON,
      workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
    });
    return true;
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    return false;
  }
}

/** A child that ends between "it is there" and "look again", this often in a row, is left to the next look. */
const STARTS_MAX = 5;

/**
 * Sees to it that a run of this id looks at the database after this moment: a new one, or the one
 * that is there, which may have read its last and be about to end.
 */
export async function startOrNudge<T extends Workflow>(
  workflowType: string,
  options: AbandonedChild<T>,
): Promise<void> {
  for (let starts = 0; starts < STARTS_MAX; starts++) {
    if (await startAbandoned<T>(workflowType, options)) return;
    if (await nudge(options.workflowId)) return;
  }
}

/**
 * Tells a run that the database has news for it.
 *
 * @returns false when none is running: whoever carries the work next loads it first
 */
export async function nudge(workflowId: string): Promise<boolean> {
  try {
    await getExternalWorkflowHandle(workflowId).signal(nudgeSignal);
    return true;
  } catch {
    return false;
  }
}
