/**
 * The worker of the floors, a process of its own: made like the product's worker (same options, same
 * converter), with activities that do nothing but count.
 */
import { createServer } from 'node:http';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { workerOptions } from '../../worker/run';
import type { WorkerConfig } from '../../worker/config';
import type { ControlActivities } from './control-workflow';

/** How often each activity was called. */
export type ControlCounts = Record<keyof ControlActivities, number>;

const counts: ControlCounts = { load: 0, open: 0, submit: 0, settle: 0, readNews: 0, tell: 0 };
const counting = (name: keyof ControlActivities) => () => {
  counts[name]++;
  return Promise.resolve();
};
const activities: ControlActivities = {
  load: counting('load'),
  open: counting('open'),
  submit: counting('submit'),
  settle: counting('settle'),
  readNews: counting('readNews'),
  tell: counting('tell'),
};

async function main(env: NodeJS.ProcessEnv): Promise<void> {
  Runtime.install({ logger: new DefaultLogger('WARN') });
  const connection = await NativeConnection.connect({ address: named(env, 'TEMPORAL_ADDRESS') });
  const worker = await Worker.create({
    connection,
    namespace: named(env, 'TEMPORAL_NAMESPACE'),
    taskQueue: named(env, 'TEMPORAL_TASK_QUEUE'),
    activities: { ...activities },
    ...workerOptions({
      workflowBundle: named(env, 'WORKFLOW_BUNDLE'),
      cachedRuns: Number(named(env, 'WORKER_CACHED_RUNS')),
      shutdownGraceMs: 1_000,
    } as WorkerConfig),
  });
  const ended = worker.run();
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(request.url === '/counts' ? counts : { ok: true }));
  });
  server.listen(Number(named(env, 'WORKER_HEALTH_PORT')), '127.0.0.1');
  process.once('SIGTERM', () => worker.shutdown());
  await ended;
  server.close();
  server.closeAllConnections();
  await connection.close();
}

function named(env: NodeJS.ProcessEnv, name: string): string {
  const value = env[name];
  if (value === undefined) throw new Error(`${name} is missing`);
  return value;
}

main(process.env).then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
