import type { QueryResult } from 'pg';
import type { Client, Pool } from './transaction';

/** A statement that takes longer is ended by PostgreSQL: nobody waits for ever behind its locks. */
export const LONG_STATEMENT_MS = 3_600_000;

/**
 * One transaction with time for a whole trade bill, where `withTransaction` would end after seconds.
 * Never run again by itself: a bill that is being downloaded can be read only once. Its long
 * statements go through `longQuery`.
 */
export async function withLongTransaction<T>(
  pool: Pool,
  fn: (client: Client) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    await client.query('begin');
    await client.query(
      `set local statement_timeout = ${LONG_STATEMENT_MS};
       set local idle_in_transaction_session_timeout = ${LONG_STATEMENT_MS};
       -- A machine that died without a word is noticed within a minute, and its locks are free.
       set local tcp_keepalives_idle = 30; set local tcp_keepalives_interval = 10;
       set local tcp_keepalives_count = 3`,
    );
    const result = await fn(client);
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch((rollbackError: Error) => {
      broken = rollbackError;
    });
    throw error;
  } finally {
    client.release(broken);
  }
}

/** A statement that the pool's own limit for an answer, which is made for rows, would end too early. */
export function longQuery(
  client: Client,
  text: string,
  values: unknown[] = [],
): Promise<QueryResult<Record<string, unknown>>> {
  const statement = { text, values, query_timeout: LONG_STATEMENT_MS };
  return client.query<Record<string, unknown>>(statement);
}
