import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import {
  isGrpcServiceError,
  ServiceError,
  WithStartWorkflowOperation,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import type { Client } from '@temporalio/client';
import { ApplicationFailure, CancelledFailure, NamespaceNotFoundError } from '@temporalio/common';
import type { SignalDefinition, UpdateDefinition } from '@temporalio/common';
import {
  actUpdateId,
  cancelUpdateId,
  orderWorkflowId,
  payUpdateId,
  refundUpdateId,
} from '../workflows/ids';
import {
  cancelUpdate,
  channelNewsSignal,
  operatorActionUpdate,
  payUpdate,
  requestRefundUpdate,
  tellAgainSignal,
} from '../workflows/messages';
import type { ActOutcome, CancelOutcome, PayOutcome, RefundOutcome } from '../workflows/messages';
import { ORDER_WORKFLOW_TYPE, orderStartOptions } from '../workflows/start-options';
import type { OrderToStart } from '../workflows/start-options';
import type { Outstanding } from './outstanding';
import { within } from './within';

/** What became of asking an order's run: its answer, or nothing that can be known now. */
export type Asked<T> = { kind: 'answered'; answer: T } | { kind: 'unknown'; reason: string };

export interface OrderCalls {
  /** @param round 1, 2, …: asked anew, because the round before found the request gone */
  pay(order: OrderToStart, requestNo: string, round?: number): Promise<Asked<PayOutcome>>;
  cancel(order: OrderToStart): Promise<Asked<CancelOutcome>>;
  requestRefund(
    order: OrderToStart,
    refundNo: string,
    round?: number,
  ): Promise<Asked<RefundOutcome>>;
  /** Has the order's run perform a stored act. */
  operatorAction(order: OrderToStart, actNo: string): Promise<Asked<ActOutcome>>;
  /** Starts the order's run, or finds it running. Rejects after `withinMs` at the latest. */
  start(order: OrderToStart, withinMs: number): Promise<void>;
  /** Tells the order's run that news waits in the inbox. Rejects after `withinMs` at the latest. */
  ringDoorbell(order: OrderToStart, withinMs: number): Promise<void>;
  /** Tells the order's run that an event is to be told now. Rejects after `withinMs` at the latest. */
  tellAgain(order: OrderToStart, withinMs: number): Promise<void>;
}

export interface OrderCallsOptions {
  client: Client;
  taskQueue: string;
  /** Our own timer: the SDK's deadlines overshoot and cannot tell busy from down. */
  askWithinMs: number;
  outstanding: Outstanding;
}

/** Races with a closing run are over in a moment; a run that loses that often is not well. */
const REPEATS_MAX = 8;

/**
 * Asks orders' runs. One call per order is under way at a time (the server allows ten updates in
 * flight per run), and repeats of the same request share the call of the first.
 */
export function createOrderCalls({
  client,
  taskQueue,
  askWithinMs,
  outstanding,
}: OrderCallsOptions): OrderCalls {
  const shared = new Map<string, Promise<Asked<unknown>>>();
  const turns = new Map<string, Promise<unknown>>();
  // An update id replays its first outcome. With the process in it, a call that reaches another API
  // at the same moment gets an answer of its own: only one of the two is told that it opened.
  const ownMark = randomBytes(4).toString('hex');

  function ask<Answer, Input>(
    order: OrderToStart,
    update: UpdateDefinition<Answer, [Input]>,
    updateId: () => string,
    what: string,
    input: Input,
  ): Promise<Asked<Answer>> {
    const workflowId = orderWorkflowId(order);
    const name = `${workflowId} ${what}`;
    const running = shared.get(name) as Promise<Asked<Answer>> | undefined;
    if (running) return running.then(asRepeat);
    const abort = new AbortController();
    const deadline = Date.now() + askWithinMs;
    const asked = raceTimer(
      inTurn(workflowId, abort.signal, () =>
        outstanding.track(
          client.withDeadline(deadline, () =>
            client.withAbortSignal(abort.signal, () =>
              updateWithStart(order, update, updateId, input, abort.signal),
            ),
          ),
        ),
      ),
      askWithinMs,
      abort,
    ).finally(() => shared.delete(name));
    shared.set(name, asked);
    return asked;
  }

  /** Waits for the calls about the same order that came before. */
  async function inTurn<T>(
    workflowId: string,
    signal: AbortSignal,
    call: () => Promise<Asked<T>>,
  ): Promise<Asked<T>> {
    const before = turns.get(workflowId) ?? Promise.resolve();
    const turn = before.then(() =>
      signal.aborted ? ({ kind: 'unknown', reason: 'no turn in time' } as const) : call(),
    );
    const settled = turn.catch(() => undefined);
    turns.set(workflowId, settled);
    try {
      return await turn;
    } finally {
      if (turns.get(workflowId) === settled) turns.delete(workflowId);
    }
  }

  async function updateWithStart<Answer, Input>(
    order: OrderToStart,
    update: UpdateDefinition<Answer, [Input]>,
    updateId: () => string,
    input: Input,
    signal: AbortSignal,
  ): Promise<Asked<Answer>> {
    for (let repeat = 0; ; repeat++) {
      try {
        const answer = await client.workflow.executeUpdateWithStart(update, {
          args: [input],
          // A closed run that is still retained would answer the same id from its memory.
          updateId: [updateId(), ownMark, ...(repeat === 0 ? [] : [repeat])].join(':'),
          startWorkflowOperation: new WithStartWorkflowOperation(
            ORDER_WORKFLOW_TYPE,
            orderStartOptions(order, taskQueue),
          ),
        });
        return { kind: 'answered', answer };
      } catch (error) {
        const failure = whatToDo(error);
        if (failure === 'throw') throw error;
        if (failure === 'unknown' || repeat === REPEATS_MAX || signal.aborted) {
          return { kind: 'unknown', reason: String((error as Error).message) };
        }
        await delay(20 * repeat, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  function signal(
    order: OrderToStart,
    message: SignalDefinition<[]>,
    withinMs: number,
  ): Promise<void> {
    return within(withinMs, { client, outstanding }, async () => {
      await client.workflow.signalWithStart(ORDER_WORKFLOW_TYPE, {
        ...orderStartOptions(order, taskQueue),
        signal: message,
        signalArgs: [],
      });
    });
  }

  return {
    pay: (order, requestNo, round = 0) =>
      ask(
        order,
        payUpdate,
        () => inRound(payUpdateId(requestNo, Date.now()), round),
        inRound(`pay ${requestNo}`, round),
        { requestNo },
      ),
    cancel: (order) =>
      ask(order, cancelUpdate, () => cancelUpdateId(Date.now()), 'cancel', {
        requestedBy: 'merchant',
      }),
    requestRefund: (order, refundNo, round = 0) =>
      ask(
        order,
        requestRefundUpdate,
        () => inRound(refundUpdateId(refundNo, Date.now()), round),
        inRound(`refund ${refundNo}`, round),
        { refundNo },
      ),
    operatorAction: (order, actNo) =>
      ask(order, operatorActionUpdate, () => actUpdateId(actNo, Date.now()), `act ${actNo}`, {
        actNo,
      }),
    start: (order, withinMs) =>
      within(withinMs, { client, outstanding }, async () => {
        await client.workflow.start(ORDER_WORKFLOW_TYPE, orderStartOptions(order, taskQueue));
      }),
    ringDoorbell: (order, withinMs) => signal(order, channelNewsSignal, withinMs),
    tellAgain: (order, withinMs) => signal(order, tellAgainSignal, withinMs),
  };
}

/** What a repeat is told: the same, except that it opened nothing. */
function asRepeat<Answer>(asked: Asked<Answer>): Asked<Answer> {
  const { answer } = asked as { answer?: unknown };
  if (typeof answer !== 'object' || answer === null || !('opened' in answer)) return asked;
  return { ...asked, answer: { ...answer, opened: false } } as Asked<Answer>;
}

/** The run replays its answer to an id, so a new round is a new id. */
function inRound(id: string, round: number): string {
  return round === 0 ? id : `${id}:round-${round}`;
}

/**
 * What the client throws, and what to do (tried on server 1.32).
 * - `AcceptedUpdateCompletedWorkflow`: the run completed, continued, was terminated or reset after it
 *   accepted → repeat, a new run starts and finds what the old one did
 * - `CancelledFailure`: somebody cancelled the run → repeat with a new id
 * - `WorkflowNotFoundError`, a raw gRPC error 9 or 10: a race with a closing task → repeat at once
 * - no answer in time, or 4, 8, 10, 14 underneath: unknown
 * - a server that refuses the call (3 search attributes that set-up did not register, 5 no such
 *   namespace, 7, 16 not allowed): nothing of the caller's is wrong, and a repeat is safe: unknown
 */
export function whatToDo(error: unknown): 'repeat' | 'unknown' | 'throw' {
  if (error instanceof WorkflowUpdateFailedError) {
    const { cause } = error;
    if (cause instanceof CancelledFailure) return 'repeat';
    if (cause instanceof ApplicationFailure && cause.type === 'AcceptedUpdateCompletedWorkflow') {
      return 'repeat';
    }
    return 'throw';
  }
  if (error instanceof WorkflowNotFoundError) return 'repeat';
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) return 'unknown';
  if (error instanceof NamespaceNotFoundError) return 'unknown';
  if (error instanceof ServiceError) return whatToDoAbout(error.cause);
  return whatToDoAbout(error);
}

/**
 * gRPC status codes: 1 cancelled, 3 invalid, 4 deadline, 5 not found, 7 denied, 8 exhausted,
 * 9 precondition, 10 aborted, 14 away, 16 not authenticated.
 */
function whatToDoAbout(error: unknown): 'repeat' | 'unknown' | 'throw' {
  if (!isGrpcServiceError(error)) return 'throw';
  switch (error.code as number) {
    case 9:
    case 10:
      return 'repeat';
    case 1:
    case 3:
    case 4:
    case 5:
    case 7:
    case 8:
    case 14:
    case 16:
      return 'unknown';
    default:
      return 'throw';
  }
}

/** The call goes on behind the timer's back until the abort reaches it; its result is not lost. */
async function raceTimer<T>(
  call: Promise<Asked<T>>,
  ms: number,
  abort: AbortController,
): Promise<Asked<T>> {
  const timer = new AbortController();
  const late = delay(ms, undefined, { signal: timer.signal }).then((): Asked<T> => {
    abort.abort();
    return { kind: 'unknown', reason: `no answer within ${ms} ms` };
  });
  call.catch(() => undefined);
  late.catch(() => undefined);
  try {
    return await Promise.race([call, late]);
  } finally {
    timer.abort();
  }
}
