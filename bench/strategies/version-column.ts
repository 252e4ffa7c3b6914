/**
 * 5 · Optimistic lock with a version column. A payment is claimed by `update … where version = <read>`
 * before the call, so of two that read the same version one loses and calls nobody; the result is
 * booked by the version that the claim made. A claim that nobody booked is stale after its lease and may be
 * claimed anew, or the order would hang for ever.
 *
 * Cannot: say whether the holder of a stale claim was before or after its call.
 */
import { randomUUID } from 'node:crypto';
import { idsOf } from './strategy';
import type { StrategyKind } from './strategy';

interface Row {
  status: string;
  version: number;
  claim_age_ms: number | null;
}

export const versionColumn: StrategyKind = {
  number: 5,
  usesRedis: false,
  make({ pool, channel, times }) {
    async function read(order: { orderId: string }): Promise<Row | undefined> {
      const { rows } = await pool.query<Row>(
        `select status, version,
           (extract(epoch from clock_timestamp() - claimed_at) * 1000)::float8 as claim_age_ms
         from orders where order_id = $1::text`,
        [order.orderId],
      );
      return rows[0];
    }

    return {
      async setUp() {
        await pool.query(`
          create table orders (
            order_id text primary key, amount_minor bigint not null,
            status text not null default 'created', version integer not null default 1,
            claimed_at timestamptz, payment_no text)`);
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
        const row = await read(order);
        if (!row) throw new Error(`no order ${order.orderId}`);
        if (row.status === 'paid') return 'paid';
        if (row.status === 'paying' && (row.claim_age_ms ?? 0) < times.lease) return 'busy';
        const validUntil = performance.now() + times.lease;
        const claimed = await pool.query(
          `update orders set status = 'paying', version = version + 1, claimed_at = clock_timestamp()
           where order_id = $1::text and version = $2::integer`,
          [order.orderId, row.version],
        );
        if (claimed.rowCount !== 1) return 'busy';
        const paymentNo = randomUUID();
        await channel.charge(order, paymentNo, validUntil);
        const { rowCount } = await pool.query(
          `update orders set status = 'paid', version = version + 1, payment_no = $3::text
           where order_id = $1::text and version = $2::integer`,
          [order.orderId, row.version + 1, paymentNo],
        );
        if (rowCount !== 1) throw new Error('the claim was taken over meanwhile');
        return 'paid';
      },
      async isPaid(order) {
        return (await read(order))?.status === 'paid';
      },
      paidOrders: () => idsOf(pool, `select order_id as id from orders where status = 'paid'`),
    };
  },
};
