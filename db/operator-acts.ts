import type { ActChange, ActContext, ActState, Asks } from '../domain/operator-acts';
import { decideAct } from '../domain/operator-acts';
import type { OrderRef } from '../domain/orders';
import type { ActOutcome } from '../domain/outcomes';
import { SEND_AGAIN } from '../domain/refunds';
import { LIVE_ATTEMPT, OPEN_REFUND } from '../domain/states';
import type { Change } from '../domain/verdicts';
import { finishAct, readAct } from './act-rows';
import type { ActResult, StoredAct } from './act-rows';
import { lockActState } from './act-state';
import { closeCase, readOpenCase } from './cases';
import { applyChanges, LostMoveError, touchOrder } from './changes';
import { freeOutRefundNo } from './numbers';
import { recordEvent } from './order-events';
import type { PolicyOf } from './progress';
import { reserve } from './refunds';
import type { Client, Pool } from './transaction';
import { withTransaction } from './transaction';
import { isUnbookable } from './unbookable';

/** What an act came to, and whom the order's run asks or tells because of it. */
export interface PerformedAct {
  outcome: ActOutcome;
  /** Pay records to ask the channel about. */
  ask: number[];
  /** Refunds whose child is told to look. */
  tell: string[];
  /** Refunds whose child is to start (again). */
  start: string[];
}

interface ActDeps {
  policyOf: PolicyOf;
  numberSecret: string;
}

/**
 * Performs an accepted act under the order's lock, in one transaction with its result. Safe to repeat: an
 * act that has ended is not performed again, and one that the database refuses ends as refused.
 */
export async function performAct(
  pool: Pool,
  ref: OrderRef,
  actNo: string,
  deps: ActDeps,
): Promise<PerformedAct> {
  try {
    return await withTransaction(pool, (client) => performOnce(client, ref, actNo, deps));
  } catch (error) {
    // It would fail the same way whenever it is tried, and must not hold up the order's run.
    if (!isUnbookable(error)) throw error;
    await finishAct(pool, actNo, 'refused', { reason: 'not_bookable' });
    return nothingFollows({ outcome: 'refused', reason: 'not_bookable' });
  }
}

async function performOnce(
  client: Client,
  ref: OrderRef,
  actNo: string,
  deps: ActDeps,
): Promise<PerformedAct> {
  const asked = await readAct(client, actNo);
  const state = await lockActState(client, ref, asked?.callbackId ?? null);
  // Read again behind the lock: another run may just have performed it.
  const act = await readAct(client, actNo);
  if (!state || !act || act.merchantId !== ref.merchantId || act.orderId !== ref.orderId) {
    return nothingFollows({ outcome: 'act_unknown' });
  }
  if (act.status !== 'accepted') return nothingFollows(outcomeOf(act));
  const decision = decideAct(state, act, await contextOf(client, act, deps));
  if (decision.decision === 'refuse') {
    await finishAct(client, actNo, 'refused', { reason: decision.reason });
    return nothingFollows({ outcome: 'refused', reason: decision.reason });
  }
  const actor = `operator:${act.actorKey}`;
  const applied = await applyFirst(client, state, act, decision.first, deps.numberSecret);
  await applyChanges(
    client,
    ref,
    { changes: [...decision.then, ...applied.tell] },
    { verdict: act.kind, fact: null, channel: '', actor, numberSecret: deps.numberSecret },
  );
  if (decision.then.length === 0 && decision.first.length > 0) {
    await touchOrder(client, ref, { verdict: act.kind, actor });
  }
  const asks = await followUp(client, state, decision.asks);
  await finishAct(client, actNo, 'done', await resultOf(client, ref, applied.refundNos));
  return { outcome: { outcome: 'done' }, ...asks, start: applied.refundNos };
}

async function contextOf(
  client: Client,
  act: StoredAct,
  { policyOf }: ActDeps,
): Promise<ActContext> {
  const { rows } = await client.query<{ channel: string; enabled: boolean; now: string }>(
    `select channel, refund_enabled as enabled, now() as now from channels`,
  );
  const isUsable = (channel: string) => {
    try {
      return Boolean(policyOf(channel));
    } catch {
      return false;
    }
  };
  return {
    now: rows[0]?.now ?? new Date().toISOString(),
    policyOf,
    refundsEnabled: (channel) =>
      isUsable(channel) && rows.some((row) => row.channel === channel && row.enabled),
    confirmed: act.secondKey !== null,
  };
}

/** Applies what only acts change. Returns the refunds it made and what the merchant must be told. */
async function applyFirst(
  client: Client,
  state: ActState,
  act: StoredAct,
  changes: readonly ActChange[],
  numberSecret: string,
): Promise<{ refundNos: string[]; tell: Change[] }> {
  const { order } = state;
  const refundNos: string[] = [];
  const tell: Change[] = [];
  const event = (
    subject: 'capture' | 'refund',
    subjectId: number,
    from: string | null,
    to: string,
    evidence: object,
  ) =>
    recordEvent(client, order, {
      subject,
      subjectId,
      from,
      to,
      cause: act.kind,
      evidence: { act_no: act.actNo, ...evidence },
      actor: `operator:${act.actorKey}`,
    });

  for (const change of changes) {
    switch (change.change) {
      case 'give_up_refund': {
        const { refund } = change;
        await expectOne(
          client,
          `with given_up as (
             update refunds set status = 'failed', status_reason = 'given_up', updated_at = now(),
               finished_at = now()
             where refund_id = $1::bigint and status = 'abnormal' and sends = 0
             returning capture_id, amount_minor)
           update captures c set reserved_minor = c.reserved_minor - g.amount_minor
           from given_up g where c.capture_id = g.capture_id`,
          [refund.refundId],
        );
        await event('refund', refund.refundId, 'abnormal', 'failed', {});
        if (refund.origin === 'merchant') {
          tell.push({ change: 'notify', event: 'refund.failed', subjectNo: refund.refundNo });
        }
        break;
      }
      case 'unsettle_capture':
        await expectOne(
          client,
          `update captures set settles = false, kind = 'held'
           where capture_id = $1::bigint and settles`,
          [change.captureId],
        );
        await event('capture', change.captureId, null, 'corrected', { settles: false });
        break;
      case 'settle_capture':
        await expectOne(
          client,
          `update captures set settles = true, kind = 'settling'
           where capture_id = $1::bigint and not settles and status = 'captured'`,
          [change.captureId],
        );
        await event('capture', change.captureId, null, 'corrected', { settles: true });
        break;
      case 'open_refund':
        await openActRefund(client, state, act, change, numberSecret, event);
        refundNos.push(change.refundNo);
        break;
      case 'send_refund_again':
        await expectOne(
          client,
          `update refunds set status = 'submitting', last_call = 'query', polls = 0,
             last_fact_state = $2::text, next_due_at = now(), updated_at = now()
           where refund_id = $1::bigint and status = 'abnormal'`,
          [change.refund.refundId, SEND_AGAIN],
        );
        await event('refund', change.refund.refundId, 'abnormal', 'submitting', {});
        refundNos.push(change.refund.refundNo);
        break;
      case 'close_case':
        await closeDecided(client, state, act, change);
        break;
      case 'await_refunds':
      case 'grow_case':
        await growCase(client, state, act, change.change === 'await_refunds');
        break;
      case 'add_evidence':
        await addNote(client, state, act);
        break;
    }
  }
  return { refundNos, tell };
}

async function openActRefund(
  client: Client,
  { order }: ActState,
  act: StoredAct,
  change: Extract<ActChange, { change: 'open_refund' }>,
  numberSecret: string,
  event: (
    subject: 'refund',
    subjectId: number,
    from: null,
    to: string,
    evidence: object,
  ) => Promise<void>,
): Promise<void> {
  const { capture, refundNo, amountMinor, origin } = change;
  if (!(await reserve(client, capture.captureId, amountMinor))) {
    throw new LostMoveError(`capture ${capture.captureId} has no ${amountMinor} left to reserve`);
  }
  // From business ids only: a database restored from a backup makes the same number.
  const outRefundNo = await freeOutRefundNo(client, numberSecret, [
    'act',
    order.merchantId,
    order.orderId,
    act.actNo,
    capture.channel,
    capture.channelTradeNo,
  ]);
  const { rows } = await client.query<{ refund_id: number }>(
    `insert into refunds (merchant_id, order_id, refund_no, capture_id, channel, out_refund_no,
       amount_minor, currency, reason, origin)
     values ($1::text, $2::text, $3::text, $4::bigint, $5::text, $6::text, $7::bigint, $8::text,
       left($9::text, 256), $10::text)
     returning refund_id`,
    [
      order.merchantId,
      order.orderId,
      refundNo,
      capture.captureId,
      capture.channel,
      outRefundNo,
      amountMinor,
      capture.currency,
      act.reason,
      origin,
    ],
  );
  await event('refund', rows[0]?.refund_id ?? 0, null, 'created', {
    refund_no: refundNo,
    amount_minor: amountMinor,
    out_refund_no: outRefundNo,
  });
}

function decisionOf(act: StoredAct): object {
  return {
    act_no: act.actNo,
    kind: act.kind,
    decided_by: act.actorKey,
    name: act.actorName,
    reason: act.reason,
    evidence: act.evidence,
    second: act.secondKey,
    second_name: act.secondName,
    second_reason: act.secondReason,
  };
}

async function closeDecided(
  client: Client,
  { order, openCase }: ActState,
  act: StoredAct,
  settled: Extract<ActChange, { change: 'close_case' }>,
): Promise<void> {
  const isClosed =
    openCase &&
    (await closeCase(client, order, {
      ...openCase,
      decision: {
        ...decisionOf(act),
        settled_captures: settled.settledCaptures,
        settled_differences: settled.settledDifferences,
      },
      cause: act.kind,
      actor: `operator:${act.actorKey}`,
    }));
  if (!isClosed) throw new LostMoveError(`the case of ${order.orderId} is another by now`);
}

/** Its version grows with the decision; `awaits`: it closes by itself when the refunds have arrived. */
async function growCase(
  client: Client,
  { openCase }: ActState,
  act: StoredAct,
  awaits: boolean,
): Promise<void> {
  await expectOne(
    client,
    `update cases set version = version + 1, decision = case when $3::boolean
         then $4::jsonb || jsonb_build_object('awaits_version', version + 1) else decision end
     where case_id = $1::bigint and version = $2::int and status = 'open'`,
    [openCase?.caseId ?? 0, openCase?.version ?? 0, awaits, JSON.stringify(decisionOf(act))],
  );
}

async function addNote(client: Client, { openCase }: ActState, act: StoredAct): Promise<void> {
  await expectOne(
    client,
    `update cases set version = version + 1, evidence = evidence || jsonb_build_array(
         jsonb_build_object('kind', 'note', 'summary', $2::text, 'at', now(), 'act_no', $3::text,
           'by', $4::text))
     where case_id = $1::bigint and status = 'open'`,
    [openCase?.caseId ?? 0, act.reason, act.actNo, act.actorName],
  );
}

/** Makes due what the act wants looked at. */
async function followUp(
  client: Client,
  { order, records, refunds }: ActState,
  asks: Asks,
): Promise<Pick<PerformedAct, 'ask' | 'tell'>> {
  if (asks.callbackId !== null) {
    await client.query(
      `update channel_callbacks set status = 'stored', verdict = null, next_due_at = now()
       where callback_id = $1::bigint and merchant_id = $2::text and order_id = $3::text
         and status in ('stored', 'applied', 'no_effect')`,
      [asks.callbackId, order.merchantId, order.orderId],
    );
  }
  if (!asks.channel) return { ask: [], tell: [] };
  const values = [order.merchantId, order.orderId];
  await client.query(
    `update pay_records set next_due_at = now() where merchant_id = $1::text and order_id = $2::text
       and status in ('created', 'submitting', 'pending')`,
    values,
  );
  await client.query(
    `update refunds set next_due_at = now() where merchant_id = $1::text and order_id = $2::text
       and status in ('created', 'submitting', 'processing')`,
    values,
  );
  return {
    ask: records
      .filter((r) => r.sends > 0 && !LIVE_ATTEMPT.includes(r.status))
      .slice(-ASKED_MAX)
      .map((r) => r.payRecordId),
    tell: refunds
      .filter((r) => OPEN_REFUND.includes(r.status))
      .slice(-ASKED_MAX)
      .map((r) => r.refundNo),
  };
}

/** An order with more attempts than this is asked about the newest: one act makes no storm. */
const ASKED_MAX = 10;

async function resultOf(client: Client, ref: OrderRef, refundNos: string[]): Promise<ActResult> {
  const { rows } = await client.query<{ status: string }>(
    `select status from orders where merchant_id = $1::text and order_id = $2::text`,
    [ref.merchantId, ref.orderId],
  );
  const open = await readOpenCase(client, ref);
  return { orderStatus: rows[0]?.status ?? '', caseStatus: open ? 'open' : null, refundNos };
}

function outcomeOf({ status, result }: StoredAct): ActOutcome {
  return status === 'refused' && result?.reason
    ? { outcome: 'refused', reason: result.reason }
    : { outcome: status };
}

function nothingFollows(outcome: ActOutcome): PerformedAct {
  return { outcome, ask: [], tell: [], start: [] };
}

async function expectOne(client: Client, sql: string, values: unknown[]): Promise<void> {
  const { rowCount } = await client.query(sql, values);
  if (rowCount !== 1) throw new LostMoveError(`expected state not found: ${sql.slice(0, 60)}`);
}
