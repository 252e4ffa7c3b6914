import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import type { WorkerOptions } from '@temporalio/worker';
import { pino } from 'pino';
import type { Logger } from 'pino';
import { createActivities } from '../activities';
import { createChannelRegistry } from '../channels/registry';
import { readChannelRows } from '../db/channels';
import { createPool } from '../db/transaction';
import type { WorkerConfig } from './config';
import { createMetrics } from './metrics';
import type { WorkerMetrics } from './metrics';
import { createMerchantPost } from './notify-guard';
import { startRelay } from './relay';
import { ensureReconciliationSchedule, ensureSweepSchedule } from './schedule';
import { requireSearchAttributes } from './search-attributes';

const STATEMENT_TIMEOUT_MS = 2_500;
const CONNECTION_TIMEOUT_MS = 2_000;
/** Whole trade bills are loaded and compared: minutes, and a bound for what never ends. */
const BILL_STATEMENT_TIMEOUT_MS = 3_600_000;
/** Bills loaded or compared at the same time; the others wait for their turn. */
const BILL_POOL_SIZE = 8;

export interface RunningWorker {
  healthUrl: string;
  /** Finishes what is under way within the grace time, then gives everything back. */
  stop(): Promise<void>;
  /** Rejects when the worker fails for good. */
  ended: Promise<void>;
}

/** One worker: workflows, activities, the relay, and the schedules of sweep and reconciliation. */
export async function runWorker(
  config: WorkerConfig,
  env: Record<string, string | undefined>,
): Promise<RunningWorker> {
  const log = pino({
    level: config.logLevel,
    base: { process: 'worker' },
    timestamp: pino.stdTimeFunctions.isoTime,
  });
  const pool = createPool({
    databaseUrl: config.databaseUrl,
    max: config.poolSize,
    connectionTimeoutMs: CONNECTION_TIMEOUT_MS,
    // Below a local activity's own limit, so that a step fails with a cause, not with a timeout.
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    applicationName: 'payment-worker',
    onIdleError: (error) => log.warn({ err: error }, 'an idle connection to PostgreSQL broke'),
  });
  const billPool = createPool({
    databaseUrl: config.databaseUrl,
    max: BILL_POOL_SIZE,
    // Turns are long here.
    connectionTimeoutMs: 60_000,
    statementTimeoutMs: BILL_STATEMENT_TIMEOUT_MS,
    applicationName: 'payment-reconciliation',
    bulk: true,
    onIdleError: (error) => log.warn({ err: error }, 'an idle connection to PostgreSQL broke'),
  });
  const metrics = createMetrics(pool);
  const channels = createChannelRegistry({
    readRows: () => readChannelRows(pool),
    env,
    refreshAfterMs: config.channelsRefreshMs,
    hooks: {
      ...metrics.hooks,
      onConfigurationError: (error, channel) =>
        log.error({ err: error, channel }, 'a channel cannot be used as configured'),
      onRefreshError: (error) => log.warn({ err: error }, 'the channels could not be read again'),
    },
  });
  const namespace = config.temporal.namespace ?? 'default';
  const connection = await Connection.connect({
    ...config.temporal.connectionOptions,
    // By default a server that was away for long is tried again only every two minutes: the relay
    // and the sweep would ring that much later.
    channelArgs: {
      'grpc.initial_reconnect_backoff_ms': 200,
      'grpc.max_reconnect_backoff_ms': 2_000,
    },
  });
  const client = new Client({ connection, namespace });
  if (!(await requireSearchAttributes(client))) {
    log.warn({ namespace }, 'whether the search attributes are registered could not be checked');
  }
  const nativeConnection = await NativeConnection.connect(config.temporal.connectionOptions);

  const activities = createActivities({
    pool,
    channels,
    client,
    taskQueue: config.taskQueue,
    numberSecret: config.numberSecret,
    notifications: {
      ladderMs: config.notifyLadderMs,
      timeoutMs: config.notifyTimeoutMs,
      resolveSecret: (reference) => resolveSecret(reference, env),
    },
    reconciliation: {
      pool: billPool,
      heartbeatMs: config.reconcileHeartbeatMs,
      stallMs: config.reconcileStallMs,
    },
    fulfilment: config.fulfilment,
    postToMerchant: createMerchantPost({ privateAllowed: config.notifyPrivateAllowed }),
  });
  const worker = await Worker.create({
    connection: nativeConnection,
    namespace,
    taskQueue: config.taskQueue,
    activities,
    ...workerOptions(config),
  });
  const ended = worker.run();
  await ensureSweepSchedule(client, {
    taskQueue: config.taskQueue,
    everyMs: config.sweepEveryMs,
    pastDueMs: config.sweepPastDueMs,
  });
  await ensureReconciliationSchedule(client, {
    taskQueue: config.taskQueue,
    everyMs: config.reconcileEveryMs,
    daysBack: config.reconcileDaysBack,
  });
  const relay = startRelay({
    pool,
    client,
    channels,
    taskQueue: config.taskQueue,
    log,
    everyMs: config.relayEveryMs,
    reconcileDaysBack: config.reconcileDaysBack,
  });
  const health = await serveHealth(config, log, metrics, () => worker.getState());

  return {
    healthUrl: health.url,
    ended,
    async stop() {
      await relay.stop();
      if (worker.getState() === 'RUNNING') worker.shutdown();
      // Asked to stop, it takes nothing new, and what it did not finish the server gives to another
      // worker: however its end came about, everything is given back.
      await ended.catch((error: unknown) => log.error({ err: error }, 'the worker ended badly'));
      await health.close();
      await nativeConnection.close();
      await connection.close();
      await pool.end();
      await billPool.end();
      log.info('the worker has stopped');
    },
  };
}

/** How many things this worker does at once, and how it lets go of them. */
export function workerOptions(config: WorkerConfig): Partial<WorkerOptions> {
  return {
    ...(config.workflowBundle
      ? { workflowBundle: { codePath: config.workflowBundle } }
      : { workflowsPath: require.resolve('../workflows') }),
    dataConverter: { payloadConverterPath: require.resolve('../workflows/payload-converter') },
    // A cached run keeps its memory; an evicted one is replayed when it is needed again.
    maxCachedWorkflows: config.cachedRuns,
    maxConcurrentActivityTaskExecutions: 100,
    maxConcurrentLocalActivityExecutions: 100,
    shutdownGraceTime: config.shutdownGraceMs,
    shutdownForceTime: config.shutdownGraceMs + 5_000,
    // A killed worker's orders move on after this, instead of waiting for it to come back.
    stickyQueueScheduleToStartTimeout: '3s',
  };
}

async function resolveSecret(
  reference: string,
  env: Record<string, string | undefined>,
): Promise<string> {
  const secret = reference.startsWith('env:')
    ? env[reference.slice('env:'.length)]
    : reference.startsWith('file:/')
      ? (await readFile(reference.slice('file:'.length), 'utf8')).trim()
      : undefined;
  if (!secret) throw new Error(`no secret at ${reference.split(':')[0] ?? ''}:…`);
  return secret;
}

async function serveHealth(
  config: WorkerConfig,
  log: Logger,
  { registry }: WorkerMetrics,
  state: () => string,
) {
  const server = createServer((request, response) => {
    if (request.url === '/metrics') {
      void registry.metrics().then((text) => {
        response.writeHead(200, { 'content-type': registry.contentType }).end(text);
      });
      return;
    }
    const healthy = request.url === '/healthz' && state() === 'RUNNING';
    response.writeHead(healthy ? 200 : request.url === '/healthz' ? 503 : 404, {
      'content-type': 'application/json',
    });
    response.end(JSON.stringify({ state: state() }));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(config.healthPort, config.healthHost, resolve);
  });
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : config.healthPort;
  const url = `http://${config.healthHost}:${port}/healthz`;
  log.info({ url, taskQueue: config.taskQueue }, 'the worker runs');
  return {
    url,
    close: () => new Promise<void>((resolve) => void server.close(() => resolve())),
  };
}
