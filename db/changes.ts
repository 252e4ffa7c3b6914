import type { ChannelFact } from '../domain/channel-facts';
import type { OrderRef } from '../domain/orders';
import type { Change, Settlement } from '../domain/verdicts';
import { openCase } from './cases';
import { startFulfilment } from './fulfilment-start';
import { insertNotification } from './notifications';
import { freeOutRefundNo } from './numbers';
import { recordEvent } from './order-events';
import type { Queryable } from './transaction';
import { together } from './transaction';

export interface ChangeCause {
  verdict: string;
  /** What proved it; null for an act of ours without a channel's word. */
  fact: ChannelFact | null;
  channel: string;
  actor: string;
  /** Secret of the derived numbers (an automatic refund gets its out_refund_no here). */
  numberSecret: string;
}

/** An expected state was not found under the lock: a defect of ours, never a channel's doing. */
export class LostMoveError extends Error {
  override name = 'LostMoveError';
}

/** Changes of several statements, each of which needs the answer to the one before. */
const STEPWISE: Change['change'][] = ['refund_capture', 'insert_external_refund', 'open_case'];

/**
 * Applies a settlement's changes in the caller's transaction, which holds the order's lock. Every
 * move names the state it expects; events for the merchant come last, so that they tell the end. What
 * does not wait for an answer leaves together, in the order of the changes.
 */
export async function applyChanges(
  client: Queryable,
  ref: OrderRef,
  settlement: Pick<Settlement, 'changes'>,
  cause: ChangeCause,
): Promise<void> {
  if (settlement.changes.length === 0) return;
  let sent: Promise<unknown>[] = [];
  for (const change of settlement.changes) {
    if (change.change === 'notify') continue;
    sent.push(applyChange(client, ref, change, cause));
    if (!STEPWISE.includes(change.change)) continue;
    await together(sent);
    sent = [];
  }
  sent.push(touchOrder(client, ref, cause));
  for (const change of settlement.changes) {
    if (change.change === 'notify')
      sent.push(insertNotification(client, ref, change.event, change.subjectNo));
  }
  await together(sent);
}

async function applyChange(
  client: Queryable,
  ref: OrderRef,
  change: Exclude<Change, { change: 'notify' }>,
  cause: ChangeCause,
): Promise<unknown> {
  const event = (
    subject: 'order' | 'pay_record' | 'capture' | 'refund',
    subjectId: string | number,
    from: string | null,
    to: string,
    more?: Record<string, unknown>,
  ) =>
    recordEvent(client, ref, {
      subject,
      subjectId,
      from,
      to,
      cause: cause.verdict,
      evidence: { ...evidenceOf(cause.fact), ...more },
      actor: cause.actor,
    });

  switch (change.change) {
    case 'move_record':
      return together([
        expectOne(
          client,
          `update pay_records set status = $3::text, status_reason = coalesce($4::text, status_reason),
             channel_trade_no = coalesce($5::text, channel_trade_no), polls = 0, updated_at = now()
           where pay_record_id = $1::bigint and status = $2::text returning 1`,
          [change.payRecordId, change.from, change.to, change.reason, change.channelTradeNo],
        ),
        event('pay_record', change.payRecordId, change.from, change.to),
      ]);
    case 'insert_capture':
      return client.query(
        `with capture as (
           insert into captures (channel, channel_trade_no, merchant_id, order_id, pay_record_id,
             amount_minor, currency, payer_total_minor, settles, kind, status, reversed_minor, paid_at,
             learnt_from)
           values ($1::text, $2::text, $3::text, $4::text, $5::bigint, $6::bigint, $7::text,
             $8::bigint, $9::text = 'settling', $9::text, $10::text, $11::bigint, $12::timestamptz,
             $13::text)
           returning capture_id)
         insert into order_events
           (merchant_id, order_id, subject, subject_id, to_status, cause, evidence, actor)
         select $3::text, $4::text, 'capture', capture_id::text, $10::text, $14::text, $15::jsonb,
           $16::text
         from capture`,
        [
          cause.channel,
          change.channelTradeNo,
          ref.merchantId,
          ref.orderId,
          change.payRecordId,
          change.amountMinor,
          change.currency,
          change.payerTotalMinor,
          change.kind,
          change.status,
          change.reversedMinor,
          change.paidAt,
          cause.fact?.learntFrom ?? 'operator',
          cause.verdict,
          JSON.stringify({ ...evidenceOf(cause.fact), kind: change.kind }),
          cause.actor,
        ],
      );
    case 'correct_capture':
      return together([
        expectOne(
          client,
          `update captures set amount_minor = $2::bigint, currency = $3::text
           where capture_id = $1::bigint returning 1`,
          [change.captureId, change.amountMinor, change.currency],
        ),
        event('capture', change.captureId, null, 'corrected'),
      ]);
    case 'reverse_capture':
      return together([
        expectOne(
          client,
          `update captures set status = $3::text, reversed_minor = $4::bigint
           where capture_id = $1::bigint and status = $2::text returning 1`,
          [change.captureId, change.from, change.to, change.reversedMinor],
        ),
        event('capture', change.captureId, change.from, change.to),
      ]);
    case 'reinstate_capture':
      return together([
        expectOne(
          client,
          `update captures set status = 'captured', reversed_minor = 0, reinstated_at = now()
           where capture_id = $1::bigint and reversed_minor > 0 returning 1`,
          [change.captureId],
        ),
        event('capture', change.captureId, 'reversed', 'captured'),
      ]);
    case 'move_order':
      return together([
        expectOne(
          client,
          `update orders set status = $4::text, status_reason = $5::text,
             paid_at = case when $4::text = 'paid' then now() else paid_at end,
             closed_at = case when $4::text = 'closed' then now() else closed_at end
           where merchant_id = $1::text and order_id = $2::text and status = $3::text returning 1`,
          [ref.merchantId, ref.orderId, change.from, change.to, change.reason],
        ),
        event('order', ref.orderId, change.from, change.to),
        change.to === 'paid' ? startFulfilment(client, ref, cause) : undefined,
      ]);
    case 'close_other_attempts':
      return client.query(
        `update pay_records set close_requested_at = now(), close_reason = $4::text, polls = 0,
           next_due_at = now()
         where merchant_id = $1::text and order_id = $2::text and pay_record_id <> $3::bigint
           and status in ('created', 'submitting', 'pending') and close_requested_at is null`,
        [ref.merchantId, ref.orderId, change.exceptPayRecordId, change.reason],
      );
    case 'refund_capture':
      return refundWholeCapture(client, ref, change, cause);
    case 'move_refund':
      return together([
        expectOne(
          client,
          `update refunds set status = $3::text, status_reason = coalesce($4::text, status_reason),
             channel_refund_no = coalesce($5::text, channel_refund_no), polls = 0, updated_at = now(),
             finished_at = case when $3::text in ('succeeded', 'failed', 'returned') then now() end
           where refund_id = $1::bigint and status = $2::text returning 1`,
          [
            change.refundId,
            change.from,
            change.to,
            change.reason,
            cause.fact?.kind === 'refund' ? cause.fact.channelRefundNo : null,
          ],
        ),
        event('refund', change.refundId, change.from, change.to),
      ]);
    case 'book_refund':
      return expectOne(
        client,
        `update captures set reserved_minor = reserved_minor - $2::bigint,
           refunded_minor = refunded_minor + $3::bigint
         where capture_id = $1::bigint returning 1`,
        [change.captureId, change.releaseMinor, change.refundedMinor],
      );
    case 'release_reservation':
      return expectOne(
        client,
        `update captures set reserved_minor = reserved_minor - $2::bigint
         where capture_id = $1::bigint returning 1`,
        [change.captureId, change.amountMinor],
      );
    case 'unbook_refund':
      return expectOne(
        client,
        `update captures set refunded_minor = refunded_minor - $2::bigint
         where capture_id = $1::bigint returning 1`,
        [change.captureId, change.amountMinor],
      );
    case 'insert_external_refund': {
      const inserted = await client.query(
        `insert into refunds (merchant_id, order_id, refund_no, capture_id, channel, out_refund_no,
           amount_minor, currency, origin, status, channel_refund_no, finished_at)
         values ($1::text, $2::text, 'external:' || $5::text, $3::bigint, $4::text, $5::text,
           $6::bigint, $7::text, 'external', 'succeeded', $8::text, now())
         on conflict do nothing`,
        [
          ref.merchantId,
          ref.orderId,
          change.captureId,
          cause.channel,
          change.outRefundNo,
          change.amountMinor,
          change.currency,
          change.channelRefundNo,
        ],
      );
      if (inserted.rowCount !== 1) return;
      return together([
        client.query(
          `update captures set refunded_minor = refunded_minor + $2::bigint where capture_id = $1::bigint`,
          [change.captureId, change.amountMinor],
        ),
        event('refund', `external:${change.outRefundNo}`, null, 'succeeded'),
      ]);
    }
    case 'open_case':
      return openCase(client, ref, {
        kind: change.kind,
        summary: change.summary,
        channel: cause.channel,
        subjectNo: numberOf(cause.fact) ?? ref.orderId,
        evidence: evidenceOf(cause.fact),
      });
    case 'warn':
      return client.query(
        `insert into order_events
           (merchant_id, order_id, subject, subject_id, to_status, cause, evidence, actor)
         select $1::text, $2::text, $3::text, $4::text, 'unknown', 'unknown_state', $5::jsonb, $6::text
         where not exists (select from order_events e
           where e.merchant_id = $1::text and e.order_id = $2::text and e.subject = $3::text
             and e.subject_id = $4::text and e.cause = 'unknown_state'
             and e.evidence->>'word' = $7::text)`,
        [
          ref.merchantId,
          ref.orderId,
          change.subject,
          String(change.subjectId),
          JSON.stringify(evidenceOf(cause.fact)),
          cause.actor,
          change.word,
        ],
      );
  }
}

/**
 * Reserves the whole rest of a capture and writes its automatic refund, `auto:<capture>`, which no
 * merchant can choose. A capture has one such refund for ever.
 */
async function refundWholeCapture(
  client: Queryable,
  ref: OrderRef,
  change: Extract<Change, { change: 'refund_capture' }>,
  cause: ChangeCause,
): Promise<void> {
  const reserved = await client.query<{
    capture_id: number;
    amount_minor: number;
    currency: string;
  }>(
    `with capture as (
       select capture_id, currency, amount_minor - reserved_minor - refunded_minor - reversed_minor as rest
       from captures
       where channel = $3::text and channel_trade_no = $4::text
         and merchant_id = $1::text and order_id = $2::text)
     update captures c set reserved_minor = c.reserved_minor + capture.rest
     from capture where c.capture_id = capture.capture_id and capture.rest > 0
     returning c.capture_id, capture.rest as amount_minor, c.currency`,
    [ref.merchantId, ref.orderId, cause.channel, change.channelTradeNo],
  );
  const capture = reserved.rows[0];
  if (!capture) return;
  const refundNo = `auto:${capture.capture_id}`;
  const origin = change.origin ?? 'surplus';
  const outRefundNo = await freeOutRefundNo(client, cause.numberSecret, [
    origin,
    ref.merchantId,
    ref.orderId,
    cause.channel,
    change.channelTradeNo,
  ]);
  const { rows } = await client.query<{ refund_id: number }>(
    `insert into refunds (merchant_id, order_id, refund_no, capture_id, channel, out_refund_no,
       amount_minor, currency, reason, origin)
     values ($1::text, $2::text, $3::text, $4::bigint, $5::text, $6::text, $7::bigint, $8::text,
       $9::text, $10::text)
     returning refund_id`,
    [
      ref.merchantId,
      ref.orderId,
      refundNo,
      capture.capture_id,
      cause.channel,
      outRefundNo,
      capture.amount_minor,
      capture.currency,
      change.reason,
      origin,
    ],
  );
  await recordEvent(client, ref, {
    subject: 'refund',
    subjectId: rows[0]?.refund_id ?? refundNo,
    from: null,
    to: 'created',
    cause: cause.verdict,
    evidence: { refund_no: refundNo, amount_minor: capture.amount_minor },
    actor: 'system',
  });
}

/**
 * After any change: the order's version grows and its refund status follows from the settling
 * capture and that capture's refunds. A changed refund status is an event of its own.
 */
export async function touchOrder(
  client: Queryable,
  ref: OrderRef,
  cause: Pick<ChangeCause, 'verdict' | 'actor'>,
): Promise<void> {
  await client.query(
    `with derived as (
       select o.refund_status as before, coalesce((
         select case
           when exists (select from refunds f where f.capture_id = c.capture_id
             and f.status in ('created', 'submitting', 'processing', 'abnormal')) then 'pending'
           when c.refunded_minor = 0 then 'none'
           when c.refunded_minor + c.reversed_minor >= c.amount_minor then 'full'
           else 'partial' end
         from captures c
         where c.merchant_id = o.merchant_id and c.order_id = o.order_id and c.settles), 'none') as after
       from orders o where o.merchant_id = $1::text and o.order_id = $2::text),
     touched as (
       update orders o set version = o.version + 1, refund_status = derived.after
       from derived where o.merchant_id = $1::text and o.order_id = $2::text
       returning derived.before, derived.after)
     insert into order_events
       (merchant_id, order_id, subject, subject_id, from_status, to_status, cause, actor)
     select $1::text, $2::text, 'order', $2::text, 'refund:' || before, 'refund:' || after, $3::text,
       $4::text
     from touched where before <> after`,
    [ref.merchantId, ref.orderId, cause.verdict, cause.actor],
  );
}

async function expectOne(client: Queryable, sql: string, values: unknown[]): Promise<void> {
  const { rowCount } = await client.query(sql, values);
  if (rowCount !== 1) throw new LostMoveError(`expected state not found: ${sql.slice(0, 60)}`);
}

function numberOf(fact: ChannelFact | null): string | null {
  if (!fact) return null;
  return fact.kind === 'payment' ? fact.outTradeNo : fact.outRefundNo;
}

/** The part of a fact that goes into evidence: figures and words, no personal data. */
function evidenceOf(fact: ChannelFact | null): Record<string, unknown> {
  if (!fact) return {};
  const common = {
    channel: fact.channel,
    learnt_from: fact.learntFrom,
    learnt_at: fact.learntAt,
    word: fact.word,
    channel_trade_no: fact.channelTradeNo,
    amount_minor: fact.amountMinor,
    currency: fact.currency,
  };
  return fact.kind === 'payment'
    ? { ...common, out_trade_no: fact.outTradeNo, reversed_minor: fact.reversedMinor }
    : { ...common, out_refund_no: fact.outRefundNo, refusal_code: fact.refusalCode };
}
