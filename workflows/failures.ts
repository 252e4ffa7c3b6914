/**
 * Every failure that crosses Temporal, in one table. Expected outcomes (declined, already refunded,
 * still pending) are values and not here.
 *
 * | type            | retryable | raised by                  | means                                          |
 * | --------------- | --------- | -------------------------- | ---------------------------------------------- |
 * | OrderNotFound   | no        | every step of an order     | a run was started by hand for no order of ours |
 * | RefundNotFound  | no        | every step of a refund     | likewise for a refund                          |
 * | NotDelivered    | yes       | deliverNotifications       | the merchant did not take the event; next try  |
 * |                 |           |                            | after the delay it carries                     |
 */
import { ApplicationFailure } from '@temporalio/common';
import type { OrderRef } from '../domain/orders';

export const ORDER_NOT_FOUND = 'OrderNotFound';
export const REFUND_NOT_FOUND = 'RefundNotFound';
export const NOT_DELIVERED = 'NotDelivered';

export function orderNotFound(ref: OrderRef): ApplicationFailure {
  return ApplicationFailure.create({
    type: ORDER_NOT_FOUND,
    message: `merchant ${ref.merchantId} has no order ${ref.orderId}`,
    nonRetryable: true,
  });
}

export function refundNotFound(ref: OrderRef, refundNo: string): ApplicationFailure {
  return ApplicationFailure.create({
    type: REFUND_NOT_FOUND,
    message: `order ${ref.orderId} has no refund ${refundNo}`,
    nonRetryable: true,
  });
}

export function notDelivered(message: string, againInMs: number): ApplicationFailure {
  return ApplicationFailure.create({
    type: NOT_DELIVERED,
    message,
    nextRetryDelay: Math.max(1, againInMs),
  });
}
