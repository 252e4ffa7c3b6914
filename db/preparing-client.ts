import { createHash } from 'node:crypto';
import pg from 'pg';

/** Texts in use are those of the code: some hundreds. More than this many are made at run time. */
const NAMES_MAX = 10_000;
const names = new Map<string, string>();

/** The same text has the same name on every connection, and two texts never share one. */
function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) {
    if (names.size >= NAMES_MAX) names.clear();
    name = createHash('sha256').update(text).digest('base64url');
    names.set(text, name);
  }
  return name;
}

/**
 * A client that prepares each statement with parameters once per connection: PostgreSQL parses it the
 * first time and plans it a few times. Statements without parameters go as they are.
 */
export class PreparingClient extends pg.Client {
  // The overloads of `query` are those of pg; only a text with an array of values is changed here.
  override query = ((first: unknown, values?: unknown, ...rest: unknown[]) => {
    const query = super.query.bind(this) as (...args: unknown[]) => unknown;
    return typeof first === 'string' && Array.isArray(values)
      ? query({ name: nameOf(first), text: first, values }, ...rest)
      : query(first, values, ...rest);
  }) as pg.Client['query'];
}
