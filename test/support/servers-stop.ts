import { takeRunning } from './servers-running';

/** After all tests: ends the servers that global set-up started. */
export default async function stopServers(): Promise<void> {
  await takeRunning()?.stop();
}
