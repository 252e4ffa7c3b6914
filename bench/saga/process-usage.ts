import { readdirSync, readFileSync } from 'node:fs';

/** What processes have used: Linux tells, elsewhere nothing is known and nothing is invented. */
export interface Usage {
  /** Of the process, its threads, and (for a server that forks) its children, ended ones too. */
  cpuMs: number;
  rssBytes: number;
}

/** The kernel counts processor time in hundredths of a second on every Linux that Node runs on. */
const TICK_MS = 10;
const PAGE_BYTES = 4096;

/**
 * What the process and everything below it has used until now. Of this very process only its own: what
 * it started is counted under its own name.
 */
export function usageOf(pid: number): Usage | undefined {
  const own = readStat(pid);
  if (!own) return undefined;
  if (pid === process.pid) return { cpuMs: own.cpuMs, rssBytes: own.rssBytes };
  let cpuMs = own.cpuMs + own.endedChildrenCpuMs;
  let rssBytes = own.rssBytes;
  for (const child of children(pid)) {
    const used = usageOf(child);
    cpuMs += used?.cpuMs ?? 0;
    rssBytes += used?.rssBytes ?? 0;
  }
  return { cpuMs, rssBytes };
}

/** Processor time of each named process between two looks, in milliseconds. */
export class CpuWatch {
  private begun: Record<string, number> = {};

  constructor(private readonly pids: Record<string, number | undefined>) {}

  begin(): void {
    this.begun = this.read();
  }

  /** Since `begin`; a process that is not there (any more) is left out. */
  end(): Record<string, number> {
    return Object.fromEntries(
      Object.entries(this.read()).map(([name, ms]) => [name, ms - (this.begun[name] ?? 0)]),
    );
  }

  private read(): Record<string, number> {
    return Object.fromEntries(
      Object.entries(this.pids).flatMap(([name, pid]) => {
        const used = pid === undefined ? undefined : usageOf(pid);
        return used ? [[name, used.cpuMs]] : [];
      }),
    );
  }
}

function readStat(pid: number) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in brackets may hold spaces: what follows the last bracket begins with field 3.
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    const field = (no: number) => fields[no - 3] ?? 0;
    return {
      parent: field(4),
      cpuMs: (field(14) + field(15)) * TICK_MS,
      endedChildrenCpuMs: (field(16) + field(17)) * TICK_MS,
      rssBytes: field(24) * PAGE_BYTES,
    };
  } catch {
    return undefined;
  }
}

function children(parent: number): number[] {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => readStat(pid)?.parent === parent);
  } catch {
    return [];
  }
}
