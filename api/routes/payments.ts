import type { z } from '@hono/zod-openapi';
import { failpoint } from '../../db/failpoint';
import { forgetRequest, readRequest, storeRequest } from '../../db/merchant-requests';
import type { MerchantRequest, PayParams } from '../../db/merchant-requests';
import type { OrderState } from '../../db/rows';
import { decidePay, liveAttempt } from '../../domain/attempts';
import type { OrderRef, PayRecord } from '../../domain/orders';
import type { PayOutcome } from '../../workflows/messages';
import { payment } from '../answer-schemas';
import { orderUrl, paymentView, settledRecord } from '../answers';
import { fingerprintOf } from '../fingerprint';
import { Problem } from '../problems';
import { route } from '../route';
import type { ApiAnswer, RouteDeps } from '../route';
import { newPayment, orderParams } from '../schemas';
import type { NewPaymentBody } from '../schemas';
import { requireOrderState } from './orders';

/** How soon to ask again about an outcome nobody knows yet. */
const RETRY_AFTER_MS = 2_000;
/** How often a request is asked anew that a refused repeat of itself has freed. */
const ROUNDS_MAX = 3;

export const payOrder = route<z.infer<typeof orderParams>, undefined, NewPaymentBody>({
  method: 'post',
  path: '/v1/orders/{order_id}/payments',
  scope: 'pay',
  summary: 'Pay an order: open an attempt, or find the one that is there',
  params: orderParams,
  body: newPayment as z.ZodType<NewPaymentBody>,
  answers: {
    201: { description: 'A new attempt; next_action says what the payer does.', schema: payment },
    200: { description: 'The attempt that is there, or the payment.', schema: payment },
    202: { description: 'Stored; whether the channel has it is not known yet.', schema: payment },
  },
  refusals: [404, 409],
  async act({ caller, params, body, idempotencyKey }, deps) {
    const ref = { merchantId: caller.merchantId, orderId: params.order_id };
    const requestNo = body.request_no ?? idempotencyKey;
    if (requestNo === undefined) {
      throw new Problem(
        'missing_request_no',
        'give the attempt a number: request_no in the body or an Idempotency-Key header',
      );
    }
    return pay(deps, ref, requestNo, body);
  },
  async replay(made, { caller, params }, deps) {
    const ref = { merchantId: caller.merchantId, orderId: params.order_id };
    const state = await requireOrderState(deps, ref);
    const payRecordId = made.kind === 'payment' ? made.payRecordId : undefined;
    return answerPayment(state, recordById(state, payRecordId), false);
  },
});

/**
 * Opens an attempt under this number, or finds the one that is there.
 * @param content what a repeat under the number must have the same
 */
export async function pay(
  deps: RouteDeps,
  ref: OrderRef,
  requestNo: string,
  body: NewPaymentBody,
  content: NewPaymentBody = body,
  round = 0,
): Promise<ApiAnswer> {
  // The request first: what it was bound to is then in the picture read after it.
  const before = await readRequest(deps.pool, ref, 'pay', requestNo);
  const state = await requireOrderState(deps, ref);
  const { order } = state;
  const fingerprint = fingerprintOf({
    channel: content.channel,
    method: content.method,
    returnUrl: content.return_url,
    payer: content.payer,
    amount: content.amount ?? order.amountMinor,
    currency: content.currency ?? order.currency,
  });
  if (before) requireSameContent(before, fingerprint);
  const own = before && ownRecord(state, before, requestNo, body.channel);
  if (own) return answerPayment(state, own, false);
  requireSameMoney(state, body);

  const configured = await deps.channels.get(body.channel);
  if (!configured) {
    throw new Problem('unknown_channel', `body.channel: there is no channel ${body.channel}`);
  }
  const decision = decidePay({
    order,
    records: state.records,
    own: undefined,
    settled: settledRecord(state),
    channel: body.channel,
    channelEnabled: configured.row.payEnabled,
    now: new Date().toISOString(),
  });
  if (decision.decision === 'paid') return answerPayment(state, decision.record, false);
  if (decision.decision === 'refuse') {
    if (before) await forgetRequest(deps.pool, ref, 'pay', requestNo);
    throw refused(decision.reason, state);
  }

  const stored = await storeRequest(deps.pool, ref, 'pay', {
    requestNo,
    fingerprint,
    params: {
      channel: body.channel,
      method: body.method ?? null,
      returnUrl: body.return_url ?? null,
      clientIp: body.client_ip ?? null,
      payer: body.payer ?? null,
    },
  });
  requireSameContent(stored, fingerprint);
  await failpoint('api:request-stored');
  const asked = await deps.calls.pay(order, requestNo, round);
  if (asked.kind === 'unknown') {
    deps.log.warn(
      { orderId: ref.orderId, reason: asked.reason },
      'outcome of a pay request unknown',
    );
    return answerUnknown(deps, ref, requestNo, body.channel);
  }
  const { answer } = asked;
  if (answer.outcome === 'refused' && answer.reason === 'request_unknown') {
    if (round < ROUNDS_MAX) return pay(deps, ref, requestNo, body, content, round + 1);
  }
  return answerOutcome(deps, ref, requestNo, answer);
}

async function answerOutcome(
  deps: RouteDeps,
  ref: OrderRef,
  requestNo: string,
  answer: PayOutcome,
): Promise<ApiAnswer> {
  const state = await requireOrderState(deps, ref);
  switch (answer.outcome) {
    case 'attempt':
      return answerPayment(state, recordById(state, answer.payRecordId), answer.opened);
    case 'paid':
      return answerPayment(state, recordById(state, answer.payRecordId), false);
    case 'conflict':
      throw conflict(answer.reason, answer.retryAfterMs);
    case 'refused':
      // Freed by refusals of the same number again and again: as good as never asked.
      if (answer.reason === 'request_unknown') throw outcomeUnknown(ref.orderId);
      await forgetRequest(deps.pool, ref, 'pay', requestNo);
      throw refused(answer.reason, state);
  }
}

/** The run did not answer in time; PostgreSQL may know anyway. */
async function answerUnknown(
  deps: RouteDeps,
  ref: OrderRef,
  requestNo: string,
  channel: string,
): Promise<ApiAnswer> {
  const request = await readRequest(deps.pool, ref, 'pay', requestNo);
  const state = await requireOrderState(deps, ref);
  const own = request && ownRecord(state, request, requestNo, channel);
  if (own) return answerPayment(state, own, false);
  const settled = settledRecord(state);
  if (state.order.status === 'paid' && settled) return answerPayment(state, settled, false);
  if (liveAttempt(state.records)) throw conflict('attempt_open', RETRY_AFTER_MS);
  throw outcomeUnknown(ref.orderId);
}

/** The record as it stands. 202 while nobody knows whether the channel has it. */
function answerPayment(state: OrderState, record: PayRecord, opened: boolean): ApiAnswer {
  const isOpen = record.status === 'created' || record.status === 'submitting';
  const status = isOpen ? 202 : opened ? 201 : 200;
  return {
    status,
    body: paymentView(state.order, record),
    headers: isOpen ? { Location: orderUrl(record.orderId), 'Retry-After': '2' } : {},
    made: { kind: 'payment', orderId: record.orderId, payRecordId: record.payRecordId },
  };
}

/** The record that serves the request: the one it is bound to, or the one that carries its number. */
function ownRecord(
  state: OrderState,
  request: MerchantRequest<PayParams>,
  requestNo: string,
  channel: string,
): PayRecord | undefined {
  return state.records.find((record) =>
    request.payRecordId === null
      ? record.requestNo === requestNo && record.channel === channel
      : record.payRecordId === request.payRecordId,
  );
}

function recordById(state: OrderState, payRecordId: number | undefined): PayRecord {
  const record = state.records.find((r) => r.payRecordId === payRecordId);
  if (!record) throw new Error(`order ${state.order.orderId} has no pay record ${payRecordId}`);
  return record;
}

function requireSameContent(request: MerchantRequest<PayParams>, fingerprint: Buffer): void {
  if (request.fingerprint.equals(fingerprint)) return;
  throw new Problem(
    'request_no_reused',
    `request_no ${request.requestNo} was used for this order with other content: use a new number`,
  );
}

function requireSameMoney({ order }: OrderState, body: NewPaymentBody): void {
  const amount = body.amount ?? order.amountMinor;
  const currency = body.currency ?? order.currency;
  if (amount === order.amountMinor && currency === order.currency) return;
  throw new Problem(
    'order_amount_differs',
    `order ${order.orderId} is about ${order.amountMinor} ${order.currency}, not ${amount} ${currency}: ` +
      'leave amount and currency out, or create another order',
  );
}

function conflict(reason: 'attempt_open' | 'attempt_closing', retryAfterMs: number): Problem {
  return new Problem(
    reason,
    'another attempt must be closed at its channel first: repeat this request under the same number',
    { retryAfterMs },
  );
}

function refused(
  reason: Exclude<(PayOutcome & { outcome: 'refused' })['reason'], 'request_unknown'>,
  { order }: OrderState,
): Problem {
  const details: Record<typeof reason, string> = {
    order_closed: `order ${order.orderId} is closed (${order.statusReason ?? 'closed'}): create another order`,
    order_in_review: `order ${order.orderId} waits for a decision: do not ask the payer again`,
    order_refunded: `order ${order.orderId} was paid and refunded: create another order`,
    order_expired: `order ${order.orderId} takes no new attempt (deadline ${order.expiresAt}): create another order`,
    channel_disabled: 'the channel takes no payments now: offer another channel',
  };
  return new Problem(reason, details[reason]);
}

function outcomeUnknown(orderId: string): Problem {
  return new Problem(
    'outcome_unknown',
    `whether an attempt for order ${orderId} was opened is not known: repeat under the same number`,
    { retryAfterMs: RETRY_AFTER_MS, headers: { location: orderUrl(orderId) } },
  );
}
