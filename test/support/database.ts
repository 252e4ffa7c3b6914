import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { testServers } from './servers';

/** A database of a test's own, with the schema in place and nothing in it. */
export interface TestDatabase {
  url: string;
  name: string;
  /** Throws it away; connections still open are ended. */
  drop(): Promise<void>;
}

/** Copies the run's migrated template database: some tens of milliseconds. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const servers = testServers();
  const name = `test_${randomBytes(8).toString('hex')}`;
  // Copying files is faster than writing every block to the log, and a crash need not keep it.
  await onServer(
    `create database ${name} template ${pg.escapeIdentifier(servers.templateDatabase)} strategy file_copy`,
  );
  const url = new URL(servers.databaseUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    name,
    drop: () => onServer(`drop database if exists ${name} with (force)`),
  };
}

async function onServer(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: testServers().databaseUrl });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
