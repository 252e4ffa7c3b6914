import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { keepServer } from '../servers/kept-server';
import type { KeptServer } from '../servers/kept-server';
import { ensureNamespace, registerSearchAttributes } from '../servers/namespace';
import { startPostgres } from '../servers/postgres';
import type { PostgresServer } from '../servers/postgres';
import { connectTemporal, PROJECT_FOLDER } from '../servers/temporal';
import { freePort, GiveUp, waitFor } from '../servers/wait';
import { DATABASES, serverConfig } from './config';
import { temporalPrograms } from './programs';

const run = promisify(execFile);

const SCHEMA_TIMEOUT_MS = 120_000;
const START_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 15_000;
/** Settings that its image gets in docker-compose.yml, too. */
const DYNAMIC_CONFIG = join(PROJECT_FOLDER, 'scripts', 'docker', 'temporal-dynamic-config.yaml');

/** A Temporal server whose histories are in a PostgreSQL of its own, both ours. */
export interface TemporalOnPostgres {
  address: string;
  namespace: string;
  /** Of the server's own process. */
  pid: number;
  postgres: PostgresServer;
  logFile: string;
  /** Ends both for good and deletes what was temporary. */
  end(): Promise<void>;
}

export interface TemporalOnPostgresOptions {
  namespace?: string;
  /** Where data and logs live on; absent: a folder of the system's temporary one, deleted at the end. */
  dataFolder?: string;
  log?: (line: string) => void;
}

/**
 * Starts PostgreSQL (which waits for the disk, as in production), brings its two databases to the
 * schema of the server's version, starts the server on free ports of the loopback address and registers
 * namespace and search attributes. Everything ends with this process.
 * @throws Error when the programs cannot be built, or with the end of the log when it does not answer
 */
export async function startTemporalOnPostgres(
  options: TemporalOnPostgresOptions = {},
): Promise<TemporalOnPostgres> {
  const log = options.log ?? (() => undefined);
  const namespace = options.namespace ?? 'default';
  const programs = await temporalPrograms(log);
  const temporary = options.dataFolder === undefined;
  const folder = options.dataFolder ?? mkdtempSync(join(tmpdir(), 'payment-saga-temporal-'));
  mkdirSync(folder, { recursive: true });
  // PostgreSQL's user must be able to enter; what it may read there it owns.
  chmodSync(folder, 0o711);
  const postgres = await startPostgres({ dataFolder: folder });
  let server: KeptServer | undefined;
  const end = async () => {
    await server?.stop();
    await postgres.end();
    if (temporary) rmSync(folder, { recursive: true, force: true });
  };
  try {
    const { hostname: host, port, username: user, password } = new URL(postgres.databaseUrl());
    const database = { host, port: Number(port), user, password: decodeURIComponent(password) };
    await setUpSchema(programs.sqlTool, database);
    log('the schema of Temporal is in place');
    const frontend = await freePort();
    const configFile = join(folder, 'temporal-config.yaml');
    const config = serverConfig(database, { frontend, ...(await innerPorts()) }, DYNAMIC_CONFIG);
    writeFileSync(configFile, config, { mode: 0o600 });
    server = await keepServer({
      name: 'temporal on postgres',
      command: programs.server,
      args: ['--config-file', configFile, '--allow-no-auth', 'start'],
      cwd: folder,
      env: { PATH: process.env['PATH'], TZ: 'UTC' },
      logFile: join(folder, 'temporal.log'),
      stopSignal: 'SIGTERM',
      graceMs: STOP_TIMEOUT_MS,
      removeWhenOrphaned: temporary ? [folder] : [],
    });
    const address = `127.0.0.1:${frontend}`;
    await untilUsable(server, address, namespace);
    log(`Temporal ${address}, on PostgreSQL port ${postgres.port}`);
    return { address, namespace, pid: server.pid, postgres, logFile: server.logFile, end };
  } catch (error) {
    const tail = server?.logTail() ?? '';
    await end();
    throw new Error(`Temporal on PostgreSQL did not start:\n${tail}`, { cause: error });
  }
}

/** Both databases as the version wants them; one that is there already is brought up to date. */
async function setUpSchema(
  sqlTool: string,
  database: { host: string; port: number; user: string; password: string },
): Promise<void> {
  const tool = (name: string, ...command: string[]) =>
    run(
      sqlTool,
      [
        ...['--plugin', 'postgres12', '--endpoint', database.host, '--port', String(database.port)],
        ...['--user', database.user, '--database', name, ...command],
      ],
      {
        // Not among the arguments, where every process of the machine could read it.
        env: { PATH: process.env['PATH'], SQL_PASSWORD: database.password },
        timeout: SCHEMA_TIMEOUT_MS,
      },
    );
  for (const [name, schema] of [
    [DATABASES.main, 'postgresql/v12/temporal'],
    [DATABASES.visibility, 'postgresql/v12/visibility'],
  ] as const) {
    const update = () => tool(name, 'update-schema', '--schema-name', schema);
    // A schema that is there is only brought up to date: setting it up again would begin from nothing.
    const isThere = await update().then(
      () => true,
      () => false,
    );
    if (isThere) continue;
    await tool(name, 'create-database').catch(() => undefined);
    await tool(name, 'setup-schema', '--version', '0.0');
    await update();
  }
}

async function innerPorts() {
  return {
    frontendMembership: await freePort(),
    matching: await freePort(),
    matchingMembership: await freePort(),
    history: await freePort(),
    historyMembership: await freePort(),
    worker: await freePort(),
    workerMembership: await freePort(),
  };
}

async function untilUsable(server: KeptServer, address: string, namespace: string): Promise<void> {
  await waitFor(`Temporal at ${address}`, START_TIMEOUT_MS, async () => {
    if (!server.running) throw new GiveUp('the server ended');
    const connection = await connectTemporal(address);
    await connection.close();
    return true;
  });
  const connection = await connectTemporal(address);
  try {
    await ensureNamespace(connection, namespace);
    await registerSearchAttributes(connection, namespace);
  } finally {
    await connection.close();
  }
}
