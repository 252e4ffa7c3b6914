import { createHmac } from 'node:crypto';
import type { Queryable } from './transaction';

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
  let number = '';
  // Five bits at a time, the lowest first.
  let [bits, count, byte] = [0, 0, digest.length];
  while (number.length < LENGTH) {
    if (count < 5) {
      bits |= digest.readUInt8(--byte) << count;
      count += 8;
    }
    number += ALPHABET.charAt(bits & 31);
    bits >>= 5;
    count -= 5;
  }
  return number;
}

/** A number of 150 bits is taken about never; that many in a row are a defect. */
const COLLISIONS_MAX = 5;

/**
 * The first number derived from `parts` that no refund has: asked before the insert, because a
 * collision there would undo the settlement that makes the refund, again and again.
 *
 * @throws Error when every candidate is taken
 */
export async function freeOutRefundNo(
  client: Queryable,
  secret: string,
  parts: readonly string[],
): Promise<string> {
  for (let counter = 0; counter < COLLISIONS_MAX; counter++) {
    const number = deriveNumber(secret, parts, counter);
    const { rowCount } = await client.query(`select from refunds where out_refund_no = $1::text`, [
      number,
    ]);
    if (rowCount === 0) return number;
  }
  throw new Error(`no free number for the refund of ${parts.join('/')}`);
}
