/** How an order's run starts and reaches the children that give money back. */
import {
  getExternalWorkflowHandle,
  ParentClosePolicy,
  startChild,
  WorkflowIdReusePolicy,
} from '@temporalio/workflow';
import { TypedSearchAttributes, WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import type { OrderRef } from '../domain/orders';
import { refundWorkflowId } from './ids';
import { nudgeSignal } from './messages';
import type { refund } from './refund';
import { MERCHANT_ID, ORDER_ID } from './search-attributes';

/**
 * Starts the refund's child and waits only until it has started: a child not yet started when its
 * parent closes would never start. One that is there already is ours.
 */
export async function startRefund(ref: OrderRef, refundNo: string): Promise<void> {
  try {
    await startChild<typeof refund>('refund', {
      workflowId: refundWorkflowId(ref, refundNo),
      args: [{ ...ref, refundNo }],
      parentClosePolicy: ParentClosePolicy.ABANDON,
      workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
      typedSearchAttributes: new TypedSearchAttributes([
        { key: ORDER_ID, value: ref.orderId },
        { key: MERCHANT_ID, value: ref.merchantId },
      ]),
      staticSummary: `refund ${refundNo} of order ${ref.orderId}`,
    });
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}

/** Tells a running child that its refund has news; one that has ended needs none. */
export async function tellRefund(ref: OrderRef, refundNo: string): Promise<void> {
  try {
    await getExternalWorkflowHandle(refundWorkflowId(ref, refundNo)).signal(nudgeSignal);
  } catch {
    // Not running: what was settled is in PostgreSQL, and whoever carries the refund loads it.
  }
}
