/**
 * What a bench leaves: its result as `bench/results/<name>.json`, with the machine, the commit and the
 * date, so that a figure can be told from a rumour.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';

/** The machine and the programs that figures come from. */
export interface Rig {
  cpu: string;
  cores: number;
  memory_gib: number;
  kernel: string;
  node: string;
  /** Versions of servers and what else a figure depends on, as the bench knows them. */
  [more: string]: string | number | boolean;
}

export interface Source {
  commit: string;
  /** Files of the project differ from the commit: the figures belong to no known code. */
  dirty: boolean;
  /** ISO 8601, UTC. */
  date: string;
}

/** How a bench was asked to treat its result. */
export interface Keeping {
  /** The size that the project promises figures for was asked for. */
  fullSize: boolean;
  /** `--write`: keep the result whatever its size and the state of the tree. */
  write: boolean;
}

const PROJECT = join(__dirname, '..');
const RESULTS = 'bench/results';

/** The machine as the operating system tells, with what the bench adds (`postgres`, `redis` …). */
export function describeRig(more: Record<string, string | number | boolean> = {}): Rig {
  const cpus = os.cpus();
  return {
    cpu: cpus[0]?.model.trim() ?? 'unknown',
    cores: cpus.length,
    memory_gib: Math.round(os.totalmem() / 2 ** 30),
    kernel: `${os.type()} ${os.release()}`,
    node: process.version,
    ...more,
  };
}

/** The commit checked out and whether tracked or new files differ from it; results do not count. */
export function describeSource(): Source {
  const date = new Date().toISOString();
  try {
    const changed = git('status', '--porcelain', '--', '.', `:(exclude)${RESULTS}`);
    return { commit: git('rev-parse', 'HEAD'), dirty: changed !== '', date };
  } catch {
    // A copy without its history, or no git: the figures belong to no known commit.
    return { commit: 'unknown', dirty: true, date };
  }
}

function git(...args: string[]): string {
  return execFileSync('git', args, {
    cwd: PROJECT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
}

/** The line that absolute numbers are printed with. */
export function rigLine(rig: Rig, source: Source): string {
  const { cpu, cores, memory_gib: memory, kernel, node, ...more } = rig;
  return [
    `${cpu}, ${cores} cores, ${memory} GiB, ${kernel}, node ${node}`,
    ...Object.entries(more).map(([name, value]) => `${name} ${value}`),
    `commit ${source.commit.slice(0, 12)}${source.dirty ? ' with changes' : ''}`,
    source.date,
  ].join(', ');
}

/**
 * To be asked before a long run: whether its result may be kept at the end.
 * @throws when a full size is asked for on a tree with changes and `--write` does not insist
 */
export function assertKeepable({ fullSize, write }: Keeping, source = describeSource()): void {
  if (!fullSize || write || !source.dirty) return;
  throw new Error(
    'the tree has changes, so the result of a full-size run would belong to no commit: ' +
      'commit first, or say --write to keep it marked as dirty',
  );
}

/**
 * Keeps `result` as `bench/results/<name>.json` when it is a full-size one or `write` insists; returns
 * the file's path within the project, or undefined when nothing was kept. `source` is the one the run
 * began with: a commit made meanwhile has not been measured.
 */
export function keepResult(
  name: string,
  result: object,
  about: { rig: Rig; source: Source; keeping: Keeping; folder?: string },
): string | undefined {
  const { rig, source, keeping } = about;
  if (!/^[a-z][a-z0-9-]*$/.test(name)) throw new Error(`no name of a result: ${name}`);
  if (!keeping.fullSize && !keeping.write) return undefined;
  const folder = about.folder ?? join(PROJECT, RESULTS);
  mkdirSync(folder, { recursive: true });
  const content = { bench: name, full_size: keeping.fullSize, ...source, rig, ...result };
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(content, null, 2)}\n`);
  return `${RESULTS}/${name}.json`;
}
