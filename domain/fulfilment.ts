/**
 * Fulfilment: what the shop does once an order is paid, as steps of which each can be undone. Pure
 * rules; db/fulfilment.ts applies them under the order's lock.
 *
 * A step is sent only after it is marked `running`, so its undo is registered before anything can have
 * happened: whatever may have happened (done, or an outcome nobody knows) is undone, the last first.
 */
import type { Capture, Order, OrderRef } from './orders';
import { refundableMinor } from './orders';
import type { FulfilmentStatus, FulfilmentStepStatus } from './states';

/** One step as it was copied from the merchant's configuration when the order became paid. */
export interface FulfilmentStep extends OrderRef {
  stepNo: number;
  name: string;
  url: string;
  /** Null: there is nothing to undo (a mail was sent). */
  undoUrl: string | null;
  /** Limit of one call; null: the worker's own. */
  timeoutMs: number | null;
  status: FulfilmentStepStatus;
  tries: number;
  undoTries: number;
  /** A call may have had its effect although no answer said so. */
  outcomeUnknown: boolean;
  lastError: string | null;
  nextDueAt: string | null;
  firstSentAt: string | null;
  lastSentAt: string | null;
  finishedAt: string | null;
  undoneAt: string | null;
  createdAt: string;
}

/** Waits and bounds, from the worker's configuration. Milliseconds. */
export interface FulfilmentPolicy {
  /** Waits between the tries of one call; the last rung repeats. */
  ladderMs: readonly number[];
  timeoutMs: number;
  /** A step without a definite answer for so long becomes a case; the tries go on. */
  stuckCaseAfterMs: number;
  /** After so many tries an undo counts as failed: the money must not wait for it for ever. */
  undoTriesMax: number;
}

/** `do`: the step itself. */
export type StepCall = 'do' | 'undo';

/**
 * What the merchant's answer to one call amounts to. `refused` is definite; `unknown` is everything
 * that is neither a yes nor a no; `not_sent`: somebody else is at it, or it is not the turn any more.
 */
export type StepAnswer =
  | { outcome: 'done' }
  | { outcome: 'refused'; reason: string }
  | { outcome: 'unknown'; reason: string; retryAfterMs: number | null }
  | { outcome: 'not_sent' };

/**
 * Why steps are undone.
 * - `step_refused`: the merchant refused one; then the payer's money goes back by itself
 * - `refunded`: the whole payment is, or is promised to be, given back
 * - `review`: a person must decide about the order (reversed, another amount)
 */
export type FulfilmentFailure = 'step_refused' | 'refunded' | 'review';

export type FulfilmentAct =
  | { act: 'call'; call: StepCall; stepNo: number }
  | { act: 'compensate'; why: FulfilmentFailure }
  | { act: 'finish'; as: 'done' | 'failed' }
  | { act: 'rest' };

export interface FulfilmentState {
  order: Order;
  captures: readonly Capture[];
  /** In their order. */
  steps: readonly FulfilmentStep[];
}

/** What comes next. The first that fits. */
export function nextFulfilmentAct(state: FulfilmentState): FulfilmentAct {
  const { order, steps } = state;
  switch (order.fulfilmentStatus) {
    case 'none':
    case 'done':
    case 'failed':
      return { act: 'rest' };
    case 'running': {
      const why = failureOf(state);
      if (why) return { act: 'compensate', why };
      const next = steps.find(({ status }) => status !== 'done');
      return next
        ? { act: 'call', call: 'do', stepNo: next.stepNo }
        : { act: 'finish', as: 'done' };
    }
    case 'compensating': {
      const next = steps.findLast(({ status }) => status === 'undoing');
      return next
        ? { act: 'call', call: 'undo', stepNo: next.stepNo }
        : { act: 'finish', as: 'failed' };
    }
  }
}

/**
 * Whether nothing is delivered and no later step gives back what a failing refund leaves with us: the
 * end of a refused fulfilment gives back all that is left then; a person decides about one in review.
 */
export function isUndelivered({ fulfilmentStatus, fulfilmentFailure }: Order): boolean {
  return (
    fulfilmentFailure === 'refunded' ||
    (fulfilmentFailure === 'step_refused' && fulfilmentStatus === 'failed')
  );
}

/**
 * Why a running fulfilment must not go on, or undefined. A review comes first: then a person decides
 * about the money, also when a step was refused as well.
 */
export function failureOf({
  order,
  captures,
  steps,
}: FulfilmentState): FulfilmentFailure | undefined {
  if (order.status !== 'paid') return 'review';
  if (steps.some(({ status }) => status === 'refused')) return 'step_refused';
  const settling = captures.find((c) => c.settles);
  return settling && refundableMinor(settling) === 0 ? 'refunded' : undefined;
}

/** Where each step goes when all are undone; steps that stay are left out. */
export function undoPlan(
  steps: readonly FulfilmentStep[],
): { stepNo: number; from: FulfilmentStepStatus; to: FulfilmentStepStatus }[] {
  return steps.flatMap((step) => {
    const to = undoneAs(step);
    return to === step.status ? [] : [{ stepNo: step.stepNo, from: step.status, to }];
  });
}

function undoneAs(step: FulfilmentStep): FulfilmentStepStatus {
  const undone = step.undoUrl === null ? 'undone' : 'undoing';
  switch (step.status) {
    case 'waiting':
      return 'skipped';
    case 'running':
    case 'done':
      return undone;
    case 'refused':
      // An earlier try of it may have worked all the same: its answer never came.
      return step.outcomeUnknown ? undone : 'refused';
    case 'undoing':
    case 'undone':
    case 'undo_failed':
    case 'skipped':
      return step.status;
  }
}

/** Answers of 4xx that say "not now" rather than "no". Source: RFC 9110, RFC 8470, RFC 6585. */
const NOT_NOW = [408, 409, 425, 429];

/** What an HTTP status says about a step: a yes, a no, or nothing. */
export function stepAnswerOf(status: number, retryAfterMs: number | null): StepAnswer {
  if (status >= 200 && status < 300) return { outcome: 'done' };
  const reason = `the merchant answered ${status}`;
  if (status >= 400 && status < 500 && !NOT_NOW.includes(status)) {
    return { outcome: 'refused', reason };
  }
  return { outcome: 'unknown', reason, retryAfterMs };
}

/**
 * The key under which the merchant sees one step of one order, on every try: it acts once per key.
 * It comes from business ids only, so a database restored from a backup makes the same one.
 */
export function stepKey(
  { merchantId, orderId }: OrderRef,
  stepName: string,
  call: StepCall,
): string {
  const key = `ful:${merchantId}:${orderId}:${stepName}`;
  return call === 'do' ? key : `${key}:undo`;
}

export function isFulfilmentOpen(status: FulfilmentStatus): boolean {
  return status === 'running' || status === 'compensating';
}
