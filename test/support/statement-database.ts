import type { Pool, PoolOptions } from '../../db/transaction';
import { createPool } from '../../db/transaction';
import { createTestDatabase } from './database';
import { insertMerchantAndChannels } from './rows';

/** A database with a merchant and two channels, and a pool: for tests of statements alone. */
export interface StatementDatabase {
  pool: Pool;
  end(): Promise<void>;
}

export async function createStatementDatabase(
  options: Pick<PoolOptions, 'bulk'> = {},
): Promise<StatementDatabase> {
  const database = await createTestDatabase();
  const pool = createPool({
    databaseUrl: database.url,
    max: 20,
    connectionTimeoutMs: 10_000,
    statementTimeoutMs: 10_000,
    applicationName: 'test',
    ...options,
    onIdleError: () => undefined,
  });
  await insertMerchantAndChannels(pool as never);
  return {
    pool,
    async end() {
      await pool.end();
      await database.drop();
    },
  };
}
