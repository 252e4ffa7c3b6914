import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import type { ChannelRegistry } from '../channels/registry';
import type { Pool } from '../db/transaction';

/** What the API works with. Tests hand in their own. */
export interface ApiDeps {
  pool: Pool;
  client: Client;
  taskQueue: string;
  channels: ChannelRegistry;
  log: Logger;
  limits: ApiLimits;
  /** Where payers reach this API, without a slash at the end: links to its pages begin with it. */
  publicUrl(): string;
  /** Temporal Web: entries of a timeline link to their runs there. */
  temporalUiUrl?: string | undefined;
}

export interface ApiLimits {
  /** Our own timer around every question to an order's run. */
  askWithinMs: number;
  /** How long creating an order may try to start its run; the sweep starts it otherwise. */
  startWithinMs: number;
  /** How long a repeat waits for the same request that is still running before it gets a 409. */
  idempotencyWaitMs: number;
  /** Longer than any request takes; a process that died blocks its keys no longer than this. */
  idempotencyLeaseMs: number;
  /** Published: 7 days. */
  idempotencyLifetimeMs: number;
  /** Shortest life of an order; tests shorten it. */
  expiresInMinS: number;
  /** What an operator may decide alone; above it a second person confirms. Minor units. */
  aloneUpTo: AloneUpTo;
}

export interface AloneUpTo {
  otherwise: number;
  byCurrency: Record<string, number>;
}

export const DEFAULT_LIMITS: ApiLimits = {
  askWithinMs: 10_000,
  startWithinMs: 2_000,
  idempotencyWaitMs: 2_000,
  idempotencyLeaseMs: 30_000,
  idempotencyLifetimeMs: 7 * 24 * 60 * 60 * 1000,
  expiresInMinS: 60,
  aloneUpTo: { otherwise: 100_000, byCurrency: {} },
};
