import { NEAR_MIDNIGHT_MS, SUSPENSE_DAYS, SUSPENSE_MS } from '../domain/differences';
import { OURS_CLASS_SQL, expectedFeeSql, lineClassSql } from './comparison-rule';
import { longQuery } from './long-transaction';
import type { Client } from './transaction';

/** What a comparison needs to know before its first statement. */
export interface Comparison {
  channel: string;
  day: string;
  /** The bill that counts. */
  billId: number;
  fileName: string;
  feeBasisPoints: number;
  /** The business date as instants, the end excluded. */
  from: string;
  to: string;
  timeZone: string;
  now: string;
  /** When the run began: an answer of the channel since then is an answer to its question. */
  startedAt: string;
  /** Loaded bills of the days around, in which the other side of a row may stand. */
  billsAround: number[];
  /** As many later bills as may bring the other side have been compared. */
  laterBillsCompared: boolean;
}

/**
 * Compares a loaded bill with our books and leaves the result in the temporary table `found`, one row
 * for each line that is not plainly equal and one for each of ours that the bill lacks; what is equal is
 * only counted (`compared`).
 *
 * The first pass reads every line and our books of the date once and lets through only what is equal in
 * every respect, so it is one hash join on narrow columns; whatever is not goes, with everything that is
 * known of it, through the whole rule. The bill's rows find our money whatever its date; of ours, the
 * business date counts.
 */
export async function compareBill(client: Client, comparison: Comparison): Promise<void> {
  // A bill's numbers fit; a spill to disk would still be right, only slower.
  // What two sides have in common is found by hashing: expressions have no statistics, from which the
  // planner would conclude that the sides multiply and had better be sorted.
  await client.query(
    `set local work_mem = '256MB'; set local hash_mem_multiplier = 2; set local enable_mergejoin = off`,
  );
  await compareAll(client, comparison);
  // Nobody else gathers statistics of temporary tables, and without them few rows look like many.
  await client.query('analyze compared');
  await findOddLines(client, comparison);
  await client.query('analyze odd');
  await findOursOnly(client, comparison);
  await classifyAll(client, comparison);
}

/** The bill's own table: named by a number, so no text of anybody's enters the statement. */
const linesOf = ({ billId }: Comparison) => `trade_bill_lines_${Number(billId)}`;

/**
 * By which number of the channel a row is known; two rows of a kind with the same are the same row. The
 * column `their_hash` is its hash.
 */
export const channelNo = (line: string) => `case
    when ${line}.kind = 'refund' then coalesce(${line}.channel_refund_no, ${line}.out_refund_no)
    else coalesce(${line}.channel_trade_no, ${line}.out_trade_no) end`;

/** The one pass: equal rows are counted per kind and currency, every other one is kept by its number. */
async function compareAll(client: Client, comparison: Comparison): Promise<void> {
  const lines = linesOf(comparison);
  // As a value and not as a table: it goes to every parallel worker, which no temporary table does.
  const { rows } = await longQuery(
    client,
    `select coalesce(array_agg(their_hash), '{}')::text as hashes from (
       select l.their_hash from (
         select their_hash from ${lines} where their_hash is not null
         group by their_hash having count(*) > 1
       ) r join ${lines} l on l.their_hash = r.their_hash
       where l.kind in ('payment', 'refund')
       group by l.their_hash, l.kind, ${channelNo('l')} having count(*) > 1
     ) r`,
  );
  // Only where a number of the channel's own is missing does it take another row to see a second refund.
  const { rows: refunds } = await longQuery(
    client,
    `select coalesce(array_agg(our_hash), '{}')::text as hashes from (
       select our_hash from ${lines} where kind = 'refund' and our_hash is not null
       group by our_hash having count(*) > 1
     ) r`,
  );
  const bp = String(Math.trunc(comparison.feeBasisPoints));
  const due = expectedFeeSql('l.amount_minor', bp);
  const fee = (sign: string) => (bp === '0' ? '' : `and l.fee_minor = ${sign}(${due})`);
  // Beside each other by columns as they are: of expressions the planner knows nothing.
  const side = (kind: 'payment' | 'refund', no: string, equal: string, books: string) => `
     select '${kind}' as kind, l.currency, l.line_no, l.amount_minor,
       case when l.line_no is null then b.our_id end as our_id,
       l.line_no is null or (b.our_id is not null and l.status = 'succeeded'
         and l.amount_minor = b.amount_minor and l.currency = b.currency and ${equal}
         and l.their_hash <> all ($4::bigint[])) is true as clean
     from (select * from ${lines} where kind = '${kind}') l full join (${books}) b on b.no = l.${no}`;
  await longQuery(
    client,
    `create temp table compared on commit drop as
     select l.kind, l.currency, case when l.clean then null else l.line_no end as line_no, l.our_id,
       count(l.line_no) as line_count, sum(l.amount_minor) as amount_minor
     from (${side(
       'payment',
       'channel_trade_no',
       `l.out_trade_no = b.out_trade_no ${fee('')}`,
       `select c.channel_trade_no as no, c.capture_id as our_id, c.amount_minor::bigint as amount_minor,
          c.currency::text as currency,
          case when c.settles or c.kind = 'held' then p.out_trade_no end as out_trade_no
        from captures c join pay_records p on p.pay_record_id = c.pay_record_id
        where c.channel = $1::text and c.status = 'captured'
          and coalesce(c.paid_at, c.learnt_at) >= $2::timestamptz
          and coalesce(c.paid_at, c.learnt_at) < $3::timestamptz`,
     )}
     union all ${side(
       'refund',
       'out_refund_no',
       `(l.channel_refund_no = b.channel_refund_no
           or (l.channel_refund_no is null or b.channel_refund_no is null)
             and l.our_hash <> all ($5::bigint[])) ${fee('-')}`,
       `select f.out_refund_no as no, f.channel_refund_no, f.refund_id as our_id, f.amount_minor::bigint as amount_minor,
          f.currency::text as currency
        from refunds f
        where f.channel = $1::text and f.status = 'succeeded'
          and coalesce(f.first_sent_at, f.created_at) >= $2::timestamptz
          and coalesce(f.first_sent_at, f.created_at) < $3::timestamptz`,
     )}
     union all
     select l.kind, l.currency, l.line_no, l.amount_minor, null, false
     from ${lines} l where l.kind not in ('payment', 'refund')
     ) l
     group by 1, 2, 3, 4`,
    [
      comparison.channel,
      comparison.from,
      comparison.to,
      rows[0]?.['hashes'],
      refunds[0]?.['hashes'],
    ],
  );
}

/**
 * Another row (x) with the number of the same refund that is the one we know by its channel's number or,
 * where we know none, comes before: at most one row is our refund. A failed one moved no money.
 */
const isOurRefund = (comesBefore: string) => `x.kind = 'refund' and x.our_hash = l.our_hash
             and x.out_refund_no = l.out_refund_no and x.status <> 'failed'
             and ${channelNo('x')} <> ${channelNo('l')}
             and (x.channel_refund_no = f.channel_refund_no
               or f.channel_refund_no is null and ${comesBefore})`;

/**
 * Every line that is not plainly equal, beside all that our books have of it. Each is looked up by a
 * unique number (`limit 1` keeps the planner from reading all of a table for a few of them).
 */
async function findOddLines(client: Client, comparison: Comparison): Promise<void> {
  // Of a row (l) whose money is of another date than this one: the bills in which it should rather stand.
  const otherBills = `select from trade_bills b join trade_bill_lines x on x.bill_id = b.bill_id
         where b.channel = $1::text and b.status = 'loaded' and b.bill_id <> $6::bigint
           and at.instant is not null
           and (at.instant < $3::timestamptz or at.instant >= $4::timestamptz)
           and (b.business_date = (at.instant at time zone $7::text)::date
             or b.business_date between $2::date - $8::int and $2::date - 1)`;
  await longQuery(
    client,
    `create temp table odd on commit drop as
     with line as (
       select l.*, row_number() over (partition by l.kind, coalesce(case
           when l.kind = 'reversal' then coalesce(l.channel_refund_no,
             concat_ws(':', l.channel_trade_no, l.out_trade_no, l.amount_minor, l.occurred_at))
           else ${channelNo('l')} end, 'line ' || l.line_no) order by l.line_no) as appearance
       from compared o join ${linesOf(comparison)} l on l.line_no = o.line_no
     ), summed as (
       select l.*, coalesce(sum(l.amount_minor) filter (where l.kind = 'reversal' and appearance = 1)
         over (partition by coalesce(l.channel_trade_no, 'line ' || l.line_no)), 0)
           as line_reversed_minor
       from line l
     )
     select l.*, c.capture_id, c.amount_minor as c_amount_minor, c.currency as c_currency,
       c.kind as c_kind, c.settles as c_settles, c.status as c_status,
       c.reserved_minor as c_reserved_minor, c.refunded_minor as c_refunded_minor,
       c.reversed_minor as c_reversed_minor, c.paid_at as c_paid_at,
       c.channel_trade_no as c_channel_trade_no,
       c.status = 'reversed' and coalesce((select max(e.created_at) from order_events e
         where e.merchant_id = c.merchant_id and e.order_id = c.order_id
           and e.subject = 'capture' and e.subject_id = c.capture_id::text
           and e.to_status = 'reversed') >= $4::timestamptz, false) as c_reversed_later,
       f.refund_id, f.refund_no, f.amount_minor as f_amount_minor, f.currency as f_currency,
       f.status as f_status, f.out_refund_no as f_out_refund_no,
       f.channel_refund_no as f_channel_refund_no,
       coalesce(f.last_call = 'query' and f.last_fact_state is not null
         and f.last_call_at >= $5::timestamptz, false) as f_answered_since,
       coalesce(own.pay_record_id, named.pay_record_id) as pay_record_id,
       coalesce(own.out_trade_no, named.out_trade_no) as r_out_trade_no,
       coalesce(own.status, named.status) as r_status,
       coalesce(c.merchant_id, f.merchant_id, named.merchant_id, paid.merchant_id) as merchant_id,
       coalesce(c.order_id, f.order_id, named.order_id, paid.order_id) as order_id,
       named.pay_record_id <> own.pay_record_id is true as names_other,
       c.capture_id is null and l.kind = 'payment' and coalesce((select true from captures s
         where s.merchant_id = named.merchant_id and s.order_id = named.order_id
           and s.settles and s.status = 'captured' limit 1), false) as order_paid,
       exists (${otherBills}
           and x.kind = l.kind and x.status = l.status
           and x.their_hash = l.their_hash and ${channelNo('x')} = ${channelNo('l')}) as in_other_bill,
       f.refund_id is not null and l.status <> 'failed' and case
         when l.channel_refund_no is not null and f.channel_refund_no is not null
           then l.channel_refund_no <> f.channel_refund_no
         else exists (select from ${linesOf(comparison)} x
             where ${isOurRefund('x.line_no < l.line_no')})
           or exists (${otherBills} and ${isOurRefund('true')}) end as second_refund
     from summed l
     left join lateral (
       select named.* from pay_records named
       where named.out_trade_no = l.out_trade_no and named.channel = $1::text limit 1
     ) named on true
     left join lateral (
       select c.* from captures c
       where l.kind in ('payment', 'reversal') and c.channel = $1::text
         and c.channel_trade_no = l.channel_trade_no
       union all
       (select c.* from captures c
        where l.kind in ('payment', 'reversal') and l.channel_trade_no is null
          and c.merchant_id = named.merchant_id and c.order_id = named.order_id
          and c.pay_record_id = named.pay_record_id
        order by c.settles desc, c.capture_id limit 1)
     ) c on true
     left join lateral (
       select own.* from pay_records own where own.pay_record_id = c.pay_record_id limit 1
     ) own on true
     left join lateral (
       select f.* from refunds f
       where l.kind = 'refund' and f.channel = $1::text
         and (f.out_refund_no = l.out_refund_no or f.channel_refund_no = l.channel_refund_no)
       order by f.out_refund_no = l.out_refund_no desc nulls last, f.refund_id limit 1
     ) f on true
     left join lateral (
       select paid.* from captures paid
       where l.kind = 'refund' and f.refund_id is null
         and paid.channel = $1::text and paid.channel_trade_no = l.channel_trade_no limit 1
     ) paid on true
     cross join lateral (
       select case when l.kind = 'payment' then coalesce(c.paid_at, c.learnt_at)
         when l.kind = 'refund' then coalesce(f.first_sent_at, f.created_at) end as instant
     ) at`,
    [
      comparison.channel,
      comparison.day,
      comparison.from,
      comparison.to,
      comparison.startedAt,
      comparison.billId,
      comparison.timeZone,
      SUSPENSE_DAYS,
    ],
  );
}

/** What our books have of the date and no line of the bill has found, and whether another bill has it. */
async function findOursOnly(client: Client, comparison: Comparison): Promise<void> {
  const around = comparison.billsAround.map(Number).join(', ');
  const elsewhere =
    around === ''
      ? 'false'
      : `exists (select from trade_bill_lines x where x.bill_id in (${around}) and x.kind = u.line_kind
           and x.our_hash = hashtextextended(u.our_no, 0)
           and coalesce(x.out_refund_no, x.out_trade_no) = u.our_no)
         or exists (select from trade_bill_lines x where x.bill_id in (${around}) and x.kind = u.line_kind
           and x.their_hash = hashtextextended(u.channel_no, 0) and ${channelNo('x')} = u.channel_no)`;
  await longQuery(
    client,
    `create temp table ours on commit drop as
     select u.*, ${elsewhere} as paired_elsewhere,
       u.instant < $1::timestamptz + $3::interval or u.instant >= $2::timestamptz - $3::interval
         or (u.finished_at is not null and (u.finished_at < $1::timestamptz + $3::interval
           or u.finished_at >= $2::timestamptz - $3::interval)) as near_midnight,
       $5::boolean or $4::timestamptz >= $2::timestamptz + $6::interval as pool_over
     from (
       select false as is_refund, 'payment' as line_kind, c.capture_id, null::bigint as refund_id, c.merchant_id, c.order_id,
         c.pay_record_id, null::text as refund_no, c.amount_minor, c.currency, c.status,
         c.channel_trade_no as channel_no, p.out_trade_no as our_no, c.kind,
         coalesce(c.paid_at, c.learnt_at) as instant, null::timestamptz as finished_at, c.paid_at
       from compared o join captures c on c.capture_id = o.our_id
       join pay_records p on p.pay_record_id = c.pay_record_id
       where o.kind = 'payment' and not exists (select from odd
         where odd.capture_id = c.capture_id and odd.kind = 'payment')
       union all
       select true, 'refund', null, f.refund_id, f.merchant_id, f.order_id, c.pay_record_id, f.refund_no,
         f.amount_minor, f.currency, f.status, f.channel_refund_no, f.out_refund_no, f.origin,
         coalesce(f.first_sent_at, f.created_at), f.finished_at, null
       from compared o join refunds f on f.refund_id = o.our_id
       join captures c on c.capture_id = f.capture_id
       where o.kind = 'refund' and not exists (select from odd where odd.refund_id = f.refund_id)
     ) u`,
    [
      comparison.from,
      comparison.to,
      `${NEAR_MIDNIGHT_MS} milliseconds`,
      comparison.now,
      comparison.laterBillsCompared,
      `${SUSPENSE_MS} milliseconds`,
    ],
  );
}

/** Instants in evidence: the same text whatever the session's time zone. */
const utc = (instant: string) =>
  `to_char(${instant} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** Puts the rule to every odd row; the subject names it the same way in every file of the date. */
async function classifyAll(client: Client, comparison: Comparison): Promise<void> {
  const bp = '$2::bigint';
  await longQuery(
    client,
    `create temp table found on commit drop as
     select kind, subject || case when nth > 1 then '#' || nth else '' end as subject, standing,
       reason, line_no, line_kind, capture_id, refund_id, merchant_id, order_id, pay_record_id,
       refund_no, amount_minor, fee_minor, currency, ours, channel_says
     from (
       select split_part(v.class, '|', 1) as kind, split_part(v.class, '|', 2) as standing,
         split_part(v.class, '|', 3) as reason, v.*,
         row_number() over (partition by split_part(v.class, '|', 1), v.subject
           order by v.line_no, v.capture_id, v.refund_id) as nth
       from (
         select ${lineClassSql(bp)} as class,
           case when l.kind in ('error', 'unknown', 'adjustment') then 'line ' || l.line_no
             else coalesce(case when l.kind = 'refund'
                 then coalesce(l.out_refund_no, l.channel_refund_no)
                 else coalesce(l.channel_trade_no, l.out_trade_no) end, 'line ' || l.line_no)
             end as subject,
           l.line_no, l.kind as line_kind, l.capture_id, l.refund_id, l.merchant_id, l.order_id,
           l.pay_record_id, l.refund_no, l.amount_minor, l.fee_minor, l.currency,
           case when l.capture_id is not null then jsonb_build_object(
               'out_trade_no', l.r_out_trade_no, 'channel_trade_no', l.c_channel_trade_no,
               'amount_minor', l.c_amount_minor, 'currency', l.c_currency, 'kind', l.c_kind,
               'state', l.c_status, 'reversed_minor', l.c_reversed_minor,
               'refunded_minor', l.c_refunded_minor, 'paid_at', ${utc('l.c_paid_at')})
             when l.refund_id is not null then jsonb_build_object(
               'refund_no', l.refund_no, 'out_refund_no', l.f_out_refund_no,
               'channel_refund_no', l.f_channel_refund_no, 'amount_minor', l.f_amount_minor,
               'currency', l.f_currency, 'state', l.f_status)
             when l.pay_record_id is not null then jsonb_build_object(
               'out_trade_no', l.r_out_trade_no, 'state', l.r_status) end as ours,
           jsonb_build_object('file', $1::text, 'line', l.line_no, 'kind', l.kind,
             'state', l.status, 'out_trade_no', l.out_trade_no,
             'channel_trade_no', l.channel_trade_no, 'out_refund_no', l.out_refund_no,
             'channel_refund_no', l.channel_refund_no, 'amount_minor', l.amount_minor,
             'currency', l.currency, 'fee_minor', l.fee_minor, 'expected_fee_minor',
             case when ${bp} > 0 and l.kind in ('payment', 'refund') and l.amount_minor >= 0 then
               case when l.kind = 'refund' then -1 else 1 end
                 * (${expectedFeeSql('l.amount_minor', bp)}) end,
             'occurred_at', ${utc('l.occurred_at')}, 'word', l.word, 'error', l.error)
             as channel_says
         from odd l
         union all
         select ${OURS_CLASS_SQL}, coalesce(case when o.is_refund then o.our_no else o.channel_no end,
             o.our_no),
           null, null, o.capture_id, o.refund_id, o.merchant_id, o.order_id, o.pay_record_id,
           o.refund_no, o.amount_minor, null, o.currency,
           case when o.is_refund then jsonb_build_object('refund_no', o.refund_no,
               'out_refund_no', o.our_no, 'channel_refund_no', o.channel_no,
               'amount_minor', o.amount_minor, 'currency', o.currency, 'state', o.status,
               'finished_at', ${utc('o.finished_at')})
             else jsonb_build_object('out_trade_no', o.our_no, 'channel_trade_no', o.channel_no,
               'amount_minor', o.amount_minor, 'currency', o.currency, 'kind', o.kind,
               'state', o.status, 'paid_at', ${utc('o.paid_at')}) end,
           null
         from ours o
       ) v
     ) v`,
    [comparison.fileName, comparison.feeBasisPoints],
  );
}
