import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** How a foreign server program is run. */
export interface KeptServerOptions {
  /** For messages: `postgres`, `temporal`. */
  name: string;
  command: string;
  args: string[];
  cwd: string;
  env?: NodeJS.ProcessEnv;
  /** The user to run as, when it is another than ours. */
  user?: { uid: number; gid: number };
  /** Standard output and error go there, appended. */
  logFile: string;
  stopSignal: NodeJS.Signals;
  /** After the stop signal, SIGKILL follows when this has passed. */
  graceMs: number;
  /** Folders deleted when the server ends because its starter is gone (else the starter does it). */
  removeWhenOrphaned?: string[];
}

/** A running server program under its keeper (see keeper.cjs). */
export interface KeptServer {
  readonly pid: number;
  readonly logFile: string;
  readonly running: boolean;
  /** Resolves when the program has ended. */
  readonly ended: Promise<void>;
  /** Sends a signal to the program, with `tree` also to everything below it. */
  signal(signal: NodeJS.Signals, tree?: boolean): Promise<void>;
  /** Ends the program and waits for it: `stopSignal` unless told, then SIGKILL. */
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** The last lines of its log, for an error message. */
  logTail(): string;
}

type FromKeeper = { started: number } | { failed: string } | { ended: object } | { done: number };

const SPAWN_TIMEOUT_MS = 30_000;

/**
 * Starts a server program that ends with this process, also when this process is killed with
 * SIGKILL. Resolves once the program runs; whether it answers is the caller's question.
 * @throws when the program cannot be started at all
 */
export async function keepServer(options: KeptServerOptions): Promise<KeptServer> {
  const keeper = fork(join(__dirname, 'keeper.cjs'), [], {
    // A session of its own: Ctrl-C reaches the starter alone, which then ends things in order.
    detached: true,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    execArgv: [],
  });
  let running = true;
  const ended = new Promise<void>((resolve) => {
    keeper.once('exit', () => {
      running = false;
      resolve();
    });
  });
  const started = firstMessage(keeper, options.name);
  keeper.send({
    order: {
      command: options.command,
      args: options.args,
      cwd: options.cwd,
      env: options.env ?? process.env,
      uid: options.user?.uid,
      gid: options.user?.gid,
      logFile: options.logFile,
      stopSignal: options.stopSignal,
      graceMs: options.graceMs,
      removeWhenOrphaned: options.removeWhenOrphaned ?? [],
    },
  });
  const pid = await started;
  // A server that nobody waits for may not keep the starter's event loop alive.
  const hold = (held: boolean) => {
    if (held) keeper.ref();
    else keeper.unref();
    if (held) keeper.channel?.ref();
    else keeper.channel?.unref();
  };
  hold(false);
  keeper.on('message', (message: FromKeeper) => {
    if ('ended' in message) running = false;
  });

  let lastId = 0;
  const server: KeptServer = {
    pid,
    logFile: options.logFile,
    get running() {
      return running;
    },
    ended,
    async signal(signal, tree = false) {
      if (!running || !keeper.connected) return;
      const id = ++lastId;
      const done = new Promise<void>((resolve) => {
        const listen = (message: FromKeeper) => {
          if (!('done' in message) || message.done !== id) return;
          keeper.off('message', listen);
          resolve();
        };
        keeper.on('message', listen);
      });
      hold(true);
      keeper.send({ id, signal, tree });
      await Promise.race([done, ended]);
      hold(false);
    },
    async stop(signal = options.stopSignal) {
      if (running) {
        await server.signal('SIGCONT', true);
        await server.signal(signal);
      }
      hold(true);
      const patience = new AbortController();
      const late = delay(options.graceMs, undefined, { signal: patience.signal });
      await Promise.race([ended, late]).catch(() => undefined);
      patience.abort();
      late.catch(() => undefined);
      if (running) await server.signal('SIGKILL', true);
      hold(true);
      await ended;
    },
    logTail: () => logTail(options.logFile),
  };
  return server;
}

/** The last 20 lines of a log file; empty when there is none. */
export function logTail(logFile: string): string {
  if (!existsSync(logFile)) return '';
  return readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-20).join('\n');
}

async function firstMessage(keeper: ChildProcess, name: string): Promise<number> {
  const timeout = new AbortController();
  const message = new Promise<number>((resolve, reject) => {
    keeper.once('message', (first: FromKeeper) => {
      if ('started' in first) resolve(first.started);
      else reject(new Error(`${name} could not be started: ${JSON.stringify(first)}`));
    });
    keeper.once('error', reject);
    keeper.once('exit', () => reject(new Error(`${name}: its keeper ended before it began`)));
  });
  const late = delay(SPAWN_TIMEOUT_MS, undefined, { signal: timeout.signal }).then(() => {
    throw new Error(`${name} did not start within ${SPAWN_TIMEOUT_MS} ms`);
  });
  try {
    return await Promise.race([message, late]);
  } finally {
    timeout.abort();
    late.catch(() => undefined);
  }
}
