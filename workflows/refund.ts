/**
 * Money back from one capture: sent under one number, asked about until the channel says how it ended.
 *
 * Trigger: the order's run, as an abandoned child (merchant's request or surplus money).
 * Messages: signal nudge (news arrived by another way); query progress.
 * Ends: with a final refund, one that a person must act on, or (stopped) at a safe point; then it
 * nudges the order's run. A second start loads, finds nothing to do and ends.
 */
import {
  CancellationScope,
  CancelledFailure,
  condition,
  continueAsNew,
  defineQuery,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { RefundProgress } from '../activities/refund-steps';
import type { RefundAnswer } from '../domain/answers';
import { channelCall, nudgeOrder, step } from './activities';
import { nudgeSignal } from './messages';

export interface RefundInput {
  merchantId: string;
  orderId: string;
  refundNo: string;
}

export interface RefundResult {
  status: string;
}

export const refundProgressQuery = defineQuery<string>('progress');

const EVENTS_PER_RUN = 250;
/** A send that the database held back is asked about again no sooner than this. */
const HELD_BACK_MS = 1_000;

export async function refund(input: RefundInput): Promise<RefundResult> {
  let nudged = false;
  let stopping = false;
  let line = 'loading the refund';
  setHandler(nudgeSignal, () => void (nudged = true));
  setHandler(refundProgressQuery, () => line);
  CancellationScope.current().cancelRequested.catch(() => (stopping = true));

  return CancellationScope.nonCancellable(async () => {
    let progress = await load('load the refund');
    for (;;) {
      progress = await carry(progress);
      await nudgeOrder({ merchantId: input.merchantId, orderId: input.orderId });
      if (!nudged || stopping) break;
      // Since it was last read: a person may have opened it again, and found this run still there.
      progress = await load('load the refund once more');
    }
    if (progress.isOpen) throw new CancelledFailure('stopped; the sweep goes on with the refund');
    return { status: progress.status };
  });

  /** What the database knows from here on: news told before is in it. */
  function load(summary: string): Promise<RefundProgress> {
    nudged = false;
    return step('loadRefund', input, summary);
  }

  /** Sends and asks, until the refund is not open any more or the run is to stop. */
  async function carry(progress: RefundProgress): Promise<RefundProgress> {
    while (progress.isOpen && !stopping) {
      line = lineOf(progress);
      setCurrentDetails(line);
      if (progress.dueInMs > 0) {
        await condition(() => nudged || stopping, progress.dueInMs, { summary: line });
        if (nudged || stopping) {
          progress = await load('load the refund again');
          continue;
        }
      }
      const answer = await ask(input, progress);
      nudged = false;
      progress = await step(
        'settleRefundAnswer',
        { ...input, call: progress.call, answer },
        `settle the answer to ${progress.call}`,
      );
      if (answer.outcome === 'not_sent' && progress.isOpen) {
        progress = { ...progress, dueInMs: Math.max(HELD_BACK_MS, progress.dueInMs) };
      }
      if (workflowInfo().historyLength > EVENTS_PER_RUN) {
        await continueAsNew<typeof refund>(input);
      }
    }
    line = lineOf(progress);
    setCurrentDetails(line);
    return progress;
  }
}

/** One call about the refund; whatever goes wrong is an unknown outcome, never a failure. */
async function ask(input: RefundInput, progress: RefundProgress): Promise<RefundAnswer> {
  const { call, channel, callTimeoutMs } = progress;
  try {
    return await channelCall(call === 'submit' ? 'submitRefund' : 'queryRefund', input, {
      callTimeoutMs,
      summary: `${call} refund ${input.refundNo} at ${channel}`,
    });
  } catch (error) {
    const reason = error instanceof Error ? error.message.slice(0, 200) : 'unknown';
    return { outcome: 'unknown', reason, retryAfterMs: null };
  }
}

function lineOf({ status, channel, call, polls, dueInMs, isOpen }: RefundProgress): string {
  if (!isOpen) return `${status} at ${channel}`;
  const seconds = Math.ceil(Math.max(0, dueInMs) / 1000);
  return `${status} at ${channel}, call ${polls + 1}, ${call} in ${seconds} s`;
}
