import type { OrderRef } from '../domain/orders';
import type { EventIdentity } from './notifications';
import { lockOrder } from './rows';
import type { Pool, Queryable } from './transaction';
import { withTransaction } from './transaction';

export type NotificationStatus = 'pending' | 'sent' | 'dead' | 'kept';

/** An event for a merchant and how its delivery stands: what operators see of it. */
export interface NotificationRecord extends EventIdentity {
  notificationId: number;
  seq: number;
  status: NotificationStatus;
  payload: Record<string, unknown>;
  /** Since it was written, or last sent again by hand. */
  tries: number;
  lastError: string | null;
  nextDueAt: string;
  createdAt: string;
  sentAt: string | null;
}

const COLUMNS = `n.notification_id as "notificationId", n.merchant_id as "merchantId",
  n.order_id as "orderId", n.seq, n.event_type as "eventType", n.subject_no as "subjectNo", n.status,
  n.payload, n.tries, n.last_error as "lastError", n.next_due_at as "nextDueAt",
  n.created_at as "createdAt", n.sent_at as "sentAt"`;

/** One page of events in a status, the oldest first: dead letters are worked off in order. */
export async function listNotifications(
  client: Queryable,
  said: {
    status: NotificationStatus;
    merchantId?: string | undefined;
    /** The last notification of the page before. */
    afterId?: number | undefined;
    limit: number;
  },
): Promise<{ notifications: NotificationRecord[]; nextAfterId: number | null }> {
  const { rows } = await client.query<NotificationRecord>(
    `select ${COLUMNS} from notifications n
     where n.status = $1::text and ($2::text is null or n.merchant_id = $2::text)
       and n.notification_id > $3::bigint
     order by n.notification_id limit $4::int`,
    [said.status, said.merchantId ?? null, said.afterId ?? 0, said.limit + 1],
  );
  const notifications = rows.slice(0, said.limit);
  const isMore = rows.length > said.limit;
  return { notifications, nextAfterId: isMore ? notifications.at(-1)!.notificationId : null };
}

export interface LoggedTry {
  triedAt: string;
  status: number | null;
  error: string | null;
  durationMs: number;
}

export interface LoggedResend {
  at: string;
  fromStatus: NotificationStatus;
  actor: string;
  reason: string;
}

/** Of a log no more is shown: the ladder has ten tries. */
const LOG_MAX = 100;

/** One event with every try and every resend, the oldest first; undefined when there is none. */
export async function readNotification(
  client: Queryable,
  notificationId: number,
): Promise<(NotificationRecord & { triesLog: LoggedTry[]; resends: LoggedResend[] }) | undefined> {
  const { rows } = await client.query<NotificationRecord>(
    `select ${COLUMNS} from notifications n where n.notification_id = $1::bigint`,
    [notificationId],
  );
  const row = rows[0];
  if (!row) return undefined;
  const tries = await client.query<LoggedTry>(
    `select tried_at as "triedAt", status, error, duration_ms as "durationMs"
     from notification_tries where notification_id = $1::bigint
     order by try_id desc limit $2::int`,
    [notificationId, LOG_MAX],
  );
  const resends = await client.query<LoggedResend>(
    `select created_at as at, from_status as "fromStatus", actor, reason
     from notification_resends where notification_id = $1::bigint
     order by resend_id desc limit $2::int`,
    [notificationId, LOG_MAX],
  );
  return { ...row, triesLog: tries.rows.reverse(), resends: resends.rows.reverse() };
}

export type ResendOutcome =
  /** It waits to be sent: its ladder begins anew, or its next try is now. */
  | { outcome: 'due'; ref: OrderRef; changed: boolean }
  | { outcome: 'already_sent'; ref: OrderRef }
  | { outcome: 'no_address'; ref: OrderRef; because: string }
  | { outcome: 'not_found' };

/**
 * Has an event sent after all: one that was given up (`dead`) or never sent (`kept`) is `pending` again
 * with the whole ladder before it, one that waits for its next try is due now. Asked twice it is the
 * same; an event that the merchant has stays as it is. The order's other waiting events are due as well,
 * each in its turn: they waited only because of one before them. The run must be told afterwards
 * (`tellAgainSignal`), else the sweep finds it within a minute.
 */
export async function resendNotification(
  pool: Pool,
  input: { notificationId: number; actor: string; reason: string },
): Promise<ResendOutcome> {
  return withTransaction(pool, (client) => resendIn(client, input));
}

/** The same inside the caller's transaction. */
export async function resendIn(
  client: Queryable,
  input: { notificationId: number; actor: string; reason: string },
): Promise<ResendOutcome> {
  const found = await client.query<OrderRef>(
    `select merchant_id as "merchantId", order_id as "orderId" from notifications
     where notification_id = $1::bigint`,
    [input.notificationId],
  );
  const ref = found.rows[0];
  if (!ref) return { outcome: 'not_found' };
  await lockOrder(client, ref);
  const { rows } = await client.query<{ status: NotificationStatus; no_address: string | null }>(
    `select n.status, case when m.notify_url is null then 'the merchant has no address'
         when m.notify_stopped_at is not null
           then coalesce(m.notify_stopped_because, 'its address is stopped') end as no_address
     from notifications n join merchants m using (merchant_id)
     where n.notification_id = $1::bigint for update of n`,
    [input.notificationId],
  );
  const row = rows[0];
  if (!row) return { outcome: 'not_found' };
  if (row.status === 'sent') return { outcome: 'already_sent', ref };
  if (row.no_address !== null) return { outcome: 'no_address', ref, because: row.no_address };
  const { rowCount } = await client.query(
    `with again as (
       update notifications set next_due_at = now(), status = 'pending',
         tries = case when status = 'pending' then tries else 0 end
       where notification_id = $1::bigint and (status <> 'pending' or next_due_at > clock_timestamp())
       returning notification_id, merchant_id, order_id),
     others as (
       update notifications n set next_due_at = least(n.next_due_at, now()) from again
       where n.merchant_id = again.merchant_id and n.order_id = again.order_id
         and n.notification_id <> again.notification_id and n.status = 'pending')
     insert into notification_resends (notification_id, from_status, actor, reason)
     select notification_id, $2::text, $3::text, $4::text from again`,
    [input.notificationId, row.status, input.actor, input.reason],
  );
  return { outcome: 'due', ref, changed: rowCount === 1 };
}
