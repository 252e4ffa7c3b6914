import { z } from '@hono/zod-openapi';
import { failpoint } from '../../db/failpoint';
import { insertOrder } from '../../db/new-orders';
import { listOrders } from '../../db/order-reads';
import type { OrderCursor } from '../../db/order-reads';
import { readOrderState } from '../../db/rows';
import type { OrderState } from '../../db/rows';
import { isIdentifier } from '../../domain/orders';
import type { OrderRef } from '../../domain/orders';
import { orderList, order as orderSchema } from '../answer-schemas';
import { orderHeadView, orderUrl, orderView } from '../answers';
import { decodeCursor, encodeCursor, OF_EARLIER_PAGE } from '../cursors';
import { orderNotFound, Problem } from '../problems';
import { route } from '../route';
import type { ApiAnswer, ApiRoute, RouteDeps } from '../route';
import { listQuery, newOrderSchema, orderParams, orderQuery } from '../schemas';
import type { NewOrderBody } from '../schemas';

const PAGE_DEFAULT = 20;

/** @throws Problem order_not_found, for another merchant's order too */
export async function requireOrderState(deps: RouteDeps, ref: OrderRef): Promise<OrderState> {
  const state = await readOrderState(deps.pool, ref);
  if (!state) throw orderNotFound(ref.orderId);
  return state;
}

export async function answerOrder(
  deps: RouteDeps,
  ref: OrderRef,
  status: ApiAnswer['status'],
): Promise<ApiAnswer> {
  const state = await requireOrderState(deps, ref);
  return {
    status,
    body: orderView(state, deps.publicUrl()),
    headers: { ETag: `"${state.order.version}"` },
  };
}

/** @param expiresInMinS shortest life of an order */
export function createOrder(expiresInMinS: number): ApiRoute {
  return route<object, object, NewOrderBody>({
    method: 'post',
    path: '/v1/orders',
    scope: 'pay',
    summary: 'Create an order',
    body: newOrderSchema(expiresInMinS) as z.ZodType<NewOrderBody>,
    answers: {
      201: { description: 'The order is stored.', schema: orderSchema },
      200: { description: 'It was stored before, with the same content.', schema: orderSchema },
    },
    refusals: [409],
    async act({ caller, body }, deps) {
      const ref = { merchantId: caller.merchantId, orderId: body.order_id };
      const { order, inserted, same } = await insertOrder(deps.pool, {
        ...ref,
        amountMinor: body.amount,
        currency: body.currency,
        subject: body.subject,
        expiresInS: body.expires_in,
        metadata: body.metadata,
        returnUrl: body.return_url ?? null,
        actor: `merchant:${caller.keyId}`,
      });
      if (!same) {
        throw new Problem(
          'order_exists',
          `order ${ref.orderId} exists with other content (${order.amountMinor} ${order.currency}): use another order_id`,
        );
      }
      if (inserted) {
        await failpoint('api:order-committed');
        // The order is ours to carry forward from here on: without Temporal the sweep starts its run.
        await deps.calls.start(order, deps.limits.startWithinMs).catch((error: unknown) => {
          deps.log.warn({ err: error, orderId: ref.orderId }, 'the sweep will start this order');
        });
      }
      const answer = await answerOrder(deps, ref, inserted ? 201 : 200);
      return {
        ...answer,
        headers: { ...answer.headers, Location: orderUrl(ref.orderId) },
        made: { kind: 'order', orderId: ref.orderId },
      };
    },
    replay: (made, { caller }, deps) =>
      answerOrder(deps, { merchantId: caller.merchantId, orderId: made.orderId }, 200),
  });
}

export const readOrderRoute = route<
  z.infer<typeof orderParams>,
  z.infer<typeof orderQuery>,
  undefined
>({
  method: 'get',
  path: '/v1/orders/{order_id}',
  scope: 'read',
  summary: 'Read an order, at once or when it changes',
  params: orderParams,
  query: orderQuery,
  answers: { 200: { description: 'The order as it stands.', schema: orderSchema } },
  refusals: [404],
  async act({ caller, params, query, signal }, deps) {
    const ref = { merchantId: caller.merchantId, orderId: params.order_id };
    if (query.wait !== undefined) {
      const { order } = await requireOrderState(deps, ref);
      const known = query.version === undefined ? order.version : Number(query.version);
      if (order.version === known) {
        await deps.versions.changed(ref, known, parseInt(query.wait, 10) * 1000, signal);
      }
    }
    return answerOrder(deps, ref, 200);
  },
});

export const listOrdersRoute = route<object, z.infer<typeof listQuery>, undefined>({
  method: 'get',
  path: '/v1/orders',
  scope: 'read',
  summary: 'List orders, newest first',
  query: listQuery,
  answers: { 200: { description: 'One page of orders.', schema: orderList } },
  refusals: [],
  async act({ caller, query }, deps) {
    const { orders, next } = await listOrders(deps.pool, {
      merchantId: caller.merchantId,
      status: query.status,
      after: query.cursor === undefined ? undefined : placeOf(query.cursor),
      limit: query.limit === undefined ? PAGE_DEFAULT : Number(query.limit),
    });
    return {
      status: 200,
      body: {
        orders: orders.map((order) => orderHeadView(order, deps.publicUrl())),
        next_cursor: next ? encodeCursor([next.createdAtMicros, next.orderId]) : null,
      },
    };
  },
});

/** Until the year 2255: what JavaScript holds exactly. */
const MICROS_MAX = Number.MAX_SAFE_INTEGER;

const cursorShape = z.tuple([
  z.number().int().min(0).max(MICROS_MAX),
  z.string().refine(isIdentifier),
]);

function placeOf(cursor: string): OrderCursor {
  const [createdAtMicros, orderId] = decodeCursor(cursor, cursorShape, OF_EARLIER_PAGE);
  return { createdAtMicros, orderId };
}
