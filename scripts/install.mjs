import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The project's folder. */
export const projectFolder = join(dirname(fileURLToPath(import.meta.url)), '..');

/**
 * Installs the dependencies when they are missing. npm writes the inner lockfile last, so a run
 * that was broken off counts as missing.
 */
export function ensureInstalled() {
  const inner = join(projectFolder, 'node_modules', '.package-lock.json');
  if (existsSync(inner)) {
    warnWhenOutdated(inner);
    return;
  }
  console.log('installing dependencies (npm ci) …');
  // npm tells its children where it is; without npm above us it is on the PATH.
  const npm = process.env['npm_execpath'];
  const [command, args] = npm?.endsWith('.js') ? [process.execPath, [npm]] : ['npm', []];
  const { status, error } = spawnSync(command, [...args, 'ci', '--no-audit', '--no-fund'], {
    cwd: projectFolder,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (error) throw error;
  if (status !== 0) {
    console.error('npm ci failed');
    process.exit(status ?? 1);
  }
}

/** @param {string} inner */
function warnWhenOutdated(inner) {
  /** @param {string} file @returns {Record<string, { version?: string, optional?: boolean }>} */
  const packages = (file) => JSON.parse(readFileSync(file, 'utf8')).packages;
  const installed = packages(inner);
  const differs = Object.entries(packages(join(projectFolder, 'package-lock.json'))).some(
    ([path, { version, optional }]) =>
      path !== '' && !optional && installed[path]?.version !== version,
  );
  if (differs) console.log('node_modules differs from package-lock.json: run npm ci');
}
