import { setTimeout as delay } from 'node:timers/promises';

/** Between two looks: often at first, then seldom enough that looking does not take the work's time. */
const SHORTEST_MS = 20;
const LONGEST_MS = 100;
const LONGER_BY = 1.3;

/**
 * Waits until `check` gives something that is neither undefined nor false; fails with the last seen
 * value when the bound passes.
 */
export async function waitFor<T>(
  what: string,
  check: () => Promise<T | undefined | false> | T | undefined | false,
  boundMs = 20_000,
): Promise<T> {
  const until = Date.now() + boundMs;
  let last: unknown;
  let pauseMs = SHORTEST_MS;
  for (;;) {
    try {
      last = await check();
      if (last !== undefined && last !== false) return last as T;
    } catch (error) {
      last = error;
    }
    if (Date.now() > until) {
      const seen = last instanceof Error ? last.stack : JSON.stringify(last);
      throw new Error(`waited ${boundMs} ms in vain for: ${what} (last seen: ${seen})`);
    }
    await delay(pauseMs);
    pauseMs = Math.min(LONGEST_MS, pauseMs * LONGER_BY);
  }
}
