/**
 * The clients: what a shop's page and the gateways between do with one order. They know nothing of the
 * strategy. A request that fails or is not answered in time is repeated as it was; one that is told
 * "used" after such a failure loads the page again, as a person does.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Strategy, Times } from './strategy';
import type { Work } from './work';

export interface ClientCounts {
  /** Deliveries of a request to pay, repeats after failures included. */
  deliveries: number;
  /** Requests of any kind that failed or were not answered in time, as clients saw it. */
  errors: number;
  /** Of these, the ones not answered in time. */
  timeouts: number;
  /** Asked to come again. */
  busy: number;
  pages_reloaded: number;
  /** Orders given up unpaid. */
  lost: number;
}

export interface ClientOptions {
  times: Times;
  /** The second delivery comes from another page of the same order, opened for itself. */
  twoPages: boolean;
  /** Nobody asks about this order any more. */
  onOver: (work: Work) => void;
}

const BACKOFF_MS = { first: 50, max: 1_000 };

export class Clients {
  readonly counts: ClientCounts = {
    ...{ deliveries: 0, errors: 0, timeouts: 0, busy: 0, pages_reloaded: 0, lost: 0 },
  };
  readonly messages = new Map<string, number>();
  readonly #strategy: Strategy;
  readonly #times: Times;
  readonly #options: ClientOptions;
  /** Deliveries and handlers that go on after their order was answered. */
  readonly #straggling = new Set<Promise<unknown>>();

  constructor(strategy: Strategy, options: ClientOptions) {
    this.#strategy = strategy;
    this.#times = options.times;
    this.#options = options;
  }

  /**
   * Creates the order and pays it, delivering twice where the work says so. Resolves with the first
   * answer "paid".
   * @throws when the order was given up
   */
  async order(work: Work): Promise<void> {
    const until = performance.now() + this.#times.patience;
    const ticket = await this.#untilDone(until, () => this.#strategy.openPage(work));
    await this.#untilDone(until, () => this.#strategy.create(work, ticket));
    const { duplicateAfterMs } = work;
    const second =
      duplicateAfterMs !== undefined && this.#options.twoPages
        ? await this.#untilDone(until, () => this.#strategy.openPage(work, ticket))
        : ticket;
    const deliveries = [this.#deliver(work, ticket, until)];
    if (duplicateAfterMs !== undefined)
      deliveries.push(this.#deliver(work, second, until, duplicateAfterMs));
    const all = Promise.allSettled(deliveries);
    const over = all.then(() => this.#options.onOver(work));
    this.#straggle(over);
    const first = deliveries.map(async (delivery) => {
      if (!(await delivery)) throw new Error('not answered: used');
    });
    try {
      await Promise.any(first);
    } catch {
      // Both were told "used": the page says what became of the order.
      await over;
      if (await this.#reload(work, until)) return;
      this.counts.lost++;
      throw new Error('given up');
    }
  }

  /** Waits for whatever goes on behind answers: handlers whose client has left, second deliveries. */
  async settled(): Promise<void> {
    while (this.#straggling.size > 0) await Promise.allSettled([...this.#straggling]);
  }

  /** True once paid, false when told that the request was used and nothing had failed. */
  async #deliver(work: Work, firstTicket: string, until: number, afterMs = 0): Promise<boolean> {
    if (afterMs > 0) await delay(afterMs);
    let ticket = firstTicket;
    let hasFailed = false;
    for (let tries = 0; performance.now() < until; tries++) {
      if (tries > 0) await backOff(tries);
      this.counts.deliveries++;
      const outcome = await this.#ask(() => this.#strategy.pay(work, ticket));
      if (outcome === 'paid') return true;
      if (outcome === undefined) hasFailed = true;
      if (outcome === 'busy') this.counts.busy++;
      if (outcome !== 'used') continue;
      if (!hasFailed) return false;
      this.counts.pages_reloaded++;
      if (await this.#ask(() => this.#strategy.isPaid(work))) return true;
      ticket = (await this.#ask(() => this.#strategy.openPage(work, ticket))) ?? ticket;
    }
    throw new Error('given up');
  }

  /** The page is loaded again until it says "paid", or the person pays anew. */
  async #reload(work: Work, until: number): Promise<boolean> {
    for (let tries = 1; performance.now() < until; tries++) {
      await backOff(tries);
      this.counts.pages_reloaded++;
      if (await this.#ask(() => this.#strategy.isPaid(work))) return true;
    }
    return false;
  }

  async #untilDone<T>(until: number, act: () => Promise<T>): Promise<T> {
    for (let tries = 0; performance.now() < until; tries++) {
      if (tries > 0) await backOff(tries);
      const answer = await this.#ask(async () => ({ value: await act() }));
      if (answer) return answer.value;
    }
    this.counts.lost++;
    throw new Error('given up');
  }

  /**
   * One request. Undefined when it failed or was not answered in time; its handler then goes on, as a
   * server does whose client has left.
   */
  async #ask<T>(act: () => Promise<T>): Promise<T | undefined> {
    const answer = act();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(TIMED_OUT)), this.#times.clientTimeout);
    });
    try {
      return await Promise.race([answer, late]);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (message === TIMED_OUT) {
        this.counts.timeouts++;
        this.#straggle(answer);
      }
      this.counts.errors++;
      if (this.messages.size < 100 || this.messages.has(message))
        this.messages.set(message, (this.messages.get(message) ?? 0) + 1);
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }

  #straggle(promise: Promise<unknown>): void {
    this.#straggling.add(promise);
    const done = () => this.#straggling.delete(promise);
    promise.then(done, done);
  }
}

const TIMED_OUT = 'not answered in time';

/** Doubling, with jitter, so that those who failed together do not come back together. */
function backOff(tries: number): Promise<void> {
  const ms = Math.min(BACKOFF_MS.max, BACKOFF_MS.first * 2 ** (tries - 1));
  return delay(ms * (0.5 + Math.random() / 2));
}
