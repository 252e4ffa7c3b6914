import { createDecipheriv, createHash } from 'node:crypto';
import { type ExactJsonObject, readText } from './exact-json';

const ALGORITHM = 'AEAD_AES_256_GCM';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Opens the encrypted resource of a mock-b callback.
 * @returns the plaintext, or undefined when anything about it does not fit
 */
export function openResource(key: string, resource: ExactJsonObject): Buffer | undefined {
  const nonce = Buffer.from(readText(resource, 'nonce') ?? '', 'utf8');
  const sealed = Buffer.from(readText(resource, 'ciphertext') ?? '', 'base64');
  const associated = readText(resource, 'associated_data');
  const fits =
    readText(resource, 'algorithm') === ALGORITHM &&
    nonce.length === NONCE_BYTES &&
    sealed.length > TAG_BYTES &&
    associated !== undefined;
  if (!fits) return undefined;
  const decipher = createDecipheriv('aes-256-gcm', resourceKey(key), nonce);
  decipher.setAAD(Buffer.from(associated, 'utf8'));
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()]);
  } catch {
    // The tag does not fit: another key, or somebody changed the bytes.
    return undefined;
  }
}

function resourceKey(key: string): Buffer {
  return createHash('sha256').update(`aes:${key}`).digest();
}

/** The name of a key in headers: it tells which key signed without telling the key. */
export function keySerial(key: string): string {
  return createHash('sha256').update(`serial:${key}`).digest('hex').slice(0, 16);
}
