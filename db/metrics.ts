import type { Queryable } from './transaction';

/** One number with its labels. */
export interface Sample {
  labels: Record<string, string>;
  value: number;
}

/** A gauge read from PostgreSQL when somebody scrapes: one bounded statement each. */
export interface DatabaseGauge {
  name: string;
  help: string;
  labelNames: string[];
  read: (client: Queryable) => Promise<Sample[]>;
}

/**
 * What the books say about themselves, for `/metrics`. Counting the whole history at every scrape would
 * grow with it, so what is over is counted for a day.
 */
export const databaseGauges: readonly DatabaseGauge[] = [
  gauge(
    'payment_orders',
    'Orders by status: open and under review all of them, paid and closed those of the last 24 hours.',
    ['status'],
    `select status, count(*)::float8 as value from (
       select status from orders where status in ('created', 'paying')
       union all select status from orders where status = 'review'
       union all select status from orders
         where status in ('paid', 'closed') and created_at > now() - interval '24 hours'
     ) o group by status`,
  ),
  gauge(
    'payment_oldest_unknown_outcome_seconds',
    'Age of the oldest attempt whose outcome at the channel nobody knows; 0 when there is none.',
    [],
    `select coalesce(extract(epoch from now() - min(coalesce(first_sent_at, created_at))), 0)::float8
       as value
     from pay_records where status in ('created', 'submitting')`,
  ),
  gauge(
    'payment_oldest_pending_attempt_seconds',
    'Age of the oldest attempt that waits for its payer; 0 when there is none.',
    [],
    `select coalesce(extract(epoch from now() - min(created_at)), 0)::float8 as value
     from pay_records where status = 'pending'`,
  ),
  gauge(
    'payment_oldest_pending_refund_seconds',
    'Age of the oldest refund that is not final; 0 when there is none.',
    [],
    `select coalesce(extract(epoch from now() - min(created_at)), 0)::float8 as value
     from refunds where status in ('created', 'submitting', 'processing')`,
  ),
  gauge(
    'payment_callback_backlog',
    'Callbacks in the inbox that wait to be applied, and those for numbers nobody knows.',
    ['status'],
    `select s.status, count(c.callback_id)::float8 as value
     from unnest(array['stored', 'unmatched']) as s(status)
     left join channel_callbacks c on c.status = s.status and c.status in ('stored', 'unmatched')
     group by s.status`,
  ),
  gauge(
    'payment_callback_lag_seconds',
    'Age of the oldest callback that waits to be applied; 0 when there is none.',
    [],
    `select coalesce(extract(epoch from now() - min(last_received_at)), 0)::float8 as value
     from channel_callbacks where status = 'stored'`,
  ),
  gauge(
    'payment_callback_verdicts',
    'Callbacks of the last 24 hours by verdict.',
    ['verdict'],
    `select verdict, count(*)::float8 as value from channel_callbacks
     where verdict is not null and received_at > now() - interval '24 hours' group by verdict`,
  ),
  gauge(
    'payment_callback_duplicates',
    'Copies of callbacks of the last 24 hours that were stopped at the inbox.',
    [],
    `select coalesce(sum(copies - 1), 0)::float8 as value from channel_callbacks
     where received_at > now() - interval '24 hours'`,
  ),
  gauge(
    'payment_open_cases',
    'Cases that wait for a person, by kind.',
    ['kind'],
    `select kind, count(*)::float8 as value from cases where status = 'open' group by kind`,
  ),
  gauge(
    'payment_operator_acts_waiting',
    'Acts of operators that wait for a second person, or to be performed.',
    ['status'],
    `select s.status, count(a.act_id)::float8 as value
     from unnest(array['waiting_second', 'accepted']) as s(status)
     left join operator_acts a on a.status = s.status and a.status in ('waiting_second', 'accepted')
     group by s.status`,
  ),
  gauge(
    'payment_notifications_waiting',
    'Notifications that are neither sent nor dead.',
    [],
    `select count(*)::float8 as value from notifications where status = 'pending'`,
  ),
  gauge(
    'payment_days_without_report',
    'Business dates of the last 7 days that have ended and have no reconciliation yet, by channel.',
    ['channel'],
    `select c.channel, count(d.day) filter (where r.reported_at is null and d.day >= least(
         (c.created_at at time zone c.time_zone)::date,
         (select (min(coalesce(k.paid_at, k.learnt_at)) at time zone c.time_zone)::date
          from captures k where k.channel = c.channel)))::float8 as value
     from channels c
     cross join lateral (select (now() at time zone c.time_zone)::date - back as day
       from generate_series(1, 7) back) d
     left join reconciliation_runs r on r.channel = c.channel and r.business_date = d.day
     group by c.channel`,
  ),
  gauge(
    'payment_open_differences',
    'Differences between trade bills and our books that are no case yet, by kind and status.',
    ['kind', 'status'],
    `select kind, status, count(*)::float8 as value from differences
     where status in ('open', 'waiting', 'suspense') group by kind, status`,
  ),
];

function gauge(name: string, help: string, labelNames: string[], sql: string): DatabaseGauge {
  return {
    name,
    help,
    labelNames,
    read: async (client) => {
      const { rows } = await client.query<Record<string, string | number>>(sql);
      return rows.map(({ value, ...labels }) => ({
        labels: labels as Record<string, string>,
        value: Number(value),
      }));
    },
  };
}
