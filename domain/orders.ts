/**
 * An order and what belongs to it, as PostgreSQL holds them: plain JSON, so that the same shapes
 * serve rules, statements and answers. Instants are ISO 8601 text in UTC, amounts minor units.
 */
import type {
  CaptureStatus,
  CloseReason,
  FulfilmentStatus,
  OrderStatus,
  PayRecordStatus,
  RefundState,
  RefundStatusOfOrder,
} from './states';

/** An order's identity: the merchant and the merchant's own number. */
export interface OrderRef {
  merchantId: string;
  orderId: string;
}

/** What we ask a channel about an attempt. */
export type ChannelCall = 'submit' | 'query' | 'close';

export interface Order extends OrderRef {
  amountMinor: number;
  currency: string;
  subject: string;
  metadata: Record<string, unknown>;
  /** In the address of the payer's page; never in a log or a history. */
  payToken: string;
  /** Where the shop wants its payer back. */
  returnUrl: string | null;
  status: OrderStatus;
  statusReason: string | null;
  refundStatus: RefundStatusOfOrder;
  fulfilmentStatus: FulfilmentStatus;
  /** Why its fulfilment was stopped and undone. */
  fulfilmentFailure: 'step_refused' | 'refunded' | 'review' | null;
  expiresAt: string;
  closeRequestedAt: string | null;
  closeReason: CloseReason | null;
  version: number;
  createdAt: string;
  paidAt: string | null;
  closedAt: string | null;
  latePaymentPolicy: 'refund' | 'revive';
}

export interface PayRecord extends OrderRef {
  payRecordId: number;
  channel: string;
  requestNo: string;
  outTradeNo: string;
  amountMinor: number;
  currency: string;
  status: PayRecordStatus;
  statusReason: string | null;
  channelTradeNo: string | null;
  method: string | null;
  returnUrl: string | null;
  clientIp: string | null;
  payer: Record<string, string> | null;
  payParameters: { type: string; value: string; expiresAt: string | null } | null;
  sends: number;
  outcomeUnknown: boolean;
  firstSentAt: string | null;
  lastSentAt: string | null;
  polls: number;
  closeRequestedAt: string | null;
  closeReason: string | null;
  lastCall: ChannelCall | null;
  lastCallAt: string | null;
  lastFactState: string | null;
  nextDueAt: string;
  createdAt: string;
}

export interface Capture extends OrderRef {
  captureId: number;
  channel: string;
  channelTradeNo: string;
  payRecordId: number;
  amountMinor: number;
  currency: string;
  payerTotalMinor: number | null;
  settles: boolean;
  kind: CaptureKind;
  status: CaptureStatus;
  reservedMinor: number;
  refundedMinor: number;
  reversedMinor: number;
  reinstatedAt: string | null;
  paidAt: string | null;
  learntFrom: string;
  learntAt: string;
}

/**
 * `settling` pays the order; `surplus_*` is refunded by policy; `held` waits for a case;
 * `early_reversal` was taken back before we ever learnt of it.
 */
export type CaptureKind =
  'settling' | 'surplus_duplicate' | 'surplus_late' | 'held' | 'early_reversal';

export interface Refund extends OrderRef {
  refundId: number;
  refundNo: string;
  captureId: number;
  channel: string;
  outRefundNo: string;
  amountMinor: number;
  currency: string;
  reason: string;
  origin: 'merchant' | 'surplus' | 'fulfilment' | 'operator' | 'external';
  status: RefundState;
  statusReason: string | null;
  channelRefundNo: string | null;
  sends: number;
  outcomeUnknown: boolean;
  firstSentAt: string | null;
  lastSentAt: string | null;
  polls: number;
  lastCall: 'submit' | 'query' | null;
  lastCallAt: string | null;
  lastFactState: string | null;
  refusalCode: string | null;
  nextDueAt: string;
  createdAt: string;
  finishedAt: string | null;
}

/** What is still free to be refunded of one capture, never negative. Minor units. */
export function refundableMinor(
  capture: Pick<
    Capture,
    'status' | 'amountMinor' | 'reservedMinor' | 'refundedMinor' | 'reversedMinor'
  >,
): number {
  if (capture.status !== 'captured') return 0;
  const rest =
    capture.amountMinor - capture.reservedMinor - capture.refundedMinor - capture.reversedMinor;
  return Math.max(0, rest);
}

const REFUND_NO = /^(?:(?:auto|external):.{1,128}|[A-Za-z0-9][A-Za-z0-9_.-]{0,63})$/;

/** Whether the text may name a refund: the merchant's number, or one of the system's own. */
export function isRefundNo(text: unknown): text is string {
  return typeof text === 'string' && REFUND_NO.test(text);
}

const IDENTIFIER = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

/**
 * Whether the text may be an order_id, refund_no or request_no: 1 to 64 of `A-Z a-z 0-9 _ . -`,
 * the first a letter or digit. Case-sensitive, leading zeros kept; safe in a path and in a workflow
 * id joined with `:`.
 */
export function isIdentifier(text: unknown): text is string {
  return typeof text === 'string' && IDENTIFIER.test(text);
}
