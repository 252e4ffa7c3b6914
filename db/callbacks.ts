import { createHash } from 'node:crypto';
import { storableFact } from '../domain/channel-facts';
import type { ChannelFact } from '../domain/channel-facts';
import type { OrderRef } from '../domain/orders';
import { fromRow } from './rows';
import type { OrderState } from './rows';
import { lockOrderState } from './rows';
import { together, withTransaction, withTransactionAfter } from './transaction';
import type { Client, Pool, Queryable } from './transaction';

/** How long a ring may stay unanswered before the relay rings again. */
export const RING_AGAIN_AFTER_MS = 3_000;

export type CallbackStatus = 'stored' | 'applied' | 'no_effect' | 'unmatched';

export interface StoredCallback {
  status: CallbackStatus;
  /** The order the news is about, unless nobody knows the number. */
  ref: OrderRef | undefined;
  copies: number;
  /** Whether the order's run must be told: it was not told of any news it has not read yet. */
  ring: boolean;
}

/** Our number the fact names: an out_trade_no or an out_refund_no. */
export function ourNoOf(fact: ChannelFact): string {
  return fact.kind === 'payment' ? fact.outTradeNo : fact.outRefundNo;
}

/**
 * SHA-256 over the business facts. Times, notice ids and payer totals are left out: the same news
 * under another notice id is the same news, and a notice that changed nothing never blocks a later
 * one that does.
 */
export function factSha256(fact: ChannelFact): Buffer {
  const facts =
    fact.kind === 'payment'
      ? [fact.outTradeNo, fact.channelTradeNo, fact.amountMinor, fact.currency, fact.reversedMinor]
      : [
          fact.outRefundNo,
          fact.channelRefundNo,
          fact.outTradeNo,
          fact.channelTradeNo,
          fact.amountMinor,
          fact.currency,
          fact.refusalCode,
        ];
  const state = fact.state === 'unknown' ? `unknown:${fact.word}` : fact.state;
  return createHash('sha256')
    .update(JSON.stringify([fact.kind, state, fact.accountId, fact.appId, ...facts]), 'utf8')
    .digest();
}

/**
 * The order that (channel, our number) belongs to; never looked up by the merchant's order id. A
 * refund we never made (somebody paid back at the channel's own desk) has a number of somebody else;
 * the payment's number, which is ours, then says whose money it was.
 */
export async function findOrderByOurNo(
  client: Queryable,
  fact: ChannelFact,
): Promise<OrderRef | undefined> {
  const { rows } = await client.query<Record<string, unknown>>(
    fact.kind === 'payment'
      ? `select merchant_id, order_id from pay_records
         where channel = $1::text and out_trade_no = $2::text`
      : `select merchant_id, order_id from (
           select merchant_id, order_id, 1 as choice from refunds
           where channel = $1::text and out_refund_no = $2::text
           union all
           select merchant_id, order_id, 2 from pay_records
           where channel = $1::text and out_trade_no = $3::text
         ) found order by choice limit 1`,
    fact.kind === 'payment'
      ? [fact.channel, fact.outTradeNo]
      : [fact.channel, fact.outRefundNo, fact.outTradeNo],
  );
  return rows[0] && fromRow<OrderRef>(rows[0]);
}

/** Whether the trade number already belongs to a capture of another order. */
export async function isTradeNoTakenElsewhere(
  client: Queryable,
  fact: ChannelFact,
  ref: OrderRef,
): Promise<boolean> {
  if (fact.kind !== 'payment' || fact.channelTradeNo === null) return false;
  const { rowCount } = await client.query(
    `select from captures where channel = $1::text and channel_trade_no = $2::text
       and (merchant_id, order_id) <> ($3::text, $4::text)`,
    [fact.channel, fact.channelTradeNo, ref.merchantId, ref.orderId],
  );
  return rowCount !== 0;
}

/**
 * Puts a verified fact into the inbox. Committed when this returns, so the channel may then be told
 * that we have it. The order is locked first, as on every path, so the verdict is about the order as
 * it stands.
 *
 * @param hasNoEffect the pure verdict: whether the fact would change nothing
 */
export async function storeCallback(
  pool: Pool,
  toldFact: ChannelFact,
  rawBody: Buffer,
  hasNoEffect: (state: OrderState, tradeNoTakenElsewhere: boolean) => boolean,
): Promise<StoredCallback> {
  const fact = storableFact(toldFact);
  const look = (client: Client) => findOrderByOurNo(client, fact);
  return withTransactionAfter(pool, look, async (client, ref) => {
    const [state, takenElsewhere] = ref
      ? await together([lockOrderState(client, ref), isTradeNoTakenElsewhere(client, fact, ref)])
      : [undefined, false];
    const isKnown = state !== undefined && hasNoEffect(state, takenElsewhere);
    const status: CallbackStatus = !ref ? 'unmatched' : isKnown ? 'no_effect' : 'stored';
    const { rows } = await client.query<{ status: CallbackStatus; copies: number }>(
      // The row stays what it is, unless the same news is news again, or its number was found.
      `insert into channel_callbacks as c (channel, fact_sha256, fact, event_id, our_no, raw_body,
         status, verdict, merchant_id, order_id, applied_at, next_due_at)
       values ($1::text, $2::bytea, $3::jsonb, $4::text, $5::text, $6::bytea, $7::text,
         case when $7::text = 'no_effect' then 'no_effect' end, $8::text, $9::text,
         case when $7::text = 'no_effect' then now() end,
         now() + $10::int * interval '1 millisecond')
       on conflict (channel, fact_sha256) do update set
         copies = c.copies + 1,
         last_received_at = now(),
         merchant_id = coalesce(c.merchant_id, excluded.merchant_id),
         order_id = coalesce(c.order_id, excluded.order_id),
         status = case
           when c.status = 'unmatched' and excluded.status <> 'unmatched' then 'stored'
           when c.status in ('applied', 'no_effect') and excluded.status = 'stored' then 'stored'
           else c.status end,
         verdict = case
           when c.status in ('applied', 'no_effect') and excluded.status = 'stored' then null
           else c.verdict end,
         next_due_at = case
           when c.status <> 'stored' and excluded.status = 'stored' then excluded.next_due_at
           else c.next_due_at end
       returning status, copies`,
      [
        fact.channel,
        factSha256(fact),
        JSON.stringify(fact),
        fact.eventId,
        ourNoOf(fact),
        rawBody,
        status,
        ref?.merchantId ?? null,
        ref?.orderId ?? null,
        RING_AGAIN_AFTER_MS,
      ],
    );
    const stored = rows[0]!;
    const ring =
      ref !== undefined && stored.status === 'stored' && (await ringDoorbell(client, ref));
    return { ...stored, ref, ring };
  });
}

/** True for the one caller whose ring is outstanding now; the run takes it down when it reads. */
async function ringDoorbell(client: Queryable, ref: OrderRef): Promise<boolean> {
  const { rowCount } = await client.query(
    `update orders set doorbell_rung_at = now()
     where merchant_id = $1::text and order_id = $2::text and doorbell_rung_at is null`,
    [ref.merchantId, ref.orderId],
  );
  return rowCount === 1;
}

/**
 * The orders whose stored news nobody read in time, each once, for the relay to ring again. Rows are
 * put off by `againAfterMs`, twice as long after each ring that reached the run, and two relays never take the same ones.
 */
export async function takeWaitingCallbacks(
  pool: Pool,
  { limit, againAfterMs }: { limit: number; againAfterMs: number },
): Promise<OrderRef[]> {
  return withTransaction(pool, async (client) => {
    const { rows } = await client.query<Record<string, unknown>>(
      `with waiting as (
         select callback_id from channel_callbacks
         where status = 'stored' and order_id is not null and next_due_at <= now()
         order by next_due_at limit $1::int
         for update skip locked
       ), put_off as (
         update channel_callbacks c set next_due_at = now() + least(interval '1 hour',
           $2::int * interval '1 millisecond' * power(2, least(o.nudges, 10)))
         from waiting w, orders o
         where c.callback_id = w.callback_id
           and o.merchant_id = c.merchant_id and o.order_id = c.order_id
         returning c.merchant_id, c.order_id
       )
       select distinct merchant_id, order_id from put_off`,
      [limit, againAfterMs],
    );
    return rows.map((row) => fromRow<OrderRef>(row));
  });
}

/**
 * Gives news whose number was unknown to its order, once the number has appeared, and makes it due.
 * Returns how many rows were matched.
 */
export async function matchLateNumbers(client: Queryable, limit: number): Promise<number> {
  const { rowCount } = await client.query(
    `with found as (
       select c.callback_id, o.merchant_id, o.order_id
       from channel_callbacks c
       join lateral (
         select merchant_id, order_id from pay_records r
         where c.fact->>'kind' = 'payment' and r.channel = c.channel and r.out_trade_no = c.our_no
         union all
         select merchant_id, order_id from refunds f
         where c.fact->>'kind' = 'refund' and f.channel = c.channel and f.out_refund_no = c.our_no
         union all
         select merchant_id, order_id from pay_records r
         where c.fact->>'kind' = 'refund' and r.channel = c.channel
           and r.out_trade_no = c.fact->>'outTradeNo'
         limit 1
       ) o on true
       where c.status = 'unmatched'
       limit $1::int
       for update of c skip locked
     )
     update channel_callbacks c set status = 'stored', next_due_at = now(),
       merchant_id = f.merchant_id, order_id = f.order_id
     from found f where c.callback_id = f.callback_id and c.status = 'unmatched'`,
    [limit],
  );
  return rowCount ?? 0;
}
