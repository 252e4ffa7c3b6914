import type { FulfilmentStep } from '../domain/fulfilment';
import type { Capture, Order, OrderRef, PayRecord, Refund } from '../domain/orders';
import type { Client, Pool, Queryable } from './transaction';
import { together, withTransactionAfter } from './transaction';

/**
 * Rows as the domain names them: `order_id` becomes `orderId`, values stay as the type parsers of
 * db/transaction.ts read them. Columns that are no business of the domain may ride along.
 */
export function fromRow<T>(row: Record<string, unknown>): T {
  const result: Record<string, unknown> = {};
  for (const [column, value] of Object.entries(row)) result[nameOf(column)] = value;
  return result as T;
}

/** As many as the schema has columns. */
const namesOfColumns = new Map<string, string>();

function nameOf(column: string): string {
  let name = namesOfColumns.get(column);
  if (name === undefined) {
    name = column.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    namesOfColumns.set(column, name);
  }
  return name;
}

/** Everything of one order that a rule may want to see. */
export interface OrderState {
  order: Order;
  records: PayRecord[];
  captures: Capture[];
  refunds: Refund[];
  /** In their order; none where the merchant had no steps when the order became paid. */
  fulfilmentSteps: FulfilmentStep[];
  /** When it was read, by the database's clock. */
  readAt: string;
}

/** The order as it stands now, or undefined. */
export async function readOrder(client: Queryable, ref: OrderRef): Promise<Order | undefined> {
  const { rows } = await client.query<Record<string, unknown>>(
    `select o.*, m.late_payment_policy
     from orders o join merchants m using (merchant_id)
     where o.merchant_id = $1::text and o.order_id = $2::text`,
    [ref.merchantId, ref.orderId],
  );
  return rows[0] && fromRow<Order>(rows[0]);
}

/**
 * The order and what belongs to it, oldest first, in one round trip. Without a lock it is a picture
 * that may be outdated the next moment; decisions are made under `lockOrderState`.
 */
export async function readOrderState(
  client: Queryable,
  ref: OrderRef,
): Promise<OrderState | undefined> {
  const { rows } = await client.query<{
    o: Record<string, unknown>;
    records: Record<string, unknown>[];
    captures: Record<string, unknown>[];
    refunds: Record<string, unknown>[];
    steps: Record<string, unknown>[];
    read_at: string;
  }>(
    `select clock_timestamp() as read_at,
       to_jsonb(o) || jsonb_build_object('late_payment_policy', m.late_payment_policy) as o,
       coalesce((select jsonb_agg(to_jsonb(r) order by r.pay_record_id) from pay_records r
         where r.merchant_id = o.merchant_id and r.order_id = o.order_id), '[]') as records,
       coalesce((select jsonb_agg(to_jsonb(c) order by c.capture_id) from captures c
         where c.merchant_id = o.merchant_id and c.order_id = o.order_id), '[]') as captures,
       coalesce((select jsonb_agg(to_jsonb(f) order by f.refund_id) from refunds f
         where f.merchant_id = o.merchant_id and f.order_id = o.order_id), '[]') as refunds,
       coalesce((select jsonb_agg(to_jsonb(s) order by s.step_no) from fulfilment_steps s
         where s.merchant_id = o.merchant_id and s.order_id = o.order_id), '[]') as steps
     from orders o join merchants m using (merchant_id)
     where o.merchant_id = $1::text and o.order_id = $2::text`,
    [ref.merchantId, ref.orderId],
  );
  const row = rows[0];
  if (!row) return undefined;
  return {
    order: fromJsonRow<Order>(row.o),
    records: row.records.map(fromJsonRow<PayRecord>),
    captures: row.captures.map(fromJsonRow<Capture>),
    refunds: row.refunds.map(fromJsonRow<Refund>),
    fulfilmentSteps: row.steps.map(fromJsonRow<FulfilmentStep>),
    readAt: row.read_at,
  };
}

/**
 * Locks the order row: the first statement of every transaction that changes anything of an order.
 * False when there is no such order.
 */
export async function lockOrder(client: Queryable, ref: OrderRef): Promise<boolean> {
  const locked = await client.query(
    `select 1 from orders where merchant_id = $1::text and order_id = $2::text for update`,
    [ref.merchantId, ref.orderId],
  );
  return locked.rowCount !== 0;
}

/**
 * Locks the order row, then reads the order and what belongs to it. Two statements, because what belongs
 * to the order must be read after the lock is had; they leave together, the server keeps their order.
 */
export async function lockOrderState(
  client: Queryable,
  ref: OrderRef,
): Promise<OrderState | undefined> {
  const [locked, state] = await together([lockOrder(client, ref), readOrderState(client, ref)]);
  return locked ? state : undefined;
}

/** Runs `fn` inside one transaction that holds the order's lock, on the order as it stands under it. */
export function withLockedState<T>(
  pool: Pool,
  ref: OrderRef,
  fn: (client: Client, state: OrderState | undefined) => Promise<T>,
): Promise<T> {
  return withTransactionAfter(pool, (client) => lockOrderState(client, ref), fn);
}

/**
 * A row that PostgreSQL wrote as JSON: instants come with an offset and microseconds, here they
 * become the ISO text in UTC that is used everywhere else. Amounts stay below 2^53 (the schema's
 * domains), so JSON numbers are exact.
 */
export function fromJsonRow<T>(row: Record<string, unknown>): T {
  const result = fromRow<Record<string, unknown>>(row);
  for (const [name, value] of Object.entries(result)) {
    if (typeof value === 'string' && name.endsWith('At'))
      result[name] = new Date(value).toISOString();
  }
  return result as T;
}
