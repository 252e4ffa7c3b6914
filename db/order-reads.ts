import type { Order, OrderRef } from '../domain/orders';
import type { OrderStatus } from '../domain/states';
import { fromRow } from './rows';
import type { Queryable } from './transaction';

/** Where a page of orders ended. In microseconds, as PostgreSQL keeps them: nothing is skipped. */
export interface OrderCursor {
  createdAtMicros: number;
  orderId: string;
}

const STATUSES: readonly OrderStatus[] = ['created', 'paying', 'paid', 'closed', 'review'];

/**
 * A merchant's orders, newest first, by keyset: a page costs the same wherever it is. One index scan
 * per status, so that "all" needs no sort of everything.
 */
export async function listOrders(
  client: Queryable,
  query: {
    merchantId: string;
    status: OrderStatus | undefined;
    after: OrderCursor | undefined;
    limit: number;
  },
): Promise<{ orders: Order[]; next: OrderCursor | undefined }> {
  const { rows } = await client.query<Record<string, unknown> & { cursor_at: number }>(
    `select o.*, m.late_payment_policy, (extract(epoch from o.created_at) * 1000000)::bigint as cursor_at
     from unnest($2::text[]) as wanted(status)
     cross join lateral (
       select * from orders
       where merchant_id = $1::text and status = wanted.status
         and ($3::bigint is null or (created_at, order_id)
           < (timestamptz 'epoch' + $3::bigint * interval '1 microsecond', $4::text))
       order by created_at desc, order_id desc limit $5::int + 1
     ) o join merchants m using (merchant_id)
     order by o.created_at desc, o.order_id desc limit $5::int + 1`,
    [
      query.merchantId,
      query.status ? [query.status] : STATUSES,
      query.after?.createdAtMicros ?? null,
      query.after?.orderId ?? null,
      query.limit,
    ],
  );
  const page = rows.slice(0, query.limit);
  const last = page.at(-1);
  const orders = page.map(({ cursor_at: _, ...row }) => fromRow<Order>(row));
  const lastOrder = orders.at(-1);
  const next =
    rows.length > query.limit && last && lastOrder
      ? { createdAtMicros: last.cursor_at, orderId: lastOrder.orderId }
      : undefined;
  return { orders, next };
}

/** The versions of the orders asked for, in one statement. An order that is gone is left out. */
export async function readVersions(
  client: Queryable,
  refs: readonly OrderRef[],
): Promise<(OrderRef & { version: number })[]> {
  const { rows } = await client.query<Record<string, unknown>>(
    `select o.merchant_id, o.order_id, o.version
     from orders o
     join unnest($1::text[], $2::text[]) as wanted(merchant_id, order_id)
       on o.merchant_id = wanted.merchant_id and o.order_id = wanted.order_id`,
    [refs.map((ref) => ref.merchantId), refs.map((ref) => ref.orderId)],
  );
  return rows.map((row) => fromRow<OrderRef & { version: number }>(row));
}
