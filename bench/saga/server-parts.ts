import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundleWorkflowCode } from '@temporalio/worker';
import pg from 'pg';
import { PROJECT_FOLDER } from '../../scripts/servers/temporal';

/** Bundles workflows into a file of the cache, as workers of production get theirs. */
export async function bundle(name: string, workflowsPath: string): Promise<string> {
  const { code } = await bundleWorkflowCode({
    workflowsPath,
    payloadConverterPath: require.resolve('../../workflows/payload-converter.ts'),
    logger: { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} },
  });
  const folder = join(PROJECT_FOLDER, '.cache');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `bench-${name}-${process.pid}.js`);
  writeFileSync(file, code);
  return file;
}

/** What the server calls itself. */
export async function postgresVersion(databaseUrl: string): Promise<string> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ server_version: string }>('show server_version');
    return rows[0]?.server_version ?? 'unknown';
  } finally {
    await client.end();
  }
}
