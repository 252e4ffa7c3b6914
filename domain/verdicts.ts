/**
 * The words of settlement: what it decides (a verdict), what it changes, and what it must know.
 */
import type { ChannelFact, PaymentFact } from './channel-facts';
import type { ChannelPolicy } from './channel-policy';
import type { Capture, CaptureKind, Order, PayRecord, Refund } from './orders';
import type { CaptureStatus, OrderStatus, PayRecordStatus, RefundState } from './states';

export type Verdict =
  /** Not of the rules: the database refused what they decided. */
  | 'unbookable'
  | 'misdirected'
  | 'unknown_state'
  | 'no_effect'
  | 'contradicts_paid'
  | 'reversed'
  | 'reinstated'
  | 'surplus_late'
  | 'surplus_duplicate'
  | 'revived'
  | 'amount_mismatch'
  | 'joins_review'
  | 'first_success'
  | 'still_pending'
  | 'attempt_failed'
  | 'attempt_closed'
  | 'refund_succeeded'
  | 'refund_failed'
  | 'refund_pending'
  | 'refund_abnormal'
  | 'refund_returned'
  | 'refund_external';

/** What a settlement changes, in words the database applies one by one. */
export type Change =
  | {
      change: 'move_record';
      payRecordId: number;
      from: PayRecordStatus;
      to: PayRecordStatus;
      reason: string | null;
      channelTradeNo: string | null;
    }
  | {
      change: 'insert_capture';
      payRecordId: number;
      channelTradeNo: string;
      amountMinor: number;
      currency: string;
      payerTotalMinor: number | null;
      kind: CaptureKind;
      status: CaptureStatus;
      reversedMinor: number;
      paidAt: string | null;
    }
  /** The query's figure counts when a callback named another amount for the same trade number. */
  | { change: 'correct_capture'; captureId: number; amountMinor: number; currency: string }
  | {
      change: 'reverse_capture';
      captureId: number;
      from: CaptureStatus;
      to: CaptureStatus;
      reversedMinor: number;
    }
  | { change: 'reinstate_capture'; captureId: number }
  | { change: 'move_order'; from: OrderStatus; to: OrderStatus; reason: string | null }
  | { change: 'close_other_attempts'; exceptPayRecordId: number; reason: string }
  /** Gives a whole capture back by itself; the reservation is made in the same transaction. */
  | {
      change: 'refund_capture';
      channelTradeNo: string;
      reason: string;
      /** Whose doing it is; surplus money goes back by policy. */
      origin?: 'surplus' | 'fulfilment' | 'operator';
    }
  | {
      change: 'move_refund';
      refundId: number;
      from: RefundState;
      to: RefundState;
      reason: string | null;
    }
  /** The refund is paid: its reservation ends and `refundedMinor` (the channel's figure) is booked. */
  | {
      change: 'book_refund';
      refundId: number;
      captureId: number;
      releaseMinor: number;
      refundedMinor: number;
    }
  | { change: 'release_reservation'; captureId: number; amountMinor: number }
  | { change: 'unbook_refund'; captureId: number; amountMinor: number }
  | {
      change: 'insert_external_refund';
      captureId: number;
      outRefundNo: string;
      amountMinor: number;
      currency: string;
      channelRefundNo: string | null;
    }
  | { change: 'open_case'; kind: string; summary: string }
  /** One warning in the order's events, written once per subject and word. */
  | { change: 'warn'; subject: 'pay_record' | 'refund'; subjectId: number; word: string }
  | { change: 'notify'; event: NotificationEvent; subjectNo: string };

export type NotificationEvent =
  | 'order.paid'
  | 'order.closed'
  | 'order.review'
  /** Of an order that was told paid before: it is paid still. `order.paid` is told once for ever. */
  | 'order.review_ended'
  | 'order.fulfilled'
  | 'order.fulfilment_failed'
  | 'payment.reversed'
  | 'payment.surplus_refunded'
  | 'refund.succeeded'
  | 'refund.failed'
  | 'refund.returned';

export interface Settlement {
  verdict: Verdict;
  changes: Change[];
  /** `query`: ask the channel again before anything is believed. */
  next: 'none' | 'query';
}

export interface SettlementState {
  order: Order;
  records: readonly PayRecord[];
  captures: readonly Capture[];
  refunds: readonly Refund[];
}

export interface SettlementContext {
  /** ISO 8601 UTC. */
  now: string;
  policy: ChannelPolicy;
  /** The account the channel row is configured for; facts that name another are misdirected. */
  account: { accountId: string; appId: string };
  /** The trade number already belongs to a capture of another order. */
  tradeNoTakenElsewhere: boolean;
}

/** Nothing moves; a person looks at it. */
export function misdirected(fact: ChannelFact): Settlement {
  const number = fact.kind === 'payment' ? fact.outTradeNo : fact.outRefundNo;
  return {
    verdict: 'misdirected',
    changes: [
      {
        change: 'open_case',
        kind: 'misdirected',
        summary: `${fact.channel} says ${fact.word} for ${number}, but number, order, channel and account do not belong together`,
      },
    ],
    next: 'none',
  };
}

export const NO_EFFECT: Settlement = { verdict: 'no_effect', changes: [], next: 'none' };

export function warn(record: PayRecord, fact: PaymentFact): Change {
  return { change: 'warn', subject: 'pay_record', subjectId: record.payRecordId, word: fact.word };
}

export function moveRecord(
  record: PayRecord,
  to: PayRecordStatus,
  reason: string | null,
  channelTradeNo: string | null,
): Change {
  return {
    change: 'move_record',
    payRecordId: record.payRecordId,
    from: record.status,
    to,
    reason,
    channelTradeNo,
  };
}
