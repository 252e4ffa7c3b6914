/** How an order's run starts and reaches the child that fulfils it. */
import {
  getExternalWorkflowHandle,
  ParentClosePolicy,
  startChild,
  WorkflowIdReusePolicy,
} from '@temporalio/workflow';
import { TypedSearchAttributes, WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import type { OrderRef } from '../domain/orders';
import type { fulfilment } from './fulfilment';
import { fulfilmentWorkflowId } from './ids';
import { nudgeSignal } from './messages';
import { FULFILMENT_STATUS, MERCHANT_ID, NEEDS_REVIEW, ORDER_ID } from './search-attributes';

/**
 * Starts the child and waits only until it has started. One that is there already is ours: whatever
 * it was started for, it loads the order and decides from that.
 */
export async function startFulfilment(ref: OrderRef, status: string): Promise<void> {
  try {
    await startChild<typeof fulfilment>('fulfilment', {
      workflowId: fulfilmentWorkflowId(ref),
      args: [ref],
      parentClosePolicy: ParentClosePolicy.ABANDON,
      workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
      typedSearchAttributes: new TypedSearchAttributes([
        { key: ORDER_ID, value: ref.orderId },
        { key: MERCHANT_ID, value: ref.merchantId },
        { key: FULFILMENT_STATUS, value: status },
        { key: NEEDS_REVIEW, value: false },
      ]),
      staticSummary: `fulfilment of order ${ref.orderId}`,
    });
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}

/** Tells the running child that the order no longer stands; one that has ended needs none. */
export async function tellFulfilment(ref: OrderRef): Promise<void> {
  try {
    await getExternalWorkflowHandle(fulfilmentWorkflowId(ref)).signal(nudgeSignal);
  } catch {
    // Not running: whoever carries the fulfilment next loads the order first.
  }
}
