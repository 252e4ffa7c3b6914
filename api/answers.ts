import type { OrderState } from '../db/rows';
import type { FulfilmentStep } from '../domain/fulfilment';
import type { Capture, Order, PayRecord, Refund } from '../domain/orders';
import { refundableMinor } from '../domain/orders';

/** Rows as the API shows them: snake_case, money as integers of minor units, instants in UTC. */

export function orderUrl(orderId: string): string {
  return `/v1/orders/${orderId}`;
}

/** The payer's page: whoever has its address may pay the order. */
export function payUrl({ payToken }: Order, publicUrl: string): string {
  return `${publicUrl}/pay/${payToken}`;
}

/** @param publicUrl where payers reach this API */
export function orderHeadView(order: Order, publicUrl: string) {
  return {
    order_id: order.orderId,
    amount: order.amountMinor,
    currency: order.currency,
    subject: order.subject,
    metadata: order.metadata,
    pay_url: payUrl(order, publicUrl),
    return_url: order.returnUrl,
    status: order.status,
    status_reason: order.statusReason,
    refund_status: order.refundStatus,
    fulfilment_status: order.fulfilmentStatus,
    closing: order.closeRequestedAt !== null && order.closedAt === null && order.paidAt === null,
    version: order.version,
    expires_at: order.expiresAt,
    created_at: order.createdAt,
    paid_at: order.paidAt,
    closed_at: order.closedAt,
  };
}

export function orderView(state: OrderState, publicUrl: string) {
  const captures = state.captures.filter(({ kind }) => kind !== 'early_reversal');
  const settling = settlingCapture(state);
  return {
    ...orderHeadView(state.order, publicUrl),
    captured_minor: sum(captures, 'amountMinor'),
    refunded_minor: sum(captures, 'refundedMinor'),
    reversed_minor: sum(captures, 'reversedMinor'),
    refundable_minor: settling ? refundableMinor(settling) : 0,
    attempts: state.records.map((record) => paymentView(state.order, record)),
    refunds: state.refunds.map(refundView),
    fulfilment_failure: state.order.fulfilmentFailure,
    fulfilment_steps: state.fulfilmentSteps.map(fulfilmentStepView),
  };
}

export function paymentView(order: Order, record: PayRecord) {
  return {
    order_id: record.orderId,
    request_no: record.requestNo,
    channel: record.channel,
    out_trade_no: record.outTradeNo,
    channel_trade_no: record.channelTradeNo,
    status: record.status,
    status_reason: record.statusReason,
    amount: record.amountMinor,
    currency: record.currency,
    method: record.method,
    next_action: nextAction(record),
    order_status: order.status,
    status_url: orderUrl(record.orderId),
    created_at: record.createdAt,
  };
}

export function refundView(refund: Refund) {
  return {
    order_id: refund.orderId,
    refund_no: refund.refundNo,
    out_refund_no: refund.outRefundNo,
    channel: refund.channel,
    channel_refund_no: refund.channelRefundNo,
    amount: refund.amountMinor,
    currency: refund.currency,
    reason: refund.reason,
    origin: refund.origin,
    status: refund.status,
    status_reason: refund.statusReason,
    created_at: refund.createdAt,
    finished_at: refund.finishedAt,
  };
}

/** One step as the shop sees it: its addresses are the shop's own and may hold secrets. */
export function fulfilmentStepView(step: FulfilmentStep) {
  return {
    step_no: step.stepNo,
    name: step.name,
    status: step.status,
    tries: step.tries,
    undo_tries: step.undoTries,
    last_error: step.lastError,
    started_at: step.firstSentAt,
    finished_at: step.finishedAt,
    undone_at: step.undoneAt,
  };
}

/** The one capture that pays the order, while it stands. */
export function settlingCapture(state: OrderState): Capture | undefined {
  return state.captures.find(({ settles }) => settles);
}

/** The attempt that paid the order. */
export function settledRecord(state: OrderState): PayRecord | undefined {
  const capture = settlingCapture(state);
  return capture && state.records.find((record) => record.payRecordId === capture.payRecordId);
}

/** Only an attempt that waits for the payer has something for the payer to do. */
function nextAction(record: PayRecord) {
  const parameters = record.payParameters;
  if (record.status !== 'pending' || !parameters) return null;
  const expires_at = parameters.expiresAt;
  switch (parameters.type) {
    case 'redirect':
      return { type: 'redirect', url: parameters.value, expires_at };
    case 'qr_code':
      return { type: 'qr_code', code: parameters.value, expires_at };
    default:
      return { type: 'sdk', parameters: jsonOrText(parameters.value), expires_at };
  }
}

function jsonOrText(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

function sum(
  captures: readonly Capture[],
  field: 'amountMinor' | 'refundedMinor' | 'reversedMinor',
): number {
  return captures.reduce((total, capture) => total + capture[field], 0);
}
