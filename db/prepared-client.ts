import { createHash } from 'node:crypto';
import pg from 'pg';

/**
 * Statements that are told apart by their text, at most; beyond it a text is sent without a name. Our
 * texts are literals, some 300 of them: only a defect that builds texts would ever reach it, and must
 * not fill the server's memory.
 */
const STATEMENTS_MAX = 1_000;
const names = new Map<string, string>();

function nameOf(text: string): string | undefined {
  const known = names.get(text);
  if (known !== undefined || names.size >= STATEMENTS_MAX) return known;
  const name = `s${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
  names.set(text, name);
  return name;
}

/**
 * A client that gives every statement with parameters a name of its own, so that PostgreSQL parses
 * and plans it once per connection and not once per call: to plan the one that reads where an order
 * stands takes ten times as long as to run it.
 * https://www.postgresql.org/docs/current/sql-prepare.html#SQL-PREPARE-NOTES
 */
export class PreparedClient extends pg.Client {
  // All of pg's ways to ask end here, a pool's among them; only the first argument is touched.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  override query(...[statement, values, ...rest]: any[]): any {
    const name =
      typeof statement === 'string' && Array.isArray(values) && values.length > 0
        ? nameOf(statement)
        : undefined;
    const ask = super.query as (...all: unknown[]) => unknown;
    return name === undefined
      ? ask.call(this, statement, values, ...rest)
      : ask.call(this, { name, text: statement as string }, values, ...rest);
  }
}

/**
 * Whether a prepared statement fails because a table got or lost a column since: nothing was done,
 * and a new connection plans it anew.
 */
export function isStalePlan(error: unknown): boolean {
  return (
    error instanceof pg.DatabaseError &&
    error.code === '0A000' &&
    error.routine === 'RevalidateCachedQuery'
  );
}
