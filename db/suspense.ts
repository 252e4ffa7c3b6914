import { SUSPENSE_DAYS, SUSPENSE_MS } from '../domain/differences';
import { channelNo } from './comparison';
import type { Queryable } from './transaction';

/** Resolves what waited for another date's bill and stands in it. Returns how many. */
export async function pairSuspense(client: Queryable, channel: string): Promise<number> {
  const { rowCount } = await client.query(
    `update differences d set status = 'resolved', resolved_at = now(),
       resolution = 'the bill of ' || found.business_date::text || ' has it'
     from (
       select s.difference_id, min(b.business_date) as business_date
       from differences s
       cross join lateral (select
         coalesce(s.ours ->> 'out_refund_no', s.ours ->> 'out_trade_no') as our_no,
         case when s.kind = 'ours_only' then s.ours ->> 'channel_trade_no'
           else s.ours ->> 'channel_refund_no' end as channel_no) n
       join trade_bills b on b.channel = s.channel and b.status = 'loaded'
         and b.business_date <> s.business_date
         and b.business_date between s.business_date - $2::int and s.business_date + $2::int
       join trade_bill_lines l on l.bill_id = b.bill_id
         and l.kind = case when s.kind = 'ours_only' then 'payment' else 'refund' end
         and (l.our_hash = hashtextextended(n.our_no, 0)
             and coalesce(l.out_refund_no, l.out_trade_no) = n.our_no
           or l.their_hash = hashtextextended(n.channel_no, 0) and ${channelNo('l')} = n.channel_no)
       where s.channel = $1::text and s.status = 'suspense'
       group by s.difference_id
     ) found
     where d.difference_id = found.difference_id and d.status = 'suspense'`,
    [channel, SUSPENSE_DAYS],
  );
  return rowCount ?? 0;
}

/**
 * Resolves what waited for a refund that has come to its end: a surplus given back in full, a refund
 * that succeeded. Returns how many.
 */
export async function settleWaiting(client: Queryable, channel: string): Promise<number> {
  const { rowCount } = await client.query(
    `update differences d set status = 'resolved', resolved_at = now(),
       resolution = case when d.kind = 'duplicate_payment' then 'given back'
         else 'the refund succeeded' end
     from differences w
     left join captures c on c.capture_id = w.capture_id
     left join refunds f on f.refund_id = w.refund_id
     where w.channel = $1::text and w.status = 'waiting'
       and d.difference_id = w.difference_id and d.status = 'waiting'
       and case when w.kind = 'duplicate_payment'
         then c.refunded_minor + c.reversed_minor >= c.amount_minor
         else f.status in ('succeeded', 'returned') end`,
    [channel],
  );
  return rowCount ?? 0;
}

/**
 * What has waited long enough, of dates that have a report: in suspense until no other bill can bring
 * it, or for a refund that is not under way any more. Only a person can go on with these.
 */
export async function overdue(
  pool: Queryable,
  channel: string,
  now: string | null,
): Promise<number[]> {
  const { rows } = await pool.query<{ difference_id: number }>(
    `select d.difference_id from differences d
     join channels c on c.channel = d.channel
     join reconciliation_runs r on r.channel = d.channel and r.business_date = d.business_date
       and r.reported_at is not null
     left join captures k on k.capture_id = d.capture_id
     left join refunds f on f.refund_id = d.refund_id
     where d.channel = $1::text and (
       d.status = 'suspense' and (
         coalesce($2::timestamptz, now())
           >= (d.business_date + 1)::timestamp at time zone c.time_zone + $3::interval
         or (select count(*) from reconciliation_runs l where l.channel = d.channel
           and l.business_date between d.business_date + 1 and d.business_date + $4::int
           and l.compared_at is not null) = $4::int)
       or d.status = 'waiting' and case when d.kind = 'duplicate_payment'
         then k.reserved_minor + k.refunded_minor + k.reversed_minor < k.amount_minor
         else f.status in ('failed', 'abnormal') end)
     order by d.difference_id`,
    [channel, now, `${SUSPENSE_MS} milliseconds`, SUSPENSE_DAYS],
  );
  return rows.map((row) => row.difference_id);
}
