import { RATE_BRAKE, type CallAnswer } from './answers';

/** Waits that grow: rung n of a ladder, the last rung for ever after. Milliseconds. */
export function rung(ladderMs: readonly number[], climbed: number): number {
  const index = Math.min(Math.max(0, climbed), ladderMs.length - 1);
  const wait = ladderMs[index];
  if (wait === undefined) throw new RangeError('a ladder needs at least one rung');
  return wait;
}

/**
 * A wait made up to a fifth longer, so that orders that began together do not ask together.
 * @param random a number from 0 up to 1
 */
export function jittered(waitMs: number, random: number): number {
  return Math.round(waitMs * (1 + random / 5));
}

/**
 * When to call again after a call that settled nothing, and whether that call was a rung of the
 * ladder. A call that our own rate brake held back asked nobody: it keeps its rung and comes back
 * when the brake has a place for it. Otherwise a crowd above the limit would climb to the longest
 * waits together, and each time come back together.
 *
 * @param climbed rungs so far
 * @param random a number from 0 up to 1
 * @returns milliseconds; never earlier than the channel, or what stands before it, asked for
 */
export function nextTry(
  answer: CallAnswer<unknown>,
  ladderMs: readonly number[],
  climbed: number,
  random: number,
): { waitMs: number; climbs: boolean } {
  const askedForMs = 'retryAfterMs' in answer ? answer.retryAfterMs : null;
  if (answer.outcome === 'never_left' && answer.reason === RATE_BRAKE && askedForMs !== null) {
    return { waitMs: askedForMs, climbs: false };
  }
  const waitMs = Math.max(jittered(rung(ladderMs, climbed), random), askedForMs ?? 0);
  return { waitMs, climbs: true };
}
