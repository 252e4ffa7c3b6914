import type { EventIdentity } from './notifications';
import type { NotificationStatus } from './dead-letters';
import type { Pool, Queryable } from './transaction';
import { withTransaction } from './transaction';

/** One event as its merchant reads it, whether it was delivered or not. */
export interface FeedEvent extends EventIdentity {
  /** Its place in the merchant's feed: 1, 2, … without a gap, never changed. */
  eventNo: number;
  seq: number;
  payload: Record<string, unknown>;
  status: NotificationStatus;
  createdAt: string;
}

/** Events that one call puts into the feed; a merchant that never read has them read page by page. */
const NUMBERED_AT_ONCE_MAX = 1_000;

/**
 * The merchant's events after `afterNo`, in the order of its feed, which never skips one: an event gets
 * its number here, under the feed's lock, once it is committed. What commits later is numbered
 * later, so nobody who has read up to a number can have missed a smaller one.
 */
export async function readFeed(
  pool: Pool,
  merchantId: string,
  { afterNo, limit }: { afterNo: number; limit: number },
): Promise<FeedEvent[]> {
  const known = await page(pool, merchantId, afterNo, limit);
  if (known.length === limit || (await numberNewEvents(pool, merchantId)) === 0) return known;
  return page(pool, merchantId, afterNo, limit);
}

/** The event at a place of the feed, to see that a cursor still speaks of the same feed. */
export async function readFeedEvent(
  client: Queryable,
  merchantId: string,
  eventNo: number,
): Promise<EventIdentity | undefined> {
  const [event] = await page(client, merchantId, eventNo - 1, 1);
  return event?.eventNo === eventNo ? event : undefined;
}

async function page(
  client: Queryable,
  merchantId: string,
  afterNo: number,
  limit: number,
): Promise<FeedEvent[]> {
  const { rows } = await client.query<FeedEvent>(
    `select event_no as "eventNo", merchant_id as "merchantId", order_id as "orderId", seq,
       event_type as "eventType", subject_no as "subjectNo", payload, status,
       created_at as "createdAt"
     from notifications
     where merchant_id = $1::text and event_no > $2::bigint
     order by event_no limit $3::int`,
    [merchantId, afterNo, limit],
  );
  return rows;
}

/** @returns how many events are in the feed now that were not before */
async function numberNewEvents(pool: Pool, merchantId: string): Promise<number> {
  const { rows } = await pool.query(
    `select 1 from notifications where merchant_id = $1::text and event_no is null limit 1`,
    [merchantId],
  );
  if (rows.length === 0) return 0;
  return withTransaction(pool, async (client) => {
    await client.query(
      `insert into event_feeds (merchant_id) values ($1::text) on conflict do nothing`,
      [merchantId],
    );
    const { rows: feeds } = await client.query<{ last_event_no: number }>(
      `select last_event_no from event_feeds where merchant_id = $1::text for update`,
      [merchantId],
    );
    // A statement of its own: what it sees was committed after the lock was had, so no reader before
    // this one has numbered it, and every number given is larger than those read so far.
    const { rowCount } = await client.query(
      `with waiting as (
         select notification_id, row_number() over (order by notification_id) as place
         from (select notification_id from notifications
           where merchant_id = $1::text and event_no is null
           order by notification_id limit $3::int) w)
       update notifications n set event_no = $2::bigint + waiting.place
       from waiting where n.notification_id = waiting.notification_id`,
      [merchantId, feeds[0]?.last_event_no ?? 0, NUMBERED_AT_ONCE_MAX],
    );
    await client.query(
      `update event_feeds set last_event_no = last_event_no + $2::int where merchant_id = $1::text`,
      [merchantId, rowCount ?? 0],
    );
    return rowCount ?? 0;
  });
}
