import { createHash } from 'node:crypto';
import type { OrderRef } from '../domain/orders';
import type { NotificationEvent } from '../domain/verdicts';
import type { Queryable } from './transaction';

/**
 * Writes an event for the merchant in the transaction of what it tells: numbered per order, once per
 * event and subject for ever, its payload the order as it stands at this moment. Behind an earlier
 * event that waits for its next try it waits as long; for a merchant without an address (or one whose
 * address said that it is gone) it is `kept`, to be read.
 */
export async function insertNotification(
  client: Queryable,
  ref: OrderRef,
  event: NotificationEvent,
  subjectNo: string,
): Promise<void> {
  await client.query(
    `insert into notifications
       (merchant_id, order_id, seq, event_type, subject_no, payload, status, next_due_at)
     select o.merchant_id, o.order_id,
       coalesce((select max(n.seq) from notifications n
         where n.merchant_id = o.merchant_id and n.order_id = o.order_id), 0) + 1,
       $3::text, $4::text,
       jsonb_build_object(
         'type', $3::text, 'merchant_id', o.merchant_id, 'order_id', o.order_id, 'subject', $4::text,
         'status', o.status, 'status_reason', o.status_reason, 'amount_minor', o.amount_minor,
         'currency', o.currency, 'refund_status', o.refund_status,
         'fulfilment_status', o.fulfilment_status,
         'captured_minor', coalesce((select c.amount_minor from captures c
           where c.merchant_id = o.merchant_id and c.order_id = o.order_id and c.settles), 0),
         'refunded_minor', coalesce((select c.refunded_minor from captures c
           where c.merchant_id = o.merchant_id and c.order_id = o.order_id and c.settles), 0),
         'reversed_minor', coalesce((select c.reversed_minor from captures c
           where c.merchant_id = o.merchant_id and c.order_id = o.order_id and c.settles), 0),
         'occurred_at', to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')),
       case when m.notify_url is null or m.notify_stopped_at is not null
         then 'kept' else 'pending' end,
       greatest(now(), (select max(n.next_due_at) from notifications n
         where n.merchant_id = o.merchant_id and n.order_id = o.order_id and n.status = 'pending'))
     from orders o join merchants m using (merchant_id)
     where o.merchant_id = $1::text and o.order_id = $2::text
     on conflict (merchant_id, order_id, event_type, subject_no) do nothing`,
    [ref.merchantId, ref.orderId, event, subjectNo],
  );
}

/** What an event is about: the same event is never written twice. */
export interface EventIdentity extends OrderRef {
  eventType: string;
  subjectNo: string;
}

/**
 * The event's `webhook-id`, the merchant's key against duplicates. Derived from what the event is
 * about, not from its row: a database restored from an old backup counts its rows anew, and a merchant
 * would take another order's event for one it has already seen.
 */
export function webhookIdOf({ merchantId, orderId, eventType, subjectNo }: EventIdentity): string {
  const identity = JSON.stringify([merchantId, orderId, eventType, subjectNo]);
  return `evt_${createHash('sha256').update(identity, 'utf8').digest('hex').slice(0, 32)}`;
}

/** What the merchant is told, word for word the same in a delivery and in the feed of events. */
export function eventBody(event: {
  eventType: string;
  createdAt: string;
  payload: Record<string, unknown>;
  seq: number;
}) {
  return {
    type: event.eventType,
    timestamp: event.createdAt,
    data: { ...event.payload, seq: event.seq },
  };
}

export interface WaitingNotification extends EventIdentity {
  notificationId: number;
  seq: number;
  payload: Record<string, unknown>;
  /** Since it was written, or sent again by hand. */
  tries: number;
  /** Until it may be tried (again), by the database's clock; negative: now. Milliseconds. */
  dueInMs: number;
  createdAt: string;
  notifyUrl: string | null;
  notifySecretRef: string | null;
  notifyPreviousSecretRef: string | null;
  /** Why nothing is sent to the merchant's address any more; null while it is in use. */
  stoppedBecause: string | null;
}

/** The oldest event of the order that has not been told yet: events are told in order, one by one. */
export async function nextNotification(
  client: Queryable,
  ref: OrderRef,
): Promise<WaitingNotification | undefined> {
  const { rows } = await client.query<WaitingNotification>(
    `select n.merchant_id as "merchantId", n.order_id as "orderId",
       n.notification_id as "notificationId", n.seq, n.event_type as "eventType",
       n.subject_no as "subjectNo", n.payload, n.tries,
       (extract(epoch from n.next_due_at - now()) * 1000)::bigint as "dueInMs",
       n.created_at as "createdAt", m.notify_url as "notifyUrl",
       m.notify_secret_ref as "notifySecretRef",
       m.notify_previous_secret_ref as "notifyPreviousSecretRef",
       case when m.notify_stopped_at is not null
         then coalesce(m.notify_stopped_because, 'stopped') end as "stoppedBecause"
     from notifications n join merchants m using (merchant_id)
     where n.merchant_id = $1::text and n.order_id = $2::text and n.status = 'pending'
     order by n.seq limit 1`,
    [ref.merchantId, ref.orderId],
  );
  return rows[0];
}

/** One try, as it is logged. */
export interface NotificationTry {
  notificationId: number;
  /** The merchant's HTTP status; null when there was no answer. */
  status: number | null;
  durationMs: number;
}

/** The merchant has it. Told twice by two runs: the second finds it sent and changes nothing. */
export async function markNotificationSent(
  client: Queryable,
  { notificationId, status, durationMs }: NotificationTry,
): Promise<void> {
  await client.query(
    `with tried as (
       insert into notification_tries (notification_id, status, duration_ms)
       values ($1::bigint, $2::integer, $3::integer))
     update notifications set status = 'sent', sent_at = now(), tries = tries + 1, last_error = null
     where notification_id = $1::bigint and status = 'pending'`,
    [notificationId, status, Math.round(durationMs)],
  );
}

/**
 * A try failed: the next one after `againInMs`, or never again (`dead`, listed and re-sendable). Later
 * events of the order wait as long, or need not wait any more: none of them overtakes.
 */
export async function noteNotificationFailure(
  client: Queryable,
  input: NotificationTry & { error: string; againInMs: number | null },
): Promise<void> {
  await client.query(
    `with tried as (
       insert into notification_tries (notification_id, status, error, duration_ms)
       values ($1::bigint, $2::integer, left($3::text, 500), $4::integer)),
     failed as (
       update notifications set tries = tries + 1, last_error = left($3::text, 500),
         status = case when $5::bigint is null then 'dead' else 'pending' end,
         next_due_at = now() + make_interval(secs => coalesce($5::bigint, 0) / 1000.0)
       where notification_id = $1::bigint and status = 'pending'
       returning merchant_id, order_id, seq, next_due_at)
     update notifications n
     set next_due_at = case when $5::bigint is null then least(n.next_due_at, now())
       else greatest(n.next_due_at, failed.next_due_at) end
     from failed
     where n.merchant_id = failed.merchant_id and n.order_id = failed.order_id
       and n.seq > failed.seq and n.status = 'pending'`,
    [
      input.notificationId,
      input.status,
      input.error,
      Math.round(input.durationMs),
      input.againInMs === null ? null : Math.round(input.againInMs),
    ],
  );
}

/** Given up without a try: there is no address that it could go to. */
export async function giveUpNotification(
  client: Queryable,
  input: { notificationId: number; error: string },
): Promise<void> {
  await client.query(
    `update notifications set status = 'dead', last_error = left($2::text, 500)
     where notification_id = $1::bigint and status = 'pending'`,
    [input.notificationId, input.error],
  );
}

/** The address said that it is gone: nothing more goes there until it is set again. */
export async function stopMerchantAddress(
  client: Queryable,
  input: { merchantId: string; notifyUrl: string; because: string },
): Promise<void> {
  // Only the address that said so: another one may have been set meanwhile.
  await client.query(
    `update merchants set notify_stopped_at = now(), notify_stopped_because = $3::text
     where merchant_id = $1::text and notify_url = $2::text and notify_stopped_at is null`,
    [input.merchantId, input.notifyUrl, input.because],
  );
}
