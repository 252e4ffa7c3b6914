/** Questions from outside of an order's run: ask the channel now, whatever state things are in. */
import { log } from '@temporalio/workflow';
import { isRefundNo } from '../domain/orders';
import { channelCall, step } from './activities';
import type { AskChannel } from './messages';
import type { OrderRun } from './order-run';
import { take } from './order-run';
import { tellRefund } from './refund-child';

/** For a call about something that is final: no attempt's policy is at hand then. */
export const ASK_TIMEOUT_MS = 8_000;

/** Each question is a call; a signal that asks for more is no question of ours. */
const ASKS_MAX = 100;

/** Notes what is to be asked. A malformed signal must never fail a workflow task: it is ignored. */
export function noteAsked(run: OrderRun, asked: AskChannel | undefined): void {
  if (!isAskChannel(asked)) {
    log.warn('a malformed askChannel was ignored');
    return;
  }
  for (const id of asked.payRecordIds) if (!run.asks.includes(id)) run.asks.push(id);
  for (const no of asked.refundNos) if (!run.refundAsks.includes(no)) run.refundAsks.push(no);
}

function isAskChannel(asked: Partial<AskChannel> | null | undefined): asked is AskChannel {
  const { payRecordIds, refundNos } = asked ?? {};
  return (
    Array.isArray(payRecordIds) &&
    Array.isArray(refundNos) &&
    payRecordIds.length + refundNos.length <= ASKS_MAX &&
    payRecordIds.every((id) => Number.isSafeInteger(id) && id > 0) &&
    refundNos.every(isRefundNo)
  );
}

/**
 * Asks about the next refund beside everything else. The refund's own child may ask at the same time,
 * and what is final has no child any more: either answer is settled once, under the order's lock.
 */
export function startRefundCall(run: OrderRun): void {
  if (run.refundCall || !run.order) return;
  const refundNo = run.refundAsks.shift();
  if (refundNo === undefined) return;
  const inFlight: NonNullable<OrderRun['refundCall']> = { refundNo, answer: null };
  run.refundCall = inFlight;
  const summary = `query refund ${refundNo}: what is said of it elsewhere`;
  const options = { callTimeoutMs: ASK_TIMEOUT_MS, summary };
  void channelCall('queryRefund', { ...run.ref, refundNo }, options).then(
    (answer) => (inFlight.answer = answer),
    (error: Error) =>
      (inFlight.answer = {
        outcome: 'unknown',
        reason: error.message.slice(0, 200),
        retryAfterMs: null,
      }),
  );
}

/** Settles the answer about a refund, and tells its child, which may wait for a later rung. */
export async function settleAskedRefund(run: OrderRun): Promise<void> {
  const finished = run.refundCall;
  if (!finished?.answer) return;
  const { refundNo, answer } = finished;
  const { order } = await step(
    'settleAskedRefund',
    { ...run.ref, refundNo, answer },
    `settle the answer about refund ${refundNo}: ${answer.outcome === 'answered' ? answer.fact.state : answer.outcome}`,
  );
  run.refundCall = null;
  const wasOpen = run.order?.refunds.some((refund) => refund.refundNo === refundNo);
  take(run, order);
  if (wasOpen) await tellRefund(run.ref, refundNo);
}
