import { createHmac } from 'node:crypto';

// Upper case and digits without look-alikes: some channels and bank systems fold case.
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const LENGTH = 30;

/**
 * Our number at a channel, 30 letters and digits (150 bits), derived by HMAC from the identity of
 * the thing it names. Derived, not random, so that a database restored from an old backup gives the
 * same attempt the same number; never shortened from another number. `counter` counts collisions.
 */
export function deriveNumber(secret: string, parts: readonly string[], counter: number): string {
  const digest = createHmac('sha256', secret)
    .update(JSON.stringify([...parts, counter]))
    .digest();
  let bits = 0n;
  for (const byte of digest) bits = (bits << 8n) | BigInt(byte);
  let number = '';
  for (let i = 0; i < LENGTH; i++) {
    number += ALPHABET.charAt(Number(bits & 31n));
    bits >>= 5n;
  }
  return number;
}
