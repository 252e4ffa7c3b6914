/** What moves a fulfilment without a call of the merchant: whose turn it is, undoing, the end. */
import type {
  FulfilmentFailure,
  FulfilmentPolicy,
  FulfilmentState,
  FulfilmentStep,
} from '../domain/fulfilment';
import { nextFulfilmentAct, undoPlan } from '../domain/fulfilment';
import type { OrderRef } from '../domain/orders';
import { refundableMinor } from '../domain/orders';
import type { FulfilmentStatus, FulfilmentStepStatus } from '../domain/states';
import type { Change } from '../domain/verdicts';
import { openCase } from './cases';
import { applyChanges, touchOrder } from './changes';
import { recordEvent } from './order-events';
import { readOrderState } from './rows';
import type { OrderState } from './rows';
import type { Client } from './transaction';

export interface FulfilmentDeps {
  policy: FulfilmentPolicy;
  /** Secret of the derived numbers: a refund gets its out_refund_no here. */
  numberSecret: string;
}

/** Everything that needs no call of the merchant, until a call is next or nothing is left. */
export async function advance(
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
export async function moveStep(
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

export function noteMove(
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

export function stepOf(state: OrderState, stepNo: number): FulfilmentStep {
  const step = state.fulfilmentSteps.find((s) => s.stepNo === stepNo);
  if (!step) throw new Error(`order ${state.order.orderId} has no step ${stepNo}`);
  return step;
}

export function timeoutOf(step: FulfilmentStep, policy: FulfilmentPolicy): number {
  return step.timeoutMs ?? policy.timeoutMs;
}

export function stateOf({ order, captures, fulfilmentSteps }: OrderState): FulfilmentState {
  return { order, captures, steps: fulfilmentSteps };
}
