import { readConfig } from './config';
import { runWorker } from './run';

async function main(): Promise<void> {
  const worker = await runWorker(readConfig(process.env), process.env);
  let stopping = false;
  const stop = (): void => {
    if (stopping) return;
    stopping = true;
    worker.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  await worker.ended;
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? (error.stack ?? error.message) : error);
  process.exit(1);
});
