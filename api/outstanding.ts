/**
 * Calls to Temporal that somebody stopped waiting for but that still go on: the SDK retries behind our
 * back until its deadline, and a connection closed under it would throw where nobody catches.
 */
export class Outstanding {
  readonly #calls = new Set<Promise<unknown>>();

  get size(): number {
    return this.#calls.size;
  }

  track<T>(call: Promise<T>): Promise<T> {
    const forget = () => void this.#calls.delete(call);
    this.#calls.add(call);
    call.then(forget, forget);
    return call;
  }

  /** Resolves when every call has ended, one way or the other. */
  async settled(): Promise<void> {
    while (this.#calls.size > 0) await Promise.allSettled(this.#calls);
  }
}
