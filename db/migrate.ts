import path from 'node:path';
import { runner } from 'node-pg-migrate';

/**
 * Brings a database to the newest schema: plain numbered SQL in `db/migrations`, each run once in
 * its own transaction under an advisory lock, so that parallel starts wait for each other.
 */
export async function migrate(databaseUrl: string): Promise<void> {
  await runner({
    databaseUrl,
    dir: path.join(__dirname, 'migrations'),
    direction: 'up',
    migrationsTable: 'schema_migrations',
    count: Infinity,
    singleTransaction: false,
    checkOrder: true,
    lockSleep: 200,
    log: () => undefined,
  } as Parameters<typeof runner>[0]);
}

if (require.main === module) {
  const databaseUrl = process.env['DATABASE_URL'];
  if (!databaseUrl) {
    console.error('DATABASE_URL is not set: say which database to migrate');
    process.exit(1);
  }
  migrate(databaseUrl).then(
    () => console.log('the schema is up to date'),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
}
