/** What the commands of `npm run admin` share: what they are given, and what they give back. */
import type { Client } from '../../db/transaction';

/** A command that cannot be done as asked; the message says what to change. Exit code 1. */
export class AdminRefusal extends Error {}
/** A command that cannot be understood. Exit code 2, with the usage. */
export class UsageError extends Error {}

export interface CommandInput {
  /** The command's own words after its name. */
  words: string[];
  options: Record<string, string[]>;
  client: Client;
}

export interface CommandResult {
  /** Printed as it is with `--json`. */
  value: unknown;
  /** Printed without it. */
  lines: string[];
  /** What is noted of a change; undefined when nothing changed. Never a key or a secret. */
  note?: { subject: string; detail: object };
}

export interface Command {
  /** As in the usage: `merchant add ID`. */
  usage: string;
  summary: string;
  /** Names of its options with what each takes; `--json` is everybody's. */
  options: Record<string, string>;
  /** How many words it takes, the last ones optional. */
  words: { least: number; most: number };
  run(input: CommandInput): Promise<CommandResult>;
}

/** An option given at most once. @throws UsageError when it is given twice */
export function one(options: Record<string, string[]>, name: string): string | undefined {
  const values = options[name];
  if (values && values.length > 1) throw new UsageError(`--${name} is given twice`);
  return values?.[0];
}

/** Likewise, where the word `none` takes the setting away. */
export function oneOrNone(
  options: Record<string, string[]>,
  name: string,
): string | null | undefined {
  const value = one(options, name);
  return value === 'none' ? null : value;
}

export function oneOf<T extends string>(name: string, value: string, allowed: readonly T[]): T {
  if (allowed.includes(value as T)) return value as T;
  throw new AdminRefusal(`--${name} must be ${allowed.join(' or ')}, not "${value}"`);
}

const IDENTIFIER = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

export function identifier(what: string, value: string): string {
  if (IDENTIFIER.test(value)) return value;
  throw new AdminRefusal(
    `${what} must be 1 to 64 of A-Z a-z 0-9 _ . - and begin with a letter or digit, not "${value}"`,
  );
}

export function webAddress(name: string, value: string): string {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '')
    return value;
  throw new AdminRefusal(`--${name} must be an http or https address without user or password`);
}

/** Where a secret is. The value itself is never repeated: it may be a secret put in the wrong place. */
export function secretReference(name: string, value: string): string {
  if (/^env:[A-Za-z_][A-Za-z0-9_]*$|^file:\/.+$/.test(value)) return value;
  throw new AdminRefusal(
    `--${name} must say where the secret is, env:NAME or file:/path, never the secret itself`,
  );
}

export function json(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new AdminRefusal(`--${name} must be JSON`);
  }
}

/** A table with a head, its columns as wide as they need be. */
export function table(head: string[], rows: (string | null)[][]): string[] {
  const all = [head, ...rows.map((row) => row.map((cell) => cell ?? '-'))];
  const widths = head.map((_, i) => Math.max(...all.map((row) => (row[i] ?? '').length)));
  return all.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
