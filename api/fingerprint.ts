import { createHash } from 'node:crypto';
import { InexactNumber } from './json-body';

/**
 * SHA-256 of a value's canonical JSON: keys sorted, absent members left out, so the same content in
 * another order of fields is the same content.
 */
export function fingerprintOf(value: unknown): Buffer {
  return createHash('sha256').update(canonicalJson(value), 'utf8').digest();
}

/** JSON text with sorted keys (after RFC 8785; numbers are integers or kept as written). */
export function canonicalJson(value: unknown): string {
  if (value instanceof InexactNumber) return value.value;
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`);
    return `{${members.join(',')}}`;
  }
  return JSON.stringify(value) ?? 'null';
}
