import { Webhook } from 'standardwebhooks';
import {
  markNotificationSent,
  nextNotification,
  noteNotificationFailure,
  webhookIdOf,
} from '../db/notifications';
import type { WaitingNotification } from '../db/notifications';
import { readProgress } from '../db/progress';
import type { OrderRef } from '../domain/orders';
import type { OrderProgress } from '../domain/progress';
import { notDelivered, orderNotFound } from '../workflows/failures';
import type { ActivityDeps } from './deps';
import { settlementDeps } from './deps';
import { whileBeating } from './heartbeats';

/** An activity tells this many events at most before it lets the run look at the order again. */
const EVENTS_PER_CALL = 20;
/** And begins no other after this long, so that it ends well within its own limit of two minutes. */
const TELLING_MAX_MS = 45_000;

/** Tells the merchant what happened, in order, each event one signed POST. */
export function createNotificationSteps(deps: ActivityDeps) {
  return {
    /**
     * Delivers the order's waiting events, the oldest first; a later one never overtakes. A failed
     * try is booked and raised with the ladder's delay, so that Temporal repeats it without cost to
     * the history; after the last rung the event is dead, listed, and can be sent again.
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
          const failure = await deliver(event, deps);
          if (!failure) {
            await markNotificationSent(deps.pool, event.notificationId);
            continue;
          }
          const againInMs = deps.notifications.ladderMs[event.tries] ?? null;
          await noteNotificationFailure(deps.pool, {
            notificationId: event.notificationId,
            error: failure,
            againInMs,
          });
          if (againInMs !== null) throw notDelivered(failure, againInMs);
        }
        const { policyOf } = await settlementDeps(deps);
        const order = await readProgress(deps.pool, ref, policyOf);
        if (!order) throw orderNotFound(ref);
        return { order };
      }),
  };
}

/**
 * One try. The headers are those of the Standard Webhooks specification: `webhook-id` is the same on
 * every try (the merchant's key against duplicates), the signature covers id, time and body.
 *
 * @returns why it failed, or undefined
 */
async function deliver(
  event: WaitingNotification,
  { notifications }: ActivityDeps,
): Promise<string | undefined> {
  try {
    const url = new URL(event.notifyUrl);
    if (!(await notifications.mayNotify(url))) return 'the address is not allowed';
    const secret = await notifications.resolveSecret(event.notifySecretRef);
    const id = webhookIdOf(event);
    const now = new Date();
    const body = JSON.stringify({
      type: event.eventType,
      timestamp: event.createdAt,
      data: { ...event.payload, seq: event.seq },
    });
    const response = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      signal: AbortSignal.timeout(notifications.timeoutMs),
      headers: {
        'content-type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
        'webhook-signature': new Webhook(secret).sign(id, now, body),
      },
      body,
    });
    await response.body?.cancel();
    return response.ok ? undefined : `the merchant answered ${response.status}`;
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : 'unknown error';
  }
}
