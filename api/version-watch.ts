import { readVersions } from '../db/order-reads';
import type { Queryable } from '../db/transaction';
import type { OrderRef } from '../domain/orders';

/** A poll sees a change at most this much later; it costs one statement for all who wait. */
const LOOK_EVERY_MS = 250;
/** More requests than this waiting in one process are answered at once instead. */
const WAITERS_MAX = 2_000;

interface Waiter {
  ref: OrderRef;
  knownVersion: number;
  wake: () => void;
}

/**
 * Long polls: one loop per process looks at the versions of all orders somebody waits for, in one
 * statement, and only while somebody waits. No LISTEN: it would hold a connection per process, and
 * break silently behind a pooler.
 */
export class VersionWatch {
  readonly #client: Queryable;
  readonly #waiters = new Set<Waiter>();
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(client: Queryable) {
    this.#client = client;
  }

  /** Whether the process is shutting down: nobody is waited for any more. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /** Resolves when the order's version is another one than known, at the latest after `maxMs`. */
  async changed(
    ref: OrderRef,
    knownVersion: number,
    maxMs: number,
    signal: AbortSignal,
  ): Promise<void> {
    if (this.#closed || signal.aborted || this.#waiters.size >= WAITERS_MAX) return;
    await new Promise<void>((resolve) => {
      const waiter: Waiter = { ref, knownVersion, wake: () => done() };
      const timeout = setTimeout(() => done(), maxMs);
      const done = () => {
        clearTimeout(timeout);
        signal.removeEventListener('abort', done);
        this.#waiters.delete(waiter);
        resolve();
      };
      signal.addEventListener('abort', done);
      this.#waiters.add(waiter);
      this.#lookSoon();
    });
  }

  /** Lets everybody go: the process is shutting down. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    for (const waiter of [...this.#waiters]) waiter.wake();
  }

  #lookSoon(): void {
    if (this.#timer !== undefined || this.#closed || this.#waiters.size === 0) return;
    this.#timer = setTimeout(() => void this.#look(), LOOK_EVERY_MS);
  }

  async #look(): Promise<void> {
    const waiters = [...this.#waiters];
    try {
      const rows = await readVersions(
        this.#client,
        waiters.map(({ ref }) => ref),
      );
      const versions = new Map(rows.map((row) => [keyOf(row), row.version]));
      for (const waiter of waiters) {
        if (versions.get(keyOf(waiter.ref)) !== waiter.knownVersion) waiter.wake();
      }
    } catch {
      // The database is away: who waits is answered at the end of its wait, by the read then.
    } finally {
      this.#timer = undefined;
      this.#lookSoon();
    }
  }
}

function keyOf({ merchantId, orderId }: OrderRef): string {
  return `${merchantId}:${orderId}`;
}
