/** How payloads are read, by workers and inside runs; bundled with the workflows. */
import { DefaultPayloadConverter } from '@temporalio/common';
import type { Payload } from '@temporalio/common';

/**
 * Temporal's own converter, except that a payload nobody can read is nothing instead of an error. The
 * SDK reads a message before its handler sees it, and an error there fails the workflow task, again
 * and again: one mistyped signal would hold up an order for ever. What needs an argument checks it.
 */
class ForgivingPayloadConverter extends DefaultPayloadConverter {
  override fromPayload<T>(payload: Payload, ...rest: never[]): T {
    try {
      return super.fromPayload<T>(payload, ...rest);
    } catch {
      return undefined as T;
    }
  }
}

export const payloadConverter = new ForgivingPayloadConverter();
