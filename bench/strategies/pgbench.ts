import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { POOL_SIZE } from './job';

const FOR_MS_MAX = 600_000;

/** `pgbench` of the PATH or of Debian's PostgreSQL packages, the newest. */
export function findPgbench(): string | undefined {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian)
    ? readdirSync(debian).sort((a, b) => Number(b) - Number(a))
    : [];
  const folders = [
    ...(process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== ''),
    ...versions.map((version) => join(debian, version, 'bin')),
  ];
  return folders.map((folder) => join(folder, 'pgbench')).find((program) => existsSync(program));
}

export function pgbenchVersion(program: string): string {
  return execFileSync(program, ['--version'], { encoding: 'utf8' }).trim();
}

/**
 * The floor's insert by PostgreSQL's own load program over as many connections, prepared: rows per
 * second. The table is made first; `inserts` is rounded up to whole turns of every connection.
 */
export async function runPgbench(
  program: string,
  databaseUrl: string,
  inserts: number,
): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-pgbench-'));
  const script = join(folder, 'insert.sql');
  // The same row as the floor's; the number comes from a sequence, since its clients share none.
  writeFileSync(
    script,
    `insert into floor_rows (order_no, order_id, amount_minor)
     values (nextval('floor_numbers'), 'b', 1);\n`.replaceAll('\n     ', ' '),
  );
  try {
    const { stdout } = await promisify(execFile)(
      program,
      [
        ...['--no-vacuum', '--protocol=prepared', `--file=${script}`],
        ...[`--client=${POOL_SIZE}`, '--jobs=1'],
        ...[`--transactions=${Math.ceil(inserts / POOL_SIZE)}`, databaseUrl],
      ],
      { timeout: FOR_MS_MAX },
    );
    const [, tps] = /^tps = ([0-9.]+)/m.exec(stdout) ?? [];
    if (tps === undefined) throw new Error(`pgbench gave no figure:\n${stdout}`);
    return Number(tps);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
