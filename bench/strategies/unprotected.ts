/**
 * 0 · No protection: the control. Each delivery charges and books. The order's own row is unique all the
 * same, since every strategy's `create` may be repeated; only paying is compared.
 */
import { randomUUID } from 'node:crypto';
import { idsOf } from './strategy';
import type { StrategyKind } from './strategy';

export const unprotected: StrategyKind = {
  number: 0,
  usesRedis: false,
  make: ({ pool, channel }) => ({
    async setUp() {
      await pool.query(`
        create table orders (
          order_id text primary key, amount_minor bigint not null,
          status text not null default 'created', paid_at timestamptz);
        create table payments (
          payment_no text not null, order_id text not null, amount_minor bigint not null,
          paid_at timestamptz not null default now())`);
    },
    openPage: (order) => Promise.resolve(order.orderId),
    async create(order) {
      await pool.query(
        `insert into orders (order_id, amount_minor) values ($1::text, $2::bigint)
         on conflict (order_id) do nothing`,
        [order.orderId, order.amountMinor],
      );
    },
    async pay(order) {
      const paymentNo = randomUUID();
      await channel.charge(order, paymentNo);
      await pool.query(
        `with booked as (
           insert into payments (payment_no, order_id, amount_minor)
           values ($1::text, $2::text, $3::bigint))
         update orders set status = 'paid', paid_at = now() where order_id = $2::text`,
        [paymentNo, order.orderId, order.amountMinor],
      );
      return 'paid';
    },
    async isPaid(order) {
      const { rowCount } = await pool.query(
        `select from orders where order_id = $1::text and status = 'paid'`,
        [order.orderId],
      );
      return rowCount === 1;
    },
    paidOrders: () => idsOf(pool, `select order_id as id from orders where status = 'paid'`),
  }),
};
