import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundleWorkflowCode } from '@temporalio/worker';
import { migrate } from '../../db/migrate';
import { startPostgres } from '../../scripts/servers/postgres';
import type { PostgresServer } from '../../scripts/servers/postgres';
import { createDatabase } from '../../scripts/servers/stack';
import { PROJECT_FOLDER, startTemporal } from '../../scripts/servers/temporal';
import { startTemporalOnPostgres } from '../../scripts/temporal-postgres/server';
import { TEMPORAL_SERVER_VERSION } from '../../scripts/temporal-postgres/programs';
import type { TestServers } from '../../scripts/test-servers';

export interface BenchServers {
  postgres: PostgresServer;
  temporalAddress: string;
  temporalNamespace: string;
  /** Undefined for a server at TEMPORAL_ADDRESS, which is not ours. */
  temporalPid: number | undefined;
  /** The PostgreSQL that Temporal itself keeps its histories in, where it does. */
  temporalPostgresPid: number | undefined;
  /** The floors' workflows (control-workflow.ts), bundled. */
  controlBundle: string;
  /** What the figures depend on, for the rig's line. */
  versions: { postgres: string; temporal: string };
  end(): Promise<void>;
}

export interface BenchServersOptions {
  /** Temporal on a PostgreSQL of its own instead of the development server. */
  temporalPostgres?: boolean;
  /** Keep pg_stat_statements, for a profile. It costs a little. */
  statements?: boolean;
  /** Also start Temporal; a bench of plain HTTP may do without. */
  log?: (line: string) => void;
}

/**
 * Starts the servers of a bench and tells the test harness (`Saga`) of them: PostgreSQL as in
 * production (it waits for the disk), and Temporal with its histories in a file or in PostgreSQL.
 * Everything is temporary and ends with this process.
 */
export async function startBenchServers(options: BenchServersOptions = {}): Promise<BenchServers> {
  const log = options.log ?? ((line: string) => console.log(line));
  const folder = mkdtempSync(join(tmpdir(), 'payment-saga-bench-'));
  const ends: (() => Promise<unknown>)[] = [];
  const end = async () => {
    for (let last = ends.pop(); last; last = ends.pop()) {
      await last().catch((error: unknown) => console.error(error));
    }
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const [workflowBundle, controlBundle] = await Promise.all([
      bundle('product', require.resolve('../../workflows/index.ts')),
      bundle('control', require.resolve('./control-workflow.ts')),
    ]);
    ends.push(async () => {
      rmSync(workflowBundle, { force: true });
      rmSync(controlBundle, { force: true });
    });
    const postgres = await startPostgres({
      dataFolder: join(folder, 'saga'),
      settings: [
        // A checkpoint in the middle of a step would be measured instead of the step.
        'max_wal_size=4GB',
        ...(options.statements
          ? ['shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.max=1000']
          : []),
      ],
    });
    ends.push(() => postgres.end());
    const templateDatabase = 'bench_template';
    await createDatabase(postgres.databaseUrl(), templateDatabase);
    await migrate(postgres.databaseUrl(templateDatabase));
    const temporal = options.temporalPostgres
      ? await startTemporalOnPostgres({ dataFolder: join(folder, 'temporal'), log })
      : await startTemporal({ dataFolder: join(folder, 'temporal') });
    ends.push(() => temporal.end());
    const onPostgres = 'postgres' in temporal ? temporal.postgres : undefined;
    const servers: TestServers = {
      databaseUrl: postgres.databaseUrl(),
      templateDatabase,
      temporalAddress: temporal.address,
      temporalNamespace: temporal.namespace,
      workflowBundle,
    };
    process.env['TEST_SERVERS'] = JSON.stringify(servers);
    return {
      postgres,
      temporalAddress: temporal.address,
      temporalNamespace: temporal.namespace,
      temporalPid: temporal.pid,
      temporalPostgresPid: onPostgres?.pid,
      controlBundle,
      versions: {
        postgres: await postgresVersion(postgres),
        temporal: onPostgres
          ? `${TEMPORAL_SERVER_VERSION} on PostgreSQL`
          : `${TEMPORAL_SERVER_VERSION} development server, SQLite file`,
      },
      end,
    };
  } catch (error) {
    await end();
    throw error;
  }
}

async function bundle(name: string, workflowsPath: string): Promise<string> {
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

async function postgresVersion(postgres: PostgresServer): Promise<string> {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: postgres.databaseUrl() });
  await client.connect();
  try {
    const { rows } = await client.query<{ server_version: string }>('show server_version');
    return rows[0]?.server_version ?? 'unknown';
  } finally {
    await client.end();
  }
}
