import { fromRow, readOrder } from './rows';
import type { Pool, Queryable } from './transaction';
import type { Order } from '../domain/orders';

export interface NewOrder {
  merchantId: string;
  orderId: string;
  amountMinor: number;
  currency: string;
  subject: string;
  expiresInS: number;
  metadata: Record<string, unknown>;
  returnUrl: string | null;
  /** Who made it, for the order's history: `merchant:<key id>`. */
  actor: string;
}

/**
 * Stores the order, or finds the one that has its number. Returns the stored row either way;
 * `same` says whether its content is what was asked for now.
 */
export async function insertOrder(
  pool: Pool,
  order: NewOrder,
): Promise<{ order: Order; inserted: boolean; same: boolean }> {
  const { rows } = await pool.query<Record<string, unknown>>(
    `with new_order as (
       insert into orders (merchant_id, order_id, amount_minor, currency, subject, metadata,
         expires_at, return_url)
       values ($1::text, $2::text, $3::bigint, $4::text, $5::text, $6::jsonb,
         now() + $7::int * interval '1 second', $9::text)
       on conflict (merchant_id, order_id) do nothing
       returning *
     ), event as (
       insert into order_events (merchant_id, order_id, subject, subject_id, to_status, cause, actor)
       select merchant_id, order_id, 'order', order_id, status, 'created', $8::text
       from new_order
     )
     select o.*, m.late_payment_policy from new_order o join merchants m using (merchant_id)`,
    [
      order.merchantId,
      order.orderId,
      order.amountMinor,
      order.currency,
      order.subject,
      JSON.stringify(order.metadata),
      order.expiresInS,
      order.actor,
      order.returnUrl,
    ],
  );
  if (rows[0]) return { order: fromRow<Order>(rows[0]), inserted: true, same: true };
  // A new statement sees the row that was in the way, committed by now.
  const stored = await readOrder(pool, order);
  if (!stored) throw new Error(`order ${order.merchantId}/${order.orderId} vanished`);
  return { order: stored, inserted: false, same: await isSameContent(pool, order) };
}

/** Compared where it is kept: jsonb knows no order of keys, and the lifetime is a difference. */
async function isSameContent(client: Queryable, order: NewOrder): Promise<boolean> {
  const { rowCount } = await client.query(
    `select from orders
     where merchant_id = $1::text and order_id = $2::text and amount_minor = $3::bigint
       and currency = $4::text and subject = $5::text and metadata = $6::jsonb
       and expires_at = created_at + $7::int * interval '1 second'
       and return_url is not distinct from $8::text`,
    [
      order.merchantId,
      order.orderId,
      order.amountMinor,
      order.currency,
      order.subject,
      JSON.stringify(order.metadata),
      order.expiresInS,
      order.returnUrl,
    ],
  );
  return rowCount === 1;
}
