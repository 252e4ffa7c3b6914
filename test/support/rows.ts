/** Rows written straight into the tables, around the product's own code: for tests of the schema. */
import type pg from 'pg';

type Client = Pick<pg.ClientBase, 'query'>;
type Values = Record<string, unknown>;

/** Inserts a row and gives it back as the database holds it. */
export async function insertRow(client: Client, table: string, values: Values): Promise<Values> {
  const names = Object.keys(values);
  const { rows } = await client.query<Values>(
    `insert into ${table} (${names.join(', ')})
     values (${names.map((_, i) => `$${i + 1}`).join(', ')}) returning *`,
    Object.values(values),
  );
  return rows[0] ?? {};
}

/** The merchant `shop` and the channels `ch-a` and `ch-b`. */
export async function insertMerchantAndChannels(client: Client): Promise<void> {
  await insertRow(client, 'merchants', { merchant_id: 'shop', name: 'The shop' });
  for (const channel of ['ch-a', 'ch-b'])
    await insertRow(client, 'channels', {
      channel,
      adapter: 'mock-a',
      account_id: 'acc',
      app_id: 'app',
      gateway_url: 'http://127.0.0.1:9',
    });
}

let last = 0;
const nextNo = () => (last += 1);

/** An order of `shop` over 100.00 CNY, due in half an hour. */
export function insertOrder(client: Client, said: Values = {}): Promise<Values> {
  return insertRow(client, 'orders', {
    merchant_id: 'shop',
    order_id: `o-${nextNo()}`,
    amount_minor: 10_000,
    currency: 'CNY',
    subject: 'two cups',
    expires_at: new Date(Date.now() + 30 * 60_000),
    ...said,
  });
}

/** An attempt at `ch-a` to pay the order. */
export function insertPayRecord(client: Client, order: Values, said: Values = {}): Promise<Values> {
  const no = nextNo();
  return insertRow(client, 'pay_records', {
    merchant_id: order['merchant_id'],
    order_id: order['order_id'],
    channel: 'ch-a',
    request_no: `k-${no}`,
    out_trade_no: `OUT${no}`,
    amount_minor: 10_000,
    currency: 'CNY',
    ...said,
  });
}

/** Money that the attempt brought, settling the order. */
export function insertCapture(client: Client, record: Values, said: Values = {}): Promise<Values> {
  return insertRow(client, 'captures', {
    merchant_id: record['merchant_id'],
    order_id: record['order_id'],
    channel: record['channel'],
    pay_record_id: record['pay_record_id'],
    channel_trade_no: `T${nextNo()}`,
    amount_minor: 10_000,
    currency: 'CNY',
    settles: true,
    kind: 'settling',
    learnt_from: 'callback',
    ...said,
  });
}

/** A merchant's refund of 30.00 of the capture. */
export function insertRefund(client: Client, capture: Values, said: Values = {}): Promise<Values> {
  const no = nextNo();
  return insertRow(client, 'refunds', {
    merchant_id: capture['merchant_id'],
    order_id: capture['order_id'],
    channel: capture['channel'],
    capture_id: capture['capture_id'],
    refund_no: `r-${no}`,
    out_refund_no: `OUTR${no}`,
    amount_minor: 3_000,
    currency: 'CNY',
    origin: 'merchant',
    ...said,
  });
}
