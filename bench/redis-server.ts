/**
 * A Redis server for benches: the `redis-server` on the PATH, as Debian's package of that name installs
 * it (`apt-get install redis-server`). It listens on the loopback address alone, keeps its data in a temporary
 * folder and ends with this process.
 */
import { execFileSync } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connectRedis } from './strategies/redis-client';
import { keepServer } from '../scripts/servers/kept-server';
import { freePort, GiveUp, waitFor } from '../scripts/servers/wait';

export interface RedisServer {
  url: string;
  /** Of the running program; another one after a restart. */
  readonly pid: number;
  version: string;
  /** SIGKILL: what it had not handed to the operating system is lost. */
  kill(): Promise<void>;
  /** Starts it again on the same port with what its append-only file holds. */
  restart(): Promise<void>;
  /** Ends it and deletes its data. */
  end(): Promise<void>;
}

const READY_WITHIN_MS = 20_000;
const STOP_WITHIN_MS = 10_000;

/**
 * As those advise who use it for more than a cache: every write goes to the append-only file before it
 * is answered, the file to the disk every second, and nothing is evicted. All are the package's defaults but the first.
 */
const SETTINGS = {
  appendonly: 'yes',
  appendfsync: 'everysec',
  save: '',
  'maxmemory-policy': 'noeviction',
};

/** Where the program is, or why there is none and what to do about it. */
export function findRedis(): { program: string } | { missing: string } {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const program = join(folder, 'redis-server');
    try {
      if (folder !== '') {
        accessSync(program, constants.X_OK);
        return { program };
      }
    } catch {
      // Not there: the next folder.
    }
  }
  const how =
    process.getuid?.() === 0
      ? 'on Debian: apt-get install redis-server'
      : 'on Debian: sudo apt-get install redis-server';
  return { missing: `no redis-server on the PATH (${how})` };
}

/** The settings that figures depend on, in one line. */
export function redisSettings(): string {
  return Object.entries(SETTINGS)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
}

/**
 * Starts the program and waits until it answers.
 * @throws when it does not in time, with the end of its log
 */
export async function startRedis(program: string): Promise<RedisServer> {
  const home = mkdtempSync(join(tmpdir(), 'bench-redis-'));
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  const [, version = 'unknown'] =
    /v=([0-9.]+)/.exec(execFileSync(program, ['--version'], { encoding: 'utf8' })) ?? [];
  const args = Object.entries({ bind: '127.0.0.1', port: String(port), dir: home, ...SETTINGS });
  const launch = async () => {
    const server = await keepServer({
      name: 'redis',
      command: program,
      args: args.flatMap(([name, value]) => [`--${name}`, value]),
      cwd: home,
      env: { PATH: process.env['PATH'], LC_ALL: 'C' },
      logFile: join(home, 'server.log'),
      stopSignal: 'SIGTERM',
      graceMs: STOP_WITHIN_MS,
      removeWhenOrphaned: [home],
    });
    try {
      await waitFor('Redis to answer', READY_WITHIN_MS, async () => {
        if (!server.running) throw new GiveUp('the server ended');
        return answers(url);
      });
    } catch (error) {
      await server.stop('SIGKILL');
      throw new Error(`Redis did not start:\n${server.logTail()}`, { cause: error });
    }
    return server;
  };
  let server = await launch();
  return {
    url,
    version,
    get pid() {
      return server.pid;
    },
    kill: () => server.stop('SIGKILL'),
    async restart() {
      if (server.running) await server.stop();
      server = await launch();
    },
    async end() {
      if (server.running) await server.stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

async function answers(url: string): Promise<boolean> {
  const client = await Promise.race([
    connectRedis(url),
    delay(2_000, undefined, { ref: false }).then(() => undefined),
  ]);
  if (!client) return false;
  try {
    return (await client.ping()) === 'PONG';
  } finally {
    client.destroy();
  }
}
