import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
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

function commandLine(pid: number): string {
  try {
    if (process.platform === 'linux') {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    }
    return execFileSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' });
  } catch {
    return '';
  }
}
