/** The steps of a paid order: written when it becomes paid, moved by answers, undone in reverse. */
import type { FulfilmentPolicy, FulfilmentStep, StepAnswer, StepCall } from '../domain/fulfilment';
import { isFulfilmentOpen, nextFulfilmentAct } from '../domain/fulfilment';
import { jittered, rung } from '../domain/ladders';
import type { OrderRef } from '../domain/orders';
import type { FulfilmentStatus } from '../domain/states';
import { openCase } from './cases';
import { touchOrder } from './changes';
import { advance, moveStep, noteMove, stateOf, stepOf, timeoutOf } from './fulfilment-moves';
import type { FulfilmentDeps } from './fulfilment-moves';
import { readOrderState, withLockedState } from './rows';
import type { OrderState } from './rows';
import type { Client, Pool } from './transaction';

/** Where the fulfilment stands and which call comes next; waits by the database's clock. */
export interface FulfilmentProgress {
  status: FulfilmentStatus;
  isOpen: boolean;
  /** The next call, while it is open. */
  next: {
    call: StepCall;
    stepNo: number;
    name: string;
    /** Counts the calls of this kind; the answer names it again. */
    tryNo: number;
    dueInMs: number;
    timeoutMs: number;
  } | null;
  stepsTotal: number;
  needsReview: boolean;
}

/** A call marked as sent: everything the merchant is told. */
export interface StepToCall {
  step: FulfilmentStep;
  amountMinor: number;
  currency: string;
  metadata: Record<string, unknown>;
  secretRefs: { secretRef: string; previousSecretRef: string | null };
}

/** Room above a call's own limit, so that the mark outlives the call. */
const IN_FLIGHT_MARGIN_MS = 2_000;
/** A merchant's Retry-After counts up to this. */
const RETRY_AFTER_MAX_MS = 3_600_000;

/**
 * Brings the fulfilment to its next call: stops it when the order no longer stands, finishes it when
 * nothing is left. Safe to repeat. Undefined when there is no such order.
 */
export function advanceFulfilment(
  pool: Pool,
  ref: OrderRef,
  deps: FulfilmentDeps,
): Promise<FulfilmentProgress | undefined> {
  return withLockedState(pool, ref, async (client, state) => {
    return state && progressOf(client, await advance(client, state, deps), deps);
  });
}

/**
 * Marks that a call may now reach the merchant, before it does, and returns what to send. Undefined when
 * it must not be sent: it is another's turn by now, or a call of this step is under way.
 */
export function beginStepCall(
  pool: Pool,
  ref: OrderRef,
  input: { stepNo: number; call: StepCall; tryNo: number },
  deps: FulfilmentDeps,
): Promise<StepToCall | undefined> {
  return withLockedState(pool, ref, async (client, locked) => {
    if (!locked) return undefined;
    const act = nextFulfilmentAct(stateOf(locked));
    if (act.act !== 'call' || act.call !== input.call || act.stepNo !== input.stepNo) {
      return undefined;
    }
    const step = stepOf(locked, input.stepNo);
    const { rowCount } = await client.query(
      `update fulfilment_steps set
         status = case when status = 'waiting' then 'running' else status end,
         tries = tries + case when $4::text = 'do' then 1 else 0 end,
         undo_tries = undo_tries + case when $4::text = 'undo' then 1 else 0 end,
         outcome_unknown = outcome_unknown or ($4::text = 'do' and tries > 0),
         first_sent_at = coalesce(first_sent_at, now()), last_sent_at = now(),
         next_due_at = now() + make_interval(secs => $6::double precision / 1000)
       where merchant_id = $1::text and order_id = $2::text and step_no = $3::int
         and (case when $4::text = 'do' then tries else undo_tries end) = $5::int - 1
         and next_due_at <= now()`,
      [
        ref.merchantId,
        ref.orderId,
        input.stepNo,
        input.call,
        input.tryNo,
        timeoutOf(step, deps.policy) + IN_FLIGHT_MARGIN_MS,
      ],
    );
    if (rowCount !== 1) return undefined;
    if (step.status === 'waiting') await noteMove(client, ref, step, 'running', 'sent');
    const { rows } = await client.query<StepToCall['secretRefs']>(
      `select coalesce(notify_secret_ref, '') as "secretRef",
         notify_previous_secret_ref as "previousSecretRef"
       from merchants where merchant_id = $1::text`,
      [ref.merchantId],
    );
    return {
      step,
      amountMinor: locked.order.amountMinor,
      currency: locked.order.currency,
      metadata: locked.order.metadata,
      secretRefs: rows[0] ?? { secretRef: '', previousSecretRef: null },
    };
  });
}

/**
 * Settles what one call brought, then brings the fulfilment to its next call. A yes and a no count
 * whichever try they answer; not knowing counts only for the newest, and moves nothing but the ladder.
 */
export function applyStepAnswer(
  pool: Pool,
  ref: OrderRef,
  input: { stepNo: number; call: StepCall; tryNo: number; answer: StepAnswer },
  deps: FulfilmentDeps,
): Promise<FulfilmentProgress | undefined> {
  return withLockedState(pool, ref, async (client, state) => {
    const step = state?.fulfilmentSteps.find((s) => s.stepNo === input.stepNo);
    if (!state || !step) return undefined;
    const isTurn = step.status === (input.call === 'do' ? 'running' : 'undoing');
    if (isTurn) await settleAnswer(client, state, step, input, deps.policy);
    const now = (await readOrderState(client, ref)) ?? state;
    return progressOf(client, await advance(client, now, deps), deps);
  });
}

async function settleAnswer(
  client: Client,
  { order }: OrderState,
  step: FulfilmentStep,
  { call, tryNo, answer }: { call: StepCall; tryNo: number; answer: StepAnswer },
  policy: FulfilmentPolicy,
): Promise<void> {
  switch (answer.outcome) {
    case 'not_sent':
      return;
    case 'done':
      return moveStep(client, order, step, call === 'do' ? 'done' : 'undone', 'merchant_answered');
    case 'refused':
      if (call === 'undo') return giveUpUndo(client, order, step, answer.reason);
      return moveStep(client, order, step, 'refused', 'merchant_refused', answer.reason);
    case 'unknown': {
      if (tryNo !== (call === 'do' ? step.tries : step.undoTries)) return;
      if (call === 'undo' && tryNo >= policy.undoTriesMax) {
        return giveUpUndo(client, order, step, `${answer.reason} (${tryNo} tries)`);
      }
      const climbed = jittered(rung(policy.ladderMs, tryNo - 1), Math.random());
      const asked = Math.min(answer.retryAfterMs ?? 0, RETRY_AFTER_MAX_MS);
      const { rows } = await client.query<{ age_ms: number }>(
        `update fulfilment_steps set last_error = left($4::text, 500),
           outcome_unknown = outcome_unknown or $5::boolean,
           next_due_at = now() + make_interval(secs => $6::double precision / 1000)
         where merchant_id = $1::text and order_id = $2::text and step_no = $3::int
         returning (extract(epoch from now() - first_sent_at) * 1000)::bigint as age_ms`,
        [
          order.merchantId,
          order.orderId,
          step.stepNo,
          answer.reason,
          call === 'do',
          Math.max(climbed, asked),
        ],
      );
      if (call === 'do' && (rows[0]?.age_ms ?? 0) >= policy.stuckCaseAfterMs) {
        await openCase(client, order, {
          kind: 'fulfilment_stuck',
          summary: `the merchant gives no answer to step ${step.name}; asking goes on`,
          channel: null,
          subjectNo: order.orderId,
          evidence: { step: step.name, tries: tryNo, last_error: answer.reason },
        });
      }
      return touchOrder(client, order, { verdict: 'fulfilment_unknown', actor: 'system' });
    }
  }
}

/** The effect of a step stays where it is: a person must see to it. The money goes back all the same. */
async function giveUpUndo(
  client: Client,
  ref: OrderRef,
  step: FulfilmentStep,
  reason: string,
): Promise<void> {
  await moveStep(client, ref, step, 'undo_failed', 'undo_failed', reason);
  await openCase(client, ref, {
    kind: 'undo_failed',
    summary: `step ${step.name} could not be undone: ${reason}`,
    channel: null,
    subjectNo: ref.orderId,
    evidence: { step: step.name, tries: step.undoTries },
  });
}

async function progressOf(
  client: Client,
  state: OrderState,
  { policy }: FulfilmentDeps,
): Promise<FulfilmentProgress> {
  const { order, fulfilmentSteps } = state;
  const { rows } = await client.query<{ now: string; has_case: boolean }>(
    `select clock_timestamp() as now, exists (select from cases
       where merchant_id = $1::text and order_id = $2::text and status = 'open') as has_case`,
    [order.merchantId, order.orderId],
  );
  const now = Date.parse(rows[0]?.now ?? '');
  const act = nextFulfilmentAct(stateOf(state));
  let next: FulfilmentProgress['next'] = null;
  if (act.act === 'call') {
    const step = stepOf(state, act.stepNo);
    next = {
      call: act.call,
      stepNo: step.stepNo,
      name: step.name,
      tryNo: (act.call === 'do' ? step.tries : step.undoTries) + 1,
      // A millisecond more: the database keeps microseconds, and a call is not sent before its time.
      dueInMs: Date.parse(step.nextDueAt ?? '') - now + 1,
      timeoutMs: timeoutOf(step, policy),
    };
  }
  return {
    status: order.fulfilmentStatus,
    isOpen: isFulfilmentOpen(order.fulfilmentStatus),
    next,
    stepsTotal: fulfilmentSteps.length,
    needsReview: order.status === 'review' || (rows[0]?.has_case ?? false),
  };
}
