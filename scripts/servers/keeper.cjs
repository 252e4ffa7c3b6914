/**
 * Keeps one server program and ends it when the process that asked for it is gone.
 *
 * PostgreSQL and the Temporal CLI do not notice that their starter was killed (kill -9 leaves no
 * time for an exit hook), so each runs under this small process: it holds an IPC channel to the
 * starter, and when the channel closes, for whatever reason, it stops the server by its own pid.
 * It also carries out signals for the starter, because PostgreSQL's backends are each a session of
 * their own and a stopped or paused server means every one of them.
 *
 * Plain JavaScript: it must start at once and stay small.
 */
'use strict';

const { spawn } = require('node:child_process');
const { closeSync, openSync, readdirSync, readFileSync, rmSync } = require('node:fs');

/**
 * @typedef {{ command: string, args: string[], cwd: string, env: Record<string, string>,
 *   uid?: number, gid?: number, logFile: string, stopSignal: NodeJS.Signals, graceMs: number,
 *   removeWhenOrphaned: string[] }} KeeperOrder
 */

/** @type {import('node:child_process').ChildProcess | undefined} */
let server;
let stopping = false;
/** Folders nobody needs once the starter is gone. @type {string[]} */
let removeWhenOrphaned = [];

process.on('message', (message) => {
  const { order, id, signal, tree } = /** @type {any} */ (message);
  if (order !== undefined) start(order);
  if (signal !== undefined) {
    signalServer(signal, tree);
    tell({ done: id });
  }
});
// The two ways in which the starter's end is seen here: its channel closed, or somebody ends us.
let graceMs = 10_000;
/** @type {NodeJS.Signals} */
let stopSignal = 'SIGTERM';
process.on('disconnect', stop);
process.on('SIGTERM', stop);
process.on('SIGINT', () => {});
process.on('SIGHUP', () => {});

/** @param {KeeperOrder} order */
function start(order) {
  ({ graceMs, stopSignal, removeWhenOrphaned } = order);
  const log = openSync(order.logFile, 'a');
  const child = spawn(order.command, order.args, {
    cwd: order.cwd,
    env: order.env,
    stdio: ['ignore', log, log],
    ...(order.uid === undefined ? {} : { uid: order.uid, gid: order.gid }),
  });
  closeSync(log);
  server = child;
  child.on('spawn', () => tell({ started: child.pid }));
  child.on('error', (error) => {
    tell({ failed: `${order.command}: ${error.message}` });
    end();
  });
  child.on('exit', (code, signal) => {
    tell({ ended: { code, signal } });
    end();
  });
}

function stop() {
  if (stopping) return;
  stopping = true;
  if (server === undefined || server.pid === undefined) return end();
  // A paused process handles nothing but SIGKILL until it is continued.
  signalServer('SIGCONT', true);
  signalServer(stopSignal, false);
  setTimeout(() => {
    signalServer('SIGKILL', true);
    end();
  }, graceMs);
}

function end() {
  for (const folder of process.connected ? [] : removeWhenOrphaned) {
    try {
      rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    } catch {
      // A backend may still be writing its last file; a leftover in the temp folder harms nobody.
    }
  }
  process.exit(0);
}

/** @param {NodeJS.Signals} signal @param {boolean} tree */
function signalServer(signal, tree) {
  const pid = server?.pid;
  if (pid === undefined || server?.exitCode !== null || server.signalCode !== null) return;
  // The parent first: once it is paused, it can make no further child.
  for (const one of [pid, ...(tree ? descendants(pid) : [])]) {
    try {
      process.kill(one, signal);
    } catch {
      // It ended between the listing and the signal.
    }
  }
}

/** @param {number} root @returns {number[]} */
function descendants(root) {
  /** @type {Map<number, number[]>} */
  const children = new Map();
  for (const [pid, parent] of processes()) {
    children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const found = [];
  const todo = [...(children.get(root) ?? [])];
  for (let pid = todo.shift(); pid !== undefined; pid = todo.shift()) {
    found.push(pid);
    todo.push(...(children.get(pid) ?? []));
  }
  return found;
}

/** Every process with its parent. @returns {[number, number][]} */
function processes() {
  if (process.platform !== 'linux') {
    const { execFileSync } = require('node:child_process');
    const text = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' });
    return text
      .trim()
      .split('\n')
      .map((line) => /** @type {[number, number]} */ (line.trim().split(/\s+/).map(Number)));
  }
  // Small images have no `ps`; the kernel's own list is always there.
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
        // The name in brackets may hold spaces: state and parent follow the last bracket.
        const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
        return [/** @type {[number, number]} */ ([Number(name), parent])];
      } catch {
        return [];
      }
    });
}

/** @param {unknown} message */
function tell(message) {
  if (process.connected) process.send?.(message, () => {});
}
