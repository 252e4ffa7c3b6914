import type { Queryable } from './transaction';

/** One figure of the desk's first page: how many, and how much in minor units (exact, as text). */
export interface GlanceFigure {
  what: 'paid' | 'refunded' | 'open' | 'review';
  currency: string;
  count: number;
  sumMinor: string;
}

/**
 * Paid and refunded on the date of the zone (by the channel's instant of payment; by when the refund was
 * sent, once it has succeeded), and what is open and under review now. Per currency.
 */
export const GLANCE = `
  with day as (
    select ($1::date)::timestamp at time zone $2::text as from_at,
      ($1::date + 1)::timestamp at time zone $2::text as to_at)
  select 'paid' as what, m.currency, count(*)::int as count, sum(m.amount_minor)::text as "sumMinor"
  from day, channels ch join captures m on m.channel = ch.channel
  where m.settles and m.status = 'captured'
    and coalesce(m.paid_at, m.learnt_at) >= from_at and coalesce(m.paid_at, m.learnt_at) < to_at
  group by m.currency
  union all
  select 'refunded', m.currency, count(*)::int, sum(m.amount_minor)::text
  from day, channels ch join refunds m on m.channel = ch.channel
  where m.status = 'succeeded'
    and coalesce(m.first_sent_at, m.created_at) >= from_at
    and coalesce(m.first_sent_at, m.created_at) < to_at
  group by m.currency
  union all
  select case when status = 'review' then 'review' else 'open' end, currency, count(*)::int,
    sum(amount_minor)::text
  from orders where status in ('created', 'paying', 'review')
  group by 1, 2
  order by 1, 2`;

export async function readGlance(
  client: Queryable,
  day: { date: string; zone: string },
): Promise<GlanceFigure[]> {
  const { rows } = await client.query<GlanceFigure>(GLANCE, [day.date, day.zone]);
  return rows;
}

/** Buckets of time that a chart shows: so many, the last one under way. */
export interface Span {
  unit: 'hour' | 'day';
  count: number;
  zone: string;
}

export interface SuccessBucket {
  /** Its first instant. */
  at: string;
  orders: number;
  paid: number;
}

/** Every bucket of the span, also those in which nothing was: in the zone's own hours and days. */
const BUCKETS = `
  buckets as (
    select b as local, b at time zone $3::text as from_at
    from generate_series(
      date_trunc($1::text, now() at time zone $3::text) - ($2::int - 1) * ('1 ' || $1::text)::interval,
      date_trunc($1::text, now() at time zone $3::text), ('1 ' || $1::text)::interval) b)`;

/** Of the orders that were created in each hour or day: how many are paid by now. */
export const SUCCESS = `
  with ${BUCKETS}
  select from_at as at, coalesce(o.orders, 0)::int as orders, coalesce(o.paid, 0)::int as paid
  from buckets b left join (
    select date_trunc($1::text, created_at at time zone $3::text) as local, count(*) as orders,
      count(paid_at) as paid
    from orders where created_at >= (select min(from_at) from buckets) group by 1) o using (local)
  order by local`;

export async function readSuccess(client: Queryable, span: Span): Promise<SuccessBucket[]> {
  const { rows } = await client.query<SuccessBucket>(SUCCESS, [span.unit, span.count, span.zone]);
  return rows;
}

export interface LagBucket {
  at: string;
  callbacks: number;
  /** From the arrival of a callback to its settlement, seconds: half of them at most, and 95 of 100. */
  medianS: number | null;
  p95S: number | null;
}

/** How long callbacks that came in each hour or day waited until they were applied. */
export const LAG = `
  with ${BUCKETS}
  select from_at as at, coalesce(c.callbacks, 0)::int as callbacks, c.median_s as "medianS",
    c.p95_s as "p95S"
  from buckets b left join (
    select date_trunc($1::text, received_at at time zone $3::text) as local, count(*) as callbacks,
      percentile_cont(0.5) within group (order by extract(epoch from applied_at - received_at))
        as median_s,
      percentile_cont(0.95) within group (order by extract(epoch from applied_at - received_at))
        as p95_s
    from channel_callbacks
    where received_at >= (select min(from_at) from buckets) and applied_at is not null
    group by 1) c using (local)
  order by local`;

export async function readCallbackLag(client: Queryable, span: Span): Promise<LagBucket[]> {
  const { rows } = await client.query<LagBucket>(LAG, [span.unit, span.count, span.zone]);
  return rows;
}
