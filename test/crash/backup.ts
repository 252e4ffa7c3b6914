import pg from 'pg';
import type { Saga } from '../support/saga';
import { testServers } from '../support/servers';

/**
 * A copy of a Saga's database as it stood at one moment. Everything of ours is stopped while it is
 * made or brought back; the channel, the merchant and Temporal go on and know more than it.
 */
export class Backup {
  private constructor(
    private readonly saga: Saga,
    private readonly database: string,
    private readonly copy: string,
  ) {}

  static async take(saga: Saga): Promise<Backup> {
    const database = new URL(String(saga.env['DATABASE_URL'])).pathname.slice(1);
    const backup = new Backup(saga, database, `${database}_backup`);
    await backup.whileStopped((server) => copyDatabase(server, database, backup.copy));
    return backup;
  }

  /** What was written since the backup is gone. */
  restore(): Promise<void> {
    return this.whileStopped(async (server) => {
      await server.query(`drop database ${this.database} with (force)`);
      await copyDatabase(server, this.copy, this.database);
    });
  }

  async drop(): Promise<void> {
    await onServer((server) => server.query(`drop database if exists ${this.copy} with (force)`));
  }

  private async whileStopped(act: (server: pg.Client) => Promise<void>): Promise<void> {
    const { saga } = this;
    const apis = saga.apis.length;
    const workers = saga.workers.length;
    await saga.stopWorkers();
    while (saga.apis.length > 0) await saga.stopApi();
    await onServer(act);
    for (let i = 0; i < apis; i++) await saga.startApi();
    for (let i = 0; i < workers; i++) await saga.startWorker();
    await saga.pointCallbacks();
  }
}

/** A template may have no other sessions: those of the test's own pool are ended. */
async function copyDatabase(server: pg.Client, from: string, to: string): Promise<void> {
  await server.query(`alter database ${from} allow_connections false`);
  await server.query(
    `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = $1::text`,
    [from],
  );
  await server.query(`create database ${to} template ${from} strategy file_copy`);
  await server.query(`alter database ${from} allow_connections true`);
}

async function onServer<T>(act: (server: pg.Client) => Promise<T>): Promise<T> {
  const server = new pg.Client({ connectionString: testServers().databaseUrl });
  await server.connect();
  try {
    return await act(server);
  } finally {
    await server.end();
  }
}
