import type { Order } from '../domain/orders';
import { fromRow } from './rows';
import type { Queryable } from './transaction';

export type FoundOrder = Pick<
  Order,
  'merchantId' | 'orderId' | 'amountMinor' | 'currency' | 'status' | 'refundStatus' | 'createdAt'
> & { matched: string[] };

/** What an order can be found by. One of the three; `status` also narrows the others. */
export interface OrderSearch {
  /** A number, exactly: the order's, an attempt's, a capture's or a refund's, ours or the channel's. */
  number: string | undefined;
  amountMinor: number | undefined;
  /** `YYYY-MM-DD` of an IANA time zone: orders, captures and refunds of that day. */
  day: { date: string; zone: string } | undefined;
  status: string | undefined;
  limit: number;
}

/** One indexed look-up per way to name an order; the numbers are exact, as they are in the books. */
export const BY_NUMBER = `
  select merchant_id, order_id, 'order_id' as matched from orders where order_id = $1::text
  union all select merchant_id, order_id, 'out_trade_no' from pay_records where out_trade_no = $1::text
  union all select merchant_id, order_id, 'channel_trade_no' from pay_records
    where channel_trade_no = $1::text
  union all select merchant_id, order_id, 'channel_trade_no' from captures
    where channel_trade_no = $1::text
  union all select merchant_id, order_id, 'refund_no' from refunds where refund_no = $1::text
  union all select merchant_id, order_id, 'out_refund_no' from refunds where out_refund_no = $1::text
  union all select merchant_id, order_id, 'channel_refund_no' from refunds
    where channel_refund_no = $1::text`;

export const BY_AMOUNT = `
  select merchant_id, order_id, 'order' as matched from orders
    where amount_minor = $1::bigint
      and created_at >= ($2::date)::timestamp at time zone $3::text
      and created_at < ($2::date + 1)::timestamp at time zone $3::text
  union all select merchant_id, order_id, 'capture' from captures
    where amount_minor = $1::bigint
      and learnt_at >= ($2::date)::timestamp at time zone $3::text
      and learnt_at < ($2::date + 1)::timestamp at time zone $3::text
  union all select merchant_id, order_id, 'refund' from refunds
    where amount_minor = $1::bigint
      and created_at >= ($2::date)::timestamp at time zone $3::text
      and created_at < ($2::date + 1)::timestamp at time zone $3::text`;

export const BY_STATUS = `
  select merchant_id, order_id, 'status' as matched from orders where status = $1::text
    order by created_at desc, merchant_id, order_id`;

/** Orders of every merchant, the newest first. */
export async function searchOrders(client: Queryable, search: OrderSearch): Promise<FoundOrder[]> {
  const { sql, values } = statementOf(search);
  const status = `$${values.length + 1}::text`;
  const limit = `$${values.length + 2}::int`;
  const { rows } = await client.query<Record<string, unknown>>(
    `with found as (
       select merchant_id, order_id, array_agg(distinct matched) as matched
       from (select * from (${sql}) one limit 1000) found group by merchant_id, order_id)
     select o.merchant_id, o.order_id, o.amount_minor, o.currency, o.status, o.refund_status,
       o.created_at, f.matched
     from found f join orders o using (merchant_id, order_id)
     where ${status} is null or o.status = ${status}
     order by o.created_at desc, o.merchant_id, o.order_id limit ${limit}`,
    [...values, search.status ?? null, search.limit],
  );
  return rows.map((row) => fromRow<FoundOrder>(row));
}

function statementOf(search: OrderSearch): { sql: string; values: unknown[] } {
  if (search.number !== undefined) return { sql: BY_NUMBER, values: [search.number] };
  if (search.amountMinor !== undefined && search.day) {
    const { date, zone } = search.day;
    return { sql: BY_AMOUNT, values: [search.amountMinor, date, zone] };
  }
  return { sql: BY_STATUS, values: [search.status ?? ''] };
}
