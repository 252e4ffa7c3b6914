import iconv from 'iconv-lite';
import { hmacHex } from './message-authenticity';
import type { SharedKeys } from './message-authenticity';

/** The one kind of signature there is. */
export const SIGN_TYPE = 'HMAC-SHA256';

/** One form field, percent-decoded but not yet decoded to text: the signature is over bytes. */
export interface FormField {
  name: Buffer;
  value: Buffer;
}

/**
 * Splits a form-encoded body into fields of bytes; `+` is a space.
 * @returns undefined when a percent escape is broken
 */
export function parseFormBytes(raw: Buffer): FormField[] | undefined {
  if (raw.length === 0) return [];
  const fields: FormField[] = [];
  // latin1 maps bytes to characters one to one, so splitting text splits bytes.
  for (const part of raw.toString('latin1').split('&')) {
    const equals = part.indexOf('=');
    const name = unescapeBytes(equals < 0 ? part : part.slice(0, equals));
    const value = unescapeBytes(equals < 0 ? '' : part.slice(equals + 1));
    if (name === undefined || value === undefined) return undefined;
    fields.push({ name, value });
  }
  return fields;
}

function unescapeBytes(latin1: string): Buffer | undefined {
  if (/%(?![0-9A-Fa-f]{2})/.test(latin1)) return undefined;
  const bytes = latin1
    .replace(/\+/g, ' ')
    .replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1');
}

/** The bytes a mock-a signature is made over: all fields but the signature's own, sorted by name. */
export function bytesToSign(fields: readonly FormField[]): Buffer {
  const signed = fields
    .filter(({ name }) => !name.equals(SIGN) && !name.equals(SIGN_TYPE_FIELD))
    .sort((a, b) => Buffer.compare(a.name, b.name));
  return Buffer.concat(
    signed.flatMap(({ name, value }, index) => [index === 0 ? NOTHING : AND, name, EQUALS, value]),
  );
}

const SIGN = Buffer.from('sign');
const SIGN_TYPE_FIELD = Buffer.from('sign_type');
const NOTHING = Buffer.alloc(0);
const AND = Buffer.from('&');
const EQUALS = Buffer.from('=');

/** The one value of a field as ASCII; undefined when absent, given twice, or not plain ASCII. */
export function asciiField(fields: readonly FormField[], name: string): string | undefined {
  const found = fields.filter((field) => field.name.equals(Buffer.from(name)));
  const text = found[0]?.value.toString('latin1');
  return found.length === 1 && text !== undefined && /^[\x20-\x7e]*$/.test(text) ? text : undefined;
}

/**
 * Decodes fields to text: charset from the field `charset`, else from the content type, else UTF-8.
 * @returns undefined when the charset is not one we read, a byte does not fit it, or a name repeats
 */
export function decodeForm(
  fields: readonly FormField[],
  contentType: string | undefined,
): ReadonlyMap<string, string> | undefined {
  const inHeader = /;\s*charset="?([^\s;"]+)"?/i.exec(contentType ?? '')?.[1];
  const hasField = fields.some(({ name }) => name.toString('latin1') === 'charset');
  const charset = (hasField ? asciiField(fields, 'charset') : inHeader) || 'utf-8';
  const texts = new Map<string, string>();
  for (const field of fields) {
    const name = decodeBytes(field.name, charset);
    const value = decodeBytes(field.value, charset);
    if (name === undefined || value === undefined || texts.has(name)) return undefined;
    texts.set(name, value);
  }
  return texts;
}

function decodeBytes(bytes: Buffer, charset: string): string | undefined {
  switch (charset.toLowerCase()) {
    case 'utf-8':
    case 'utf8':
      try {
        return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
      } catch {
        return undefined;
      }
    case 'gbk':
    case 'gb2312': {
      // iconv-lite marks bytes it cannot read with U+FFFD, a character that GBK does not have.
      const text = iconv.decode(bytes, 'gbk');
      return text.includes('\ufffd') ? undefined : text;
    }
    default:
      return undefined;
  }
}

/** Encodes and signs a request; the signature covers the bytes of the values, not their escapes. */
export function signedForm(keys: SharedKeys, parameters: Record<string, string>): Buffer {
  const fields = Object.entries(parameters).map(([name, value]) => ({
    name: Buffer.from(name),
    value: Buffer.from(value),
  }));
  const sign = hmacHex(keys.current, bytesToSign(fields));
  const all = { ...parameters, sign_type: SIGN_TYPE, sign };
  const pairs = Object.entries(all).map(
    // Through bytes, so that half a surrogate pair becomes U+FFFD, as in the signed bytes.
    ([name, value]) => `${name}=${encodeURIComponent(Buffer.from(value).toString())}`,
  );
  return Buffer.from(pairs.join('&'));
}
