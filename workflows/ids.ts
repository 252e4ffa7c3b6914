/**
 * Workflow ids, built and read in this one place. They come from business ids only, so a duplicate
 * start collapses into the run that is already there. Identifiers hold no `:`, so joining is safe.
 */
import type { OrderRef } from '../domain/orders';

export const TASK_QUEUE = 'payments';

/** One sweep per task queue, that is per deployment; also the id of the workflow it starts. */
export function sweepScheduleId(taskQueue: string): string {
  return `sweep:${taskQueue}`;
}

/** Likewise one reconciliation per task queue. */
export function reconciliationScheduleId(taskQueue: string): string {
  return `reconciliation:${taskQueue}`;
}

/**
 * One run per channel and business date. Another deployment in the same namespace, which has a task
 * queue of its own, has days of its own.
 */
export function reconciliationWorkflowId(
  { channel, day }: { channel: string; day: string },
  taskQueue: string,
): string {
  const id = `reconciliation:${day}:${channel}`;
  return taskQueue === TASK_QUEUE ? id : `${id}:${taskQueue}`;
}

export function orderWorkflowId({ merchantId, orderId }: OrderRef): string {
  return `order:${merchantId}:${orderId}`;
}

export function refundWorkflowId({ merchantId, orderId }: OrderRef, refundNo: string): string {
  return `refund:${merchantId}:${orderId}:${refundNo}`;
}

/** One child per order: an order is fulfilled once. */
export function fulfilmentWorkflowId({ merchantId, orderId }: OrderRef): string {
  return `fulfilment:${merchantId}:${orderId}`;
}

/** The order a workflow id belongs to, or undefined when it is none of ours. */
export function orderOfWorkflowId(workflowId: string): OrderRef | undefined {
  const [kind, merchantId, orderId] = workflowId.split(':');
  const isOurs = kind === 'order' || kind === 'refund' || kind === 'fulfilment';
  if (!isOurs || !merchantId || !orderId) return undefined;
  return { merchantId, orderId };
}

/**
 * An update id replays its first outcome (a passing 409 too) for as long as the run is retained, so
 * it carries a bucket of five seconds: parallel repeats collapse, later ones are asked afresh.
 */
export function payUpdateId(requestNo: string, nowMs: number): string {
  return `pay:${requestNo}:${Math.floor(nowMs / 5000)}`;
}

export function cancelUpdateId(nowMs: number): string {
  return `cancel:${Math.floor(nowMs / 5000)}`;
}

export function actUpdateId(actNo: string, nowMs: number): string {
  return `act:${actNo}:${Math.floor(nowMs / 5000)}`;
}

export function refundUpdateId(refundNo: string, nowMs: number): string {
  return `refund:${refundNo}:${Math.floor(nowMs / 5000)}`;
}
