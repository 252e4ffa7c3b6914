/** Starts a server and a process of ours, prints their pids and waits to be killed. */
import { createServer } from 'node:http';
import { join } from 'node:path';
import { startProcess } from '../../scripts/servers/children';
import { startPostgres } from '../../scripts/servers/postgres';
import { freePort } from '../../scripts/servers/wait';

async function main(): Promise<void> {
  const [logFolder = '', role] = process.argv.slice(2);
  if (role === 'child') {
    createServer((_, response) => response.end()).listen(Number(process.env['PORT']), '127.0.0.1');
    return;
  }
  const port = await freePort();
  const [postgres, child] = await Promise.all([
    startPostgres(),
    startProcess({
      name: 'child',
      script: 'test/stack/starter.ts',
      args: [logFolder, 'child'],
      env: { PORT: String(port) },
      logFile: join(logFolder, 'child.log'),
      readyUrl: `http://127.0.0.1:${port}/`,
    }),
  ]);
  process.stdout.write(`${JSON.stringify([postgres.pid, child.pid])}\n`);
  setInterval(() => undefined, 60_000);
}

void main();
