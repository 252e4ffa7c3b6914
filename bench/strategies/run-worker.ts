import { fork } from 'node:child_process';
import { join } from 'node:path';
import type { ToParent, ToWorker, WorkerInput, WorkerOutput } from './job';

/** Longer than the longest full-size run of one strategy. */
const WITHIN_MS = 4 * 3_600_000;

export interface Worker {
  /**
   * One run, to its end. `harm` is called at each place of `harmAt`; the work goes on as soon as it
   * resolves.
   * @throws when the run fails, the worker dies, or it takes longer than any run may
   */
  run(input: WorkerInput, harm?: (index: number) => Promise<void>): Promise<WorkerOutput>;
  /** Ends the process, also in the middle of a run. */
  end(): void;
}

/** Starts the process; runs follow each other in it. */
export function startWorker(): Worker {
  const worker = fork(join(__dirname, 'worker.ts'), [], {
    execArgv: ['--import', 'tsx'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  return {
    async run(input, harm = () => Promise.resolve()) {
      const over = new AbortController();
      try {
        return await new Promise<WorkerOutput>((resolve, reject) => {
          const tell = (message: ToWorker) => {
            if (worker.connected) worker.send(message);
          };
          const late = setTimeout(() => reject(new Error('the run took too long')), WITHIN_MS);
          const onMessage = (message: ToParent) => {
            if ('output' in message) resolve(message.output);
            else if ('failed' in message) reject(new Error(message.failed));
            else harm(message.harm).then(() => tell({ harmed: message.harm }), reject);
          };
          const onExit = () => reject(new Error('the worker of the bench ended'));
          worker.on('message', onMessage).once('exit', onExit).once('error', reject);
          over.signal.addEventListener('abort', () => {
            clearTimeout(late);
            worker.off('message', onMessage).off('exit', onExit).off('error', reject);
          });
          if (worker.connected) tell({ input });
          else onExit();
        });
      } finally {
        over.abort();
      }
    },
    end: () => void worker.kill('SIGKILL'),
  };
}

/** One run in a process of its own, whose memory and processor time are that run's alone. */
export async function runAlone(input: WorkerInput): Promise<WorkerOutput> {
  const worker = startWorker();
  try {
    return await worker.run(input);
  } finally {
    worker.end();
  }
}
