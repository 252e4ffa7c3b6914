import pg from 'pg';
import { isStalePlan, PreparedClient } from './prepared-client';

// bigint columns hold amounts and ids below 2^53 (the schema's domains say so), so they are read as
// numbers; anything larger is a defect and must not be rounded in silence.
pg.types.setTypeParser(pg.types.builtins.INT8, (text) => {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`bigint out of range: ${text}`);
  return value;
});
// node-postgres turns a DATE into local midnight, which is another day elsewhere: keep the text.
pg.types.setTypeParser(pg.types.builtins.DATE, (text) => text);
// Instants travel as ISO text: the same shape in SQL results, rules, Temporal payloads and answers.
pg.types.setTypeParser(pg.types.builtins.TIMESTAMPTZ, (text) => new Date(text).toISOString());

/** What a statement needs: a pool, or a client inside a transaction. */
export type Queryable = Pick<pg.Pool, 'query'>;
export type Client = pg.PoolClient;
export type Pool = pg.Pool;

export interface PoolOptions {
  databaseUrl: string;
  /** Connections at most. */
  max: number;
  /** How long a caller waits for a connection before it gets an error. */
  connectionTimeoutMs: number;
  /** PostgreSQL ends a statement that runs longer. */
  statementTimeoutMs: number;
  applicationName: string;
  /**
   * For COPY and for statements that run long. Otherwise each statement is prepared once per connection,
   * and those that do not wait for each other leave together (a pipeline: the server answers them in
   * their order).
   */
  bulk?: boolean;
  /** Told of connections that break while idle; without a listener Node would exit. */
  onIdleError: (error: Error) => void;
}

/** A pool whose broken idle connections are reported, not thrown. */
export function createPool(options: PoolOptions): Pool {
  const pool = new pg.Pool({
    connectionString: options.databaseUrl,
    max: options.max,
    connectionTimeoutMillis: options.connectionTimeoutMs,
    statement_timeout: options.statementTimeoutMs,
    // A connection to a server that is frozen would otherwise never give its client back.
    query_timeout: options.statementTimeoutMs + 1000,
    idle_in_transaction_session_timeout: 30_000,
    application_name: options.applicationName,
    keepAlive: true,
    ...(options.bulk ? {} : { Client: PreparedClient, pipeline: true }),
  });
  pool.on('error', options.onIdleError);
  // The pool itself listens only to idle clients. One that breaks between two statements, or in the very
  // packet that ends its greeting, says so by an event, which would end the process if nobody listened;
  // its holder learns of it by the next statement, and the pool throws it away.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

/** In a transaction that another statement has broken (in_failed_sql_transaction). */
const FOLLOWS_FROM_ANOTHER = '25P02';

/**
 * Waits for statements that left together. Of several errors it throws the one that the others follow
 * from; which of them a caller of `Promise.all` would see depends on how deep each lies in promises.
 */
export async function together<T extends readonly unknown[] | []>(
  sent: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  const errors: unknown[] = [];
  const settled = await Promise.allSettled(sent);
  for (const one of settled) if (one.status === 'rejected') errors.push(one.reason);
  if (errors.length === 0) return (await Promise.all(sent)) as never;
  throw errors.find((error) => codeOf(error) !== FOLLOWS_FROM_ANOTHER) ?? errors[0];
}

function codeOf(error: unknown): unknown {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/** SQLSTATEs after which the same transaction may simply be run again (nothing of it happened). */
const TRANSIENT = new Set(['40001', '40P01']);
const ATTEMPTS_MAX = 5;

/**
 * Runs `fn` inside one transaction and commits, or rolls back and rethrows. A serialization failure
 * or a deadlock, or a plan older than the schema, is run again, up to five times: `fn` must do nothing but SQL. The client is always
 * given back; one whose rollback fails is thrown away.
 */
export function withTransaction<T>(pool: Pool, fn: (client: Client) => Promise<T>): Promise<T> {
  return withTransactionAfter(pool, () => Promise.resolve(), fn);
}

/**
 * As `withTransaction`. What `look` asks leaves together with the `begin` and is answered before `fn`
 * runs: it may lock and read, but must change nothing, because a `begin` that fails does not stop it.
 */
export async function withTransactionAfter<Seen, T>(
  pool: Pool,
  look: (client: Client) => Promise<Seen>,
  fn: (client: Client, seen: Seen) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const client = await pool.connect();
    let broken: Error | undefined;
    try {
      const [, seen] = await together([client.query('begin'), look(client)]);
      const result = await fn(client, seen);
      await client.query('commit');
      return result;
    } catch (error) {
      await client.query('rollback').catch((rollbackError: Error) => {
        broken = rollbackError;
      });
      // Its other statements may be as old.
      if (error instanceof Error && isStalePlan(error)) broken ??= error;
      if (!isTransient(error) || attempt === ATTEMPTS_MAX) throw error;
    } finally {
      client.release(broken);
    }
  }
}

function isTransient(error: unknown): boolean {
  return (
    (error instanceof pg.DatabaseError && TRANSIENT.has(error.code ?? '')) || isStalePlan(error)
  );
}

const UNAVAILABLE_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOENT',
  'ETIMEDOUT',
  '57P01', // admin_shutdown
  '57P02', // crash_shutdown
  '57P03', // cannot_connect_now
  '57014', // query_canceled: our own statement timeout
  '53300', // too_many_connections
  '25006', // read_only_sql_transaction: a failover is under way
  '40001',
  '40P01',
]);

/**
 * Whether the database was away or busy: the outcome is unknown and a repeat is safe (503), as
 * opposed to a statement that is wrong.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (isStalePlan(error)) return true;
  const code = (error as { code?: unknown }).code;
  if (typeof code === 'string' && (UNAVAILABLE_CODES.has(code) || code.startsWith('08')))
    return true;
  return /timeout exceeded when trying to connect|Connection terminated|Query read timeout|Client has encountered a connection error/.test(
    error.message,
  );
}

/** The violated constraint's name when the error is a constraint violation, else undefined. */
export function violatedConstraint(error: unknown): string | undefined {
  if (!(error instanceof pg.DatabaseError) || !error.code?.startsWith('23')) return undefined;
  return error.constraint;
}
