/**
 * Load, in two forms. Open: sends are planned at a constant rate and every latency counts from the
 * planned time, so that a system that answers slowly cannot slow the questions down and look fast
 * (Gil Tene, "How NOT to measure latency": coordinated omission). Closed: as fast as N clients go,
 * which finds the knee and says nothing about latency at another rate.
 */
import { createHistogram } from 'node:perf_hooks';
import type { RecordableHistogram } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';

/** Of one measured distance, in milliseconds. */
export interface Percentiles {
  count: number;
  mean_ms: number;
  p50_ms: number;
  p95_ms: number;
  p99_ms: number;
  max_ms: number;
}

export interface LoadResult {
  /** Asked for; `sent` is less when the time or the signal ended the load before. */
  planned: number;
  sent: number;
  succeeded: number;
  /** Of those sent, the ones whose act rejected. */
  failed: number;
  /** From the first planned time to the last answer. */
  took_ms: number;
  /** Successes by that time. */
  per_second: number;
  /** Of the successes, from the planned time (open) or from the send (closed) to the answer. */
  latency: Percentiles;
  /** How late sends left, against the plan: the generator's own fault and held back sends. */
  late: Percentiles;
  in_flight_max: number;
  /** Sends that had to wait because `inFlightMax` were under way: above a few, the rate is too high. */
  held_back: number;
  /** Failures by message, the most frequent first, ten at most. */
  errors: Record<string, number>;
}

interface Common {
  /** Does one unit of work within a bound of its own; `index` counts from 0. A rejection is counted. */
  act: (index: number) => Promise<unknown>;
  /** Units in all. */
  count: number;
  /** No further sends after this long; what is under way is waited for. */
  forMsMax?: number;
  /** Ends the sending early. */
  signal?: AbortSignal;
  /** Told after each unit, also a failed one. */
  onDone?: (done: number) => void;
}

export interface OpenLoadOptions extends Common {
  perSecond: number;
  inFlightMax: number;
}

export interface ClosedLoadOptions extends Common {
  clients: number;
}

/** An hour: longer than anything a load waits for. */
const HIGHEST_US = 3_600_000_000;
const ERRORS_TOLD = 10;
/** The timer's own resolution: sends of one tick leave together, and are late by less than this. */
const TICK_MS = 1;

/**
 * A histogram of durations (HDR, three significant digits), recorded in milliseconds and kept in
 * microseconds.
 */
export class Durations {
  readonly #histogram: RecordableHistogram = createHistogram({
    lowest: 1,
    highest: HIGHEST_US,
    figures: 3,
  });

  /** A negative distance (clocks of one process never give one) counts as none. */
  record(ms: number): void {
    this.#histogram.record(Math.min(HIGHEST_US, Math.max(1, Math.round(ms * 1_000))));
  }

  percentiles(): Percentiles {
    const { count } = this.#histogram;
    const ms = (us: number) => (count === 0 ? 0 : Math.round(us) / 1_000);
    return {
      count,
      mean_ms: ms(this.#histogram.mean),
      p50_ms: ms(this.#histogram.percentile(50)),
      p95_ms: ms(this.#histogram.percentile(95)),
      p99_ms: ms(this.#histogram.percentile(99)),
      max_ms: ms(this.#histogram.max),
    };
  }
}

/**
 * Sends `count` units at a constant rate. Unit n is planned at start + n / rate; it leaves then, or as
 * soon as fewer than `inFlightMax` are under way, and its latency counts from the planned time either
 * way. Resolves once everything sent is answered.
 */
export async function openLoad(options: OpenLoadOptions): Promise<LoadResult> {
  const { perSecond, inFlightMax, count } = options;
  assertPositive({ perSecond, inFlightMax });
  const tally = new Tally(options);
  const everyMs = 1_000 / perSecond;
  const startedAt = performance.now();
  let next = 0;
  while (next < count && !tally.isOver(startedAt)) {
    const now = performance.now();
    while (next < count && startedAt + next * everyMs <= now) {
      const plannedAt = startedAt + next * everyMs;
      if (tally.inFlight >= inFlightMax) {
        tally.held(next);
        await tally.room();
        if (tally.isOver(startedAt)) break;
      }
      void tally.send(next++, plannedAt);
      // A burst that is overdue must not keep answers from being read.
      if (performance.now() - now > 10 * TICK_MS) break;
    }
    await delay(Math.max(0, startedAt + next * everyMs - performance.now()));
  }
  return tally.end(startedAt);
}

/**
 * `clients` of them send one unit after the other, each as soon as its last is answered. Latency
 * counts from the send: it is what a client saw under this very load.
 */
export async function closedLoad(options: ClosedLoadOptions): Promise<LoadResult> {
  const { clients, count } = options;
  assertPositive({ clients });
  const tally = new Tally(options);
  const startedAt = performance.now();
  let next = 0;
  const client = async (): Promise<void> => {
    while (next < count && !tally.isOver(startedAt)) await tally.send(next++, performance.now());
  };
  await Promise.all(Array.from({ length: Math.min(clients, count) }, client));
  return tally.end(startedAt);
}

function assertPositive(numbers: Record<string, number>): void {
  for (const [name, value] of Object.entries(numbers)) {
    if (!(Number.isFinite(value) && value > 0)) throw new RangeError(`${name} must be above 0`);
  }
}

/** What both forms count. */
class Tally {
  inFlight = 0;
  readonly #options: Common;
  readonly #latency = new Durations();
  readonly #late = new Durations();
  readonly #errors = new Map<string, number>();
  readonly #waiting: (() => void)[] = [];
  #sent = 0;
  #succeeded = 0;
  #failed = 0;
  #inFlightMax = 0;
  #heldBack = 0;
  #lastHeld = -1;

  constructor(options: Common) {
    this.#options = options;
  }

  isOver(startedAt: number): boolean {
    const { signal, forMsMax = Infinity } = this.#options;
    return signal?.aborted === true || performance.now() - startedAt >= forMsMax;
  }

  held(index: number): void {
    if (index !== this.#lastHeld) this.#heldBack++;
    this.#lastHeld = index;
  }

  /** Resolves when one of those under way is answered. */
  room(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  async send(index: number, plannedAt: number): Promise<void> {
    this.#sent++;
    this.inFlight++;
    this.#inFlightMax = Math.max(this.#inFlightMax, this.inFlight);
    this.#late.record(performance.now() - plannedAt);
    try {
      await this.#options.act(index);
      this.#latency.record(performance.now() - plannedAt);
      this.#succeeded++;
    } catch (error) {
      this.#failed++;
      const message = error instanceof Error ? error.message || error.name : String(error);
      // Bounded: a message with a number in it must not become a million lines.
      if (this.#errors.has(message) || this.#errors.size < 100 * ERRORS_TOLD)
        this.#errors.set(message, (this.#errors.get(message) ?? 0) + 1);
    } finally {
      this.inFlight--;
      this.#waiting.shift()?.();
      this.#options.onDone?.(this.#succeeded + this.#failed);
    }
  }

  async end(startedAt: number): Promise<LoadResult> {
    while (this.inFlight > 0) await this.room();
    const tookMs = performance.now() - startedAt;
    return {
      planned: this.#options.count,
      sent: this.#sent,
      succeeded: this.#succeeded,
      failed: this.#failed,
      took_ms: Math.round(tookMs),
      per_second: tookMs === 0 ? 0 : Math.round((this.#succeeded / tookMs) * 1e6) / 1e3,
      latency: this.#latency.percentiles(),
      late: this.#late.percentiles(),
      in_flight_max: this.#inFlightMax,
      held_back: this.#heldBack,
      errors: Object.fromEntries(
        [...this.#errors].sort(([, a], [, b]) => b - a).slice(0, ERRORS_TOLD),
      ),
    };
  }
}
