import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface State {
  commit: string;
  parts: Record<string, unknown>;
}

/**
 * The finished parts of a long run, kept in a file as they end, so that a run that was interrupted goes
 * on where it was. Each set of options has a file of its own, which goes when all is done.
 */
export class Parts {
  readonly #folder: string;
  readonly #file: string;
  readonly #state: State;

  /** @throws when asked to resume and what is there is of another commit, or there is nothing */
  constructor(folder: string, options: unknown, commit: string, resume: boolean) {
    const name = createHash('sha256').update(JSON.stringify(options)).digest('hex').slice(0, 12);
    this.#folder = folder;
    this.#file = join(folder, `bench-strategies-${name}.json`);
    this.#state = { commit, parts: {} };
    if (!resume) return;
    if (!existsSync(this.#file))
      throw new Error('nothing is kept of a run with these options: start without --resume');
    const kept = JSON.parse(readFileSync(this.#file, 'utf8')) as State;
    if (kept.commit !== commit)
      throw new Error('what is kept was measured at another commit: start without --resume');
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
    mkdirSync(this.#folder, { recursive: true });
    writeFileSync(`${this.#file}.new`, JSON.stringify(this.#state));
    renameSync(`${this.#file}.new`, this.#file);
    return result;
  }

  done(): void {
    rmSync(this.#file, { force: true });
  }
}
