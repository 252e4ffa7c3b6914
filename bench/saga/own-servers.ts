import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { migrate } from '../../db/migrate';
import { startPostgres } from '../../scripts/servers/postgres';
import { createDatabase } from '../../scripts/servers/stack';
import { startTemporal } from '../../scripts/servers/temporal';
import { TEMPORAL_SERVER_VERSION } from '../../scripts/temporal-postgres/programs';
import { startTemporalOnPostgres } from '../../scripts/temporal-postgres/server';
import type { TestServers } from '../../scripts/test-servers';
import { bundle, postgresVersion } from './server-parts';
import type { BenchServers, BenchServersOptions } from './servers';

/**
 * Starts the servers of a bench and tells the test harness (`Saga`) of them: PostgreSQL as in
 * production (it waits for the disk), and Temporal with its histories in a file or in PostgreSQL.
 * Everything is temporary and ends with this process.
 */
export async function startOwnServers(options: BenchServersOptions): Promise<BenchServers> {
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
    const before = process.env['TEST_SERVERS'];
    ends.push(() => {
      if (before === undefined) delete process.env['TEST_SERVERS'];
      else process.env['TEST_SERVERS'] = before;
      return Promise.resolve();
    });
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
      postgresPid: postgres.pid,
      temporalAddress: temporal.address,
      temporalNamespace: temporal.namespace,
      temporalPid: temporal.pid,
      temporalPostgresPid: onPostgres?.pid,
      controlBundle,
      versions: {
        postgres: await postgresVersion(postgres.databaseUrl()),
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
