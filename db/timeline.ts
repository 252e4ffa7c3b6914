import type { OrderRef } from '../domain/orders';
import type { Queryable } from './transaction';

/**
 * What the timeline is made of: one statement per kind of entry, all of one order ($1, $2). Each gives
 * `at`, `no` (the row's own number) and `data`. Entries of one instant keep the order of this list.
 * `isPrivate`: only operators see it. To show more of an order, add a source here.
 */
const SOURCES: readonly { kind: string; isPrivate?: true; sql: string }[] = [
  {
    kind: 'request',
    isPrivate: true,
    sql: `select created_at as at, 0::bigint as no,
        jsonb_build_object('asked', kind, 'number', request_no, 'pay_record_id', pay_record_id::text)
          as data
      from merchant_requests`,
  },
  {
    kind: 'attempt',
    sql: `select created_at, pay_record_id,
        jsonb_build_object('pay_record_id', pay_record_id::text, 'channel', channel,
          'request_no', request_no, 'out_trade_no', out_trade_no,
          'channel_trade_no', channel_trade_no, 'amount', amount_minor, 'currency', currency,
          'status', status, 'status_reason', status_reason, 'sends', sends)
      from pay_records`,
  },
  {
    // Of the calls to a channel the last one is kept, and how many there were.
    kind: 'call',
    sql: `select last_call_at, pay_record_id,
        jsonb_build_object('pay_record_id', pay_record_id::text, 'channel', channel,
          'out_trade_no', out_trade_no, 'call', last_call, 'answer', last_fact_state, 'calls', polls)
      from pay_records`,
  },
  {
    kind: 'callback',
    sql: `select received_at, callback_id,
        jsonb_build_object('callback_id', callback_id::text, 'channel', channel, 'our_no', our_no,
          'about', fact->>'kind', 'state', fact->>'state', 'word', fact->>'word',
          'amount', fact->'amountMinor', 'currency', fact->'currency', 'status', status,
          'verdict', verdict, 'copies', copies)
      from channel_callbacks`,
  },
  {
    kind: 'capture',
    sql: `select learnt_at, capture_id,
        jsonb_build_object('capture_id', capture_id::text, 'channel', channel,
          'channel_trade_no', channel_trade_no, 'amount', amount_minor, 'currency', currency,
          'settles', settles, 'kind', kind, 'status', status, 'refunded', refunded_minor,
          'reversed', reversed_minor, 'learnt_from', learnt_from)
      from captures`,
  },
  {
    kind: 'refund',
    sql: `select created_at, refund_id,
        jsonb_build_object('refund_no', refund_no, 'out_refund_no', out_refund_no,
          'capture_id', capture_id::text, 'channel', channel, 'amount', amount_minor,
          'currency', currency, 'origin', origin, 'status', status, 'status_reason', status_reason)
      from refunds`,
  },
  {
    kind: 'refund_call',
    sql: `select last_call_at, refund_id,
        jsonb_build_object('refund_no', refund_no, 'channel', channel, 'call', last_call,
          'answer', last_fact_state, 'calls', polls)
      from refunds`,
  },
  {
    kind: 'act',
    isPrivate: true,
    sql: `select created_at, act_id,
        jsonb_build_object('act_no', act_no, 'act', kind, 'by', actor_key, 'name', actor_name,
          'reason', reason, 'capture_id', capture_id::text, 'amount', amount_minor,
          'refund_no', refund_no, 'status', status, 'result', result)
      from operator_acts`,
  },
  {
    kind: 'act_confirmed',
    isPrivate: true,
    sql: `select confirmed_at, act_id,
        jsonb_build_object('act_no', act_no, 'by', second_key, 'name', second_name,
          'reason', second_reason)
      from operator_acts`,
  },
  {
    kind: 'move',
    sql: `select created_at, event_id,
        jsonb_build_object('subject', subject, 'subject_id', subject_id, 'from', from_status,
          'to', to_status, 'cause', cause, 'actor', actor, 'evidence', evidence)
      from order_events`,
  },
  {
    kind: 'difference',
    isPrivate: true,
    sql: `select first_seen_at, difference_id,
        jsonb_build_object('channel', channel, 'business_date', business_date::text, 'kind', kind,
          'reason', reason, 'subject', subject, 'line', line_no, 'status', status, 'ours', ours,
          'channel_says', channel_says, 'resolved_at', resolved_at, 'resolution', resolution)
      from differences`,
  },
  {
    kind: 'case',
    sql: `select opened_at, case_id,
        jsonb_build_object('case_id', case_id::text, 'kind', kind, 'status', status,
          'version', version)
      from cases`,
  },
  {
    kind: 'case_evidence',
    isPrivate: true,
    sql: `select (e.said->>'at')::timestamptz, k.case_id,
        jsonb_build_object('case_id', k.case_id::text) || (e.said - 'at')
      from cases k, jsonb_array_elements(k.evidence) e(said)
      where k.merchant_id = $1::text and k.order_id = $2::text`,
  },
  {
    kind: 'fulfilment_call',
    sql: `select last_sent_at, step_no::bigint,
        jsonb_build_object('step', name, 'step_no', step_no, 'status', status, 'tries', tries,
          'undo_tries', undo_tries, 'outcome_unknown', outcome_unknown)
      from fulfilment_steps`,
  },
  {
    kind: 'notification',
    sql: `select created_at, notification_id,
        jsonb_build_object('notification_id', notification_id::text, 'seq', seq,
          'type', event_type, 'subject', subject_no, 'status', status, 'tries', tries)
      from notifications`,
  },
  {
    kind: 'notification_try',
    sql: `select t.tried_at, t.try_id,
        jsonb_build_object('notification_id', n.notification_id::text, 'seq', n.seq,
          'type', n.event_type, 'http_status', t.status, 'error', t.error)
      from notifications n join notification_tries t using (notification_id)
      where n.merchant_id = $1::text and n.order_id = $2::text`,
  },
];

const OF_ORDER = 'where merchant_id = $1::text and order_id = $2::text';

const TIMELINE = SOURCES.map(
  ({ kind, isPrivate, sql }, rank) =>
    `select '${kind}' as kind, ${rank} as rank, ${isPrivate ?? false} as is_private, s.*
     from (${/\bwhere\b/.test(sql) ? sql : `${sql} ${OF_ORDER}`}) s(at, no, data)`,
).join('\nunion all\n');

export interface TimelineEntry {
  at: string;
  kind: string;
  data: Record<string, unknown>;
}

/** Where a page ended: instant in microseconds, rank of the kind, the row's number. */
export type TimelineCursor = [atMicros: number, rank: number, no: number];

/**
 * Everything that is recorded of an order, oldest first. The order of entries is the same on every
 * reading: by instant, then by kind, then by the row's own number.
 */
export async function readTimeline(
  client: Queryable,
  ref: OrderRef,
  page: { withPrivate: boolean; after: TimelineCursor | undefined; limit: number },
): Promise<{ entries: TimelineEntry[]; next: TimelineCursor | undefined }> {
  const { rows } = await client.query<TimelineEntry & { cursor: TimelineCursor }>(
    `select at, kind, data, jsonb_build_array(micros, rank, no) as cursor
     from (select t.*, (extract(epoch from at) * 1000000)::bigint as micros from (${TIMELINE}) t) t
     where at is not null and ($3::boolean or not is_private)
       and ($4::bigint is null or (micros, rank, no) > ($4::bigint, $5::int, $6::bigint))
     order by micros, rank, no, data::text limit $7::int + 1`,
    [
      ref.merchantId,
      ref.orderId,
      page.withPrivate,
      page.after?.[0] ?? null,
      page.after?.[1] ?? null,
      page.after?.[2] ?? null,
      page.limit,
    ],
  );
  const entries = rows.slice(0, page.limit);
  return {
    entries: entries.map(({ at, kind, data }) => ({ at, kind, data })),
    next: rows.length > page.limit ? entries.at(-1)?.cursor : undefined,
  };
}
