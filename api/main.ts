import { readConfig } from './config';
import { startApi } from './server';

async function main(): Promise<void> {
  const api = await startApi(readConfig(process.env), process.env);
  const stop = (): void => {
    api.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
});
