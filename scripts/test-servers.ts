import { migrate } from '../db/migrate';
import { startPostgres } from './servers/postgres';
import { createDatabase } from './servers/stack';
import { startTemporal } from './servers/temporal';

/** Addresses of the servers that one test run shares. */
export interface TestServers {
  /** The server's own database: for `create database`, never for tables. */
  databaseUrl: string;
  /** A migrated database nobody is connected to; each test file gets a copy of it. */
  templateDatabase: string;
  temporalAddress: string;
  temporalNamespace: string;
}

/**
 * Starts the servers of a test run, prints their addresses as one line of JSON and waits until its
 * input ends: so it ends with the run, whatever becomes of the run.
 */
async function main(): Promise<void> {
  // Several runs may share the server that DATABASE_URL names.
  const templateDatabase = `template_${process.pid}_${Date.now().toString(36)}`;
  const [database, temporal] = await Promise.all([
    startDatabase(templateDatabase),
    startTemporal({}),
  ]);
  const servers: TestServers = {
    databaseUrl: database.url,
    templateDatabase,
    temporalAddress: temporal.address,
    temporalNamespace: temporal.namespace,
  };
  const over = new Promise((resolve) => process.stdin.once('end', resolve).resume());
  console.log(JSON.stringify(servers));
  await over;
  await Promise.all([database.end(), temporal.end()]);
}

async function startDatabase(
  templateDatabase: string,
): Promise<{ url: string; end(): Promise<void> }> {
  const given = process.env['DATABASE_URL'];
  const postgres = given ? undefined : await startPostgres();
  const url = given ?? postgres?.databaseUrl() ?? '';
  await createDatabase(url, templateDatabase);
  const template = new URL(url);
  template.pathname = `/${templateDatabase}`;
  await migrate(template.href);
  return { url, end: async () => postgres?.end() };
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
