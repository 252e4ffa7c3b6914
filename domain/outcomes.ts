/** How requests to an order's run are answered: plain values, shared by the run and its callers. */
import type { ActRefusal } from './operator-acts';
import type { OrderStatus, PayRecordStatus, RefundState } from './states';

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

/** `closing`: the channel has not confirmed yet that it takes no more money. */
export interface CancelOutcome {
  outcome: 'closed' | 'closing' | 'paid' | 'review';
  status: OrderStatus;
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

/** `waiting_second`: another person must confirm it first. `accepted`: not performed yet. */
export type ActOutcome =
  | { outcome: 'done' | 'accepted' | 'waiting_second' | 'act_unknown' | 'refused' }
  | { outcome: 'refused'; reason: ActRefusal };
