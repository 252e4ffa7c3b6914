import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * Asks `probe` again and again until it gives something other than `undefined` or `false`.
 * @throws when `timeoutMs` has passed, with the last error of the probe as cause; a probe that
 *   throws `GiveUp` ends the wait at once
 */
export async function waitFor<T>(
  what: string,
  timeoutMs: number,
  probe: () => Promise<T | undefined | false>,
  everyMs = 50,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let cause: unknown;
  for (;;) {
    try {
      const found = await probe();
      if (found !== undefined && found !== false) return found;
    } catch (error) {
      if (error instanceof GiveUp) throw error;
      cause = error;
    }
    if (performance.now() >= deadline) {
      throw new Error(`${what}: not within ${timeoutMs} ms`, { cause });
    }
    await delay(everyMs);
  }
}

/** Thrown by a probe that knows that waiting longer is of no use. */
export class GiveUp extends Error {
  override name = 'GiveUp';
}

/** Below the range from which systems take the ports of outgoing connections. */
const PORTS = { from: 15_000, to: 32_000 };
const PORT_TRIES_MAX = 200;
const given = new Set<number>();

/**
 * A TCP port on the loopback address that was free a moment ago: `preferred` if it is. Each call of
 * this process gives another one.
 */
export async function freePort(preferred?: number): Promise<number> {
  for (let attempt = 0; attempt < PORT_TRIES_MAX; attempt++) {
    const port = attempt === 0 && preferred !== undefined ? preferred : randomPort();
    if (given.has(port) || !(await canListen(port))) continue;
    given.add(port);
    return port;
  }
  throw new Error(`no free port on 127.0.0.1 after ${PORT_TRIES_MAX} tries`);
}

function randomPort(): number {
  return PORTS.from + Math.floor(Math.random() * (PORTS.to - PORTS.from));
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/** True when an HTTP GET of `url` answers 2xx within two seconds. */
export async function answersOk(url: string): Promise<boolean> {
  const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
  await response.arrayBuffer();
  return response.ok;
}
