import type { Stall } from './channel';
import type { Order } from './strategy';

/** What is done with one order; the same for every strategy under the same seed. */
export interface Work extends Order {
  /** The request to pay is delivered a second time, so many milliseconds after the first. */
  duplicateAfterMs: number | undefined;
}

/** One order in five has its request to pay delivered twice. */
export const DUPLICATES_PER_100 = 20;
/** Half of the second deliveries are a double click: at once. The rest are repeats of a gateway. */
const REPEAT_WITHIN_MS = 200;
const AMOUNT_MAX = 100_000;

/** The order with this place in the work. */
export function workOf(seed: number, index: number): Work {
  const isDuplicated = die(seed, index, 1) % 100 < DUPLICATES_PER_100;
  const isDoubleClick = die(seed, index, 2) % 2 === 0;
  return {
    index,
    orderId: `b${index}`,
    amountMinor: 1 + (die(seed, index, 3) % AMOUNT_MAX),
    duplicateAfterMs: !isDuplicated
      ? undefined
      : isDoubleClick
        ? 0
        : 1 + (die(seed, index, 4) % REPEAT_WITHIN_MS),
  };
}

/** Where the first call of this order stands still, in a run where one in so many does. */
export function stallOf(seed: number, index: number, oneIn: number): Stall {
  if (die(seed, index, 5) % oneIn !== 0) return undefined;
  return die(seed, index, 6) % 2 === 0 ? 'before_the_call' : 'after_the_effect';
}

export function indexOf(orderId: string): number {
  return Number(orderId.slice(1));
}

/** 32 bits that look random and follow from the words alone (the finaliser of MurmurHash3). */
function die(...words: number[]): number {
  let hash = 0x9e3779b9;
  for (const word of words) {
    hash = Math.imul(hash ^ word, 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    hash ^= hash >>> 16;
  }
  return hash >>> 0;
}
