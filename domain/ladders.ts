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
