/**
 * 4 · Distributed lock in Redis plus state machine. `SET NX PX` with a token of the holder's own, released
 * by a script that compares the token (redis.io, "Distributed locks"). Under the lock the order's state says whether
 * a payment may be made, the channel is called while the lock is still valid, and the state moves.
 *
 * Cannot: know of a call whose effect happened and whose booking did not; the state still says
 * "created" to whoever holds the lock next.
 */
import { randomUUID } from 'node:crypto';
import { idsOf, redisOf } from './strategy';
import type { StrategyKind } from './strategy';

const RELEASE = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end`;

export const redisLock: StrategyKind = {
  number: 4,
  usesRedis: true,
  make(deps) {
    const { pool, channel, times } = deps;
    const redis = redisOf(deps);

    async function stateOf(order: { orderId: string }): Promise<string | undefined> {
      const { rows } = await pool.query<{ status: string }>(
        `select status from orders where order_id = $1::text`,
        [order.orderId],
      );
      return rows[0]?.status;
    }

    return {
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
        const name = `lock:${order.orderId}`;
        const token = randomUUID();
        // The lock is valid from before it was asked for, not from when the answer came.
        const validUntil = performance.now() + times.lease;
        const taken = await redis.set(name, token, {
          condition: 'NX',
          expiration: { type: 'PX', value: times.lease },
        });
        if (taken === null) return 'busy';
        try {
          if ((await stateOf(order)) !== 'created') return 'paid';
          const paymentNo = randomUUID();
          await channel.charge(order, paymentNo, validUntil);
          await pool.query(
            `with moved as (
               update orders set status = 'paid', paid_at = now()
               where order_id = $2::text and status = 'created' returning order_id)
             insert into payments (payment_no, order_id, amount_minor)
             select $1::text, order_id, $3::bigint from moved`,
            [paymentNo, order.orderId, order.amountMinor],
          );
          return 'paid';
        } finally {
          // What cannot be released ends with its lease.
          await redis.eval(RELEASE, { keys: [name], arguments: [token] }).catch(() => undefined);
        }
      },
      isPaid: async (order) => (await stateOf(order)) === 'paid',
      paidOrders: () => idsOf(pool, `select order_id as id from orders where status = 'paid'`),
    };
  },
};
