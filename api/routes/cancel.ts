import type { z } from '@hono/zod-openapi';
import type { OrderRef } from '../../domain/orders';
import { order as orderSchema } from '../answer-schemas';
import { orderUrl } from '../answers';
import { Problem } from '../problems';
import { route } from '../route';
import type { ApiAnswer, RouteDeps } from '../route';
import { cancelBody, orderParams } from '../schemas';
import { answerOrder, requireOrderState } from './orders';

const RETRY_AFTER_MS = 2_000;

export const cancelOrder = route<z.infer<typeof orderParams>, undefined, object>({
  method: 'post',
  path: '/v1/orders/{order_id}/cancel',
  scope: 'pay',
  summary: 'Cancel an unpaid order',
  params: orderParams,
  body: cancelBody as z.ZodType<object>,
  bodyMayBeEmpty: true,
  answers: {
    200: { description: 'The order is closed and takes no money.', schema: orderSchema },
    202: {
      description: 'It is being closed: the channel has not confirmed yet.',
      schema: orderSchema,
    },
  },
  refusals: [404, 409],
  async act({ caller, params }, deps) {
    const ref = { merchantId: caller.merchantId, orderId: params.order_id };
    const { order } = await requireOrderState(deps, ref);
    const known = await answerFromStatus(deps, ref, order.status);
    if (known) return known;
    const asked = await deps.calls.cancel(order);
    if (asked.kind === 'answered') {
      const answer = await answerFromStatus(deps, ref, asked.answer.outcome);
      if (answer) return answer;
    } else {
      deps.log.warn({ orderId: ref.orderId, reason: asked.reason }, 'outcome of a cancel unknown');
    }
    return answerClosing(deps, ref, asked.kind === 'answered');
  },
  replay: (_made, { caller, params }, deps) =>
    answerOrder(deps, { merchantId: caller.merchantId, orderId: params.order_id }, 200),
});

/** What can be said from the status alone; undefined while the order is open. */
async function answerFromStatus(
  deps: RouteDeps,
  ref: OrderRef,
  status: string,
): Promise<ApiAnswer | undefined> {
  switch (status) {
    case 'closed':
      return {
        ...(await answerOrder(deps, ref, 200)),
        made: { kind: 'order', orderId: ref.orderId },
      };
    case 'paid':
      throw new Problem(
        'order_paid',
        `order ${ref.orderId} is paid: to give the money back, request a refund`,
      );
    case 'review':
      throw new Problem(
        'order_in_review',
        `order ${ref.orderId} waits for a decision and cannot be cancelled`,
      );
    default:
      return undefined;
  }
}

async function answerClosing(
  deps: RouteDeps,
  ref: OrderRef,
  isAnswered: boolean,
): Promise<ApiAnswer> {
  const { order } = await requireOrderState(deps, ref);
  const known = await answerFromStatus(deps, ref, order.status);
  if (known) return known;
  if (!isAnswered && order.closeRequestedAt === null) {
    throw new Problem(
      'outcome_unknown',
      `whether order ${ref.orderId} is being closed is not known: repeat the request`,
      { retryAfterMs: RETRY_AFTER_MS, headers: { location: orderUrl(ref.orderId) } },
    );
  }
  const answer = await answerOrder(deps, ref, 202);
  return {
    ...answer,
    headers: { ...answer.headers, Location: orderUrl(ref.orderId), 'Retry-After': '2' },
  };
}
