/**
 * 3 · De-duplication table with stored answers. The client's key is inserted before the work; the work's
 * answer is stored in the transaction that books it, and every repeat gets that answer (Stripe's
 * `Idempotency-Key`; B. Leach, "Implementing Stripe-like idempotency keys in Postgres"). A key without
 * an answer whose holder ran out of time is taken over, the channel asked first under the number that
 * follows from the key.
 *
 * Cannot: see that two keys mean one order, as two pages of it have.
 */
import { createHash, randomUUID } from 'node:crypto';
import { resumeUnknown } from './unknown-outcome';
import { idsOf } from './strategy';
import type { Order, StrategyKind } from './strategy';

/** What the channel is called with: the same for every try of one key. */
function numberOf(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 30);
}

export const storedAnswers: StrategyKind = {
  number: 3,
  usesRedis: false,
  make({ pool, channel, times }) {
    async function send(order: Order, key: string, sendBefore: number) {
      await channel.charge(order, numberOf(key), sendBefore);
      return book(order, key);
    }

    async function book(order: Order, key: string) {
      await pool.query(
        `with answered as (
           update requests set answer = $2::jsonb where key = $1::text and answer is null
           returning order_id)
         update orders o set status = 'paid' from answered where o.order_id = answered.order_id`,
        [key, JSON.stringify({ order_id: order.orderId, outcome: 'paid' })],
      );
      return 'paid' as const;
    }

    return {
      async setUp() {
        await pool.query(`
          create table orders (
            order_id text primary key, amount_minor bigint not null,
            status text not null default 'created');
          create table requests (
            key text primary key, order_id text not null, amount_minor bigint not null,
            takes integer not null default 1,
            locked_at timestamptz not null default clock_timestamp(), answer jsonb)`);
      },
      openPage: () => Promise.resolve(randomUUID()),
      async create(order) {
        await pool.query(
          `insert into orders (order_id, amount_minor) values ($1::text, $2::bigint)
           on conflict (order_id) do nothing`,
          [order.orderId, order.amountMinor],
        );
      },
      async pay(order, key) {
        // From before the key is stored or taken over: others count from then, by the database's clock.
        const sendBefore = performance.now() + times.lease;
        const inserted = await pool.query(
          `insert into requests (key, order_id, amount_minor)
           values ($1::text, $2::text, $3::bigint) on conflict (key) do nothing`,
          [key, order.orderId, order.amountMinor],
        );
        if (inserted.rowCount === 1) return send(order, key, sendBefore);
        const { rows } = await pool.query<{ answered: boolean; takes: number; age_ms: number }>(
          `select answer is not null as answered, takes,
             (extract(epoch from clock_timestamp() - locked_at) * 1000)::float8 as age_ms
           from requests where key = $1::text`,
          [key],
        );
        const request = rows[0]!;
        if (request.answered) return 'paid';
        const call = { number: numberOf(key), ageMs: request.age_ms, leaseMs: times.lease };
        switch (await resumeUnknown(channel, call)) {
          case 'wait':
            return 'busy';
          case 'book':
            return book(order, key);
          case 'send_again': {
            const sendAgainBefore = performance.now() + times.lease;
            const { rowCount } = await pool.query(
              `update requests set takes = takes + 1, locked_at = clock_timestamp()
               where key = $1::text and answer is null and takes = $2::integer`,
              [key, request.takes],
            );
            return rowCount === 1 ? send(order, key, sendAgainBefore) : 'busy';
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
