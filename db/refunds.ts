import { stillTrue, type RefundAnswer } from '../domain/answers';
import type { RefundFact } from '../domain/channel-facts';
import type { ChannelPolicy } from '../domain/channel-policy';
import { nextTry } from '../domain/ladders';
import type { Capture, OrderRef, Refund } from '../domain/orders';
import type { RefundOutcome } from '../domain/outcomes';
import {
  decideRefund,
  nextRefundCall,
  refundStillStands,
  SENT_AGAIN_AFTER,
} from '../domain/refunds';
import { OPEN_REFUND } from '../domain/states';
import type { RefundState } from '../domain/states';
import { openCase } from './cases';
import { touchOrder } from './changes';
import { recordEvent } from './order-events';
import type { PolicyOf } from './progress';
import { adoptPaidRefund, freeRefundNumber } from './refund-numbers';
import { lockOrderState, readOrderState, withLockedState } from './rows';
import type { OrderState } from './rows';
import type { SettlementDeps } from './settle-fact';
import { settleOrElseHold } from './settle-fact';
import type { Client, Pool, Queryable } from './transaction';
import { together, withTransactionAfter } from './transaction';

/** Where a refund stands and which call comes next; waits by the database's clock. */
export interface RefundProgress {
  refundNo: string;
  status: RefundState;
  isOpen: boolean;
  channel: string;
  call: 'submit' | 'query';
  dueInMs: number;
  callTimeoutMs: number;
  polls: number;
}

/**
 * Decides a stored request for a refund under the order's lock: checks, reserves and inserts in one
 * transaction, so that refunds never exceed the capture whatever runs beside. Safe to repeat. A
 * definite refusal takes the request's row away again, so that the number stays free.
 */
export async function openRefund(
  pool: Pool,
  ref: OrderRef,
  refundNo: string,
  deps: { policyOf: PolicyOf; numberSecret: string },
): Promise<RefundOutcome> {
  const look = (client: Client) =>
    together([lockOrderState(client, ref), readRefundRequest(client, ref, refundNo)]);
  return withTransactionAfter(pool, look, async (client, [state, request]) => {
    if (!state || !request)
      return { outcome: 'refused', reason: 'request_unknown', refundableMinor: 0 };
    const known = await adoptPaidRefund(client, state, refundNo, deps.numberSecret);
    if (known) return { outcome: 'accepted', status: known, opened: false };
    const settling = state.captures.find((c) => c.settles);
    const decision = decideRefund({
      order: state.order,
      own: state.refunds.find((r) => r.refundNo === refundNo),
      refunds: state.refunds,
      settling,
      amountMinor: request.amountMinor,
      policy: settling && deps.policyOf(settling.channel),
      refundsEnabled: request.refundsEnabled,
      now: request.now,
    });
    switch (decision.decision) {
      case 'same':
        return { outcome: 'accepted', status: decision.refund.status, opened: false };
      case 'refuse':
        await client.query(
          `delete from merchant_requests where merchant_id = $1::text and order_id = $2::text
             and kind = 'refund' and request_no = $3::text`,
          [ref.merchantId, ref.orderId, refundNo],
        );
        return {
          outcome: 'refused',
          reason: decision.reason,
          refundableMinor: decision.refundableMinor,
        };
      case 'open':
        return reserveRefund(
          client,
          ref,
          refundNo,
          decision.capture,
          decision.amountMinor,
          request.reason,
          deps,
        );
    }
  });
}

async function readRefundRequest(client: Client, ref: OrderRef, refundNo: string) {
  const { rows } = await client.query<{
    amountMinor: number | null;
    reason: string;
    refundsEnabled: boolean;
    now: string;
  }>(
    `select (q.params->>'amountMinor')::bigint as "amountMinor", coalesce(q.params->>'reason', '') as reason,
       now() as now,
       coalesce((select ch.refund_enabled from captures c join channels ch using (channel)
         where c.merchant_id = q.merchant_id and c.order_id = q.order_id and c.settles), true)
         as "refundsEnabled"
     from merchant_requests q
     where q.merchant_id = $1::text and q.order_id = $2::text and q.kind = 'refund'
       and q.request_no = $3::text`,
    [ref.merchantId, ref.orderId, refundNo],
  );
  return rows[0];
}

/**
 * Reserves part of a capture; false when it does not fit. The sum is checked by the very statement
 * that reserves, so two at once cannot both fit, whoever forgot a lock.
 */
export async function reserve(
  client: Queryable,
  captureId: number,
  amountMinor: number,
): Promise<boolean> {
  const { rowCount } = await client.query(
    `update captures set reserved_minor = reserved_minor + $2::bigint
     where capture_id = $1::bigint and status = 'captured'
       and reserved_minor + refunded_minor + reversed_minor + $2::bigint <= amount_minor`,
    [captureId, amountMinor],
  );
  return rowCount === 1;
}

async function reserveRefund(
  client: Client,
  ref: OrderRef,
  refundNo: string,
  capture: Capture,
  amountMinor: number,
  reason: string,
  deps: { numberSecret: string },
): Promise<RefundOutcome> {
  if (!(await reserve(client, capture.captureId, amountMinor))) {
    return { outcome: 'refused', reason: 'over_the_rest', refundableMinor: 0 };
  }
  const outRefundNo = await freeRefundNumber(client, ref, refundNo, deps.numberSecret);
  const { rows } = await client.query<{ refund_id: number }>(
    `insert into refunds (merchant_id, order_id, refund_no, capture_id, channel, out_refund_no,
       amount_minor, currency, reason, origin)
     values ($1::text, $2::text, $3::text, $4::bigint, $5::text, $6::text, $7::bigint, $8::text,
       $9::text, 'merchant')
     returning refund_id`,
    [
      ref.merchantId,
      ref.orderId,
      refundNo,
      capture.captureId,
      capture.channel,
      outRefundNo,
      amountMinor,
      capture.currency,
      reason,
    ],
  );
  await recordEvent(client, ref, {
    subject: 'refund',
    subjectId: rows[0]?.refund_id ?? refundNo,
    from: null,
    to: 'created',
    cause: 'refund_requested',
    evidence: { refund_no: refundNo, amount_minor: amountMinor, out_refund_no: outRefundNo },
    actor: 'merchant',
  });
  await touchOrder(client, ref, { verdict: 'refund_requested', actor: 'merchant' });
  return { outcome: 'accepted', status: 'created', opened: true };
}

/** Where the refund stands now, or undefined. */
export async function readRefundProgress(
  client: Queryable,
  ref: OrderRef,
  refundNo: string,
  policyOf: PolicyOf,
): Promise<RefundProgress | undefined> {
  const state = await readOrderState(client, ref);
  const refund = state?.refunds.find((r) => r.refundNo === refundNo);
  if (!state || !refund) return undefined;
  const now = state.readAt;
  const policy = policyOf(refund.channel);
  return {
    refundNo,
    status: refund.status,
    isOpen: OPEN_REFUND.includes(refund.status),
    channel: refund.channel,
    call: nextRefundCall(refund, policy, now),
    dueInMs: Date.parse(refund.nextDueAt) - Date.parse(now),
    callTimeoutMs: policy.callTimeoutMs,
    polls: refund.polls,
  };
}

export interface RefundToSend extends Refund {
  outTradeNo: string;
  channelTradeNo: string;
  captureAmountMinor: number;
}

/**
 * Marks that the refund may now reach the channel, before it does, and returns what to send. Undefined
 * when it must not be sent now: it is no longer open, an earlier send has an outcome that no query has
 * answered since, the channel wants more time between two refunds of one capture, or its capture
 * no longer stands as it did when the refund was promised (then it is held, with a case).
 */
export async function beginRefundSubmit(
  pool: Pool,
  ref: OrderRef,
  refundNo: string,
  policyOf: PolicyOf,
): Promise<RefundToSend | undefined> {
  return withLockedState(pool, ref, async (client, state) => {
    const refund = state?.refunds.find((r) => r.refundNo === refundNo);
    const capture = state?.captures.find((c) => c.captureId === refund?.captureId);
    const record = state?.records.find((r) => r.payRecordId === capture?.payRecordId);
    if (!state || !refund || !capture || !record || !OPEN_REFUND.includes(refund.status)) {
      return undefined;
    }
    if (refund.sends === 0 && !refundStillStands(state.order, state.captures, refund)) {
      await holdRefund(client, ref, refund);
      return undefined;
    }
    if (await isTooSoon(client, state, refund, policyOf(refund.channel))) return undefined;
    const { rowCount } = await client.query(
      `update refunds set
         status = case when status = 'created' then 'submitting' else status end,
         sends = sends + 1, outcome_unknown = true, first_sent_at = coalesce(first_sent_at, now()),
         last_sent_at = now(), last_call = 'submit', last_call_at = now(), last_fact_state = null,
         refusal_code = null, updated_at = now()
       where refund_id = $1::bigint and status in ('created', 'submitting', 'processing')
         and (sends = 0 or (last_call = 'query' and last_fact_state = any ($2::text[])))`,
      [refund.refundId, SENT_AGAIN_AFTER],
    );
    if (rowCount !== 1) return undefined;
    if (refund.status === 'created') {
      await recordEvent(client, ref, {
        subject: 'refund',
        subjectId: refund.refundId,
        from: 'created',
        to: 'submitting',
        cause: 'submit',
        actor: 'system',
      });
    }
    return {
      ...refund,
      sends: refund.sends + 1,
      outTradeNo: record.outTradeNo,
      channelTradeNo: capture.channelTradeNo,
      captureAmountMinor: capture.amountMinor,
    };
  });
}

/** From `created`, or from `submitting` when its only send never left this machine. */
async function holdRefund(client: Client, ref: OrderRef, refund: Refund): Promise<void> {
  const { rowCount } = await client.query(
    `update refunds set status = 'abnormal', status_reason = 'refund_in_doubt', updated_at = now()
     where refund_id = $1::bigint and status = $2::text`,
    [refund.refundId, refund.status],
  );
  if (rowCount !== 1) throw new Error(`refund ${refund.refundNo} moved under its order's lock`);
  await recordEvent(client, ref, {
    subject: 'refund',
    subjectId: refund.refundId,
    from: refund.status,
    to: 'abnormal',
    cause: 'refund_in_doubt',
    actor: 'system',
  });
  await openCase(client, ref, {
    kind: 'refund_in_doubt',
    summary: `refund ${refund.refundNo} is held: its capture no longer stands as it did when the refund was promised`,
    channel: refund.channel,
    subjectNo: refund.outRefundNo,
    evidence: { amount_minor: refund.amountMinor },
  });
  await touchOrder(client, ref, { verdict: 'refund_in_doubt', actor: 'system' });
}

/** Keeps the channel's spacing between two refunds of one capture: due again when it has passed. */
async function isTooSoon(client: Client, state: OrderState, refund: Refund, policy: ChannelPolicy) {
  const others = state.refunds
    .filter(
      (r) => r.captureId === refund.captureId && r.refundId !== refund.refundId && r.lastSentAt,
    )
    .map((r) => Date.parse(r.lastSentAt ?? ''));
  if (others.length === 0 || policy.refundSpacingMs === 0) return false;
  const { rows } = await client.query<{ wait_ms: number }>(
    `update refunds set next_due_at = greatest(now(), $2::timestamptz)
     where refund_id = $1::bigint
     returning greatest(0, extract(epoch from $2::timestamptz - now()) * 1000)::bigint as wait_ms`,
    [refund.refundId, new Date(Math.max(...others) + policy.refundSpacingMs).toISOString()],
  );
  return (rows[0]?.wait_ms ?? 0) > 0;
}

/**
 * Settles what one call about a refund brought, and says when the next one is due. A refusal of the
 * first send is noted and confirmed by a query before it counts; an unknown outcome moves nothing.
 */
export async function applyRefundAnswer(
  pool: Pool,
  ref: OrderRef,
  input: { refundNo: string; call: 'submit' | 'query'; answer: RefundAnswer },
  deps: SettlementDeps,
): Promise<void> {
  if (input.answer.outcome === 'not_sent') return;
  await settleOrElseHold((settleFact) =>
    withLockedState(pool, ref, async (client, state) => {
      const refund = state?.refunds.find((r) => r.refundNo === input.refundNo);
      if (!state || !refund) return;
      const answer = stillTrue(input.answer, refund.lastSentAt);
      const policy = deps.policyOf(refund.channel);
      const now = state.readAt;
      let fact: RefundFact | undefined;
      let next: 'none' | 'query' = 'none';
      if (answer.outcome === 'answered') {
        fact = answer.fact;
        next = (await settleFact(client, state, fact, now, deps)).next;
      } else if (answer.outcome === 'refused') {
        next = 'query';
      }
      await noteRefundCall(client, refund, input.call, answer, fact, policy, next === 'query');
      await openAgeCase(client, ref, refund, policy, now);
    }),
  );
}

async function noteRefundCall(
  client: Client,
  refund: Refund,
  call: 'submit' | 'query',
  answer: RefundAnswer,
  fact: RefundFact | undefined,
  policy: ChannelPolicy,
  askNow: boolean,
): Promise<void> {
  const neverLeft = answer.outcome === 'never_left' && call === 'submit';
  const next = nextTry(answer, policy.refundLadderMs, refund.polls, Math.random());
  const waitMs = askNow && call === 'submit' ? 0 : next.waitMs;
  const refusalCode =
    call === 'submit' && answer.outcome === 'refused' && !answer.alreadyKnown ? answer.code : null;
  await client.query(
    `update refunds set last_call = $2::text, last_call_at = now(), last_fact_state = $3::text,
       polls = polls + case when $7::boolean then 1 else 0 end,
       -- A send that never left is taken back once, also when this step runs twice: the mark before
       -- the send is the only statement that gives both times the same value.
       sends = sends - case
         when $4::boolean and sends > 0 and last_call_at = last_sent_at then 1 else 0 end,
       outcome_unknown = case
         when $4::boolean and sends <= 1 and last_call_at = last_sent_at then false
         when $2::text = 'submit' and $3::text is not null then false
         else outcome_unknown end,
       refusal_code = coalesce($6::text, refusal_code),
       next_due_at = now() + make_interval(secs => $5::double precision / 1000),
       updated_at = now()
     where refund_id = $1::bigint`,
    [refund.refundId, call, fact?.state ?? null, neverLeft, waitMs, refusalCode, next.climbs],
  );
}

/** Past the policy's age an open refund becomes a case; its state is not moved by a clock. */
async function openAgeCase(
  client: Client,
  ref: OrderRef,
  refund: Refund,
  policy: ChannelPolicy,
  now: string,
): Promise<void> {
  if (Date.parse(now) - Date.parse(refund.createdAt) < policy.refundCaseAfterMs) return;
  const { rows } = await client.query<{ status: RefundState }>(
    `select status from refunds where refund_id = $1::bigint`,
    [refund.refundId],
  );
  if (!rows[0] || !OPEN_REFUND.includes(rows[0].status)) return;
  await openCase(client, ref, {
    kind: 'refund_overdue',
    summary: `refund ${refund.refundNo} is still ${rows[0].status} at ${refund.channel}; asking goes on`,
    channel: refund.channel,
    subjectNo: refund.outRefundNo,
    evidence: { created_at: refund.createdAt, amount_minor: refund.amountMinor },
  });
}
