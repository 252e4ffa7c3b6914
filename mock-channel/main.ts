import { readConfig } from './config';
import { startMockChannel } from './server';

/**
 * The mock channel as a process. Its first line on standard output is JSON with the addresses it
 * listens at: `{"control": …, "a": …, "b": …}`. SIGINT and SIGTERM end it.
 */
async function main(): Promise<void> {
  const channel = await startMockChannel(readConfig(process.env));
  const { control, a, b } = channel;
  process.stdout.write(`${JSON.stringify({ control, a, b })}\n`);
  let ending = false;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (ending) return;
      ending = true;
      void channel.close().then(() => process.exit(0));
    });
  }
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
