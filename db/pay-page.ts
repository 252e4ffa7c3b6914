import type { OrderRef } from '../domain/orders';
import type { Queryable } from './transaction';

/** Whose order a payer's link names, or undefined. */
export async function readPayLink(
  client: Queryable,
  payToken: string,
): Promise<(OrderRef & { merchantName: string }) | undefined> {
  const { rows } = await client.query<{ merchant_id: string; order_id: string; name: string }>(
    `select o.merchant_id, o.order_id, m.name
     from orders o join merchants m using (merchant_id) where o.pay_token = $1::text`,
    [payToken],
  );
  const [row] = rows;
  return row && { merchantId: row.merchant_id, orderId: row.order_id, merchantName: row.name };
}
