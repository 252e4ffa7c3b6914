import { decidePay, liveAttempt } from '../domain/attempts';
import type { OrderRef, PayRecord } from '../domain/orders';
import type { PayOutcome } from '../domain/outcomes';
import type { CloseReason } from '../domain/states';
import { applyChanges, touchOrder } from './changes';
import type { PayParams } from './merchant-requests';
import { deriveNumber } from './numbers';
import { recordEvent } from './order-events';
import type { OrderState } from './rows';
import { fromRow, lockOrder, lockOrderState, withLockedState } from './rows';
import type { Client, Pool } from './transaction';
import { together, withTransactionAfter } from './transaction';

/** `wait`: another attempt is on its way out; ask again once it is. */
export type OpenAttemptResult = PayOutcome | { outcome: 'wait'; payRecordId: number };

/**
 * Decides a stored request to pay under the order's lock and opens the attempt if the rules allow:
 * the pay record is committed, with its number fixed, before anything is sent. Safe to repeat. A
 * definite refusal takes the request's row away again, so that it binds nothing.
 */
export async function openAttempt(
  pool: Pool,
  ref: OrderRef,
  requestNo: string,
  deps: { numberSecret: string },
): Promise<OpenAttemptResult> {
  const look = (client: Client) =>
    together([lockOrderState(client, ref), readPayRequest(client, ref, requestNo)]);
  return withTransactionAfter(pool, look, async (client, [state, request]) => {
    if (!state || !request) return { outcome: 'refused', reason: 'request_unknown' };
    const { order, records, captures } = state;
    const settling = captures.find((c) => c.settles);
    const decision = decidePay({
      order,
      records,
      own: records.find((r) => r.payRecordId === request.payRecordId),
      settled: records.find((r) => r.payRecordId === settling?.payRecordId),
      channel: request.params.channel,
      channelEnabled: request.channelEnabled,
      now: request.now,
    });
    switch (decision.decision) {
      case 'same':
        return served(decision.record, false);
      case 'join':
        await bindRequest(client, ref, requestNo, decision.record.payRecordId);
        return served(decision.record, false);
      case 'paid':
        await bindRequest(client, ref, requestNo, decision.record.payRecordId);
        return { outcome: 'paid', payRecordId: decision.record.payRecordId };
      case 'close_first':
        await requestAttemptClose(client, decision.record, 'replaced');
        return { outcome: 'wait', payRecordId: decision.record.payRecordId };
      case 'refuse':
        await forgetRequest(client, ref, requestNo);
        return { outcome: 'refused', reason: decision.reason };
      case 'open': {
        const record = await insertPayRecord(client, state, requestNo, request.params, deps);
        await together([
          noteAttempt(client, state, record, deps),
          bindRequest(client, ref, requestNo, record.payRecordId),
        ]);
        return served(record, true);
      }
    }
  });
}

function served(record: PayRecord, opened: boolean): PayOutcome {
  return { outcome: 'attempt', payRecordId: record.payRecordId, status: record.status, opened };
}

async function readPayRequest(client: Client, ref: OrderRef, requestNo: string) {
  const { rows } = await client.query<{
    params: PayParams;
    payRecordId: number | null;
    channelEnabled: boolean;
    now: string;
  }>(
    `select q.params, q.pay_record_id as "payRecordId", now() as now,
       coalesce((select c.pay_enabled from channels c where c.channel = q.params->>'channel'), false)
         as "channelEnabled"
     from merchant_requests q
     where q.merchant_id = $1::text and q.order_id = $2::text and q.kind = 'pay'
       and q.request_no = $3::text`,
    [ref.merchantId, ref.orderId, requestNo],
  );
  return rows[0];
}

async function bindRequest(client: Client, ref: OrderRef, requestNo: string, payRecordId: number) {
  await client.query(
    `update merchant_requests set pay_record_id = $4::bigint
     where merchant_id = $1::text and order_id = $2::text and kind = 'pay' and request_no = $3::text
       and pay_record_id is null`,
    [ref.merchantId, ref.orderId, requestNo, payRecordId],
  );
}

async function forgetRequest(client: Client, ref: OrderRef, requestNo: string) {
  await client.query(
    `delete from merchant_requests
     where merchant_id = $1::text and order_id = $2::text and kind = 'pay' and request_no = $3::text
       and pay_record_id is null`,
    [ref.merchantId, ref.orderId, requestNo],
  );
}

/** A collision of 150 derived bits does not happen; a forced one gets the next number, once or twice. */
const COLLISIONS_MAX = 5;

async function insertPayRecord(
  client: Client,
  { order }: OrderState,
  requestNo: string,
  params: PayParams,
  { numberSecret }: { numberSecret: string },
): Promise<PayRecord> {
  for (let counter = 0; counter < COLLISIONS_MAX; counter++) {
    const outTradeNo = deriveNumber(
      numberSecret,
      ['pay', order.merchantId, order.orderId, params.channel, requestNo],
      counter,
    );
    const { rows } = await client.query<Record<string, unknown>>(
      `insert into pay_records (merchant_id, order_id, channel, request_no, out_trade_no, amount_minor,
         currency, method, return_url, client_ip, payer)
       select $1::text, $2::text, $3::text, $4::text, $5::text, $6::bigint, $7::text, $8::text, $9::text,
         $10::text, $11::jsonb
       where not exists (select from pay_records where out_trade_no = $5::text)
       returning *`,
      [
        order.merchantId,
        order.orderId,
        params.channel,
        requestNo,
        outTradeNo,
        order.amountMinor,
        order.currency,
        params.method ?? null,
        params.returnUrl ?? null,
        params.clientIp ?? null,
        params.payer ? JSON.stringify(params.payer) : null,
      ],
    );
    if (rows[0]) return fromRow<PayRecord>(rows[0]);
  }
  throw new Error(`no free number for order ${order.orderId} after ${COLLISIONS_MAX} tries`);
}

/** What a new attempt means for its order, and for news that was told under its number before. */
async function noteAttempt(
  client: Client,
  { order }: OrderState,
  { payRecordId, channel, outTradeNo, requestNo }: PayRecord,
  { numberSecret }: { numberSecret: string },
): Promise<void> {
  const cause = { verdict: 'pay_requested', actor: 'merchant', channel, fact: null };
  await together([
    recordEvent(client, order, {
      subject: 'pay_record',
      subjectId: payRecordId,
      from: null,
      to: 'created',
      cause: 'pay_requested',
      evidence: { request_no: requestNo, channel, out_trade_no: outTradeNo },
      actor: 'merchant',
    }),
    order.status === 'created'
      ? applyChanges(
          client,
          order,
          { changes: [{ change: 'move_order', from: 'created', to: 'paying', reason: null }] },
          { ...cause, numberSecret },
        )
      : touchOrder(client, order, cause),
    // A number that comes back from an old backup may have been told by the channel meanwhile.
    client.query(
      `update channel_callbacks set status = 'stored', merchant_id = $1::text, order_id = $2::text,
         next_due_at = now()
       where channel = $3::text and our_no = $4::text and status = 'unmatched'`,
      [order.merchantId, order.orderId, channel, outTradeNo],
    ),
  ]);
}

async function requestAttemptClose(
  client: Client,
  record: PayRecord,
  reason: string,
): Promise<void> {
  await client.query(
    `update pay_records set close_requested_at = now(), close_reason = $2::text, polls = 0,
       next_due_at = now()
     where pay_record_id = $1::bigint and close_requested_at is null
       and status in ('created', 'submitting', 'pending')`,
    [record.payRecordId, reason],
  );
}

/**
 * Asks an order to close (deadline or cancel). Without a live attempt it closes at once; with one the
 * attempt is first taken through query → close → query. Nothing happens to an order that is not open.
 */
export async function requestOrderClose(
  pool: Pool,
  ref: OrderRef,
  input: { reason: CloseReason; actor: string; numberSecret: string },
): Promise<void> {
  await withLockedState(pool, ref, async (client, state) => {
    if (!state) return;
    const { order, records } = state;
    if (order.status !== 'created' && order.status !== 'paying') return;
    const { rows } = await client.query<{ close_reason: CloseReason }>(
      `update orders set close_requested_at = coalesce(close_requested_at, now()),
         close_reason = coalesce(close_reason, $3::text)
       where merchant_id = $1::text and order_id = $2::text
         and ($3::text <> 'expired' or expires_at <= now() or close_requested_at is not null)
       returning close_reason`,
      [ref.merchantId, ref.orderId, input.reason],
    );
    const reason = rows[0]?.close_reason;
    if (!reason) return;
    const live = liveAttempt(records);
    if (live) return requestAttemptClose(client, live, reason);
    await applyChanges(
      client,
      ref,
      {
        changes: [
          { change: 'move_order', from: order.status, to: 'closed', reason },
          { change: 'notify', event: 'order.closed', subjectNo: '' },
        ],
      },
      {
        verdict: reason,
        fact: null,
        channel: '',
        actor: input.actor,
        numberSecret: input.numberSecret,
      },
    );
  });
}

/**
 * Marks that a call may now reach the channel, before it does, and returns what to send; undefined
 * when it must not be sent: the order takes no money any more, or an earlier send of this number has
 * an outcome that no query has answered since (a query comes before any retry).
 */
export async function beginSubmit(
  pool: Pool,
  ref: OrderRef,
  payRecordId: number,
): Promise<(PayRecord & { subject: string; expiresAt: string }) | undefined> {
  return withLockedState(pool, ref, async (client, state) => {
    const record = state?.records.find((r) => r.payRecordId === payRecordId);
    if (!state || !record) return undefined;
    const { order } = state;
    const wanted =
      (order.status === 'created' || order.status === 'paying') &&
      order.closeRequestedAt === null &&
      record.closeRequestedAt === null;
    if (!wanted) return undefined;
    const { rowCount } = await client.query(
      `update pay_records set
         status = case when status = 'created' then 'submitting' else status end,
         sends = sends + 1, outcome_unknown = true, first_sent_at = coalesce(first_sent_at, now()),
         last_sent_at = now(), last_call = 'submit', last_call_at = now(), last_fact_state = null,
         updated_at = now()
       where pay_record_id = $1::bigint and status in ('created', 'submitting', 'pending')
         and (sends = 0 or (last_call = 'query' and last_fact_state in ('not_found', 'pending')))`,
      [payRecordId],
    );
    if (rowCount !== 1) return undefined;
    if (record.status === 'created') {
      await recordEvent(client, ref, {
        subject: 'pay_record',
        subjectId: payRecordId,
        from: 'created',
        to: 'submitting',
        cause: 'submit',
        actor: 'system',
      });
    }
    return {
      ...record,
      sends: record.sends + 1,
      subject: order.subject,
      expiresAt: order.expiresAt,
    };
  });
}

/**
 * Keeps what the payer needs next; a later answer for the same number replaces it. An answer that
 * comes after the attempt's end (a call that outlived its activity) changes nothing.
 */
export async function savePayParameters(
  pool: Pool,
  ref: OrderRef,
  payRecordId: number,
  parameters: NonNullable<PayRecord['payParameters']>,
): Promise<void> {
  const look = (client: Client) => lockOrder(client, ref);
  await withTransactionAfter(pool, look, async (client) => {
    await client.query(
      `with saved as (
         update pay_records set pay_parameters = $2::jsonb, updated_at = now()
         where pay_record_id = $1::bigint and status in ('created', 'submitting', 'pending')
         returning merchant_id, order_id)
       update orders o set version = o.version + 1 from saved
       where o.merchant_id = saved.merchant_id and o.order_id = saved.order_id`,
      [payRecordId, JSON.stringify(parameters)],
    );
  });
}
