import { fork } from 'node:child_process';
import { join } from 'node:path';
import type { ToParent, ToWorker, WorkerInput, WorkerOutput } from './job';

/** Longer than the longest full-size run of one strategy. */
const WITHIN_MS = 3 * 3_600_000;

/**
 * Runs the worker to its end. `harm` is called at each place of `harmAt`; the work goes on as soon as
 * it resolves.
 * @throws when the worker fails, dies or takes longer than any run may; it is ended then
 */
export function runWorker(
  input: WorkerInput,
  harm: (index: number) => Promise<void> = () => Promise.resolve(),
): Promise<WorkerOutput> {
  const worker = fork(join(__dirname, 'worker.ts'), [], {
    execArgv: ['--import', 'tsx'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  return new Promise<WorkerOutput>((resolve, reject) => {
    const tell = (message: ToWorker) => worker.send(message);
    const late = setTimeout(() => reject(new Error('the run took too long')), WITHIN_MS);
    worker.once('error', reject);
    worker.once('exit', (code) => {
      clearTimeout(late);
      reject(new Error(`the worker of the bench ended with ${code}`));
    });
    worker.on('message', (message: ToParent) => {
      if ('output' in message) resolve(message.output);
      else if ('failed' in message) reject(new Error(message.failed));
      else harm(message.harm).then(() => tell({ harmed: message.harm }), reject);
    });
    tell({ input });
  }).finally(() => {
    worker.removeAllListeners('message');
    worker.kill('SIGKILL');
  });
}
