import { join } from 'node:path';
import type { OwnProcess } from './children';
import { startProcess } from './children';
import { freePort } from './wait';

/** What every process of ours is told. */
export interface ProcessSurroundings {
  databaseUrl: string;
  temporalAddress: string;
  temporalNamespace: string;
  taskQueue: string;
  logFolder: string;
  /** Further variables: secrets by name, policies, failpoints. */
  env?: NodeJS.ProcessEnv;
}

export interface MockChannelProcess extends OwnProcess {
  /** The control interface, the pay pages' host. */
  controlUrl: string;
  aUrl: string;
  bUrl: string;
  booksFile: string;
}

export interface MockChannelOptions {
  booksFile: string;
  logFolder: string;
  aKey: string;
  bKey: string;
  /** Where each dialect sends its callbacks. */
  aCallbackUrls: string[];
  bCallbackUrls: string[];
  preferredControlPort?: number;
  env?: NodeJS.ProcessEnv;
}

/** Starts the mock channel on free ports. */
export async function startMockChannel(options: MockChannelOptions): Promise<MockChannelProcess> {
  const controlPort = await freePort(options.preferredControlPort);
  const aPort = await freePort();
  const bPort = await freePort();
  const controlUrl = `http://127.0.0.1:${controlPort}`;
  const own = await startProcess({
    name: 'mock-channel',
    script: 'mock-channel/main.ts',
    logFile: join(options.logFolder, 'mock-channel.log'),
    readyUrl: `${controlUrl}/control/health`,
    env: {
      ...options.env,
      MOCK_CHANNEL_CONTROL_PORT: String(controlPort),
      MOCK_CHANNEL_A_PORT: String(aPort),
      MOCK_CHANNEL_B_PORT: String(bPort),
      MOCK_CHANNEL_BOOKS: options.booksFile,
      MOCK_A_KEY: options.aKey,
      MOCK_B_KEY: options.bKey,
      MOCK_A_CALLBACK_URLS: options.aCallbackUrls.join(','),
      MOCK_B_CALLBACK_URLS: options.bCallbackUrls.join(','),
    },
  });
  return Object.assign(own, {
    controlUrl,
    aUrl: `http://127.0.0.1:${aPort}`,
    bUrl: `http://127.0.0.1:${bPort}`,
    booksFile: options.booksFile,
  });
}

export interface ApiProcess extends OwnProcess {
  url: string;
}

/** Starts one API on a free port; ready means that it serves, not that all it needs is up. */
export async function startApi(
  surroundings: ProcessSurroundings,
  port?: number,
): Promise<ApiProcess> {
  const ownPort = port ?? (await freePort());
  const url = `http://127.0.0.1:${ownPort}`;
  const own = await startProcess({
    name: 'api',
    script: 'api/main.ts',
    logFile: join(surroundings.logFolder, 'api.log'),
    readyUrl: `${url}/healthz`,
    env: { ...surroundingsEnv(surroundings), API_HOST: '127.0.0.1', API_PORT: String(ownPort) },
  });
  return Object.assign(own, { url });
}

export interface WorkerProcess extends OwnProcess {
  healthUrl: string;
}

/** Starts one worker; ready means that it polls its task queue. */
export async function startWorker(
  surroundings: ProcessSurroundings,
  port?: number,
): Promise<WorkerProcess> {
  const ownPort = port ?? (await freePort());
  const healthUrl = `http://127.0.0.1:${ownPort}/healthz`;
  const own = await startProcess({
    name: 'worker',
    script: 'worker/main.ts',
    logFile: join(surroundings.logFolder, 'worker.log'),
    readyUrl: healthUrl,
    env: { ...surroundingsEnv(surroundings), WORKER_HEALTH_PORT: String(ownPort) },
  });
  return Object.assign(own, { healthUrl });
}

function surroundingsEnv(surroundings: ProcessSurroundings): NodeJS.ProcessEnv {
  return {
    ...surroundings.env,
    DATABASE_URL: surroundings.databaseUrl,
    TEMPORAL_ADDRESS: surroundings.temporalAddress,
    TEMPORAL_NAMESPACE: surroundings.temporalNamespace,
    TEMPORAL_TASK_QUEUE: surroundings.taskQueue,
  };
}
