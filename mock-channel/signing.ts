import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';

/** The shared secrets of one dialect's account. `previous` still verifies requests. */
export interface Keys {
  current: string;
  previous: string | null;
}

/** Lower-case hex HMAC-SHA256. */
export function hmacHex(key: string, data: string | Buffer): string {
  return createHmac('sha256', key).update(data).digest('hex');
}

/** Whether two hex texts are equal, in time that does not depend on where they differ. */
export function sameHex(left: string, right: string): boolean {
  const a = Buffer.from(left, 'utf8');
  const b = Buffer.from(right, 'utf8');
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Name of a key in dialect mock-b: 16 hex digits that tell nothing about the key. */
export function keySerial(key: string): string {
  return createHash('sha256').update(`serial:${key}`).digest('hex').slice(0, 16);
}

/** The key that a serial names among current and previous, or undefined. */
export function keyOfSerial(keys: Keys, serial: string): string | undefined {
  return [keys.current, keys.previous].find(
    (key): key is string => key !== null && keySerial(key) === serial,
  );
}

function aesKey(key: string): Buffer {
  return createHash('sha256').update(`aes:${key}`).digest();
}

export interface EncryptedResource {
  algorithm: 'AEAD_AES_256_GCM';
  ciphertext: string;
  nonce: string;
  associated_data: string;
}

/** Encrypts a callback's content as PROTOCOL.md section 2 says. */
export function encryptResource(
  key: string,
  plaintext: string,
  associatedData: string,
): EncryptedResource {
  const nonce = randomBytes(6).toString('hex');
  const cipher = createCipheriv('aes-256-gcm', aesKey(key), Buffer.from(nonce, 'ascii'));
  cipher.setAAD(Buffer.from(associatedData, 'utf8'));
  const sealed = Buffer.concat([
    cipher.update(plaintext, 'utf8'),
    cipher.final(),
    cipher.getAuthTag(),
  ]);
  return {
    algorithm: 'AEAD_AES_256_GCM',
    ciphertext: sealed.toString('base64'),
    nonce,
    associated_data: associatedData,
  };
}

/**
 * Opens what encryptResource sealed.
 * @throws Error when the key, the nonce or the associated data do not belong to it
 */
export function decryptResource(key: string, resource: EncryptedResource): string {
  const sealed = Buffer.from(resource.ciphertext, 'base64');
  const decipher = createDecipheriv(
    'aes-256-gcm',
    aesKey(key),
    Buffer.from(resource.nonce, 'ascii'),
  );
  decipher.setAAD(Buffer.from(resource.associated_data, 'utf8'));
  decipher.setAuthTag(sealed.subarray(-16));
  return decipher.update(sealed.subarray(0, -16), undefined, 'utf8') + decipher.final('utf8');
}

/** One parameter of a form, as bytes: charsets are decoded only after the signature holds. */
export interface RawParameter {
  key: Buffer;
  value: Buffer;
}

/**
 * Splits a form-encoded body into raw parameters, percent-decoding to bytes.
 * @returns undefined when an escape is malformed
 */
export function parseRawForm(body: Buffer): RawParameter[] | undefined {
  const parameters: RawParameter[] = [];
  for (const pair of body.toString('latin1').split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const key = percentDecode(equals < 0 ? pair : pair.slice(0, equals));
    const value = percentDecode(equals < 0 ? '' : pair.slice(equals + 1));
    if (!key || !value) return undefined;
    parameters.push({ key, value });
  }
  return parameters;
}

function percentDecode(text: string): Buffer | undefined {
  if (/%(?![0-9a-fA-F]{2})/.test(text)) return undefined;
  const decoded = text
    .replace(/\+/g, ' ')
    .replace(/%([0-9a-fA-F]{2})/g, (_match, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(decoded, 'latin1');
}

/** Writes raw parameters as a form-encoded body; every byte but letters and digits is escaped. */
export function writeRawForm(parameters: RawParameter[]): Buffer {
  const encode = (bytes: Buffer): string =>
    bytes
      .toString('latin1')
      .replace(
        /[^A-Za-z0-9_.-]/g,
        (char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
      );
  return Buffer.from(
    parameters.map(({ key, value }) => `${encode(key)}=${encode(value)}`).join('&'),
    'latin1',
  );
}

/** The bytes that dialect mock-a signs: all parameters but `sign` and `sign_type`, sorted by key. */
export function signedBytes(parameters: RawParameter[]): Buffer {
  const parts = parameters
    .filter(({ key }) => !['sign', 'sign_type'].includes(key.toString('latin1')))
    .sort((left, right) => Buffer.compare(left.key, right.key))
    .map(({ key, value }) => Buffer.concat([key, Buffer.from('='), value]));
  return Buffer.concat(
    parts.flatMap((part, index) => (index === 0 ? [part] : [Buffer.from('&'), part])),
  );
}
