/** Updates to an order's run: noted by their handlers, decided and answered by its loop. */
import { ApplicationFailure, CancellationScope, condition } from '@temporalio/workflow';
import { isIdentifier } from '../domain/orders';
import type { ActOutcome, CancelOutcome, PayOutcome, RefundOutcome } from '../domain/outcomes';
import type { OrderRun } from './order-run';

export type Asked =
  | { kind: 'pay'; requestNo: string }
  | { kind: 'cancel'; requestedBy: 'merchant' | 'operator' }
  | { kind: 'refund'; refundNo: string }
  | { kind: 'act'; actNo: string };

type Decision =
  | PayOutcome
  | RefundOutcome
  | ActOutcome
  | { outcome: 'wait'; payRecordId: number }
  | { outcome: 'close_requested' };

export interface WaitingRequest {
  asked: Asked;
  decision: Decision | null;
  answer: PayOutcome | CancelOutcome | RefundOutcome | ActOutcome | null;
}

interface Outcomes {
  pay: PayOutcome;
  cancel: CancelOutcome;
  refund: RefundOutcome;
  act: ActOutcome;
}

/** When another attempt cannot be closed yet, a payer may try again after this. */
const CONFLICT_RETRY_AFTER_MS = 5_000;

/** Refuses an update whose argument is no identifier, before it leaves a trace in the history. */
export function requireIdentifier(name: string, value: unknown): void {
  if (isIdentifier(value)) return;
  throw ApplicationFailure.create({
    type: 'InvalidArgument',
    message: `${name} must be 1 to 64 of A-Z a-z 0-9 _ . - and begin with a letter or digit`,
    nonRetryable: true,
  });
}

/**
 * Notes the request and waits until the loop has answered it. In a scope of its own, because a
 * cancelled run would otherwise fail every handler that waits.
 */
export function answered<Kind extends Asked['kind']>(
  run: OrderRun,
  asked: Extract<Asked, { kind: Kind }>,
): Promise<Outcomes[Kind]> {
  const request: WaitingRequest = { asked, decision: null, answer: null };
  run.requests.push(request);
  return CancellationScope.nonCancellable(async () => {
    await condition(() => request.answer !== null);
    return request.answer as Outcomes[Kind];
  });
}

export function unanswered(run: OrderRun): boolean {
  return run.requests.length > 0;
}

/**
 * Whether the request must be put to the database (again): it never was, or it waits for an attempt
 * that is no longer the live one, so that now something else is true of it.
 */
export function needsDecision(run: OrderRun, { decision, asked }: WaitingRequest): boolean {
  if (!run.order) return false;
  if (decision === null) return true;
  if (asked.kind !== 'pay') return false;
  const isGone = (payRecordId: number) => run.order?.attempt?.payRecordId !== payRecordId;
  if (decision.outcome === 'wait') return isGone(decision.payRecordId);
  return (
    decision.outcome === 'attempt' &&
    'payRecordId' in decision &&
    (decision.status === 'created' || decision.status === 'submitting') &&
    isGone(decision.payRecordId)
  );
}

/** Answers every request whose outcome is known by now; the others stay. */
export function answerRequests(run: OrderRun): void {
  for (const request of run.requests) request.answer = answerOf(run, request);
  run.requests = run.requests.filter((request) => request.answer === null);
}

function answerOf(run: OrderRun, request: WaitingRequest): WaitingRequest['answer'] {
  const { decision } = request;
  const { order } = run;
  if (decision === null || !order || needsDecision(run, request)) return null;
  switch (decision.outcome) {
    case 'wait':
      // A whole round of query, close, query went by without a definite "closed".
      return isBetweenCalls(run)
        ? { outcome: 'conflict', reason: 'attempt_closing', retryAfterMs: CONFLICT_RETRY_AFTER_MS }
        : null;
    case 'close_requested':
      switch (order.status) {
        case 'created':
        case 'paying':
          return isBetweenCalls(run) ? { outcome: 'closing', status: order.status } : null;
        default:
          return { outcome: order.status, status: order.status };
      }
    case 'attempt': {
      const live = order.attempt;
      if (!live || live.payRecordId !== decision.payRecordId) return decision;
      // Parallel requests wait for the first send too, so that all get its pay parameters.
      const sending = live.status === 'created' || run.call?.call === 'submit';
      return sending && !run.stopping ? null : { ...decision, status: live.status };
    }
    default:
      return decision;
  }
}

/** No call in flight and the next one not due yet: nothing will be known before the ladder says so. */
function isBetweenCalls(run: OrderRun): boolean {
  if (run.stopping) return true;
  const attempt = run.order?.attempt;
  return run.call === null && (!attempt || run.asOfMs + attempt.dueInMs > Date.now());
}
