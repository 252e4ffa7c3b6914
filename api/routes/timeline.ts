import { z } from '@hono/zod-openapi';
import { readTimeline } from '../../db/timeline';
import type { TimelineEntry } from '../../db/timeline';
import { readOrder } from '../../db/rows';
import type { OrderRef } from '../../domain/orders';
import { entryView, timeline as timelineSchema } from '../ops-answers';
import { opsOrderParams, timelineQuery } from '../ops-schemas';
import { decodeCursor, encodeCursor, OF_EARLIER_PAGE } from '../cursors';
import { orderNotFound } from '../problems';
import { route } from '../route';
import type { ApiAnswer, RouteDeps } from '../route';
import { orderParams } from '../schemas';

const PAGE_DEFAULT = 200;

const ANSWERS = {
  200: { description: 'One page, the oldest entry first.', schema: timelineSchema },
};

export const timelineRoute = route<
  z.infer<typeof orderParams>,
  z.infer<typeof timelineQuery>,
  undefined
>({
  method: 'get',
  path: '/v1/orders/{order_id}/timeline',
  scope: 'read',
  summary: 'Everything that happened to an order, in order',
  params: orderParams,
  query: timelineQuery,
  answers: ANSWERS,
  refusals: [404],
  act: ({ caller, params, query }, deps) =>
    answerTimeline(deps, { merchantId: caller.merchantId, orderId: params.order_id }, query, false),
});

export const opsTimelineRoute = route<
  z.infer<typeof opsOrderParams>,
  z.infer<typeof timelineQuery>,
  undefined
>({
  method: 'get',
  path: '/ops/orders/{merchant_id}/{order_id}/timeline',
  scope: 'operator',
  summary: 'Everything recorded of an order: with acts, evidence and who moved what',
  params: opsOrderParams,
  query: timelineQuery,
  answers: ANSWERS,
  refusals: [404],
  act: ({ params, query }, deps) =>
    answerTimeline(deps, { merchantId: params.merchant_id, orderId: params.order_id }, query, true),
});

async function answerTimeline(
  deps: RouteDeps,
  ref: OrderRef,
  query: z.infer<typeof timelineQuery>,
  withPrivate: boolean,
): Promise<ApiAnswer> {
  if (!(await readOrder(deps.pool, ref))) throw orderNotFound(ref.orderId);
  const { entries, next } = await readTimeline(deps.pool, ref, {
    withPrivate,
    after:
      query.cursor === undefined
        ? undefined
        : decodeCursor(query.cursor, cursorShape, OF_EARLIER_PAGE),
    limit: query.limit === undefined ? PAGE_DEFAULT : Number(query.limit),
  });
  const shown = withPrivate ? entries : entries.map(forMerchant);
  return {
    status: 200,
    body: {
      order_id: ref.orderId,
      entries: shown.map((entry) => entryView(entry, ref, deps)),
      next_cursor: next ? encodeCursor(next.map(String)) : null,
    },
  };
}

/** The merchant sees that an operator moved something, not which one, nor on what evidence. */
function forMerchant(entry: TimelineEntry): TimelineEntry {
  if (entry.kind !== 'move') return entry;
  const { evidence: _, actor, ...data } = entry.data;
  return { ...entry, data: { ...data, actor: String(actor).replace(/^operator:.*/, 'operator') } };
}

const whole = z
  .string()
  .regex(/^\d{1,16}$/)
  .transform(Number)
  .refine(Number.isSafeInteger);
const cursorShape = z.tuple([whole, whole.refine((rank) => rank < 1000), whole]);
