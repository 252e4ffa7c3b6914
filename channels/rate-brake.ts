/**
 * Our own brake on the calls of one channel, per process: calls leave evenly spaced, at most
 * `maxCallsPerSecond`, and not at all while the channel asked us to wait (Retry-After).
 */
export interface RateBrake {
  /**
   * Takes the next free place if it comes within `maxWaitMs`; otherwise takes none and says when
   * to come back. Those sent away get times that are spread like the calls themselves, so that a
   * crowd does not come back at once.
   */
  admit(
    maxWaitMs: number,
  ): { admitted: true; waitMs: number } | { admitted: false; retryAfterMs: number };
  /** No call leaves for this long (bounded to five minutes: a channel's typing error must not silence us). */
  pause(forMs: number): void;
}

const LONGEST_PAUSE_MS = 5 * 60_000;
/**
 * Hints are spread over at most this long: it is how long an order sleeps without a look at what changed
 * meanwhile. The end of a longer queue looks once in that time, in vain, which costs a workflow task.
 */
const LONGEST_HINT_MS = 10 * 60_000;
/** A pause in traffic lets this much of a second's calls leave at once. */
const BURST_SHARE_OF_SECOND = 0.1;

/** @param now milliseconds of a clock that never goes back */
export function createRateBrake(
  maxCallsPerSecond: number,
  now: () => number = () => performance.now(),
): RateBrake {
  const intervalMs = 1_000 / maxCallsPerSecond;
  const burstMs = Math.max(0, BURST_SHARE_OF_SECOND * 1_000 - intervalMs);
  // When the next call would leave if calls were spaced evenly from the first one on.
  let nextSlotAt = Number.NEGATIVE_INFINITY;
  let pausedUntil = Number.NEGATIVE_INFINITY;
  let nextHintAt = Number.NEGATIVE_INFINITY;

  return {
    admit(maxWaitMs) {
      const at = now();
      // The burst is not granted on top of a pause: the channel has just told us to be slower.
      const slot = Math.max(nextSlotAt, at - burstMs, pausedUntil);
      const waitMs = Math.max(0, slot - at);
      if (waitMs <= maxWaitMs) {
        nextSlotAt = slot + intervalMs;
        return { admitted: true, waitMs };
      }
      nextHintAt = Math.max(nextHintAt, slot) + intervalMs;
      if (nextHintAt > slot + LONGEST_HINT_MS) nextHintAt = slot + intervalMs;
      return { admitted: false, retryAfterMs: Math.ceil(nextHintAt - at) };
    },
    pause(forMs) {
      pausedUntil = Math.max(pausedUntil, now() + Math.min(forMs, LONGEST_PAUSE_MS));
    },
  };
}
