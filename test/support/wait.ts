import { setTimeout as delay } from 'node:timers/promises';

/**
 * Waits until `check` gives something that is neither undefined nor false, asking often; fails with
 * the last seen value when the bound passes.
 */
export async function waitFor<T>(
  what: string,
  check: () => Promise<T | undefined | false> | T | undefined | false,
  boundMs = 20_000,
): Promise<T> {
  const until = Date.now() + boundMs;
  let last: unknown;
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
    await delay(25);
  }
}
