import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { startProcess } from '../../scripts/servers/children';
import { claimFolder, commandLine } from '../../scripts/servers/leftover';
import { freePort, waitFor } from '../../scripts/servers/wait';

const root = join(__dirname, '..', '..');
const ENDED_TIMEOUT_MS = 20_000;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'payment-saga-test-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const ended = (pid: number) =>
  waitFor(`process ${pid} to end`, ENDED_TIMEOUT_MS, () => Promise.resolve(!alive(pid)));

async function startChild() {
  const port = await freePort();
  const child = await startProcess({
    name: 'child',
    script: 'test/stack/starter.ts',
    args: [folder, 'child'],
    env: { PORT: String(port) },
    logFile: join(folder, 'child.log'),
    readyUrl: `http://127.0.0.1:${port}/`,
  });
  return { child, url: `http://127.0.0.1:${port}/` };
}

test('servers and processes end with their starter, also when it is killed with SIGKILL', async () => {
  const starter = spawn(process.execPath, ['--import', 'tsx', 'test/stack/starter.ts', folder], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const line = await new Promise<string>((resolve, reject) => {
    createInterface({ input: starter.stdout }).once('line', resolve);
    starter.once('exit', () => reject(new Error('the starter ended')));
  });
  const pids = JSON.parse(line) as number[];
  expect(pids.map(alive)).toEqual([true, true]);
  starter.kill('SIGKILL');
  await Promise.all(pids.map(ended));
  expect(pids.map(alive)).toEqual([false, false]);
});

test('a process is ready when it answers, and is gone after it was asked to stop', async () => {
  const { child, url } = await startChild();
  expect((await fetch(url)).status).toBe(200);
  await child.stop();
  expect(child.running).toBe(false);
  expect(alive(child.pid)).toBe(false);
  expect(await child.ended).toEqual({ code: null, signal: 'SIGTERM' });
});

test('a paused process is stopped all the same, and a killed one reports SIGKILL', async () => {
  const { child } = await startChild();
  child.pause();
  await child.stop();
  expect(alive(child.pid)).toBe(false);
  const { child: second } = await startChild();
  await second.kill();
  expect(await second.ended).toEqual({ code: null, signal: 'SIGKILL' });
});

test('a process that cannot start fails at once, with the end of its log', async () => {
  const script = 'test/stack/no-such-file.ts';
  const starting = startProcess({
    name: 'nothing',
    script,
    env: {},
    logFile: join(folder, 'nothing.log'),
    readyUrl: 'http://127.0.0.1:9/',
  });
  await expect(starting).rejects.toThrow(/nothing did not start:[^]*no-such-file/);
  expect(readFileSync(join(folder, 'nothing.log'), 'utf8')).toContain('no-such-file');
});

test('a data folder belongs to one running process, and to nobody once that is gone', () => {
  const other = { pid: process.ppid, commandLine: commandLine(process.ppid) };
  writeFileSync(join(folder, 'claimed-by.json'), JSON.stringify(other));
  expect(() => claimFolder(folder)).toThrow(`in use by process ${process.ppid}`);
  // The pid lives on as another program.
  writeFileSync(
    join(folder, 'claimed-by.json'),
    JSON.stringify({ ...other, commandLine: 'somebody else' }),
  );
  const claim = claimFolder(folder);
  expect(JSON.parse(readFileSync(join(folder, 'claimed-by.json'), 'utf8'))).toMatchObject({
    pid: process.pid,
  });
  claim.release();
});
