import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import type { WriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

/** The payment channel as its clients see it. */
export interface Channel {
  /**
   * Takes the money: every call that arrives is an effect of its own, also under a number that was
   * seen before. `sendBefore` (on the clock of `performance.now()`) is the caller's own limit: what has
   * not left by then does not leave.
   * @throws when the limit passed before sending
   */
  charge(order: { index: number }, number: string, sendBefore?: number): Promise<void>;
  /** Whether money was taken under the number: what a channel answers to a query. */
  query(number: string): Promise<boolean>;
}

/** Where a caller stands still: before its call leaves, or when the money is taken and nobody knows. */
export type Stall = 'before_the_call' | 'after_the_effect' | undefined;

export interface ChannelOptions {
  /** Orders of the run: their effects are counted. */
  orders: number;
  /** The append-only log: a line per effect, without any uniqueness. */
  logFile: string;
  /** From the call to its answer; the effect is half way. */
  delayMs: number;
  stallMs: number;
  stallOf: (index: number) => Stall;
}

/**
 * A channel beside the strategy, in its process, so that its own cost is the same for all and small: it
 * answers after a stated delay and appends each effect to its log. Real channels refuse a second charge under one
 * number; this one does not, because the strategies are to be compared and not the channel.
 */
export class LoggingChannel implements Channel {
  /** Charges that were refused because their caller's limit had passed. */
  neverLeft = 0;
  stalled = 0;
  queries = 0;
  readonly #options: ChannelOptions;
  readonly #log: WriteStream;
  /** Numbers of orders not over yet: nobody asks about the others. */
  readonly #numbers = new Set<string>();
  readonly #numbersOf = new Map<number, string[]>();
  readonly #stalledOnce: Uint8Array;

  constructor(options: ChannelOptions) {
    this.#options = options;
    this.#log = createWriteStream(options.logFile, { flags: 'a' });
    this.#stalledOnce = new Uint8Array(options.orders);
  }

  async charge({ index }: { index: number }, number: string, sendBefore = Infinity): Promise<void> {
    const { delayMs, stallMs } = this.#options;
    const stall = this.#stallOf(index);
    if (stall === 'before_the_call') await delay(stallMs);
    if (performance.now() > sendBefore) {
      this.neverLeft++;
      throw new Error('the time limit passed before the call was sent');
    }
    await delay(delayMs / 2);
    this.#log.write(`${index} ${number}\n`);
    this.#numbers.add(number);
    this.#numbersOf.set(index, [...(this.#numbersOf.get(index) ?? []), number]);
    await delay(delayMs / 2);
    if (stall === 'after_the_effect') await delay(stallMs);
  }

  async query(number: string): Promise<boolean> {
    this.queries++;
    await delay(this.#options.delayMs);
    return this.#numbers.has(number);
  }

  /** The first call of an order may stall; what others do about it does not. */
  #stallOf(index: number): Stall {
    const stall = this.#options.stallOf(index);
    if (stall === undefined || this.#stalledOnce[index] === 1) return undefined;
    this.#stalledOnce[index] = 1;
    this.stalled++;
    return stall;
  }

  /** The order is over for its clients. */
  forget(index: number): void {
    for (const number of this.#numbersOf.get(index) ?? []) this.#numbers.delete(number);
    this.#numbersOf.delete(index);
  }

  async end(): Promise<void> {
    this.#log.end();
    await once(this.#log, 'close');
  }
}

/** How often each order of a run was charged, counted from the log. */
export async function countEffects(logFile: string, orders: number): Promise<Uint16Array> {
  const effects = new Uint16Array(orders);
  for await (const line of createInterface({ input: createReadStream(logFile) })) {
    const index = Number(line.slice(0, line.indexOf(' ')));
    effects[index] = (effects[index] ?? 0) + 1;
  }
  return effects;
}
