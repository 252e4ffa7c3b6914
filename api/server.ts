import { once } from 'node:events';
import type { Server } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { serve } from '@hono/node-server';
import { Client, Connection } from '@temporalio/client';
import { pino } from 'pino';
import type { Logger } from 'pino';
import { createChannelRegistry } from '../channels/registry';
import { readChannelRows } from '../db/channels';
import { deleteExpiredKeys } from '../db/idempotency-keys';
import { createPool } from '../db/transaction';
import { createApp } from './app';
import type { ApiConfig } from './config';

export interface RunningApi {
  url: string;
  /** Takes no new requests, lets those under way finish, then gives everything back. */
  stop(): Promise<void>;
}

/** Longer than our own timer around an order's run, so that no answer is cut off. */
const DRAIN_MS = 15_000;
const LINGER_MS = 2_000;
/** Together they keep up with 80 new keys a second, per process. */
const FORGET_KEYS_EVERY_MS = 60_000;
const FORGET_KEYS_MAX = 5_000;
const KEEP_ALIVE_MS = 75_000;
const CLOSE_IDLE_EVERY_MS = 50;
const STATEMENT_TIMEOUT_MS = 5_000;
const CONNECTION_TIMEOUT_MS = 3_000;

/** Nothing here needs PostgreSQL or Temporal to be up: each request finds out for itself. */
export async function startApi(
  config: ApiConfig,
  env: Record<string, string | undefined>,
): Promise<RunningApi> {
  const log = createLog(config.logLevel);
  const pool = createPool({
    databaseUrl: config.databaseUrl,
    max: config.poolSize,
    connectionTimeoutMs: CONNECTION_TIMEOUT_MS,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    applicationName: 'payment-api',
    onIdleError: (error) => log.warn({ err: error }, 'an idle connection to PostgreSQL broke'),
  });
  const connection = Connection.lazy({
    ...config.temporal.connectionOptions,
    // By default a server that was away for long is tried again only every two minutes.
    channelArgs: {
      'grpc.initial_reconnect_backoff_ms': 200,
      'grpc.max_reconnect_backoff_ms': 2_000,
    },
  });
  const client = new Client({ connection, namespace: config.temporal.namespace ?? 'default' });
  const channels = createChannelRegistry({
    readRows: () => readChannelRows(pool),
    env,
    refreshAfterMs: config.channelsRefreshMs,
    hooks: {
      onConfigurationError: (error, channel) =>
        log.error({ err: error, channel }, 'a channel cannot be used as configured'),
      onRefreshError: (error) => log.warn({ err: error }, 'the channels could not be read again'),
    },
  });
  let url = `http://${config.host}:${config.port}`;
  const api = createApp({
    pool,
    client,
    taskQueue: config.taskQueue,
    channels,
    log,
    limits: config.limits,
    temporalUiUrl: config.temporalUiUrl,
    publicUrl: () => config.publicUrl ?? url,
  });

  const forgetting = setInterval(() => {
    deleteExpiredKeys(pool, FORGET_KEYS_MAX).catch((error: unknown) =>
      log.warn({ err: error }, 'expired Idempotency-Keys are still there'),
    );
  }, FORGET_KEYS_EVERY_MS);

  const server = serve({
    fetch: api.app.fetch,
    hostname: config.host,
    port: config.port,
  }) as Server;
  // Longer than clients and proxies keep a connection idle (a minute is usual): whoever closes first
  // must not be us, or a request sent at that very moment is lost.
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : config.port;
  url = `http://${config.host}:${port}`;
  log.info({ url }, 'the API listens');

  return {
    url,
    async stop() {
      api.close();
      clearInterval(forgetting);
      const closed = once(server, 'close');
      server.close();
      // Connections fall idle one by one, as their requests end.
      const closing = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_EVERY_MS);
      await Promise.race([closed, delay(DRAIN_MS, undefined, { ref: false })]);
      clearInterval(closing);
      server.closeAllConnections();
      await pool.end();
      await Promise.race([api.outstanding.settled(), delay(LINGER_MS, undefined, { ref: false })]);
      // With Temporal away calls may outlast that; the process's end takes their connection with it.
      if (api.outstanding.size === 0) await connection.close();
      log.info('the API has stopped');
    },
  };
}

/** Headers and bodies are never logged: they hold keys and personal data. */
function createLog(level: string): Logger {
  return pino({ level, base: { process: 'api' }, timestamp: pino.stdTimeFunctions.isoTime });
}
