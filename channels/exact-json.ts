import { LosslessNumber, isLosslessNumber, parse } from 'lossless-json';

/** A JSON object as read by {@link parseExactJson}: numbers keep their digits. */
export type ExactJsonObject = Record<string, unknown>;

/**
 * Reads a JSON object without losing a digit: a bare 9007199254740993 stays …993, where JSON.parse
 * makes …992 of it. A key given twice is refused even with the same value (readers disagree on
 * which one counts), and `__proto__` is an ordinary key.
 *
 * lossless-json is used because it keeps the digits of numbers, which JSON.parse cannot on Node 20.
 *
 * @returns undefined when the text is not exactly one JSON object
 */
export function parseExactJson(text: string): ExactJsonObject | undefined {
  try {
    const value = parse(text);
    if (typeof value !== 'object' || value === null) return undefined;
    if (Array.isArray(value) || isLosslessNumber(value)) return undefined;
    // The library lets a repeated key pass when both values are equal, so count the members.
    const colons = text.replace(/"(?:[^"\\]|\\.)*"/g, '').split(':').length - 1;
    return colons === countMembers(value) ? (value as ExactJsonObject) : undefined;
  } catch {
    // A syntax error, or nesting too deep for the stack.
    return undefined;
  }
}

function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null || isLosslessNumber(value)) return 0;
  const children = Object.values(value);
  const own = Array.isArray(value) ? 0 : children.length;
  return children.reduce((sum: number, child) => sum + countMembers(child), own);
}

/** Non-empty text, or a whole number's digits as text; undefined for anything else. */
export function readText(object: ExactJsonObject, key: string): string | undefined {
  const value = ownValue(object, key);
  if (typeof value === 'string') return value === '' ? undefined : value;
  if (value instanceof LosslessNumber && /^(0|[1-9][0-9]{0,39})$/.test(value.value)) {
    return value.value;
  }
  return undefined;
}

/** A bare integer JavaScript holds exactly; undefined for text, fractions and anything else. */
export function readInteger(object: ExactJsonObject, key: string): number | undefined {
  const value = ownValue(object, key);
  if (!(value instanceof LosslessNumber) || !/^-?(0|[1-9][0-9]{0,15})$/.test(value.value)) {
    return undefined;
  }
  const number = Number(value.value);
  return Number.isSafeInteger(number) ? number : undefined;
}

/** Whether the key is there with a value other than null. */
export function hasValue(object: ExactJsonObject, key: string): boolean {
  const value = ownValue(object, key);
  return value !== undefined && value !== null;
}

/** A nested object; undefined when the key holds anything else. */
export function readObject(object: ExactJsonObject, key: string): ExactJsonObject | undefined {
  const value = ownValue(object, key);
  const isObject =
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !isLosslessNumber(value);
  return isObject ? (value as ExactJsonObject) : undefined;
}

function ownValue(object: ExactJsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}
