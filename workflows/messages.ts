/**
 * Every message an order's run understands, defined once. Payloads carry ids and states only: what
 * the payer or the merchant sent waits in PostgreSQL under the request's number.
 */
import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type { ActOutcome, CancelOutcome, PayOutcome, RefundOutcome } from '../domain/outcomes';
import type { OrderStatus } from '../domain/states';

export type { ActOutcome, CancelOutcome, PayOutcome, RefundOutcome } from '../domain/outcomes';

export interface OrderPaymentInput {
  merchantId: string;
  orderId: string;
}

export interface PayInput {
  /** Names a row of `merchant_requests`, kind `pay`, stored before the update is sent. */
  requestNo: string;
}

export interface CancelInput {
  requestedBy: 'merchant' | 'operator';
}

export interface RequestRefundInput {
  /** Names a row of `merchant_requests`, kind `refund`, stored before the update is sent. */
  refundNo: string;
}

/**
 * Ask the channel now, whatever state these are in, and settle what it says as any other answer: what
 * reconciliation found different. Attempts by id, refunds by number; sent twice it asks twice.
 */
export interface AskChannel {
  payRecordIds: number[];
  refundNos: string[];
}

export interface OperatorActionInput {
  /** Names a row of `operator_acts`, stored (and confirmed, where that is needed) before. */
  actNo: string;
}

export interface Progress {
  status: OrderStatus | 'loading';
  line: string;
}

export const payUpdate = defineUpdate<PayOutcome, [PayInput]>('pay');
export const cancelUpdate = defineUpdate<CancelOutcome, [CancelInput]>('cancel');
export const requestRefundUpdate = defineUpdate<RefundOutcome, [RequestRefundInput]>(
  'requestRefund',
);
export const operatorActionUpdate = defineUpdate<ActOutcome, [OperatorActionInput]>(
  'operatorAction',
);
/** The doorbell: news from a channel waits in the inbox. Carries nothing. */
export const channelNewsSignal = defineSignal('channelNews');
export const askChannelSignal = defineSignal<[AskChannel]>('askChannel');
/** Look again at what is left to do; to a day's reconciliation: try now. */
export const nudgeSignal = defineSignal('nudge');
/** An event is to be told (again) now: delivery begins anew, whatever wait it is in. */
export const tellAgainSignal = defineSignal('tellAgain');

/** What a day's reconciliation is about. */
export interface DayInput {
  channel: string;
  /** `YYYY-MM-DD`, in the channel's own zone. */
  day: string;
  /** Compare and report only: nobody is asked, no case is opened. */
  dryRun: boolean;
  /** Who wanted it: `schedule`, or an API key. */
  actor: string;
  /** Tries to fetch the bill in the run before this one, which it continues. */
  tries?: number;
}

export const reconciliationProgressQuery = defineQuery<string>('progress');
export const progressQuery = defineQuery<Progress>('progress');
