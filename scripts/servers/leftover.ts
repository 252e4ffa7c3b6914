import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitFor } from './wait';

/**
 * Ends a process that a killed run left behind, and waits for it. Only if its command line still
 * contains `mark` (a path of ours): pids are given out again.
 */
export async function endLeftover(
  pid: number,
  mark: string,
  signal: NodeJS.Signals,
  graceMs: number,
): Promise<void> {
  if (!Number.isSafeInteger(pid) || pid <= 1 || !commandLine(pid).includes(mark)) return;
  const gone = () => Promise.resolve(!commandLine(pid).includes(mark));
  try {
    process.kill(pid, signal);
    await waitFor(`the leftover process ${pid} to end`, graceMs, gone);
  } catch {
    if (await gone()) return;
    process.kill(pid, 'SIGKILL');
    await waitFor(`the leftover process ${pid} to end`, graceMs, gone);
  }
}

/**
 * Claims a folder for this process. Two stacks on the same data would end each other's servers.
 * @throws when another process that still runs has claimed it
 */
export function claimFolder(folder: string): { release(): void } {
  const file = join(folder, 'claimed-by.json');
  const own = { pid: process.pid, commandLine: commandLine(process.pid) };
  if (existsSync(file)) {
    const other = JSON.parse(readFileSync(file, 'utf8')) as typeof own;
    // A pid is given out again: only the same command under it is the same process.
    const alive = other.commandLine !== '' && commandLine(other.pid) === other.commandLine;
    if (alive && other.pid !== own.pid) {
      throw new Error(`${folder} is in use by process ${other.pid}: ${other.commandLine}`);
    }
  }
  writeFileSync(file, JSON.stringify(own));
  return { release: () => rmSync(file, { force: true }) };
}

/** The command line of a process; empty when there is no such process. */
export function commandLine(pid: number): string {
  try {
    if (process.platform === 'linux') {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    }
    return execFileSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' });
  } catch {
    return '';
  }
}
