/**
 * What the shop does once its order is paid, step by step; or all of it undone, the last first.
 *
 * Trigger: the order's run, as an abandoned child, when the merchant has steps configured.
 * Messages: signal nudge (the order no longer stands, or somebody wants another look); query progress.
 * Ends: when every step is done, or all that may have happened is undone; then it nudges the order's
 * run, which gives the money back. A second start loads, finds nothing to do and ends.
 * PostgreSQL is the judge: a step is marked before it is sent, its key is the same on every try.
 */
import {
  CancellationScope,
  CancelledFailure,
  condition,
  continueAsNew,
  defineQuery,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { FulfilmentProgress } from '../activities/fulfilment';
import type { StepAnswer } from '../domain/fulfilment';
import type { OrderRef } from '../domain/orders';
import { callStep, nudgeOrder, step } from './activities';
import { nudgeSignal } from './messages';
import { FULFILMENT_STATUS, NEEDS_REVIEW } from './search-attributes';

export interface FulfilmentResult {
  status: string;
}

export const fulfilmentProgressQuery = defineQuery<string>('progress');

const EVENTS_PER_RUN = 250;
/** A call that the database held back is tried again no sooner than this. */
const HELD_BACK_MS = 1_000;

export async function fulfilment(input: OrderRef): Promise<FulfilmentResult> {
  const ref = { merchantId: input.merchantId, orderId: input.orderId };
  let nudged = false;
  let stopping = false;
  let line = 'loading the fulfilment';
  setHandler(nudgeSignal, () => void (nudged = true));
  setHandler(fulfilmentProgressQuery, () => line);
  // A cancel in Temporal Web stops this run between two steps; it undoes nothing.
  CancellationScope.current().cancelRequested.catch(() => (stopping = true));

  return CancellationScope.nonCancellable(async () => {
    let progress = await load('load the fulfilment');
    for (;;) {
      progress = await carry(progress);
      await nudgeOrder(ref);
      if (!nudged || stopping) break;
      // Since it was last read: the order may stand again, and have found this run still there.
      progress = await load('load the fulfilment once more');
    }
    if (progress.isOpen) {
      throw new CancelledFailure('stopped; the order goes on with its fulfilment');
    }
    return { status: progress.status };
  });

  /** What the database knows from here on: news told before is in it. */
  function load(summary: string): Promise<FulfilmentProgress> {
    nudged = false;
    return step('loadFulfilment', ref, summary);
  }

  /** Calls the merchant step by step, until nothing is to be called or the run is to stop. */
  async function carry(progress: FulfilmentProgress): Promise<FulfilmentProgress> {
    while (progress.next && !stopping) {
      const { next } = progress;
      line = show(progress);
      if (next.dueInMs > 0) {
        await condition(() => nudged || stopping, next.dueInMs, { summary: line });
      }
      // Also when it is due: the order may not stand any more.
      if (nudged || stopping) {
        progress = await load('load the fulfilment again');
        continue;
      }
      const { stepNo, call, tryNo } = next;
      const answer = await ask({ ...ref, stepNo, call, tryNo }, next);
      nudged = false;
      progress = await step(
        'settleFulfilmentStep',
        { ...ref, stepNo, call, tryNo, answer },
        `settle the answer to ${call} ${next.name}: ${answer.outcome}`,
      );
      if (answer.outcome === 'not_sent' && progress.next) {
        progress.next.dueInMs = Math.max(HELD_BACK_MS, progress.next.dueInMs);
      }
      if (workflowInfo().historyLength > EVENTS_PER_RUN) {
        await continueAsNew<typeof fulfilment>(ref);
      }
    }
    line = show(progress);
    return progress;
  }
}

/** One call of the merchant; whatever goes wrong is an unknown outcome, never a refusal. */
async function ask(
  input: Parameters<typeof callStep>[0],
  { name, timeoutMs }: NonNullable<FulfilmentProgress['next']>,
): Promise<StepAnswer> {
  const { call, tryNo } = input;
  try {
    return await callStep(input, { timeoutMs, summary: `${call} ${name}, try ${tryNo}` });
  } catch (error) {
    const reason = error instanceof Error ? error.message.slice(0, 200) : 'unknown';
    return { outcome: 'unknown', reason, retryAfterMs: null };
  }
}

/** Keeps the details line and the search attributes true; returns the line. */
function show({ status, next, stepsTotal, needsReview }: FulfilmentProgress): string {
  const line = next
    ? `${status}: ${next.call} ${next.name} (step ${next.stepNo} of ${stepsTotal}), try ${next.tryNo}` +
      (next.dueInMs > 0 ? ` in ${Math.ceil(next.dueInMs / 1000)} s` : '')
    : `${status}: ${stepsTotal} steps`;
  setCurrentDetails(needsReview ? `${line}; a person must look` : line);
  const shown = workflowInfo().typedSearchAttributes;
  const changed = [
    ...(shown.get(FULFILMENT_STATUS) === status ? [] : [{ key: FULFILMENT_STATUS, value: status }]),
    ...(shown.get(NEEDS_REVIEW) === needsReview ? [] : [{ key: NEEDS_REVIEW, value: needsReview }]),
  ];
  if (changed.length > 0) upsertSearchAttributes(changed);
  return line;
}
