import type { OrderRef } from '../domain/orders';
import type { StoredAct } from './act-rows';
import { fromRow } from './rows';
import type { Queryable } from './transaction';

export interface StuckOrder extends OrderRef {
  status: string;
  reasons: string[];
  dueAt: string;
}

/** Orders with work that somebody should have done by now, the longest overdue first. */
export async function stuckOrders(
  client: Queryable,
  { pastDueMs, limit }: { pastDueMs: number; limit: number },
): Promise<StuckOrder[]> {
  const { rows } = await client.query<StuckOrder>(
    `select w.merchant_id as "merchantId", w.order_id as "orderId", o.status,
       array_agg(distinct w.reason) as reasons, min(w.next_due_at) as "dueAt"
     from orders_with_work w join orders o using (merchant_id, order_id)
     where w.next_due_at < now() - make_interval(secs => $1::double precision / 1000)
     group by 1, 2, 3 order by min(w.next_due_at), 1, 2 limit $2::int`,
    [pastDueMs, limit],
  );
  return rows;
}

export interface StuckRefund extends OrderRef {
  refundNo: string;
  outRefundNo: string;
  channel: string;
  status: string;
  amountMinor: number;
  currency: string;
  createdAt: string;
}

/** Refunds that are not final for so long, and those that wait for a person, the oldest first. */
export async function oldRefunds(
  client: Queryable,
  { olderThanMs, limit }: { olderThanMs: number; limit: number },
): Promise<StuckRefund[]> {
  const { rows } = await client.query<StuckRefund>(
    `select merchant_id as "merchantId", order_id as "orderId", refund_no as "refundNo",
       out_refund_no as "outRefundNo", channel, status, amount_minor as "amountMinor", currency,
       created_at as "createdAt"
     from refunds
     where status in ('created', 'submitting', 'processing', 'abnormal')
       and (status = 'abnormal'
         or created_at < now() - make_interval(secs => $1::double precision / 1000))
     order by created_at, refund_id limit $2::int`,
    [olderThanMs, limit],
  );
  return rows;
}

/** Acts that wait for a second person, or to be performed, the oldest first. */
export async function openActs(client: Queryable, limit: number): Promise<StoredAct[]> {
  const { rows } = await client.query<Record<string, unknown>>(
    `select * from operator_acts where status in ('waiting_second', 'accepted')
     order by act_id limit $1::int`,
    [limit],
  );
  return rows.map((row) => fromRow<StoredAct>(row));
}

export interface UnmatchedCallback {
  callbackId: number;
  channel: string;
  ourNo: string;
  copies: number;
  receivedAt: string;
}

/** News for numbers nobody knows, the oldest first. */
export async function unmatchedCallbacks(
  client: Queryable,
  limit: number,
): Promise<UnmatchedCallback[]> {
  const { rows } = await client.query<UnmatchedCallback>(
    `select callback_id as "callbackId", channel, our_no as "ourNo", copies,
       received_at as "receivedAt"
     from channel_callbacks where status = 'unmatched' order by callback_id limit $1::int`,
    [limit],
  );
  return rows;
}
