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

/** A TCP port on the loopback address that was free a moment ago: `preferred` if it is. */
export async function freePort(preferred?: number): Promise<number> {
  if (preferred !== undefined && (await canListen(preferred)) !== undefined) return preferred;
  const port = await canListen(0);
  if (port === undefined) throw new Error('no free port on 127.0.0.1');
  return port;
}

function canListen(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen(port, '127.0.0.1', () => {
      const address = server.address();
      server.close(() =>
        resolve(typeof address === 'object' && address !== null ? address.port : undefined),
      );
    });
  });
}

/** True when an HTTP GET of `url` answers 2xx within two seconds. */
export async function answersOk(url: string): Promise<boolean> {
  const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
  await response.arrayBuffer();
  return response.ok;
}
