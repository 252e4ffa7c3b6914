import type { z } from '@hono/zod-openapi';
import { failpoint } from '../../db/failpoint';
import { forgetRequest, readRequest, storeRequest } from '../../db/merchant-requests';
import type { OrderState } from '../../db/rows';
import type { OrderRef, Refund } from '../../domain/orders';
import { decideRefund } from '../../domain/refunds';
import type { RefundOutcome } from '../../workflows/messages';
import { refund as refundSchema } from '../answer-schemas';
import { refundView, settlingCapture } from '../answers';
import { fingerprintOf } from '../fingerprint';
import { Problem } from '../problems';
import { route } from '../route';
import type { ApiAnswer, RouteDeps } from '../route';
import { newRefund, orderParams, refundParams } from '../schemas';
import type { NewRefundBody } from '../schemas';
import { requireOrderState } from './orders';

const RETRY_AFTER_MS = 2_000;
/** How often a request is asked anew that a refused repeat of itself has freed. */
const ROUNDS_MAX = 3;

export const requestRefund = route<z.infer<typeof orderParams>, undefined, NewRefundBody>({
  method: 'post',
  path: '/v1/orders/{order_id}/refunds',
  scope: 'refund',
  summary: 'Give money back, all that is left or a part',
  params: orderParams,
  body: newRefund as z.ZodType<NewRefundBody>,
  answers: {
    201: { description: 'The refund is stored and its sum reserved.', schema: refundSchema },
    200: { description: 'The same refund, as it stands.', schema: refundSchema },
  },
  refusals: [404, 409],
  act: ({ caller, params, body }, deps) =>
    refundOrder(deps, { merchantId: caller.merchantId, orderId: params.order_id }, body),
  async replay(_made, { caller, params, body }, deps) {
    const ref = { merchantId: caller.merchantId, orderId: params.order_id };
    const state = await requireOrderState(deps, ref);
    return answerRefund(requireRefund(state, body.refund_no), 200);
  },
});

export const readRefund = route<z.infer<typeof refundParams>, undefined, undefined>({
  method: 'get',
  path: '/v1/orders/{order_id}/refunds/{refund_no}',
  scope: 'read',
  summary: 'Read a refund',
  params: refundParams,
  answers: { 200: { description: 'The refund as it stands.', schema: refundSchema } },
  refusals: [404],
  async act({ caller, params }, deps) {
    const ref = { merchantId: caller.merchantId, orderId: params.order_id };
    return answerRefund(requireRefund(await requireOrderState(deps, ref), params.refund_no), 200);
  },
});

async function refundOrder(
  deps: RouteDeps,
  ref: OrderRef,
  body: NewRefundBody,
  round = 0,
): Promise<ApiAnswer> {
  const refundNo = body.refund_no;
  const amountMinor = body.amount ?? null;
  const fingerprint = fingerprintOf({ amountMinor });
  const before = await readRequest(deps.pool, ref, 'refund', refundNo);
  const state = await requireOrderState(deps, ref);
  const isSame = before?.fingerprint.equals(fingerprint) ?? false;
  const own = findRefund(state, refundNo);
  if (own) {
    // "The rest" and the figure it came to are the same refund.
    if (isSame || own.amountMinor === amountMinor) return answerRefund(own, 200);
    throw reused(refundNo, own.amountMinor);
  }
  if (before && !isSame) throw reused(refundNo, before.params.amountMinor);
  const refusal = await refusalNow(deps, state, amountMinor);
  if (refusal) {
    if (before) await forgetRequest(deps.pool, ref, 'refund', refundNo);
    throw refused(refusal.reason, refusal.refundableMinor, state);
  }

  const stored = await storeRequest(deps.pool, ref, 'refund', {
    requestNo: refundNo,
    fingerprint,
    params: { amountMinor, reason: body.reason },
  });
  if (!stored.fingerprint.equals(fingerprint)) throw reused(refundNo, stored.params.amountMinor);
  await failpoint('api:request-stored');
  const asked = await deps.calls.requestRefund(state.order, refundNo, round);
  const after = await requireOrderState(deps, ref);
  const made = findRefund(after, refundNo);
  if (asked.kind === 'answered' && asked.answer.outcome === 'refused') {
    const { reason, refundableMinor: restMinor } = asked.answer;
    if (reason === 'request_unknown') {
      // A repeat of this request was refused meanwhile and freed the number: ask from the start.
      if (round < ROUNDS_MAX) return refundOrder(deps, ref, body, round + 1);
    } else {
      await forgetRequest(deps.pool, ref, 'refund', refundNo);
      throw refused(reason, restMinor, after);
    }
  }
  if (made) {
    const opened =
      asked.kind === 'unknown' || (asked.answer.outcome === 'accepted' && asked.answer.opened);
    return answerRefund(made, opened ? 201 : 200);
  }
  // The server replayed the outcome of an update that the database no longer knows of (it was restored
  // to a backup of a moment ago): ask under another id.
  if (asked.kind === 'answered' && round < ROUNDS_MAX)
    return refundOrder(deps, ref, body, round + 1);
  throw new Problem(
    'outcome_unknown',
    `whether refund ${refundNo} was stored is not known: repeat it under the same number`,
    { retryAfterMs: RETRY_AFTER_MS },
  );
}

/** What PostgreSQL already knows: a refusal of now, by the same rule that the order's run asks. */
async function refusalNow(
  deps: RouteDeps,
  state: OrderState,
  amountMinor: number | null,
): Promise<Refusal | undefined> {
  const settling = settlingCapture(state);
  const configured = settling && (await deps.channels.get(settling.channel));
  if (settling && !configured) return undefined;
  if (!settling || !configured) {
    const reason = state.order.status === 'review' ? 'order_in_review' : 'nothing_captured';
    return { reason, refundableMinor: 0 };
  }
  const decision = decideRefund({
    order: state.order,
    own: undefined,
    refunds: state.refunds,
    settling,
    amountMinor,
    policy: configured.policy,
    refundsEnabled: configured.row.refundEnabled,
    now: new Date().toISOString(),
  });
  return decision.decision === 'refuse' ? decision : undefined;
}

interface Refusal {
  reason: Exclude<(RefundOutcome & { outcome: 'refused' })['reason'], 'request_unknown'>;
  refundableMinor: number;
}

function answerRefund(refund: Refund, status: 200 | 201): ApiAnswer {
  return {
    status,
    body: refundView(refund),
    headers: { Location: `/v1/orders/${refund.orderId}/refunds/${refund.refundNo}` },
    made: { kind: 'refund', orderId: refund.orderId, refundNo: refund.refundNo },
  };
}

function findRefund(state: OrderState, refundNo: string): Refund | undefined {
  return state.refunds.find((refund) => refund.refundNo === refundNo);
}

/** @throws Problem refund_not_found */
function requireRefund(state: OrderState, refundNo: string): Refund {
  const refund = findRefund(state, refundNo);
  if (refund) return refund;
  throw new Problem(
    'refund_not_found',
    `order ${state.order.orderId} has no refund ${refundNo}: request it with POST …/refunds`,
  );
}

function reused(refundNo: string, amountMinor: number | null): Problem {
  const first = amountMinor === null ? 'for the rest' : `for ${amountMinor}`;
  return new Problem(
    'refund_no_reused',
    `refund_no ${refundNo} was used ${first}: use a new number for another refund`,
  );
}

function refused(reason: Refusal['reason'], restMinor: number, state: OrderState): Problem {
  const { order } = state;
  const details: Record<typeof reason, string> = {
    over_the_rest: `amount: at most ${restMinor} ${order.currency} (minor units) is left to refund`,
    nothing_captured: `order ${order.orderId} has no payment to refund (status ${order.status})`,
    order_in_review: `order ${order.orderId} waits for a decision: refund it after that`,
    too_old: 'the channel refunds this payment no more: pay the customer another way',
    too_many: 'the channel allows no more refunds of this payment: pay the customer another way',
    refunds_disabled: 'the channel makes no refunds now: repeat the request later',
  };
  return new Problem(reason, details[reason], { extra: { refundable_minor: restMinor } });
}
