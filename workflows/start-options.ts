/**
 * How runs are started, the same from every place that may start one. An order's: the API, the relay,
 * the sweep, a refund's last word; starting it twice lands in the run that is there.
 */
import {
  TypedSearchAttributes,
  WorkflowIdConflictPolicy,
  WorkflowIdReusePolicy,
} from '@temporalio/common';
import type { Order } from '../domain/orders';
import { orderWorkflowId, reconciliationWorkflowId } from './ids';
import type { DayInput, OrderPaymentInput } from './messages';
import { CHANNEL, MERCHANT_ID, NEEDS_REVIEW, ORDER_ID, PAYMENT_STATUS } from './search-attributes';

export const ORDER_WORKFLOW_TYPE = 'orderPayment';

/** The facts about an order that its start options carry; any of them may be outdated. */
export type OrderToStart = Pick<
  Order,
  'merchantId' | 'orderId' | 'amountMinor' | 'currency' | 'status'
>;

export interface OrderStartOptions {
  workflowId: string;
  taskQueue: string;
  args: [OrderPaymentInput];
  workflowIdConflictPolicy: WorkflowIdConflictPolicy;
  workflowIdReusePolicy: WorkflowIdReusePolicy;
  typedSearchAttributes: TypedSearchAttributes;
  staticSummary: string;
  memo: { amountMinor: number; currency: string };
}

/** Options of a start, an update-with-start or a signal-with-start of the order's run. */
export function orderStartOptions(order: OrderToStart, taskQueue: string): OrderStartOptions {
  return {
    workflowId: orderWorkflowId(order),
    taskQueue,
    args: [{ merchantId: order.merchantId, orderId: order.orderId }],
    workflowIdConflictPolicy: WorkflowIdConflictPolicy.USE_EXISTING,
    workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
    typedSearchAttributes: new TypedSearchAttributes([
      { key: ORDER_ID, value: order.orderId },
      { key: MERCHANT_ID, value: order.merchantId },
      { key: PAYMENT_STATUS, value: order.status },
      { key: NEEDS_REVIEW, value: order.status === 'review' },
    ]),
    memo: { amountMinor: order.amountMinor, currency: order.currency },
    staticSummary: `order ${order.orderId}: ${order.amountMinor} ${order.currency}`,
  };
}

export const DAY_WORKFLOW_TYPE = 'reconcileDay';

/** Options of a start of one day's reconciliation; one that is open is left alone, and told so. */
export function dayStartOptions(input: DayInput, taskQueue: string) {
  return {
    workflowId: reconciliationWorkflowId(input, taskQueue),
    taskQueue,
    args: [input] as [DayInput],
    workflowIdConflictPolicy: WorkflowIdConflictPolicy.FAIL,
    workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
    typedSearchAttributes: new TypedSearchAttributes([{ key: CHANNEL, value: input.channel }]),
    staticSummary: `reconcile ${input.channel}, ${input.day}${input.dryRun ? ' (dry run)' : ''}`,
    staticDetails: `asked for by ${input.actor}`,
  };
}
