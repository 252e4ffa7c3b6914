import type { OrderRef } from '../domain/orders';
import { openCase, openOrphanCase } from './cases';
import { touchOrder } from './changes';
import { lockOrder } from './rows';
import type { Pool, Queryable } from './transaction';
import { withTransaction } from './transaction';

/**
 * How long a told order is left alone: 20 s, then twice as long each time, an hour at most. What it was
 * told waits in its history; a run that cannot look for days must not reach the server's limit of
 * signals. A run that looks (or whose inbox is read) sets the count back.
 */
const NUDGE_AGAIN_AFTER = `least(interval '1 hour', interval '20 seconds' * power(2, least(o.nudges, 10) - 1))`;

/** Notes that sweep or relay told the order's run. */
export async function noteNudge(client: Queryable, ref: OrderRef): Promise<void> {
  await client.query(
    `update orders set nudges = nudges + 1, nudged_at = now()
     where merchant_id = $1::text and order_id = $2::text`,
    [ref.merchantId, ref.orderId],
  );
}

/**
 * Orders that somebody should have looked at `pastDueMs` ago. Their run is gone, or lost what it was
 * told; either way a nudge makes a run look again. Chance says which ones when there are more than
 * `limit`: those that no nudge helps stay overdue, and longest first they would keep all others away.
 */
export async function overdueOrders(
  pool: Pool,
  input: { pastDueMs: number; limit: number },
): Promise<OrderRef[]> {
  const { rows } = await pool.query<OrderRef>(
    `select merchant_id as "merchantId", order_id as "orderId"
     from orders_with_work w
     where next_due_at < now() - make_interval(secs => $1::double precision / 1000)
       and not exists (select from orders o
         where o.merchant_id = w.merchant_id and o.order_id = w.order_id
           and o.nudged_at > now() - ${NUDGE_AGAIN_AFTER})
     group by merchant_id, order_id
     order by random() limit $2::int`,
    [input.pastDueMs, input.limit],
  );
  return rows;
}

/** A run has looked at the order: unless something else is due, its next appointment is the deadline. */
export async function noteRunStarted(client: Queryable, ref: OrderRef): Promise<void> {
  await client.query(
    `update orders set next_due_at = expires_at, nudges = 0, nudged_at = null
     where merchant_id = $1::text and order_id = $2::text
       and (next_due_at <> expires_at or nudges > 0)`,
    [ref.merchantId, ref.orderId],
  );
}

/** Surplus money that nothing takes care of is put before a person. */
export async function holdLooseSurplus(pool: Pool, ref: OrderRef): Promise<void> {
  await withTransaction(pool, async (client) => {
    await lockOrder(client, ref);
    const { rows } = await client.query<{
      channel: string;
      channel_trade_no: string;
      rest: number;
      currency: string;
    }>(
      `select channel, channel_trade_no, currency,
         amount_minor - reserved_minor - refunded_minor - reversed_minor as rest
       from captures where merchant_id = $1::text and order_id = $2::text and not settles
         and status = 'captured' and amount_minor > reserved_minor + refunded_minor + reversed_minor`,
      [ref.merchantId, ref.orderId],
    );
    for (const capture of rows) {
      await openCase(client, ref, {
        kind: 'surplus_unrefunded',
        summary: `${capture.rest} ${capture.currency} (minor units) of trade ${capture.channel_trade_no} belong to no order`,
        channel: capture.channel,
        subjectNo: capture.channel_trade_no,
        evidence: {},
      });
    }
    if (rows.length > 0)
      await touchOrder(client, ref, { verdict: 'surplus_unrefunded', actor: 'system' });
  });
}

/** Callbacks for numbers nobody knows, older than their channel's bound, become a case each. */
export async function openOrphanCases(
  pool: Pool,
  input: { channel: string; olderThanMs: number },
): Promise<number> {
  const { rows } = await pool.query<{ our_no: string; fact: unknown; copies: number }>(
    `select b.our_no, b.fact, b.copies from channel_callbacks b
     where b.channel = $1::text and b.status = 'unmatched'
       and b.received_at < now() - make_interval(secs => $2::double precision / 1000)
       and not exists (select from cases k where k.channel = b.channel and k.subject_no = b.our_no
         and k.order_id is null)
     order by b.callback_id limit 100`,
    [input.channel, input.olderThanMs],
  );
  for (const row of rows) {
    await openOrphanCase(pool, {
      kind: 'unknown_number',
      summary: `${input.channel} speaks of ${row.our_no}, which is no number of ours`,
      channel: input.channel,
      subjectNo: row.our_no,
      evidence: { fact: row.fact, copies: row.copies },
    });
  }
  return rows.length;
}

/** An orphan case whose number has appeared since, its callbacks matched, needs no person any more. */
export async function closeAnsweredOrphanCases(pool: Pool): Promise<number> {
  const { rowCount } = await pool.query(
    `update cases k set status = 'closed', closed_at = now(),
       decision = '{"decided_by": "system", "reason": "the number appeared"}'
     where k.order_id is null and k.status = 'open' and k.kind = 'unknown_number'
       and not exists (select from channel_callbacks b
         where b.channel = k.channel and b.our_no = k.subject_no and b.status = 'unmatched')`,
  );
  return rowCount ?? 0;
}
