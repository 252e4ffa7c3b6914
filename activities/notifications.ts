import { CancelledFailure, Context } from '@temporalio/activity';
import {
  eventBody,
  giveUpNotification,
  markNotificationSent,
  nextNotification,
  noteNotificationFailure,
  stopMerchantAddress,
  webhookIdOf,
} from '../db/notifications';
import type { WaitingNotification } from '../db/notifications';
import { readProgress } from '../db/progress';
import type { OrderRef } from '../domain/orders';
import type { OrderProgress } from '../domain/progress';
import { notDelivered, orderNotFound } from '../workflows/failures';
import type { ActivityDeps } from './deps';
import { settlementDeps } from './deps';
import { whileBeating } from './heartbeat';
import { signedHeaders } from './merchant-signature';

/** An activity tells this many events at most before it lets the run look at the order again. */
const EVENTS_PER_CALL = 20;
/** And begins no other after this long, so that it ends well within its own limit of two minutes. */
const TELLING_MAX_MS = 45_000;
/** "Do not call here again": the address is stopped, not only this event. */
const GONE = 410;

/** Tells the merchant what happened, in order, each event one signed POST. */
export function createNotificationSteps(deps: ActivityDeps) {
  return {
    /**
     * Delivers the order's waiting events, the oldest first; a later one never overtakes. A failed
     * try is booked and raised with the ladder's delay, so that Temporal repeats it without cost to
     * the history; after the last rung the event is dead, listed, and can be sent again. An address
     * that answers 410 is stopped: what waits for it is dead, what comes later is kept.
     *
     * @throws NotDelivered when a try failed and another will follow
     */
    deliverNotifications: (ref: OrderRef): Promise<{ order: OrderProgress }> =>
      whileBeating(async () => {
        const until = Date.now() + TELLING_MAX_MS;
        for (let told = 0; told < EVENTS_PER_CALL && Date.now() < until; told++) {
          const event = await nextNotification(deps.pool, ref);
          if (!event) break;
          if (event.dueInMs > 0) throw notDelivered('its next try is not due yet', event.dueInMs);
          const { notificationId, notifyUrl } = event;
          if (notifyUrl === null || event.stoppedBecause !== null) {
            const error = event.stoppedBecause ?? 'the merchant has no address any more';
            await giveUpNotification(deps.pool, { notificationId, error });
            continue;
          }
          const tried = await deliver({ ...event, notifyUrl }, deps);
          const { status, error, durationMs } = tried;
          if (error === undefined) {
            await markNotificationSent(deps.pool, { notificationId, status, durationMs });
            continue;
          }
          const isGone = status === GONE;
          const againInMs = isGone ? null : nextTryInMs(event, tried, deps.notifications.ladderMs);
          if (isGone) {
            const because = `${notifyUrl} answered 410 Gone`;
            await stopMerchantAddress(deps.pool, { ...event, notifyUrl, because });
          }
          await noteNotificationFailure(deps.pool, {
            notificationId,
            status,
            error,
            durationMs,
            againInMs,
          });
          if (againInMs !== null) throw notDelivered(error, againInMs);
        }
        const { policyOf } = await settlementDeps(deps);
        const order = await readProgress(deps.pool, ref, policyOf);
        if (!order) throw orderNotFound(ref);
        return { order };
      }),
  };
}

/** What one try came to; without an error the merchant has the event. */
interface Try {
  status: number | null;
  error?: string;
  retryAfterMs: number | null;
  durationMs: number;
}

/**
 * One try: a signed POST. `webhook-id` is the same on every try (the merchant's key against duplicates).
 * @throws CancelledFailure when the run wants it begun anew: then it is no try
 */
async function deliver(
  event: WaitingNotification & { notifyUrl: string },
  { notifications, postToMerchant }: ActivityDeps,
): Promise<Try> {
  const { cancellationSignal } = Context.current();
  const beganAt = performance.now();
  const tried = (outcome: Partial<Try>): Try => ({
    status: null,
    retryAfterMs: null,
    ...outcome,
    durationMs: performance.now() - beganAt,
  });
  try {
    const body = JSON.stringify(eventBody(event));
    const headers = await signedHeaders(
      notifications,
      {
        secretRef: event.notifySecretRef ?? '',
        previousSecretRef: event.notifyPreviousSecretRef,
      },
      { id: webhookIdOf(event), body },
    );
    const { status, retryAfterMs } = await postToMerchant(new URL(event.notifyUrl), {
      headers,
      body,
      timeoutMs: notifications.timeoutMs,
      signal: cancellationSignal,
    });
    if (status >= 200 && status < 300) return tried({ status });
    return tried({ status, retryAfterMs, error: `the merchant answered ${status}` });
  } catch (error) {
    if (cancellationSignal.aborted) throw new CancelledFailure('the try is begun anew');
    return tried({ error: wordsOf(error) });
  }
}

/** When several addresses were tried and failed, the error has a code and no message. */
function wordsOf(error: unknown): string {
  const { name, message, code } = error as NodeJS.ErrnoException;
  return `${name}: ${message || code}`;
}

/** The merchant's Retry-After is obeyed, but no longer than the ladder's own longest wait by default. */
const RETRY_AFTER_MAX_MS = 24 * 60 * 60 * 1_000;

/** Until the next try, or null when the ladder has ended. Milliseconds. */
function nextTryInMs(
  event: WaitingNotification,
  tried: Try,
  ladderMs: readonly number[],
): number | null {
  const rungMs = ladderMs[event.tries];
  if (rungMs === undefined) return null;
  return Math.max(rungMs, Math.min(tried.retryAfterMs ?? 0, RETRY_AFTER_MAX_MS));
}
