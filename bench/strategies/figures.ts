/** Shapes of what the bench prints last; names are those of the JSON. */
import type { StrategyName } from './kinds';
import type { GcPauses } from './meters';
import type { ClientCounts } from './client';

export interface NotRun {
  not_run: string;
}

export interface FaultResult {
  orders: number;
  /** Orders charged more than once. */
  double_effects: number;
  extra_charges: number;
  /** Requests that failed or were not answered in time, as clients saw it. */
  errors: number;
  /** Orders whose clients gave up. */
  lost_orders: number;
  charged_not_booked: number;
  booked_not_charged: number;
  took_s: number;
}

export type FaultName = 'redis_killed' | 'stalled_client' | 'postgres_restarted';
export const FAULT_NAMES: FaultName[] = ['redis_killed', 'stalled_client', 'postgres_restarted'];
/** A run of a strategy for what may go wrong. */
export type TrialName = FaultName | 'two_pages';
export const TRIAL_NAMES: TrialName[] = [...FAULT_NAMES, 'two_pages'];

export interface Measured extends ClientCounts {
  /** As fast as the clients go. */
  orders_per_s: number;
  /** Of the bare insert floor. */
  of_floor: number;
  /** Of a floor that commits as often per order, by division. */
  of_floor_at_equal_commits: number;
  /** Constant arrival the latencies are from, counted from the planned time. */
  rate_per_s: number;
  p50_ms: number;
  p95_ms: number;
  p99_ms: number;
  max_ms: number;
  held_back: number;
  closed_p50_ms: number;
  closed_p99_ms: number;
  double_effects: number;
  extra_charges: number;
  charged_not_booked: number;
  booked_not_charged: number;
  cpu_ms_per_order: { node: number; postgres: number | null; redis: number | null };
  memory_mib: { node_peak: number; postgres: number | null; redis: number | null };
  gc_pauses: GcPauses;
  pool_wait_ms: { p50: number; p99: number; max: number };
  commits_per_order: number;
  redis_ops_per_order: number;
  messages: Record<string, number>;
  took_s: number;
}

export interface StrategyResult extends Partial<Measured>, Partial<NotRun> {
  name: StrategyName;
  number: number;
  faults: Partial<Record<FaultName, FaultResult | NotRun>>;
  /** No fault, but a person with two pages of one order: each second delivery comes from the second. */
  two_pages?: FaultResult | NotRun;
}

export interface FloorResult {
  /** A bare loop over the same pool, one committed row of a unique number per turn. */
  inserts_per_s: number;
  /** Each time it was measured, in the order of the run. */
  inserts_per_s_rounds: number[];
  /** As many of these per order as the product commits: right before and right after it. */
  at_equal_commits?: { commits_per_order: number; orders_per_s: number; rounds: number[] };
  /** The product's orders per second by that floor's. */
  attempt_key_ratio?: number;
  pgbench_per_s: number | NotRun;
  redis_set_nx_per_s: number | NotRun;
}

export interface StrategiesResult {
  orders: number;
  clients: number;
  seed: number;
  rate: string;
  fault_orders: number;
  /** What is the same for every strategy. */
  alike: {
    pool_size: number;
    duplicates_share: number;
    channel_delay_ms: number;
    fault_clients: number;
    lease_ms: number;
    stall_ms: number;
  };
  floor: FloorResult;
  strategies: StrategyResult[];
}

export function isRun<T extends object>(result: T | NotRun | undefined): result is T {
  return result !== undefined && !('not_run' in result);
}
