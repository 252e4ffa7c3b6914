import type { Pool } from '../../db/transaction';

/** What a database has counted since it was made. */
export interface DatabaseCounts {
  /** Transactions that ended by commit, those that only read too. */
  commits: number;
  /** Transactions that wrote something; on a server of our own nobody else does. */
  writing: number;
}

/** The counters of the pool's own database. Backends report theirs within a second. */
export async function databaseCounts(pool: Pool): Promise<DatabaseCounts> {
  await pool.query('select pg_stat_clear_snapshot()');
  const { rows } = await pool.query<{ commits: number; next: string }>(
    `select (select xact_commit from pg_stat_database where datname = current_database()) as commits,
       pg_snapshot_xmax(pg_current_snapshot())::text as next`,
  );
  const [row] = rows;
  return { commits: Number(row?.commits), writing: Number(row?.next) };
}

/** The difference, by order. */
export function perOrder(before: DatabaseCounts, after: DatabaseCounts, orders: number) {
  const each = (count: number) => Math.round((count / orders) * 100) / 100;
  return {
    all: each(after.commits - before.commits),
    writing: each(after.writing - before.writing),
  };
}

/** The dearest statements, by the time they took in all; needs pg_stat_statements. */
export async function topStatements(pool: Pool, limit = 20) {
  // Counted since the server began; the view alone was missing.
  await pool.query('create extension if not exists pg_stat_statements');
  const { rows } = await pool.query<{ calls: number; total_ms: number; query: string }>(
    `select calls, round(total_exec_time)::float8 as total_ms,
       regexp_replace(left(query, 160), '\\s+', ' ', 'g') as query
     from pg_stat_statements
     where dbid = (select oid from pg_database where datname = current_database())
     order by total_exec_time desc limit $1::int`,
    [limit],
  );
  return rows;
}
