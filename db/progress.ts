import { isClosing, liveAttempt, nextCall } from '../domain/attempts';
import type { ChannelPolicy } from '../domain/channel-policy';
import { failureOf, isFulfilmentOpen } from '../domain/fulfilment';
import type { OrderRef } from '../domain/orders';
import type { AttemptProgress, OrderProgress } from '../domain/progress';
import type { RefundState } from '../domain/states';
import type { OrderState } from './rows';
import { readOrderState } from './rows';
import type { Queryable } from './transaction';

/** The policies of the channels, by channel; read before a transaction begins. */
export type PolicyOf = (channel: string) => ChannelPolicy;

/** Where the order stands now, or undefined when there is no such order. */
export async function readProgress(
  client: Queryable,
  ref: OrderRef,
  policyOf: PolicyOf,
): Promise<OrderProgress | undefined> {
  const state = await readOrderState(client, ref);
  return state && progressOf(client, state, policyOf);
}

/** The same from a state just read in this transaction. */
export async function progressOf(
  client: Queryable,
  state: OrderState,
  policyOf: PolicyOf,
): Promise<OrderProgress> {
  const { order } = state;
  const { rows } = await client.query<WorkRow>(
    `select now() as now,
       (extract(epoch from $3::timestamptz - now()) * 1000)::bigint as deadline_in_ms,
       (select (extract(epoch from min(c.next_due_at) - now()) * 1000)::bigint from channel_callbacks c
         where c.merchant_id = $1::text and c.order_id = $2::text and c.status = 'stored') as news_in_ms,
       (select (extract(epoch from min(n.next_due_at) - now()) * 1000)::bigint from notifications n
         where n.merchant_id = $1::text and n.order_id = $2::text and n.status = 'pending')
         as notification_in_ms,
       coalesce((select jsonb_agg(jsonb_build_object('refundNo', f.refund_no, 'status', f.status,
           'dueInMs', (extract(epoch from f.next_due_at - now()) * 1000)::bigint) order by f.refund_id)
         from (select * from refunds f where f.merchant_id = $1::text and f.order_id = $2::text
           and f.status in ('created', 'submitting', 'processing')
           -- Those due first: 20 that wait for weeks must not keep a new one from being started.
           order by f.next_due_at limit 20) f), '[]')
         as refunds,
       coalesce((select array_agg(distinct w.reason) from orders_with_work w
         where w.merchant_id = $1::text and w.order_id = $2::text), '{}') as reasons,
       coalesce((select array_agg(a.act_no::text order by a.act_id) from (
           select act_no, act_id from operator_acts
           where merchant_id = $1::text and order_id = $2::text and status = 'accepted'
           order by act_id limit 20) a), '{}') as acts,
       exists (select from cases k where k.merchant_id = $1::text and k.order_id = $2::text
         and k.status = 'open') as has_case`,
    [order.merchantId, order.orderId, order.expiresAt],
  );
  const work = rows[0] as WorkRow;
  const open = order.status === 'created' || order.status === 'paying';
  return {
    merchantId: order.merchantId,
    orderId: order.orderId,
    readAtMs: Date.parse(work.now),
    status: order.status,
    statusReason: order.statusReason,
    refundStatus: order.refundStatus,
    needsReview: work.has_case || order.status === 'review',
    deadlineInMs: open && !order.closeRequestedAt ? work.deadline_in_ms : null,
    attempt: attemptOf(state, policyOf, work.now),
    news: work.news_in_ms === null ? null : { dueInMs: work.news_in_ms },
    refunds: work.refunds,
    fulfilment: fulfilmentOf(state, work.now),
    notification: work.notification_in_ms === null ? null : { dueInMs: work.notification_in_ms },
    acts: work.acts,
    money: moneyOf(state),
    hasLooseSurplus: work.reasons.includes('surplus'),
    hasWork: work.reasons.length > 0,
  };
}

function attemptOf(state: OrderState, policyOf: PolicyOf, now: string): AttemptProgress | null {
  const record = liveAttempt(state.records);
  if (!record) return null;
  const policy = policyOf(record.channel);
  return {
    payRecordId: record.payRecordId,
    channel: record.channel,
    status: record.status,
    call: nextCall(state.order, record, policy, now),
    dueInMs: Date.parse(record.nextDueAt) - Date.parse(now),
    callTimeoutMs: policy.callTimeoutMs,
    polls: record.polls,
    closing: isClosing(state.order, record),
  };
}

/** At most one step has a due time: the one whose turn it is. */
function fulfilmentOf(state: OrderState, now: string): OrderProgress['fulfilment'] {
  const { order, captures, fulfilmentSteps: steps } = state;
  if (!isFulfilmentOpen(order.fulfilmentStatus)) return null;
  const step = steps.find(({ nextDueAt }) => nextDueAt !== null) ?? steps[0];
  if (!step) return null;
  return {
    status: order.fulfilmentStatus,
    stepNo: step.stepNo,
    name: step.name,
    stepsTotal: steps.length,
    dueInMs: Date.parse(step.nextDueAt ?? now) - Date.parse(now),
    mustStop:
      order.fulfilmentStatus === 'running' && failureOf({ order, captures, steps }) !== undefined,
  };
}

function moneyOf({ captures }: OrderState): OrderProgress['money'] {
  const sums = new Map<string, OrderProgress['money'][number]>();
  for (const c of captures) {
    const none = { currency: c.currency, capturedMinor: 0, refundedMinor: 0, reversedMinor: 0 };
    const sum = sums.get(c.currency) ?? none;
    sum.capturedMinor += c.amountMinor;
    sum.refundedMinor += c.refundedMinor;
    sum.reversedMinor += c.reversedMinor;
    sums.set(c.currency, sum);
  }
  return [...sums.values()];
}

interface WorkRow {
  now: string;
  deadline_in_ms: number;
  news_in_ms: number | null;
  notification_in_ms: number | null;
  refunds: { refundNo: string; status: RefundState; dueInMs: number }[];
  reasons: string[];
  acts: string[];
  has_case: boolean;
}
