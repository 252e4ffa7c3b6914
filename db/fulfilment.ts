/** The steps of a paid order: written when it becomes paid, moved by answers, undone in reverse. */
import type {
  FulfilmentFailure,
  FulfilmentPolicy,
  FulfilmentState,
  FulfilmentStep,
  StepAnswer,
  StepCall,
} from '../domain/fulfilment';
import { isFulfilmentOpen, nextFulfilmentAct, undoPlan } from '../domain/fulfilment';
import { jittered, rung } from '../domain/ladders';
import type { OrderRef } from '../domain/orders';
import { refundableMinor } from '../domain/orders';
import type { FulfilmentStatus, FulfilmentStepStatus } from '../domain/states';
import type { Change } from '../domain/verdicts';
import { openCase } from './cases';
import { applyChanges, touchOrder } from './changes';
import { recordEvent } from './order-events';
import { lockOrderState, readOrderState } from './rows';
import type { OrderState } from './rows';
import type { Client, Pool } from './transaction';
import { withTransaction } from './transaction';

export interface FulfilmentDeps {
  policy: FulfilmentPolicy;
  /** Secret of the derived numbers: a refund gets its out_refund_no here. */
  numberSecret: string;
}

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
  return withTransaction(pool, async (client) => {
    const state = await lockOrderState(client, ref);
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
  return withTransaction(pool, async (client) => {
    const locked = await lockOrderState(client, ref);
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
  return withTransaction(pool, async (client) => {
    const state = await lockOrderState(client, ref);
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

/** Everything that needs no call of the merchant, until a call is next or nothing is left. */
async function advance(
  client: Client,
  locked: OrderState,
  deps: FulfilmentDeps,
): Promise<OrderState> {
  let state = locked;
  for (;;) {
    const act = nextFulfilmentAct(stateOf(state));
    switch (act.act) {
      case 'rest':
        return state;
      case 'call':
        await giveTurn(client, state, act.stepNo, deps.policy);
        return (await readOrderState(client, state.order)) ?? state;
      case 'compensate':
        await compensate(client, state, act.why);
        break;
      case 'finish':
        await finish(client, state, act.as, deps);
        break;
    }
    const after = await readOrderState(client, state.order);
    if (!after || after.order.fulfilmentStatus === state.order.fulfilmentStatus) {
      throw new Error(`the fulfilment of ${state.order.orderId} does not move on`);
    }
    state = after;
  }
}

/**
 * The step's turn has come. The undo of a step whose outcome nobody knows waits until its last call is
 * surely over, so that it does not overtake it.
 */
async function giveTurn(
  client: Client,
  state: OrderState,
  stepNo: number,
  policy: FulfilmentPolicy,
): Promise<void> {
  const { order } = state;
  await client.query(
    `update fulfilment_steps set next_due_at = case
         when status = 'undoing' and finished_at is null
           then greatest(now(), last_sent_at + make_interval(secs => $4::double precision / 1000))
         else now() end
     where merchant_id = $1::text and order_id = $2::text and step_no = $3::int
       and next_due_at is null`,
    [order.merchantId, order.orderId, stepNo, timeoutOf(stepOf(state, stepNo), policy)],
  );
}

async function compensate(
  client: Client,
  state: OrderState,
  why: FulfilmentFailure,
): Promise<void> {
  const { order } = state;
  for (const { stepNo, to } of undoPlan(state.fulfilmentSteps)) {
    await moveStep(client, order, stepOf(state, stepNo), to, why);
  }
  await moveFulfilment(client, state, 'compensating', why);
  if (why === 'review') await tellThePerson(client, state, 'was stopped and is being undone');
}

/** Whoever decides about the order must know what was delivered: it becomes evidence of the case. */
function tellThePerson(client: Client, { order }: OrderState, what: string): Promise<void> {
  return openCase(client, order, {
    kind: 'fulfilment_stopped',
    summary: `the fulfilment ${what}: nothing will be delivered, and no money goes back by itself`,
    channel: null,
    subjectNo: order.orderId,
    evidence: { order_status: order.status, reason: order.statusReason },
  });
}

async function finish(
  client: Client,
  state: OrderState,
  as: 'done' | 'failed',
  deps: FulfilmentDeps,
): Promise<void> {
  const { order } = state;
  await moveFulfilment(client, state, as, order.fulfilmentFailure);
  const event = as === 'done' ? 'order.fulfilled' : 'order.fulfilment_failed';
  const changes: Change[] = [{ change: 'notify', event, subjectNo: '' }];
  const settling = state.captures.find((c) => c.settles);
  const owed = settling !== undefined && refundableMinor(settling) > 0;
  if (as === 'failed' && order.fulfilmentFailure === 'step_refused' && owed) {
    const isTaken = state.refunds.some((r) => r.refundNo === `auto:${settling.captureId}`);
    if (order.status !== 'paid' || isTaken) {
      await tellThePerson(client, state, 'failed');
    } else {
      changes.push({
        change: 'refund_capture',
        channelTradeNo: settling.channelTradeNo,
        reason: 'the order could not be fulfilled',
        origin: 'fulfilment',
      });
    }
  }
  await applyChanges(
    client,
    order,
    { changes },
    {
      verdict: as === 'done' ? 'fulfilled' : 'fulfilment_failed',
      fact: null,
      channel: settling?.channel ?? '',
      actor: 'system',
      numberSecret: deps.numberSecret,
    },
  );
}

async function moveFulfilment(
  client: Client,
  { order }: OrderState,
  to: FulfilmentStatus,
  why: FulfilmentFailure | null,
): Promise<void> {
  const { rowCount } = await client.query(
    `update orders set fulfilment_status = $4::text, fulfilment_failure = $5::text
     where merchant_id = $1::text and order_id = $2::text and fulfilment_status = $3::text`,
    [order.merchantId, order.orderId, order.fulfilmentStatus, to, why],
  );
  if (rowCount !== 1) throw new Error(`fulfilment of ${order.orderId} moved under its lock`);
  await recordEvent(client, order, {
    subject: 'order',
    subjectId: order.orderId,
    from: `fulfilment:${order.fulfilmentStatus}`,
    to: `fulfilment:${to}`,
    cause: why ?? 'fulfilled',
    actor: 'system',
  });
  await touchOrder(client, order, { verdict: 'fulfilment', actor: 'system' });
}

/** Moves one step; it has no due time until it is its turn again. */
async function moveStep(
  client: Client,
  ref: OrderRef,
  step: FulfilmentStep,
  to: FulfilmentStepStatus,
  cause: string,
  error?: string,
): Promise<void> {
  const { rowCount } = await client.query(
    `update fulfilment_steps set status = $5::text,
       last_error = case when $5::text = 'done' then null
         else coalesce(left($6::text, 500), last_error) end,
       finished_at = case when $5::text in ('done', 'refused', 'skipped') then now()
         else finished_at end,
       undone_at = case when $5::text in ('undone', 'undo_failed') then now() end,
       next_due_at = null
     where merchant_id = $1::text and order_id = $2::text and step_no = $3::int
       and status = $4::text`,
    [ref.merchantId, ref.orderId, step.stepNo, step.status, to, error ?? null],
  );
  if (rowCount !== 1) throw new Error(`step ${step.name} of ${ref.orderId} moved under its lock`);
  await noteMove(client, ref, step, to, cause, error);
  await touchOrder(client, ref, { verdict: cause, actor: 'system' });
}

function noteMove(
  client: Client,
  ref: OrderRef,
  step: FulfilmentStep,
  to: FulfilmentStepStatus,
  cause: string,
  error?: string,
): Promise<void> {
  return recordEvent(client, ref, {
    subject: 'fulfilment_step',
    subjectId: step.stepNo,
    from: step.status,
    to,
    cause,
    evidence: { name: step.name, ...(error === undefined ? {} : { error: error.slice(0, 500) }) },
    actor: 'system',
  });
}

function stepOf(state: OrderState, stepNo: number): FulfilmentStep {
  const step = state.fulfilmentSteps.find((s) => s.stepNo === stepNo);
  if (!step) throw new Error(`order ${state.order.orderId} has no step ${stepNo}`);
  return step;
}

function timeoutOf(step: FulfilmentStep, policy: FulfilmentPolicy): number {
  return step.timeoutMs ?? policy.timeoutMs;
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

function stateOf({ order, captures, fulfilmentSteps }: OrderState): FulfilmentState {
  return { order, captures, steps: fulfilmentSteps };
}
