/** 41 bits of milliseconds, 10 bits of the node, 12 bits of a sequence: Twitter's layout of 2010. */
const NODE_BITS = 10n;
const SEQUENCE_BITS = 12n;
const SEQUENCE_MAX = (1 << Number(SEQUENCE_BITS)) - 1;
/** 2024-01-01: 41 bits of milliseconds last until 2093. */
const EPOCH_MS = Date.UTC(2024, 0, 1);

/**
 * Numbers that no other node makes and that grow with time. A clock that steps back is not followed:
 * the generator stays in its last millisecond and lets the sequence run on into the next ones, so no
 * number comes twice while the process lives.
 */
export function snowflake(node: number, clock: () => number = Date.now): () => string {
  if (!(Number.isInteger(node) && node >= 0 && node < 1 << Number(NODE_BITS)))
    throw new RangeError('a node has a number of 10 bits');
  let lastMs = 0;
  let sequence = 0;
  return () => {
    const now = clock();
    if (now > lastMs) {
      lastMs = now;
      sequence = 0;
    } else if (sequence < SEQUENCE_MAX) {
      sequence++;
    } else {
      lastMs++;
      sequence = 0;
    }
    const time = BigInt(lastMs - EPOCH_MS);
    return String((((time << NODE_BITS) | BigInt(node)) << SEQUENCE_BITS) | BigInt(sequence));
  };
}
