/** How an order's run starts and reaches the child that fulfils it. */
import { TypedSearchAttributes } from '@temporalio/common';
import type { OrderRef } from '../domain/orders';
import { nudge, startOrNudge } from './children';
import type { fulfilment } from './fulfilment';
import { fulfilmentWorkflowId } from './ids';
import { FULFILMENT_STATUS, MERCHANT_ID, NEEDS_REVIEW, ORDER_ID } from './search-attributes';

/** Sees to it that a run carries the open fulfilment: whatever it was started for, it loads the order. */
export async function startFulfilment(ref: OrderRef, status: string): Promise<void> {
  await startOrNudge<typeof fulfilment>('fulfilment', {
    workflowId: fulfilmentWorkflowId(ref),
    args: [ref],
    typedSearchAttributes: new TypedSearchAttributes([
      { key: ORDER_ID, value: ref.orderId },
      { key: MERCHANT_ID, value: ref.merchantId },
      { key: FULFILMENT_STATUS, value: status },
      { key: NEEDS_REVIEW, value: false },
    ]),
    staticSummary: `fulfilment of order ${ref.orderId}`,
  });
}

/** Tells the running child that the order no longer stands; one that has ended needs none. */
export async function tellFulfilment(ref: OrderRef): Promise<void> {
  await nudge(fulfilmentWorkflowId(ref));
}
