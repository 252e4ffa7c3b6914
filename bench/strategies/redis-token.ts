/**
 * 2 · One-time token in Redis. The page carries a token; the request to pay takes it away in one atomic
 * step (GETDEL, as its advocates do; before 6.2 a Lua script), so a repeat finds none. The service then reads the order
 * and pays one that is not paid, as any service does.
 *
 * Cannot: say what became of a request whose token is gone. Its client loads the page again, gets a
 * new token, and the order's row is all that then knows.
 */
import { randomUUID } from 'node:crypto';
import { idsOf, redisOf } from './strategy';
import type { StrategyKind } from './strategy';

/** As long as a checkout page lives. */
const TOKEN_LIFE_S = 1_800;

export const redisToken: StrategyKind = {
  number: 2,
  usesRedis: true,
  make(deps) {
    const { pool, channel } = deps;
    const redis = redisOf(deps);

    async function isPaid(order: { orderId: string }): Promise<boolean> {
      const { rowCount } = await pool.query(
        `select from orders where order_id = $1::text and status = 'paid'`,
        [order.orderId],
      );
      return rowCount === 1;
    }

    return {
      async setUp() {
        await pool.query(`
          create table orders (
            order_id text primary key, amount_minor bigint not null,
            status text not null default 'created');
          create table payments (
            payment_no text not null, order_id text not null, amount_minor bigint not null,
            paid_at timestamptz not null default now())`);
      },
      async openPage(order) {
        const token = randomUUID();
        await redis.set(`token:${token}`, order.orderId, {
          expiration: { type: 'EX', value: TOKEN_LIFE_S },
        });
        return token;
      },
      async create(order) {
        await pool.query(
          `insert into orders (order_id, amount_minor) values ($1::text, $2::bigint)
           on conflict (order_id) do nothing`,
          [order.orderId, order.amountMinor],
        );
      },
      async pay(order, token) {
        if ((await redis.getDel(`token:${token}`)) !== order.orderId) return 'used';
        if (await isPaid(order)) return 'paid';
        const paymentNo = randomUUID();
        await channel.charge(order, paymentNo);
        await pool.query(
          `with booked as (
             insert into payments (payment_no, order_id, amount_minor)
             values ($1::text, $2::text, $3::bigint))
           update orders set status = 'paid' where order_id = $2::text and status = 'created'`,
          [paymentNo, order.orderId, order.amountMinor],
        );
        return 'paid';
      },
      isPaid,
      paidOrders: () => idsOf(pool, `select order_id as id from orders where status = 'paid'`),
    };
  },
};
