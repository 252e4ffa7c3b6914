import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { logTail } from './kept-server';
import { PROJECT_FOLDER } from './temporal';
import { answersOk, GiveUp, waitFor } from './wait';

/** Loading TypeScript takes a while on a busy machine of two cores. */
const START_TIMEOUT_MS = 60_000;
/** Longer than any grace the processes give themselves. */
const STOP_TIMEOUT_MS = 20_000;

export interface ProcessOptions {
  /** For messages and the log's name: `api`, `worker`, `mock-channel`. */
  name: string;
  /** The file to run, from the project's folder: `worker/main.ts`. */
  script: string;
  args?: string[];
  /** Added to this process's environment; undefined takes a variable away. */
  env: NodeJS.ProcessEnv;
  /** Standard output and error go there, appended. */
  logFile: string;
  /** Address that answers 2xx once the process is ready. Absent: ready as soon as it runs. */
  readyUrl?: string;
  startTimeoutMs?: number;
}

/** One of our own processes, started apart. */
export interface OwnProcess {
  readonly name: string;
  readonly pid: number;
  readonly logFile: string;
  readonly running: boolean;
  /** Resolves when it has ended: its exit code, or the signal that ended it. */
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** Asks it to end (SIGTERM), waits, and kills it when it does not. */
  stop(): Promise<void>;
  /** kill -9, as a crash; resolves when it is gone. */
  kill(): Promise<void>;
  /** Freezes it: its connections stay open and nothing answers. */
  pause(): void;
  resume(): void;
}

/**
 * Starts one of our own processes with tsx and waits until it is ready. It ends when this process
 * ends, also after kill -9 (see end-with-parent.mjs).
 * @throws when it ends or is not ready in time, with the end of its log
 */
export async function startProcess(options: ProcessOptions): Promise<OwnProcess> {
  mkdirSync(dirname(options.logFile), { recursive: true });
  const log = openSync(options.logFile, 'a');
  const child = spawn(
    process.execPath,
    [
      ...['--enable-source-maps', '--import', 'tsx'],
      ...['--import', join(__dirname, 'end-with-parent.mjs')],
      join(PROJECT_FOLDER, options.script),
      ...(options.args ?? []),
    ],
    {
      cwd: PROJECT_FOLDER,
      env: childEnvironment(options.env),
      // The channel carries no message; that it closes is the message.
      stdio: ['ignore', log, log, 'ipc'],
      // A session of its own: Ctrl-C reaches the starter alone, which ends things in order.
      detached: true,
    },
  );
  closeSync(log);
  let running = true;
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once('exit', (code, signal) => {
      running = false;
      resolve({ code, signal });
    });
    child.once('error', () => {
      running = false;
      resolve({ code: null, signal: null });
    });
  });
  const hold = (held: boolean) => {
    if (held) child.ref();
    else child.unref();
  };
  child.channel?.unref();
  hold(false);

  const end = async (signal: NodeJS.Signals) => {
    if (!running) return;
    hold(true);
    // A paused process handles nothing but SIGKILL until it is continued.
    if (signal !== 'SIGKILL') child.kill('SIGCONT');
    child.kill(signal);
    const late = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await ended;
    clearTimeout(late);
  };
  const own: OwnProcess = {
    name: options.name,
    pid: child.pid ?? -1,
    logFile: options.logFile,
    get running() {
      return running;
    },
    ended,
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
  };
  await untilReady(own, options);
  return own;
}

async function untilReady(own: OwnProcess, options: ProcessOptions): Promise<void> {
  const { readyUrl } = options;
  if (readyUrl === undefined) return;
  try {
    const timeoutMs = options.startTimeoutMs ?? START_TIMEOUT_MS;
    await waitFor(`${options.name} to be ready at ${readyUrl}`, timeoutMs, () => {
      if (!own.running) throw new GiveUp(`${options.name} ended`);
      return answersOk(readyUrl);
    });
  } catch (error) {
    await own.kill();
    throw new Error(`${options.name} did not start:\n${logTail(options.logFile)}`, {
      cause: error,
    });
  }
}

/** Without the variables that the test runner or npm set for themselves. */
function childEnvironment(own: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries({ ...process.env, ...own }).filter(
      ([name, value]) =>
        value !== undefined && !name.startsWith('npm_') && !name.startsWith('JEST_'),
    ),
  );
}
