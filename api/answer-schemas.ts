import { z } from '@hono/zod-openapi';
import { DIFFERENCE_KINDS } from '../domain/differences';
import { problemCodes } from './problems';
import { notificationStatus, orderStatus } from './schemas';

/** The shapes of answers, for the OpenAPI document; api/answers.ts makes them. */
const instant = z.iso.datetime().nullable();
const minor = z.int();

export const nextAction = z
  .discriminatedUnion('type', [
    z.object({ type: z.literal('redirect'), url: z.string(), expires_at: instant }),
    z.object({ type: z.literal('qr_code'), code: z.string(), expires_at: instant }),
    z.object({ type: z.literal('sdk'), parameters: z.unknown(), expires_at: instant }),
  ])
  .nullable()
  .openapi('NextAction', { description: 'What the payer does next; null when nothing (more).' });

export const payment = z
  .object({
    order_id: z.string(),
    request_no: z.string(),
    channel: z.string(),
    out_trade_no: z.string(),
    channel_trade_no: z.string().nullable(),
    status: z.enum(['created', 'submitting', 'pending', 'paid', 'failed', 'closed']),
    status_reason: z.string().nullable(),
    amount: minor,
    currency: z.string(),
    method: z.string().nullable(),
    next_action: nextAction,
    order_status: orderStatus,
    status_url: z.string(),
    created_at: instant,
  })
  .openapi('Payment');

export const refund = z
  .object({
    order_id: z.string(),
    refund_no: z.string(),
    out_refund_no: z.string(),
    channel: z.string(),
    channel_refund_no: z.string().nullable(),
    amount: minor,
    currency: z.string(),
    reason: z.string(),
    origin: z.enum(['merchant', 'surplus', 'fulfilment', 'operator', 'external']),
    status: z.enum([
      'created',
      'submitting',
      'processing',
      'succeeded',
      'failed',
      'returned',
      'abnormal',
    ]),
    status_reason: z.string().nullable(),
    created_at: instant,
    finished_at: instant,
  })
  .openapi('Refund');

export const fulfilmentStep = z
  .object({
    step_no: z.int(),
    name: z.string(),
    status: z.enum([
      'waiting',
      'running',
      'done',
      'refused',
      'undoing',
      'undone',
      'undo_failed',
      'skipped',
    ]),
    tries: z.int(),
    undo_tries: z.int(),
    last_error: z.string().nullable(),
    started_at: instant,
    finished_at: instant,
    undone_at: instant,
  })
  .openapi('FulfilmentStep');

const orderHead = z.object({
  order_id: z.string(),
  amount: minor,
  currency: z.string(),
  subject: z.string(),
  metadata: z.record(z.string(), z.unknown()),
  pay_url: z
    .string()
    .openapi({ description: 'The payer’s page of this order: send the payer there.' }),
  return_url: z.string().nullable(),
  status: orderStatus,
  status_reason: z.string().nullable(),
  refund_status: z.enum(['none', 'pending', 'partial', 'full']),
  fulfilment_status: z.enum(['none', 'running', 'done', 'compensating', 'failed']),
  closing: z.boolean(),
  version: z.int(),
  expires_at: instant,
  created_at: instant,
  paid_at: instant,
  closed_at: instant,
});

export const order = orderHead
  .extend({
    captured_minor: minor.openapi({ description: 'All captures, surplus ones too.' }),
    refunded_minor: minor,
    reversed_minor: minor,
    refundable_minor: minor.openapi({ description: 'What a refund may still take.' }),
    attempts: z.array(payment),
    refunds: z.array(refund),
    fulfilment_failure: z
      .enum(['step_refused', 'refunded', 'review'])
      .nullable()
      .openapi({ description: 'Why its steps were stopped and undone.' }),
    fulfilment_steps: z
      .array(fulfilmentStep)
      .openapi({ description: 'What the shop does for it once it is paid, in this order.' }),
  })
  .openapi('Order');

export const orderList = z
  .object({ orders: z.array(orderHead), next_cursor: z.string().nullable() })
  .openapi('OrderList');

export const eventList = z
  .object({
    events: z.array(
      z.object({
        id: z.string().openapi({ description: 'The webhook-id of its delivery.' }),
        type: z.string(),
        timestamp: instant,
        data: z.record(z.string(), z.unknown()),
        delivery: notificationStatus,
      }),
    ),
    next_after: z.string().nullable(),
    has_more: z.boolean(),
  })
  .openapi('EventList');

const notification = z.object({
  notification_id: z.string(),
  webhook_id: z.string(),
  merchant_id: z.string(),
  order_id: z.string(),
  seq: z.int(),
  type: z.string(),
  subject: z.string(),
  status: notificationStatus,
  tries: z.int().openapi({ description: 'Since it was written, or last sent again by hand.' }),
  last_error: z.string().nullable(),
  next_try_at: instant,
  created_at: instant,
  sent_at: instant,
});

export const notificationList = z
  .object({ notifications: z.array(notification), next_cursor: z.string().nullable() })
  .openapi('NotificationList');

export const notificationDetail = notification
  .extend({
    data: z.record(z.string(), z.unknown()),
    tries_log: z.array(
      z.object({
        tried_at: instant,
        status: z.int().nullable(),
        error: z.string().nullable(),
        duration_ms: z.int(),
      }),
    ),
    resends: z.array(
      z.object({
        at: instant,
        from_status: notificationStatus,
        actor: z.string(),
        reason: z.string(),
      }),
    ),
  })
  .openapi('Notification');

export const problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.enum(problemCodes.map(({ code }) => code) as [string, ...string[]]),
    detail: z.string(),
    errors: z.array(z.object({ path: z.string(), detail: z.string() })).optional(),
  })
  .openapi('Problem');

const runStatus = z.enum(['running', 'waiting_bill', 'done', 'rejected', 'no_bill']);
const sum = z.union([minor, z.string()]).openapi({
  description: 'Minor units; decimal text where it leaves the safe integers.',
});
const sums = z.object({ rows: z.int(), net_minor: sum });
const evidence = z.record(z.string(), z.unknown()).nullable();

const difference = z
  .object({
    kind: z.enum(DIFFERENCE_KINDS),
    subject: z.string(),
    status: z.enum(['open', 'waiting', 'suspense', 'case', 'resolved']),
    reason: z.string(),
    merchant_id: z.string().nullable(),
    order_id: z.string().nullable(),
    refund_no: z.string().nullable(),
    line_no: z.int().nullable(),
    ours: evidence,
    channel_says: evidence,
    resolution: z.string().nullable(),
  })
  .openapi('Difference');

const reportHead = z.object({
  channel: z.string(),
  day: z.iso.date(),
  time_zone: z.string(),
  status: runStatus,
  dry_run: z.boolean(),
  reason: z.string().nullable(),
  bill: z
    .object({
      file_name: z.string(),
      sha256: z.string(),
      bytes: z.int(),
      rows: z.int(),
      row_errors: z.int(),
    })
    .nullable(),
  rejected: z.object({ file_name: z.string(), fault: z.string(), message: z.string() }).nullable(),
  by_kind: z.partialRecord(z.enum(DIFFERENCE_KINDS), z.int()),
  by_status: z.record(z.string(), z.int()),
  differences_total: z.int(),
});

const report = reportHead
  .extend({
    totals: z.array(
      z.object({
        currency: z.string(),
        file: sums.extend({
          payments_minor: sum,
          refunds_minor: sum,
          reversals_minor: sum,
          other_minor: sum,
          fees_minor: sum,
        }),
        matched: sums,
        differences: sums,
        unknown: sums,
        ours_only: sums,
      }),
    ),
    differences: z.array(difference),
  })
  .openapi('ReconciliationReport');

export const reconciliationReports = z
  .object({ day: z.iso.date(), reports: z.array(report) })
  .openapi('ReconciliationReports');

export const reconciliationList = z
  .object({ reports: z.array(reportHead) })
  .openapi('ReconciliationList');

export const reconciliationStarted = z
  .union([
    z.object({
      channel: z.string(),
      day: z.iso.date(),
      dry_run: z.boolean(),
      status: runStatus,
      status_url: z.string(),
    }),
    z.object({
      merchant_id: z.string(),
      order_id: z.string(),
      asked: z.int().openapi({ description: 'Attempts and refunds the channel is asked about.' }),
      differences: z.array(difference.extend({ channel: z.string(), day: z.iso.date() })),
    }),
  ])
  .openapi('ReconciliationStarted');
