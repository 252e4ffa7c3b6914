import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/** How far a callback's clock may be from ours, either way. Source: design, section 7. */
export const TIMESTAMP_TOLERANCE_S = 300;

/** The shared keys of a channel: the previous one stays valid while a key is being changed. */
export interface SharedKeys {
  current: string;
  previous?: string;
}

/** Lower-case hex of HMAC-SHA256 over the chunks. */
export function hmacHex(key: string, ...chunks: (Buffer | string)[]): string {
  const hmac = createHmac('sha256', key);
  for (const chunk of chunks) hmac.update(chunk);
  return hmac.digest('hex');
}

/**
 * Whether the signature is the right one under any of the keys. Every candidate is always compared
 * and each comparison takes the same time whatever was given, so the time taken tells nothing.
 */
export function isSignedWithAny(
  keys: readonly string[],
  given: string,
  chunks: readonly (Buffer | string)[],
): boolean {
  let matches = 0;
  for (const key of keys) matches |= Number(sameText(hmacHex(key, ...chunks), given));
  return matches === 1;
}

/** Equality in constant time; hashing first makes both sides equally long. */
function sameText(expected: string, given: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text, 'utf8').digest();
  return timingSafeEqual(digest(expected), digest(given));
}

/**
 * Whether Unix seconds as text lie within the tolerance of our clock, in both directions.
 * Missing, non-numeric and millisecond values do not.
 */
export function isFresh(timestamp: string | undefined, now: Date): boolean {
  if (timestamp === undefined || !/^[0-9]{1,12}$/.test(timestamp)) return false;
  const nowSeconds = Math.floor(now.getTime() / 1_000);
  return Math.abs(nowSeconds - Number(timestamp)) <= TIMESTAMP_TOLERANCE_S;
}
