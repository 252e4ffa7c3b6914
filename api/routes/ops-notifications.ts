import type { z } from '@hono/zod-openapi';
import { listNotifications, readNotification, resendNotification } from '../../db/dead-letters';
import type { NotificationRecord } from '../../db/dead-letters';
import { webhookIdOf } from '../../db/notifications';
import { readOrder } from '../../db/rows';
import type { OrderRef } from '../../domain/orders';
import { notificationDetail, notificationList } from '../answer-schemas';
import { Problem } from '../problems';
import { route } from '../route';
import type { ApiAnswer, RouteDeps } from '../route';
import { notificationParams, notificationsQuery, resendBody } from '../schemas';

const PAGE_DEFAULT = 20;

export const listNotificationsRoute = route<object, z.infer<typeof notificationsQuery>, undefined>({
  method: 'get',
  path: '/ops/notifications',
  scope: 'operator',
  summary: 'List events by how their delivery stands: dead letters unless told otherwise',
  query: notificationsQuery,
  answers: { 200: { description: 'One page, the oldest first.', schema: notificationList } },
  refusals: [],
  async act({ query }, deps) {
    const { notifications, nextAfterId } = await listNotifications(deps.pool, {
      status: query.status ?? 'dead',
      merchantId: query.merchant_id,
      afterId: query.cursor === undefined ? undefined : Number(query.cursor),
      limit: query.limit === undefined ? PAGE_DEFAULT : Number(query.limit),
    });
    return {
      status: 200,
      body: {
        notifications: notifications.map(notificationView),
        next_cursor: nextAfterId === null ? null : String(nextAfterId),
      },
    };
  },
});

export const readNotificationRoute = route<
  z.infer<typeof notificationParams>,
  undefined,
  undefined
>({
  method: 'get',
  path: '/ops/notifications/{notification_id}',
  scope: 'operator',
  summary: 'Read one event with every try to deliver it',
  params: notificationParams,
  answers: { 200: { description: 'The event and its log.', schema: notificationDetail } },
  refusals: [404],
  act: ({ params }, deps) => answerNotification(deps, params.notification_id),
});

export const resendNotificationRoute = route<
  z.infer<typeof notificationParams>,
  undefined,
  z.infer<typeof resendBody>
>({
  method: 'post',
  path: '/ops/notifications/{notification_id}/resend',
  scope: 'operator',
  summary: 'Have an event sent after all',
  params: notificationParams,
  body: resendBody,
  answers: {
    200: {
      description: 'It is sent, or waits to be sent now with the whole ladder before it.',
      schema: notificationDetail,
    },
  },
  refusals: [404, 409],
  async act({ caller, params, body }, deps) {
    const resent = await resendNotification(deps.pool, {
      notificationId: Number(params.notification_id),
      actor: caller.keyId,
      reason: body.reason,
    });
    switch (resent.outcome) {
      case 'not_found':
        throw notFound(params.notification_id);
      case 'no_address':
        throw new Problem(
          'no_address',
          `${resent.because}: set the merchant's address first, then repeat`,
        );
      case 'due':
        await tellRun(deps, resent.ref);
        break;
      case 'already_sent':
        break;
    }
    return {
      ...(await answerNotification(deps, params.notification_id)),
      made: { kind: 'order', orderId: resent.ref.orderId },
    };
  },
  replay: (_made, { params }, deps) => answerNotification(deps, params.notification_id),
});

/** The row is committed: if the run cannot be told now, the sweep finds it, or a repeat tells it. */
async function tellRun(deps: RouteDeps, ref: OrderRef): Promise<void> {
  const order = await readOrder(deps.pool, ref);
  if (!order) return;
  await deps.calls.tellAgain(order, deps.limits.startWithinMs).catch((error: unknown) => {
    deps.log.warn({ err: error, orderId: ref.orderId }, 'the run could not be told to tell again');
  });
}

async function answerNotification(deps: RouteDeps, id: string): Promise<ApiAnswer> {
  const found = await readNotification(deps.pool, Number(id));
  if (!found) throw notFound(id);
  return {
    status: 200,
    body: {
      ...notificationView(found),
      data: { ...found.payload, seq: found.seq },
      tries_log: found.triesLog.map(({ triedAt, status, error, durationMs }) => ({
        tried_at: triedAt,
        status,
        error,
        duration_ms: durationMs,
      })),
      resends: found.resends.map(({ at, fromStatus, actor, reason }) => ({
        at,
        from_status: fromStatus,
        actor,
        reason,
      })),
    },
  };
}

function notificationView(record: NotificationRecord) {
  return {
    notification_id: String(record.notificationId),
    webhook_id: webhookIdOf(record),
    merchant_id: record.merchantId,
    order_id: record.orderId,
    seq: record.seq,
    type: record.eventType,
    subject: record.subjectNo,
    status: record.status,
    tries: record.tries,
    last_error: record.lastError,
    next_try_at: record.status === 'pending' ? record.nextDueAt : null,
    created_at: record.createdAt,
    sent_at: record.sentAt,
  };
}

function notFound(id: string): Problem {
  return new Problem('notification_not_found', `there is no notification ${id}`);
}
