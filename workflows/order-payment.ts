/**
 * One order, from "please pay" to "paid, told, nothing left to do".
 *
 * Trigger: POST /v1/orders, or any message to the order (update- or signal-with-start).
 * Messages: updates pay, cancel, requestRefund, operatorAction; signals channelNews, askChannel, nudge,
 * tellAgain; query progress.
 * Children: one `refund` per refund, one `fulfilment`, abandoned; they nudge this run when they end.
 * Ends: when the view orders_with_work lists nothing for the order and nobody waits for an answer.
 * PostgreSQL is the judge: this run holds a cursor, loads the order first and decides only from what
 * each database step returns, so it may be terminated, reset or run twice without a second effect.
 */
import {
  allHandlersFinished,
  CancellationScope,
  CancelledFailure,
  condition,
  continueAsNew,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { OrderProgress } from '../domain/progress';
import { channelCall, deliverNotifications, step } from './activities';
import { askChannelSignal, cancelUpdate, channelNewsSignal, nudgeSignal } from './messages';
import { payUpdate } from './messages';
import { tellAgainSignal } from './messages';
import { operatorActionUpdate, progressQuery, requestRefundUpdate } from './messages';
import type { OrderPaymentInput } from './messages';
import { performAct, performStoredActs } from './operator-acts';
import { answered, requireIdentifier } from './order-requests';
import { answerRequests, needsDecision, unanswered } from './order-requests';
import { isDue, lineOf, newRun, show, take, takeFromBeside, wakeInMs } from './order-run';
import type { OrderRun } from './order-run';
import { ASK_TIMEOUT_MS, noteAsked, settleAskedRefund, startRefundCall } from './order-asks';
import { startFulfilment, tellFulfilment } from './fulfilment-child';
import { startRefund, tellRefund } from './refund-child';

/** How the order stood when its run had nothing left to do. */
export interface OrderPaymentResult {
  status: string;
}

// A new run begins at the first safe point past this many events, so that a history stays readable
// and far below the server's limits, whatever comes.
const EVENTS_PER_RUN = 250;

export async function orderPayment(input: OrderPaymentInput): Promise<OrderPaymentResult> {
  const run = newRun(input);
  setHandler(payUpdate, ({ requestNo }) => answered(run, { kind: 'pay', requestNo }), {
    validator: (request) => requireIdentifier('requestNo', request?.requestNo),
  });
  setHandler(cancelUpdate, ({ requestedBy }) => answered(run, { kind: 'cancel', requestedBy }), {
    validator: (request) => requireIdentifier('requestedBy', request?.requestedBy),
  });
  setHandler(requestRefundUpdate, ({ refundNo }) => answered(run, { kind: 'refund', refundNo }), {
    validator: (request) => requireIdentifier('refundNo', request?.refundNo),
  });
  setHandler(operatorActionUpdate, ({ actNo }) => answered(run, { kind: 'act', actNo }), {
    validator: (request) => requireIdentifier('actNo', request?.actNo),
  });
  setHandler(channelNewsSignal, () => void (run.rang = true));
  setHandler(askChannelSignal, (asked) => noteAsked(run, asked));
  setHandler(nudgeSignal, () => void (run.nudged = true));
  setHandler(tellAgainSignal, () => void (run.nudged = run.tellAgain = true));
  setHandler(progressQuery, () => ({ status: run.order?.status ?? 'loading', line: lineOf(run) }));
  // A cancel in Temporal Web stops this run at a safe point; it does not cancel the order.
  CancellationScope.current().cancelRequested.catch(() => (run.stopping = true));

  return CancellationScope.nonCancellable(async () => {
    look(run, await step('loadOrder', run.ref, 'load the order'));
    for (;;) {
      await settleFinishedCall(run);
      await settleAskedRefund(run);
      await settleStoredCallbacks(run);
      await lookAgain(run);
      await decideRequests(run);
      await performStoredActs(run);
      await closeAtDeadline(run);
      await startRefunds(run);
      await fulfil(run);
      tellMerchant(run);
      callChannel(run);
      startRefundCall(run);
      answerRequests(run);
      show(run);
      if (isDone(run)) return { status: run.order?.status ?? 'unknown' };
      if (maySafelyStop(run)) throw new CancelledFailure('stopped; the sweep starts the next run');
      if (mayContinueAsNew(run)) return continueAsNew<typeof orderPayment>(run.ref);
      await somethingHappens(run);
    }
  });
}

/** The channel answered (or nobody knows): settle it, and learn which call comes next. */
async function settleFinishedCall(run: OrderRun): Promise<void> {
  const finished = run.call;
  if (!finished?.answer) return;
  const { payRecordId, call, answer } = finished;
  const { ask, order } = await step(
    'settleAnswer',
    { ...run.ref, payRecordId, call, answer },
    `settle the answer to ${call}: ${answer.outcome === 'answered' ? answer.fact.state : answer.outcome}`,
  );
  run.call = null;
  askAbout(run, ask);
  take(run, order);
}

/** The doorbell rang, or a stored callback is due: read the inbox. */
async function settleStoredCallbacks(run: OrderRun): Promise<void> {
  if (!run.rang && !isDue(run, run.order?.news?.dueInMs)) return;
  run.rang = false;
  const { ask, nudgeRefunds, order } = await step(
    'settleNews',
    run.ref,
    'settle what channels told',
  );
  askAbout(run, ask);
  take(run, order);
  for (const refundNo of nudgeRefunds) await tellRefund(run.ref, refundNo);
}

/** Records to query before what was said of them counts. */
function askAbout(run: OrderRun, payRecordIds: readonly number[]): void {
  for (const id of payRecordIds) if (!run.asks.includes(id)) run.asks.push(id);
}

/** Somebody nudged, or a child is overdue: load the order afresh. */
async function lookAgain(run: OrderRun): Promise<void> {
  const overdue =
    run.order?.refunds.filter((refund) => isDue(run, refund.dueInMs + OVERDUE_MS)) ?? [];
  const { fulfilment } = run.order ?? {};
  const stands = fulfilment ? isDue(run, fulfilment.dueInMs + OVERDUE_MS) : false;
  if (!run.nudged && overdue.length === 0 && !stands) return;
  run.nudged = false;
  run.fulfilmentStarted = false;
  for (const refund of overdue) run.startedRefunds.delete(refund.refundNo);
  look(run, await step('loadOrder', run.ref, 'load the order again'));
}

/** News that waits is read at once, also when its ring was heard by a run that is gone. */
function look(run: OrderRun, order: OrderProgress): void {
  take(run, order);
  if (order.news) run.rang = true;
}

const OVERDUE_MS = 60_000;

/** Decides what was asked since the last round; the answers follow when they are known. */
async function decideRequests(run: OrderRun): Promise<void> {
  for (const request of run.requests.filter((r) => needsDecision(run, r))) {
    switch (request.asked.kind) {
      case 'pay': {
        const { requestNo } = request.asked;
        const { answer, order } = await step(
          'openAttempt',
          { ...run.ref, requestNo },
          `request ${requestNo}: may it be paid?`,
        );
        take(run, order);
        request.decision = answer;
        break;
      }
      case 'cancel': {
        const actor = request.asked.requestedBy;
        const { order } = await step(
          'requestClose',
          { ...run.ref, reason: 'cancelled', actor },
          'cancel the order',
        );
        take(run, order);
        request.decision = { outcome: 'close_requested' };
        break;
      }
      case 'refund': {
        const { refundNo } = request.asked;
        const { answer, order } = await step(
          'openRefund',
          { ...run.ref, refundNo },
          `refund ${refundNo}: may it be promised?`,
        );
        take(run, order);
        request.decision = answer;
        break;
      }
      case 'act':
        request.decision = await performAct(run, request.asked.actNo);
        break;
    }
  }
}

/** The deadline passed: query → close → query, then close here. Loose money becomes a case. */
async function closeAtDeadline(run: OrderRun): Promise<void> {
  if (isDue(run, run.order?.deadlineInMs)) {
    const { order } = await step(
      'requestClose',
      { ...run.ref, reason: 'expired', actor: 'system' },
      'the deadline passed',
    );
    take(run, order);
  }
  if (run.order?.hasLooseSurplus) {
    const { order } = await step('holdSurplus', run.ref, 'put surplus money before a person');
    take(run, order);
  }
}

/** Money to give back: each refund is a child of its own, never awaited. */
async function startRefunds(run: OrderRun): Promise<void> {
  const refunds = run.order?.refunds ?? [];
  // One that is not open any more may be opened again by a person: then it needs a child again.
  for (const refundNo of run.startedRefunds) {
    if (!refunds.some((open) => open.refundNo === refundNo)) run.startedRefunds.delete(refundNo);
  }
  for (const { refundNo } of refunds) {
    if (run.startedRefunds.has(refundNo)) continue;
    run.startedRefunds.add(refundNo);
    await startRefund(run.ref, refundNo);
  }
}

/** Paid: the merchant's steps are a child of their own, never awaited; none where none are configured. */
async function fulfil(run: OrderRun): Promise<void> {
  const { fulfilment } = run.order ?? {};
  if (!fulfilment) return;
  if (!run.fulfilmentStarted) {
    run.fulfilmentStarted = true;
    await startFulfilment(run.ref, fulfilment.status);
  }
  // Refunded in full, or in review: it must hear of it before its next step.
  if (fulfilment.mustStop && !run.fulfilmentTold) {
    run.fulfilmentTold = true;
    await tellFulfilment(run.ref);
  }
}

/** Events wait for the merchant: deliver them beside everything else. */
function tellMerchant(run: OrderRun): void {
  // Its end makes the run look again, and then tell.
  if (run.tellAgain) run.stopTelling?.();
  run.tellAgain = false;
  if (!run.order?.notification || run.delivering) return;
  const telling = new CancellationScope();
  run.delivering = true;
  run.stopTelling = () => telling.cancel();
  const ended = () => {
    run.delivering = false;
    run.stopTelling = null;
  };
  void telling
    .run(() => deliverNotifications(run.ref))
    .then(
      ({ order }) => {
        ended();
        takeFromBeside(run, order);
        run.delivered = true;
      },
      () => {
        ended();
        run.nudged = true;
      },
    );
}

/** The next call to the channel is due: start it; the loop goes on meanwhile. */
function callChannel(run: OrderRun): void {
  if (run.call || !run.order) return;
  const { attempt } = run.order;
  const asked = run.asks[0];
  if (asked !== undefined) {
    run.asks.shift();
    startCall(
      run,
      asked,
      'query',
      attempt?.callTimeoutMs ?? ASK_TIMEOUT_MS,
      'what is said of it elsewhere',
    );
  } else if (attempt && isDue(run, attempt.dueInMs)) {
    startCall(run, attempt.payRecordId, attempt.call, attempt.callTimeoutMs, attempt.channel);
  }
}

const CALLS = { submit: 'submitPayment', query: 'queryPayment', close: 'closePayment' } as const;

function startCall(
  run: OrderRun,
  payRecordId: number,
  call: keyof typeof CALLS,
  callTimeoutMs: number,
  at: string,
): void {
  const inFlight: NonNullable<OrderRun['call']> = { payRecordId, call, answer: null };
  run.call = inFlight;
  const summary = `${call} attempt ${payRecordId}: ${at}`;
  void channelCall(CALLS[call], { ...run.ref, payRecordId }, { callTimeoutMs, summary }).then(
    (answer) => (inFlight.answer = answer),
    // A timeout, a worker that died, a defect: unknown, never failed.
    (error: Error) =>
      (inFlight.answer = {
        outcome: 'unknown',
        reason: error.message.slice(0, 200),
        retryAfterMs: null,
      }),
  );
}

function isIdle(run: OrderRun): boolean {
  const isQuiet = !run.rang && !run.nudged && run.call === null && run.refundCall === null;
  return isQuiet && !unanswered(run) && allHandlersFinished();
}

/** Nothing left to do, nothing unread, nobody waiting. */
function isDone(run: OrderRun): boolean {
  const hasAsks = run.asks.length + run.refundAsks.length > 0;
  return run.order?.hasWork === false && isIdle(run) && !hasAsks && !run.delivering;
}

function maySafelyStop(run: OrderRun): boolean {
  return run.stopping && isIdle(run);
}

function mayContinueAsNew(run: OrderRun): boolean {
  return workflowInfo().historyLength > EVENTS_PER_RUN && isIdle(run);
}

/** Somebody asked while the run slept. */
function mayAsk(run: OrderRun): boolean {
  return (
    (run.call === null && run.asks.length > 0) ||
    (run.refundCall === null && run.refundAsks.length > 0)
  );
}

/** Waits for whatever comes first: a message, an answer, or the next thing that is due. */
async function somethingHappens(run: OrderRun): Promise<void> {
  run.delivered = false;
  const happened = () =>
    run.rang ||
    run.nudged ||
    run.delivered ||
    (run.call?.answer ?? null) !== null ||
    (run.refundCall?.answer ?? null) !== null ||
    mayAsk(run) ||
    run.requests.some((r) => needsDecision(run, r)) ||
    isDone(run) ||
    maySafelyStop(run);
  const waitMs = wakeInMs(run, OVERDUE_MS);
  if (waitMs === null) await condition(happened);
  else await condition(happened, waitMs, { summary: lineOf(run) });
}
