import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Where the stack that was started last is, for tools that are run beside it. */
export interface RunningStack {
  databaseUrl: string;
  temporalAddress: string;
  temporalNamespace: string;
  /** The mock channel's books, and its control interface. */
  booksFile: string;
  controlUrl: string;
  /** Requests and answers of the tour, and what the example merchant was told. */
  journalFile: string;
  eventsFile: string;
  /** What it did for its orders, and took back. */
  effectsFile: string;
}

export const RUNNING_STACK_FILE = 'running-stack.json';

/** Leaves the addresses in the data folder; they hold a password, so their owner alone reads them. */
export function writeRunningStack(dataFolder: string, stack: RunningStack): void {
  writeFileSync(join(dataFolder, RUNNING_STACK_FILE), `${JSON.stringify(stack, null, 2)}\n`, {
    mode: 0o600,
  });
}
