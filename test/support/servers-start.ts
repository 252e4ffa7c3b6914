import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestServers } from '../../scripts/test-servers';
import { setRunning } from './servers-running';

/** Longer than a first download of the Temporal CLI. */
const START_TIMEOUT_MS = 300_000;

/**
 * Before all tests: starts PostgreSQL and Temporal in a process of their own. Their addresses go to
 * the test files in the environment (see servers.ts).
 */
export default async function startServers(): Promise<void> {
  const project = join(__dirname, '..', '..');
  const child = spawn(process.execPath, ['--import', 'tsx', 'scripts/test-servers.ts'], {
    cwd: project,
    // That its input ends tells it that the run is over, also when the run was killed.
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  const line = new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', resolve);
    child.once('error', reject);
    child.once('exit', (code) =>
      reject(new Error(`the test servers did not start (exit code ${code})`)),
    );
    setTimeout(
      () => reject(new Error(`the test servers did not start within ${START_TIMEOUT_MS} ms`)),
      START_TIMEOUT_MS,
    ).unref();
  });
  try {
    const servers = JSON.parse(await line) as TestServers;
    process.env['TEST_SERVERS'] = JSON.stringify(servers);
  } catch (error) {
    child.stdin.end();
    throw error;
  }
  setRunning({
    async stop() {
      const ended = once(child, 'exit');
      child.stdin.end();
      await ended;
    },
  });
}
