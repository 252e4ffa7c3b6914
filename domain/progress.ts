/**
 * Where an order stands and what is left to do, small enough to travel through Temporal: ids, states
 * and waits. Every database step of a run returns it afresh, and the run decides only from it. Waits
 * are relative, by the database's clock, so that no two clocks are compared.
 */
import type { ChannelCall, OrderRef } from './orders';
import type {
  FulfilmentStatus,
  OrderStatus,
  PayRecordStatus,
  RefundState,
  RefundStatusOfOrder,
} from './states';

export interface AttemptProgress {
  payRecordId: number;
  channel: string;
  status: PayRecordStatus;
  /** The call that comes next, and in how many milliseconds. */
  call: ChannelCall;
  dueInMs: number;
  callTimeoutMs: number;
  polls: number;
  closing: boolean;
}

export interface OrderProgress extends OrderRef {
  /** When it was read, by the database's clock. */
  readAtMs: number;
  status: OrderStatus;
  statusReason: string | null;
  refundStatus: RefundStatusOfOrder;
  needsReview: boolean;
  /** Until the order's deadline; null when it no longer waits for it. */
  deadlineInMs: number | null;
  attempt: AttemptProgress | null;
  /** A callback waits in the inbox; due in so many milliseconds. */
  news: { dueInMs: number } | null;
  /** Refunds whose outcome is open, the 20 that are due first. */
  refunds: { refundNo: string; status: RefundState; dueInMs: number }[];
  /** The fulfilment that is not finished: the step whose turn it is, and when. */
  fulfilment: {
    status: FulfilmentStatus;
    stepNo: number;
    name: string;
    stepsTotal: number;
    dueInMs: number;
    /** It runs although the order no longer stands: its child must be told. */
    mustStop: boolean;
  } | null;
  notification: { dueInMs: number } | null;
  /** Operators' acts that were accepted and wait to be performed. */
  acts: string[];
  /** Money that came, per currency; what of it was given or taken back. Minor units. */
  money: {
    currency: string;
    capturedMinor: number;
    refundedMinor: number;
    reversedMinor: number;
  }[];
  /** Surplus money that is neither being refunded nor in a case. */
  hasLooseSurplus: boolean;
  /** Whether the view `orders_with_work` lists the order. */
  hasWork: boolean;
}
