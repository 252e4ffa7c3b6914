import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { ClientConnectConfig } from '@temporalio/envconfig';
import { z } from 'zod';
import { TASK_QUEUE } from '../workflows/ids';
import { DEFAULT_LIMITS } from './deps';
import type { AloneUpTo, ApiLimits } from './deps';

type Environment = Record<string, string | undefined>;

export interface ApiConfig {
  databaseUrl: string;
  host: string;
  port: number;
  /** Connections to PostgreSQL at most. */
  poolSize: number;
  logLevel: string;
  taskQueue: string;
  /** Channel rows are read again when older than this. */
  channelsRefreshMs: number;
  temporal: ClientConnectConfig;
  limits: ApiLimits;
  temporalUiUrl: string | undefined;
  /** Undefined: the address it listens on. */
  publicUrl: string | undefined;
}

const whole = (min: number, max: number, otherwise: number) =>
  z.coerce.number().int().min(min).max(max).default(otherwise);

const environment = z.object({
  DATABASE_URL: z
    .string({ error: 'is missing: postgres://user:password@host:port/database' })
    .regex(/^postgres(ql)?:\/\//, { error: 'must begin with postgres://' }),
  API_HOST: z.string().min(1).default('127.0.0.1'),
  API_PORT: whole(0, 65_535, 8080),
  API_POOL_SIZE: whole(1, 200, 10),
  API_ASK_WITHIN_MS: whole(100, 60_000, DEFAULT_LIMITS.askWithinMs),
  CHANNELS_REFRESH_MS: whole(100, 600_000, 5_000),
  // 100000, or 100000,JPY:2000000,USD:20000: minor units, first for every other currency.
  ACTS_ALONE_UP_TO: z
    .string()
    .regex(/^\d{1,15}(,[A-Z]{3}:\d{1,15})*$/, {
      error: 'must be minor units such as 100000, or 100000,JPY:2000000',
    })
    .optional(),
  PUBLIC_URL: z.url({ protocol: /^https?$/ }).optional(),
  TEMPORAL_UI_URL: z.url({ protocol: /^https?$/ }).optional(),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info'),
  ORDER_EXPIRES_IN_MIN_S: whole(1, 60, DEFAULT_LIMITS.expiresInMinS),
  TEMPORAL_TASK_QUEUE: z.string().min(1).default(TASK_QUEUE),
});

/**
 * The API's configuration, from the environment and Temporal's own configuration of it.
 * @throws Error that names every fault at once
 */
export function readConfig(env: Environment): ApiConfig {
  const parsed = environment.safeParse(env);
  const faults = parsed.success
    ? []
    : parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  let temporal: ClientConnectConfig | undefined;
  try {
    temporal = loadClientConnectConfig({ overrideEnvVars: definedOnly(env) });
  } catch (error) {
    faults.push(`Temporal: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!parsed.success || !temporal) {
    throw new Error(`the configuration has faults:\n  ${faults.join('\n  ')}`);
  }
  const vars = parsed.data;
  return {
    databaseUrl: vars.DATABASE_URL,
    host: vars.API_HOST,
    port: vars.API_PORT,
    poolSize: vars.API_POOL_SIZE,
    logLevel: vars.LOG_LEVEL,
    taskQueue: vars.TEMPORAL_TASK_QUEUE,
    channelsRefreshMs: vars.CHANNELS_REFRESH_MS,
    temporal,
    limits: {
      ...DEFAULT_LIMITS,
      askWithinMs: vars.API_ASK_WITHIN_MS,
      expiresInMinS: vars.ORDER_EXPIRES_IN_MIN_S,
      aloneUpTo: readAloneUpTo(vars.ACTS_ALONE_UP_TO),
    },
    temporalUiUrl: vars.TEMPORAL_UI_URL,
    publicUrl: vars.PUBLIC_URL?.replace(/\/+$/, ''),
  };
}

function readAloneUpTo(text: string | undefined): AloneUpTo {
  if (text === undefined) return DEFAULT_LIMITS.aloneUpTo;
  const [otherwise, ...rest] = text.split(',');
  const byCurrency = Object.fromEntries(
    rest.map((entry) => [entry.slice(0, 3), Number(entry.slice(4))]),
  );
  return { otherwise: Number(otherwise), byCurrency };
}

function definedOnly(env: Environment): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}
