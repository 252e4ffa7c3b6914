import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

interface State {
  key: unknown;
  parts: Record<string, unknown>;
}

/**
 * The finished parts of a long run, kept in a file as they end, so that a run that was interrupted goes
 * on where it was. `key` is everything that makes two runs the same one; the file goes when all is done.
 */
export class Parts {
  readonly #file: string;
  readonly #state: State;

  /** @throws when asked to resume and what is there belongs to another run */
  constructor(file: string, key: unknown, resume: boolean) {
    this.#file = file;
    this.#state = { key, parts: {} };
    if (!resume || !existsSync(file)) return;
    const kept = JSON.parse(readFileSync(file, 'utf8')) as State;
    if (JSON.stringify(kept.key) !== JSON.stringify(key))
      throw new Error(
        'what is kept belongs to a run with other options or of another commit: start without --resume',
      );
    this.#state.parts = kept.parts;
  }

  /** The part's result from before the interruption, or from running it now. */
  async part<T>(name: string, run: () => Promise<T>): Promise<T> {
    if (name in this.#state.parts) {
      console.log(`${name}: kept from before`);
      return this.#state.parts[name] as T;
    }
    const began = performance.now();
    const result = await run();
    console.log(`${name}: ${((performance.now() - began) / 1_000).toFixed(1)} s`);
    this.#state.parts[name] = result;
    mkdirSync(dirname(this.#file), { recursive: true });
    writeFileSync(`${this.#file}.new`, JSON.stringify(this.#state));
    renameSync(`${this.#file}.new`, this.#file);
    return result;
  }

  done(): void {
    rmSync(this.#file, { force: true });
  }
}
