/** What one run is asked for and what it gives back: the contract between the bench and its worker. */
import type { LoadResult, Percentiles } from '../open-load';
import type { ClientCounts } from './client';
import type { StrategyName } from './kinds';
import type { GcPauses } from './meters';
import type { Times } from './strategy';

export type Job =
  | { job: 'strategy'; name: StrategyName }
  /** So many committed inserts of one unique row per order; also a fraction, on the average. */
  | { job: 'insert_floor'; insertsPerOrder: number }
  | { job: 'redis_floor' };

export interface WorkerInput {
  job: Job;
  databaseUrl: string;
  postgresPid: number;
  redis: { url: string; pid: number } | undefined;
  orders: number;
  /** Of these, sent at a constant rate after the others were sent as fast as `clients` go. */
  ordersAtRate: number;
  clients: number;
  /** Orders per second, or the share of what the closed form reached. */
  rate: { perSecond: number } | { share: number };
  seed: number;
  times: Times;
  channelDelayMs: number;
  /** One order in so many has its first call stand still for so long. */
  stalls: { oneIn: number; ms: number } | undefined;
  /** Second deliveries come from a second page instead of the same. */
  twoPages: boolean;
  /** Places in the work at which the parent does harm before it goes on. */
  harmAt: number[];
  logFile: string;
}

export interface WorkerOutput {
  closed: LoadResult;
  atRate: LoadResult | undefined;
  ratePerS: number | undefined;
  /** Of the closed form; null where it cannot be read. */
  cpuS: { node: number; postgres: number | null; redis: number | null };
  memoryMib: { nodePeak: number; postgres: number | null; redis: number | null };
  gc: GcPauses;
  poolWaits: Percentiles;
  clients: ClientCounts | undefined;
  messages: Record<string, number>;
  effects: {
    orders_charged: number;
    /** Orders charged more than once. */
    double_effects: number;
    /** Charges beyond the first of an order. */
    extra_charges: number;
    charged_not_booked: number;
    booked_not_charged: number;
    never_left: number;
    stalled: number;
  };
}

/** What the worker and its parent say to each other. */
export type ToParent = { harm: number } | { output: WorkerOutput } | { failed: string };
export type ToWorker = { input: WorkerInput } | { harmed: number };

/** Connections of every strategy and floor. */
export const POOL_SIZE = 20;
