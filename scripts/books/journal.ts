import { appendFileSync, existsSync } from 'node:fs';
import { readJsonLines } from './channel-books';

/** One line of the client journal: what was asked, and what was answered. */
export interface JournalLine {
  at: string;
  method: string;
  path: string;
  /** The `Idempotency-Key`. */
  key: string | null;
  request: unknown;
  /** Null: no answer came. */
  status: number | null;
  answer: unknown;
  /** The caller knows that a server was away on purpose: a 503 is what it should get. */
  outage?: boolean;
}

/** The lines of a journal file; none when there is no such file. */
export function readJournal(file: string): JournalLine[] {
  return existsSync(file) ? readJsonLines<JournalLine>(file) : [];
}

export function appendToJournal(file: string, line: JournalLine): void {
  appendFileSync(file, `${JSON.stringify(line)}\n`);
}

/** A field of a JSON object as text, or undefined. */
export function textField(value: unknown, name: string): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const field = (value as Record<string, unknown>)[name];
  return typeof field === 'string' ? field : undefined;
}

export function numberField(value: unknown, name: string): number | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const field = (value as Record<string, unknown>)[name];
  return typeof field === 'number' ? field : undefined;
}

export function isAcknowledged({ status }: JournalLine): boolean {
  return status !== null && status >= 200 && status < 300;
}
