/** How an order's run starts and reaches the children that give money back. */
import { TypedSearchAttributes } from '@temporalio/common';
import type { OrderRef } from '../domain/orders';
import { nudge, startOrNudge } from './children';
import { refundWorkflowId } from './ids';
import type { refund } from './refund';
import { MERCHANT_ID, ORDER_ID } from './search-attributes';

/** Sees to it that a run carries this open refund. */
export async function startRefund(ref: OrderRef, refundNo: string): Promise<void> {
  await startOrNudge<typeof refund>('refund', {
    workflowId: refundWorkflowId(ref, refundNo),
    args: [{ ...ref, refundNo }],
    typedSearchAttributes: new TypedSearchAttributes([
      { key: ORDER_ID, value: ref.orderId },
      { key: MERCHANT_ID, value: ref.merchantId },
    ]),
    staticSummary: `refund ${refundNo} of order ${ref.orderId}`,
  });
}

/** Tells a running child that its refund has news; one that has ended needs none. */
export async function tellRefund(ref: OrderRef, refundNo: string): Promise<void> {
  await nudge(refundWorkflowId(ref, refundNo));
}
