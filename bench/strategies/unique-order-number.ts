/**
 * 1 · Unique order number and constraint. The number is made once, when the page opens, and goes with
 * every repeat; the payment is a row with that number as primary key, inserted before the call. Who
 * inserts it calls; who finds it there does not, and asks the channel about it if nobody books it.
 *
 * Cannot: tell two orders made for one purchase apart from two purchases; it lives by one number.
 */
import { resumeUnknown } from './unknown-outcome';
import { snowflake } from './snowflake';
import { idsOf } from './strategy';
import type { StrategyKind } from './strategy';

export const uniqueOrderNumber: StrategyKind = {
  number: 1,
  usesRedis: false,
  make({ pool, channel, times }) {
    const nextNumber = snowflake(1);

    async function send(order: { index: number }, orderNo: string, sendBefore: number) {
      await channel.charge(order, orderNo, sendBefore);
      await book(orderNo);
      return 'paid' as const;
    }

    async function book(orderNo: string): Promise<void> {
      await pool.query(
        `with booked as (
           update payments set status = 'paid', paid_at = now()
           where order_no = $1::bigint and status = 'sending' returning order_no)
         update orders o set status = 'paid' from booked
         where o.order_no = booked.order_no and o.status = 'created'`,
        [orderNo],
      );
    }

    return {
      async setUp() {
        await pool.query(`
          create table orders (
            order_no bigint primary key, order_id text not null, amount_minor bigint not null,
            status text not null default 'created');
          create table payments (
            order_no bigint primary key references orders, amount_minor bigint not null,
            status text not null default 'sending', sends integer not null default 1,
            sent_at timestamptz not null default clock_timestamp(), paid_at timestamptz)`);
      },
      openPage: (_order, earlier) => Promise.resolve(earlier ?? nextNumber()),
      async create(order, orderNo) {
        await pool.query(
          `insert into orders (order_no, order_id, amount_minor)
           values ($1::bigint, $2::text, $3::bigint) on conflict (order_no) do nothing`,
          [orderNo, order.orderId, order.amountMinor],
        );
      },
      async pay(order, orderNo) {
        // From before the record is made or moved: others count from then, by the database's clock.
        const sendBefore = performance.now() + times.lease;
        const inserted = await pool.query(
          `insert into payments (order_no, amount_minor) values ($1::bigint, $2::bigint)
           on conflict (order_no) do nothing`,
          [orderNo, order.amountMinor],
        );
        if (inserted.rowCount === 1) return send(order, orderNo, sendBefore);
        const { rows } = await pool.query<{ status: string; sends: number; age_ms: number }>(
          `select status, sends,
             (extract(epoch from clock_timestamp() - sent_at) * 1000)::float8 as age_ms
           from payments where order_no = $1::bigint`,
          [orderNo],
        );
        const payment = rows[0]!;
        if (payment.status === 'paid') return 'paid';
        const call = { number: orderNo, ageMs: payment.age_ms, leaseMs: times.lease };
        switch (await resumeUnknown(channel, call)) {
          case 'wait':
            return 'busy';
          case 'book':
            await book(orderNo);
            return 'paid';
          case 'send_again': {
            const sendAgainBefore = performance.now() + times.lease;
            const { rowCount } = await pool.query(
              `update payments set sends = sends + 1, sent_at = clock_timestamp()
               where order_no = $1::bigint and status = 'sending' and sends = $2::integer`,
              [orderNo, payment.sends],
            );
            return rowCount === 1 ? send(order, orderNo, sendAgainBefore) : 'busy';
          }
        }
      },
      async isPaid(order) {
        const { rowCount } = await pool.query(
          `select from orders where order_id = $1::text and status = 'paid'`,
          [order.orderId],
        );
        return rowCount === 1;
      },
      paidOrders: () => idsOf(pool, `select order_id as id from orders where status = 'paid'`),
    };
  },
};
