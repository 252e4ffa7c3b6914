import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { ConnectionOptions } from '@temporalio/client';
import { Connection } from '@temporalio/client';
import type { KeptServer } from './kept-server';
import { keepServer } from './kept-server';
import { endLeftover } from './leftover';
import { SEARCH_ATTRIBUTES, ensureNamespace, registerSearchAttributes } from './namespace';
import type { TemporalSource } from './temporal-binary';
import { TEMPORAL_CLI_VERSION, findTemporal, temporalPlaces } from './temporal-binary';
import { freePort, GiveUp, waitFor } from './wait';

/** The folder of the project: caches and data live below it. */
export const PROJECT_FOLDER = resolve(__dirname, '..', '..');

const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 15_000;
const CONNECT_TIMEOUT_MS = 5_000;

export interface TemporalOptions {
  namespace?: string;
  /**
   * Keeps the histories in `<folder>/temporal.db`, over a stop and a restart. Absent: in memory,
   * gone when the server stops.
   */
  dataFolder?: string;
  /** Serve the Web UI, on this port when it is free. Absent: no UI. */
  preferredUiPort?: number;
  preferredPort?: number;
  /** Dynamic configuration of the server, as `--dynamic-config-value` takes it. */
  dynamicConfig?: Record<string, unknown>;
  /** Leave the search attributes unregistered (for a test of the registration). */
  withoutSearchAttributes?: boolean;
  /** Where to get the server from; looked for when absent. */
  source?: TemporalSource;
}

/** A Temporal server: ours, or one that runs already. */
export interface TemporalServer {
  readonly address: string;
  readonly namespace: string;
  /** Address of Temporal Web; undefined when the server has none that we know of. */
  readonly uiUrl: string | undefined;
  readonly from: TemporalSource['from'];
  /** Undefined for a server that we did not start. */
  readonly pid: number | undefined;
  /** Takes it down; only with a `dataFolder` does it come back with its histories. */
  stop(how?: 'orderly' | 'kill'): Promise<void>;
  /** Starts it again at the same address. */
  restart(): Promise<void>;
  /** Freezes it: connections stay open and nothing answers. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Ends it for good. A server that we did not start is left alone. */
  end(): Promise<void>;
}

/**
 * Gives a Temporal server that answers, has the namespace and knows our search attributes: the one
 * at TEMPORAL_ADDRESS, or a development server started on free ports of the loopback address (see
 * `findTemporal` for where its program comes from). A started server ends with this process.
 * @throws when it does not answer in time, with the end of its log
 */
export async function startTemporal(options: TemporalOptions = {}): Promise<TemporalServer> {
  const source = options.source ?? (await findTemporal(temporalPlaces(PROJECT_FOLDER)));
  const namespace = options.namespace ?? process.env['TEMPORAL_NAMESPACE'] ?? 'default';
  if (source.from === 'address') return existingServer(source.address, namespace);
  if (source.from === 'sdk') return sdkServer(namespace, options);
  return ownServer(source, namespace, options);
}

async function ownServer(
  source: Extract<TemporalSource, { binary: string }>,
  namespace: string,
  options: TemporalOptions,
): Promise<TemporalServer> {
  const temporary = options.dataFolder === undefined;
  const folder = options.dataFolder ?? mkdtempSync(join(tmpdir(), 'payment-saga-temporal-'));
  mkdirSync(folder, { recursive: true });
  const database = temporary ? undefined : join(folder, 'temporal.db');
  const pidFile = join(folder, 'temporal.pid');
  if (database !== undefined) await endLeftoverServer(pidFile, database);

  let port = await freePort(options.preferredPort);
  let uiPort: number | undefined;
  if (options.preferredUiPort !== undefined) uiPort = await freePort(options.preferredUiPort);

  const launch = async (): Promise<KeptServer> => {
    const server = await keepServer({
      name: 'temporal',
      command: source.binary,
      args: serverArguments({ port, uiPort, namespace, database, options }),
      cwd: folder,
      env: serverEnvironment(),
      logFile: join(folder, 'temporal.log'),
      stopSignal: 'SIGTERM',
      graceMs: STOP_TIMEOUT_MS,
      removeWhenOrphaned: temporary ? [folder] : [],
    });
    writeFileSync(pidFile, `${server.pid}\n`);
    try {
      await waitUntilReady(`127.0.0.1:${port}`, namespace, () => server.running);
    } catch (error) {
      await server.stop('SIGKILL');
      throw new Error(`Temporal did not start:\n${server.logTail()}`, { cause: error });
    }
    return server;
  };

  let server = await firstLaunch();
  async function firstLaunch(): Promise<KeptServer> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await launch();
      } catch (error) {
        // It takes half a dozen ports; one may have been taken between the look and the start.
        const taken = /already in use|address in use|bind:/i.test(String(error));
        if (!taken || attempt === 3) throw error;
        port = await freePort();
        if (uiPort !== undefined) uiPort = await freePort();
      }
    }
  }
  if (!options.withoutSearchAttributes) {
    await registered(`127.0.0.1:${port}`, namespace, () => server.stop());
  }

  return {
    get address() {
      return `127.0.0.1:${port}`;
    },
    namespace,
    get uiUrl() {
      return uiPort === undefined ? undefined : `http://127.0.0.1:${uiPort}`;
    },
    from: source.from,
    get pid() {
      return server.pid;
    },
    stop: (how = 'orderly') => server.stop(how === 'kill' ? 'SIGKILL' : 'SIGTERM'),
    async restart() {
      if (server.running) await server.stop();
      server = await launch();
    },
    pause: () => server.signal('SIGSTOP', true),
    resume: () => server.signal('SIGCONT', true),
    async end() {
      if (server.running) await server.stop();
      if (temporary) rmSync(folder, { recursive: true, force: true });
      else rmSync(pidFile, { force: true });
    },
  };
}

function serverArguments(given: {
  port: number;
  uiPort: number | undefined;
  namespace: string;
  database: string | undefined;
  options: TemporalOptions;
}): string[] {
  const { port, uiPort, namespace, database, options } = given;
  const attributes = options.withoutSearchAttributes ? [] : SEARCH_ATTRIBUTES;
  return [
    ...['server', 'start-dev', '--ip', '127.0.0.1', '--port', String(port)],
    ...(uiPort === undefined
      ? ['--headless']
      : // The news panel would ask a foreign server.
        ['--ui-port', String(uiPort), '--ui-disable-news-fetch']),
    ...['--namespace', namespace, '--log-level', 'warn'],
    ...(database === undefined
      ? []
      : // A write-ahead log synced at checkpoints: about twice as fast, and whole after a kill.
        [
          ...['--db-filename', database],
          ...['--sqlite-pragma', 'journal_mode=WAL', '--sqlite-pragma', 'synchronous=NORMAL'],
        ]),
    ...attributes.flatMap(({ name, type }) => ['--search-attribute', `${name}=${type.name}`]),
    ...Object.entries(options.dynamicConfig ?? {}).flatMap(([key, value]) => [
      '--dynamic-config-value',
      `${key}=${JSON.stringify(value)}`,
    ]),
  ];
}

/** Without TEMPORAL_…, which would have the CLI read somebody's settings for another server. */
function serverEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith('TEMPORAL_')),
  );
}

async function existingServer(address: string, namespace: string): Promise<TemporalServer> {
  await waitFor(`Temporal at ${address}`, START_TIMEOUT_MS, async () => {
    const connection = await connectTemporal(address);
    await connection.close();
    return true;
  });
  await registered(address, namespace, () => Promise.resolve());
  const notOurs = () =>
    Promise.reject(new Error(`the Temporal server at ${address} is not ours to stop`));
  return {
    address,
    namespace,
    uiUrl: process.env['TEMPORAL_UI_URL'],
    from: 'address',
    pid: undefined,
    stop: notOurs,
    restart: notOurs,
    pause: notOurs,
    resume: notOurs,
    end: () => Promise.resolve(),
  };
}

/** The last way: the SDK's testing package downloads the CLI and runs it. */
async function sdkServer(namespace: string, options: TemporalOptions): Promise<TemporalServer> {
  const { TestWorkflowEnvironment } = await import('@temporalio/testing');
  const launch = async (port: number, uiPort: number | undefined) => {
    const downloadDir = join(PROJECT_FOLDER, '.cache', 'temporal');
    mkdirSync(downloadDir, { recursive: true });
    if (options.dataFolder !== undefined) mkdirSync(options.dataFolder, { recursive: true });
    return TestWorkflowEnvironment.createLocal({
      server: {
        executable: {
          type: 'cached-download',
          version: `v${TEMPORAL_CLI_VERSION}`,
          downloadDir,
          ttl: '10 years',
        },
        namespace,
        ip: '127.0.0.1',
        port,
        ui: uiPort !== undefined,
        uiPort,
        dbFilename:
          options.dataFolder === undefined ? undefined : join(options.dataFolder, 'temporal.db'),
        extraArgs: Object.entries(options.dynamicConfig ?? {}).flatMap(([key, value]) => [
          '--dynamic-config-value',
          `${key}=${JSON.stringify(value)}`,
        ]),
      },
    });
  };
  const port = await freePort(options.preferredPort);
  const uiPort =
    options.preferredUiPort === undefined ? undefined : await freePort(options.preferredUiPort);
  let environment = await launch(port, uiPort);
  const address = `127.0.0.1:${port}`;
  if (!options.withoutSearchAttributes) {
    await registered(address, namespace, () => environment.teardown());
  }
  const impossible = () =>
    Promise.reject(new Error('a server started by the SDK can be ended, not frozen'));
  return {
    address,
    namespace,
    uiUrl: uiPort === undefined ? undefined : `http://127.0.0.1:${uiPort}`,
    from: 'sdk',
    pid: undefined,
    stop: () => environment.teardown(),
    async restart() {
      await environment.teardown().catch(() => undefined);
      environment = await launch(port, uiPort);
    },
    pause: impossible,
    resume: impossible,
    end: () => environment.teardown(),
  };
}

/**
 * How to reach a Temporal server: its address and, for a server that is not ours, what the Temporal
 * environment configuration says (TLS, API key, profile).
 */
export async function connectTemporal(address: string): Promise<Connection> {
  const { loadClientConnectConfig } = await import('@temporalio/envconfig');
  const foreign = process.env['TEMPORAL_ADDRESS'] === address;
  const configured: ConnectionOptions = foreign ? loadClientConnectConfig().connectionOptions : {};
  return Connection.connect({ ...configured, address, connectTimeout: CONNECT_TIMEOUT_MS });
}

async function registered(
  address: string,
  namespace: string,
  undo: () => Promise<void>,
): Promise<void> {
  const connection = await connectTemporal(address);
  try {
    await ensureNamespace(connection, namespace);
    await registerSearchAttributes(connection, namespace);
  } catch (error) {
    await undo();
    throw error;
  } finally {
    await connection.close();
  }
}

async function waitUntilReady(
  address: string,
  namespace: string,
  running: () => boolean,
): Promise<void> {
  await waitFor(
    `Temporal at ${address} to serve namespace ${namespace}`,
    START_TIMEOUT_MS,
    async () => {
      if (!running()) throw new GiveUp('the server ended');
      const connection = await connectTemporal(address);
      try {
        await connection.withDeadline(Date.now() + CONNECT_TIMEOUT_MS, () =>
          connection.workflowService.describeNamespace({ namespace }),
        );
        return true;
      } finally {
        await connection.close();
      }
    },
  );
}

async function endLeftoverServer(pidFile: string, database: string): Promise<void> {
  let text: string;
  try {
    text = readFileSync(pidFile, 'utf8');
  } catch {
    return;
  }
  await endLeftover(Number(text.trim()), database, 'SIGTERM', STOP_TIMEOUT_MS);
  rmSync(pidFile, { force: true });
}
