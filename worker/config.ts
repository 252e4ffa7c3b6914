import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { ClientConnectConfig } from '@temporalio/envconfig';
import { z } from 'zod';
import type { FulfilmentPolicy } from '../domain/fulfilment';
import { TASK_QUEUE } from '../workflows/ids';

export interface WorkerConfig {
  databaseUrl: string;
  temporal: ClientConnectConfig;
  taskQueue: string;
  numberSecret: string;
  healthHost: string;
  healthPort: number;
  poolSize: number;
  logLevel: string;
  channelsRefreshMs: number;
  cachedRuns: number;
  shutdownGraceMs: number;
  relayEveryMs: number;
  sweepEveryMs: number;
  sweepPastDueMs: number;
  reconcileEveryMs: number;
  reconcileDaysBack: number;
  reconcileHeartbeatMs: number;
  reconcileStallMs: number;
  notifyLadderMs: number[];
  notifyTimeoutMs: number;
  fulfilment: FulfilmentPolicy;
  /** Hosts (and `host:port`s) that may be told although they are private addresses. */
  notifyPrivateAllowed: string[];
  /** A bundle made beforehand; without one it is made at start (a second and a half). */
  workflowBundle: string | undefined;
}

const whole = (min: number, max: number, otherwise: number) =>
  z.coerce.number().int().min(min).max(max).default(otherwise);

const ladder = (otherwise: string) =>
  z
    .string()
    .default(otherwise)
    .transform((text) => text.split(',').map(Number))
    .refine((waits) => waits.every((wait) => Number.isSafeInteger(wait) && wait > 0), {
      error: 'must be waits in milliseconds, separated by commas',
    });

const environment = z.object({
  DATABASE_URL: z
    .string({ error: 'is missing: postgres://user:password@host:port/database' })
    .regex(/^postgres(ql)?:\/\//, { error: 'must begin with postgres://' }),
  NUMBER_SECRET: z
    .string({ error: 'is missing: at least 16 characters, never changed while data lives' })
    .min(16, { error: 'must have at least 16 characters' }),
  TEMPORAL_TASK_QUEUE: z.string().min(1).default(TASK_QUEUE),
  WORKER_HEALTH_HOST: z.string().min(1).default('127.0.0.1'),
  WORKER_HEALTH_PORT: whole(0, 65_535, 8081),
  WORKER_POOL_SIZE: whole(1, 200, 20),
  WORKER_CACHED_RUNS: whole(1, 100_000, 500),
  WORKER_SHUTDOWN_GRACE_MS: whole(0, 600_000, 15_000),
  CHANNELS_REFRESH_MS: whole(100, 600_000, 5_000),
  RELAY_EVERY_MS: whole(50, 60_000, 1_000),
  SWEEP_EVERY_MS: whole(1_000, 3_600_000, 20_000),
  SWEEP_PAST_DUE_MS: whole(0, 3_600_000, 60_000),
  RECONCILE_EVERY_MS: whole(1_000, 86_400_000, 900_000),
  RECONCILE_DAYS_BACK: whole(1, 90, 7),
  RECONCILE_HEARTBEAT_MS: whole(1_000, 600_000, 30_000),
  RECONCILE_STALL_MS: whole(100, 3_600_000, 60_000),
  NOTIFY_LADDER_MS: ladder(
    '5000,300000,1800000,7200000,18000000,36000000,50400000,72000000,86400000',
  ),
  NOTIFY_TIMEOUT_MS: whole(100, 60_000, 10_000),
  FULFIL_LADDER_MS: ladder('2000,5000,15000,60000,300000,900000,1800000,3600000'),
  FULFIL_TIMEOUT_MS: whole(100, 60_000, 10_000),
  FULFIL_CASE_AFTER_MS: whole(100, 604_800_000, 3_600_000),
  // With the ladder as it is, the payer's money waits fifty minutes for it at most.
  FULFIL_UNDO_TRIES_MAX: whole(1, 1_000, 8),
  NOTIFY_PRIVATE_ALLOWED: z
    .string()
    .default('')
    .transform((text) => text.split(',').filter((host) => host !== '')),
  WORKFLOW_BUNDLE: z.string().optional(),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info'),
});

/**
 * The worker's configuration, from the environment and Temporal's own configuration of it.
 * @throws Error that names every fault at once
 */
export function readConfig(env: Record<string, string | undefined>): WorkerConfig {
  const parsed = environment.safeParse(env);
  const faults = parsed.success
    ? []
    : parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  let temporal: ClientConnectConfig | undefined;
  try {
    const defined = Object.entries(env).filter((entry): entry is [string, string] => !!entry[1]);
    temporal = loadClientConnectConfig({ overrideEnvVars: Object.fromEntries(defined) });
  } catch (error) {
    faults.push(`Temporal: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!parsed.success || !temporal) {
    throw new Error(`the configuration has faults:\n  ${faults.join('\n  ')}`);
  }
  const vars = parsed.data;
  return {
    databaseUrl: vars.DATABASE_URL,
    temporal,
    taskQueue: vars.TEMPORAL_TASK_QUEUE,
    numberSecret: vars.NUMBER_SECRET,
    healthHost: vars.WORKER_HEALTH_HOST,
    healthPort: vars.WORKER_HEALTH_PORT,
    poolSize: vars.WORKER_POOL_SIZE,
    logLevel: vars.LOG_LEVEL,
    channelsRefreshMs: vars.CHANNELS_REFRESH_MS,
    cachedRuns: vars.WORKER_CACHED_RUNS,
    shutdownGraceMs: vars.WORKER_SHUTDOWN_GRACE_MS,
    relayEveryMs: vars.RELAY_EVERY_MS,
    sweepEveryMs: vars.SWEEP_EVERY_MS,
    sweepPastDueMs: vars.SWEEP_PAST_DUE_MS,
    reconcileEveryMs: vars.RECONCILE_EVERY_MS,
    reconcileDaysBack: vars.RECONCILE_DAYS_BACK,
    reconcileHeartbeatMs: vars.RECONCILE_HEARTBEAT_MS,
    reconcileStallMs: vars.RECONCILE_STALL_MS,
    notifyLadderMs: vars.NOTIFY_LADDER_MS,
    notifyTimeoutMs: vars.NOTIFY_TIMEOUT_MS,
    fulfilment: {
      ladderMs: vars.FULFIL_LADDER_MS,
      timeoutMs: vars.FULFIL_TIMEOUT_MS,
      stuckCaseAfterMs: vars.FULFIL_CASE_AFTER_MS,
      undoTriesMax: vars.FULFIL_UNDO_TRIES_MAX,
    },
    notifyPrivateAllowed: vars.NOTIFY_PRIVATE_ALLOWED,
    workflowBundle: vars.WORKFLOW_BUNDLE,
  };
}
