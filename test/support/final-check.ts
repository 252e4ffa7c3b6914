import { setTimeout as delay } from 'node:timers/promises';
import { checkBooks } from '../../scripts/books/check';
import type { BooksCheck } from '../../scripts/books/check';
import type { Findings, Invariant, Violation } from '../../scripts/books/findings';
import { lineOf } from '../../scripts/books/findings';
import type { Saga } from './saga';

/** What a test breaks on purpose. */
export interface Expected {
  invariant: Invariant;
  /** Found in the violation's subject or message: an order id, a number, a pattern. */
  about: string | RegExp;
  why: string;
}

/** What is on its way has this long to arrive; orders that merely wait are no violation. */
const SETTLE_MS = 10_000;
const IDLE_MS = 5_000;
const AGAIN_MS = 200;

/** The books checker at the end of an end-to-end test. */
export class FinalCheck {
  private readonly expected: Expected[] = [];
  private unchecked: string | undefined;

  constructor(private readonly saga: Saga) {}

  /** This violation must be there at the end, and is no failure of the test. */
  expect(expected: Expected): void {
    this.expected.push(expected);
  }

  /** No check at the end: the test has taken away what the check needs. Say why. */
  skip(why: string): void {
    this.unchecked = why;
  }

  look(): Promise<Findings> {
    return checkBooks(this.input());
  }

  /** What the check compares: this saga's merchant, channel, journal and deliveries. */
  input(): BooksCheck {
    const { saga } = this;
    return {
      pool: saga.pool,
      client: saga.client,
      channelBooks: () => saga.mock.books(),
      merchantIds: [saga.merchantId],
      journal: saga.journal,
      received: saga.merchant.received,
      effects: saga.merchant.steps.effects,
    };
  }

  /** Waits until nothing but what is expected is violated; undefined then, else what is wrong. */
  async check(settleMs = SETTLE_MS): Promise<Error | undefined> {
    if (this.unchecked !== undefined) return undefined;
    try {
      // Held callbacks and long ladders never end; then the wait below decides.
      await this.saga.mock.waitUntilIdle({ timeoutMs: IDLE_MS }).catch(() => undefined);
      const until = Date.now() + settleMs;
      for (;;) {
        const faults = this.faultsOf((await this.look()).violations);
        if (faults.length === 0) return undefined;
        if (Date.now() >= until) {
          return new Error(`the invariants do not hold at the end:\n  ${faults.join('\n  ')}`);
        }
        await delay(AGAIN_MS);
      }
    } catch (error) {
      return new Error('the invariants could not be checked at the end', { cause: error });
    }
  }

  private faultsOf(violations: readonly Violation[]): string[] {
    const fits = (violation: Violation, { invariant, about }: Expected) =>
      violation.invariant === invariant &&
      (typeof about === 'string'
        ? lineOf(violation).includes(about)
        : about.test(lineOf(violation)));
    return [
      ...violations.filter((v) => !this.expected.some((e) => fits(v, e))).map(lineOf),
      ...this.expected
        .filter((e) => !violations.some((v) => fits(v, e)))
        .map((e) => `${e.invariant} about ${String(e.about)} was expected (${e.why}) and holds`),
    ];
  }
}
