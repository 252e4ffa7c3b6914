import { isLosslessNumber, parse } from 'lossless-json';
import { Problem } from './problems';

/** Orders carry at most 4 KB of metadata; anything larger than this is no request of ours. */
const BODY_MAX_BYTES = 64 * 1024;

/**
 * Reads at most `maxBytes` of the body as it came over the wire.
 * @throws Problem body_too_large, as soon as it is known
 */
export async function readBytes(request: Request, maxBytes = BODY_MAX_BYTES): Promise<Buffer> {
  const tooLarge = new Problem(
    'body_too_large',
    `the body may have at most ${maxBytes} bytes; send less`,
  );
  const declared = Number(request.headers.get('content-length') ?? '0');
  if (declared > maxBytes) throw tooLarge;
  if (!request.body) return Buffer.alloc(0);
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of request.body as unknown as AsyncIterable<Uint8Array>) {
      size += chunk.byteLength;
      if (size > maxBytes) throw tooLarge;
      chunks.push(chunk);
    }
  } catch (error) {
    if (error === tooLarge) throw error;
    throw new Problem('invalid_request', 'the body ended before it was complete', { cause: error });
  }
  return Buffer.concat(chunks);
}

/** The media type without parameters, lower case; '' when there is none. */
export function mediaTypeOf(request: Request): string {
  return (request.headers.get('content-type') ?? '').split(';')[0]!.trim().toLowerCase();
}

/**
 * Reads a JSON object without losing a digit. Integers that JavaScript holds exactly become numbers,
 * every other number stays a lossless one that no schema takes for an amount.
 * @throws Problem unsupported_media_type, body_too_large or invalid_json
 */
export async function readJsonObject(
  request: Request,
  { mayBeEmpty }: { mayBeEmpty: boolean },
): Promise<Record<string, unknown>> {
  const bytes = await readBytes(request);
  if (bytes.byteLength === 0 && mayBeEmpty) return {};
  const charset = /charset="?([^";]+)/i.exec(request.headers.get('content-type') ?? '')?.[1];
  const encoding = request.headers.get('content-encoding') ?? 'identity';
  if (
    mediaTypeOf(request) !== 'application/json' ||
    (charset !== undefined && charset.trim().toLowerCase() !== 'utf-8') ||
    encoding.toLowerCase() !== 'identity'
  ) {
    throw new Problem(
      'unsupported_media_type',
      'send the body as content-type application/json in UTF-8, not compressed',
    );
  }
  return parseJsonObject(bytes);
}

/** @throws Problem invalid_json */
export function parseJsonObject(bytes: Uint8Array): Record<string, unknown> {
  const text = decodeUtf8(bytes);
  let value: unknown;
  try {
    value = parse(text, null, { parseNumber });
  } catch (error) {
    if (error instanceof RangeError) throw invalid('the body is nested too deeply');
    throw invalid(error instanceof Error ? error.message : 'the body is not JSON');
  }
  if (!isPlainObject(value)) throw invalid('the body must be a JSON object: {…}');
  // The parser lets a repeated key pass when both values are equal, so the members are counted.
  const colons = text.replace(/"(?:[^"\\]|\\.)*"/g, '').split(':').length - 1;
  if (colons !== checkMembers(value)) throw invalid('a key appears twice in one object');
  return value;
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw invalid('the body is not valid UTF-8');
  }
}

function parseNumber(text: string): unknown {
  const value = Number(text);
  return Number.isSafeInteger(value) && /^(0|-?[1-9][0-9]*)$/.test(text)
    ? value
    : new InexactNumber(text);
}

/** A number as it was written: a fraction, an exponent, or more digits than JavaScript holds. */
export class InexactNumber {
  readonly isLosslessNumber = true;
  constructor(readonly value: string) {}
}

function checkMembers(value: unknown): number {
  if (typeof value === 'string') {
    checkText(value);
    return 0;
  }
  if (typeof value !== 'object' || value === null || value instanceof InexactNumber) return 0;
  if (Array.isArray(value)) return value.reduce<number>((sum, v) => sum + checkMembers(v), 0);
  let count = 0;
  for (const [key, child] of Object.entries(value)) {
    if (key === '__proto__') throw invalid('the key __proto__ is not allowed');
    checkText(key);
    count += 1 + checkMembers(child);
  }
  return count;
}

/** U+0000 and half a surrogate pair are valid in JSON and in no PostgreSQL text. */
function checkText(text: string): void {
  if (text.includes('\0')) throw invalid('a text contains the character U+0000');
  if (/\p{Surrogate}/u.test(text)) throw invalid('a text contains half a surrogate pair');
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof InexactNumber) &&
    !isLosslessNumber(value)
  );
}

function invalid(detail: string): Problem {
  return new Problem('invalid_json', detail);
}
