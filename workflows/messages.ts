/**
 * Every message an order's run understands, defined once. Payloads carry ids and states only: what
 * the payer or the merchant sent waits in PostgreSQL under the request's number.
 */
import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type { OrderStatus, PayRecordStatus, RefundState } from '../domain/states';

export interface OrderPaymentInput {
  merchantId: string;
  orderId: string;
  /** Carried over continue-as-new: the doorbell rang and nobody has read the inbox yet. */
  unreadNews?: boolean;
}

export interface PayInput {
  /** Names a row of `merchant_requests`, kind `pay`, stored before the update is sent. */
  requestNo: string;
}

/**
 * How a pay request was answered.
 * - `attempt`: the pay record that serves this request (opened now, joined, or its own from before)
 * - `paid`: the order is paid already; the record that paid it
 * - `conflict`: not now: another attempt cannot be closed yet; try again after `retryAfterMs`
 * - `refused`: never: the order is closed, in review or refunded, or the channel takes no payments
 */
export type PayOutcome =
  | { outcome: 'attempt'; payRecordId: number; status: PayRecordStatus; opened: boolean }
  | { outcome: 'paid'; payRecordId: number }
  | { outcome: 'conflict'; reason: 'attempt_open' | 'attempt_closing'; retryAfterMs: number }
  | {
      outcome: 'refused';
      reason:
        | 'order_closed'
        | 'order_in_review'
        | 'order_refunded'
        | 'order_expired'
        | 'channel_disabled'
        | 'request_unknown';
    };

export interface CancelInput {
  requestedBy: 'merchant' | 'operator';
}

/** `closing`: the channel has not confirmed yet that it takes no more money. */
export type CancelOutcome = {
  outcome: 'closed' | 'closing' | 'paid' | 'review';
  status: OrderStatus;
};

export interface RequestRefundInput {
  /** Names a row of `merchant_requests`, kind `refund`, stored before the update is sent. */
  refundNo: string;
}

export type RefundOutcome =
  | { outcome: 'accepted'; status: RefundState; opened: boolean }
  | {
      outcome: 'refused';
      reason:
        | 'over_the_rest'
        | 'nothing_captured'
        | 'order_in_review'
        | 'too_old'
        | 'too_many'
        | 'refunds_disabled'
        | 'request_unknown';
      refundableMinor: number;
    };

export interface Progress {
  status: OrderStatus;
  line: string;
}

export const payUpdate = defineUpdate<PayOutcome, [PayInput]>('pay');
export const cancelUpdate = defineUpdate<CancelOutcome, [CancelInput]>('cancel');
export const requestRefundUpdate = defineUpdate<RefundOutcome, [RequestRefundInput]>(
  'requestRefund',
);
/** The doorbell: news from a channel waits in the inbox. Carries nothing. */
export const channelNewsSignal = defineSignal('channelNews');
/** Look again at what is left to do. */
export const nudgeSignal = defineSignal('nudge');
export const progressQuery = defineQuery<Progress>('progress');
