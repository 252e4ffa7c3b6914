import type { LoadResult } from '../open-load';

/** One step of the search: an open-model load at one rate. */
export interface Step {
  /** Asked for, and what came out by the last answer. */
  rate: number;
  per_second: number;
  p50_ms: number;
  p99_ms: number;
  failed: number;
  kept_up: boolean;
  /** The most frequent failures, by message. */
  errors?: Record<string, number>;
}

export interface Knee {
  /** The highest rate that was kept up with; 0 when the first step was too much already. */
  per_second: number;
  /** False when every step was kept up with: the knee lies higher. */
  found: boolean;
  steps: Step[];
}

export interface KneeOptions {
  /** Rates to try, rising. */
  from: number;
  factor: number;
  stepsMax: number;
  /** More than this is no service, whatever the throughput. */
  p99MsMax: number;
  run: (rate: number) => Promise<LoadResult>;
  /** Told of each step, for a line of a table. */
  onStep?: (step: Step) => void;
}

/** Of the planned sends per second, the part that must have been answered by the end of the step. */
const ANSWERED_MIN = 0.9;

/**
 * Steps the rate up until the system no longer keeps up: sends fail, answers fall behind the plan, or
 * the 99th percentile (from the planned send time) passes the bound.
 */
export async function findKnee(options: KneeOptions): Promise<Knee> {
  const steps: Step[] = [];
  let rate = options.from;
  let best = 0;
  while (steps.length < options.stepsMax) {
    const step = stepOf(rate, await options.run(rate), options.p99MsMax);
    steps.push(step);
    options.onStep?.(step);
    if (!step.kept_up) return { per_second: best, found: true, steps };
    best = rate;
    rate = rounded(rate * options.factor);
  }
  return { per_second: best, found: false, steps };
}

/** What one load at a rate says. */
export function stepOf(rate: number, load: LoadResult, p99MsMax: number): Step {
  return {
    rate,
    per_second: rounded(load.per_second),
    p50_ms: load.latency.p50_ms,
    p99_ms: load.latency.p99_ms,
    failed: load.failed,
    ...(load.failed > 0 ? { errors: load.errors } : {}),
    kept_up:
      load.failed === 0 &&
      load.sent === load.planned &&
      load.latency.p99_ms <= p99MsMax &&
      load.per_second >= ANSWERED_MIN * rate * finiteShare(load),
  };
}

/** A step as a line of a table. */
export function lineOfStep(step: Step): string {
  const failed = step.failed > 0 ? `, ${step.failed} failed ${JSON.stringify(step.errors)}` : '';
  return (
    `${step.rate} asked, ${step.per_second} answered, p50 ${step.p50_ms} ms, p99 ${step.p99_ms} ms` +
    `${failed}${step.kept_up ? '' : ': too much'}`
  );
}

/**
 * The last answers come after the last send, which in a short step makes a difference that is no
 * falling behind: as if every step had one median latency more time, a fifth of it at most.
 */
function finiteShare({ took_ms, latency }: LoadResult): number {
  return took_ms <= 0 ? 1 : Math.max(0.8, 1 - latency.p50_ms / took_ms);
}

/** Two digits below ten, one above: as exact as a rate is worth. */
export function rounded(value: number): number {
  const scale = Math.abs(value) < 10 ? 100 : 10;
  return Math.round(value * scale) / scale;
}
