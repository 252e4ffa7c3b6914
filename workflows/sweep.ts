/**
 * Finds orders that nobody carries and makes a run look at them.
 *
 * Trigger: a Temporal Schedule, often. Messages: none. Children: none. Ends: after one pass.
 */
import { sweepOrders } from './activities';

export interface SweepInput {
  /** How long past its due time a thing may be before its order is nudged. */
  pastDueMs: number;
  /** How far back runs that were terminated, cancelled or failed are looked for. */
  lookBackMs: number;
}

export async function sweep(input: SweepInput): Promise<{ nudged: number }> {
  const { nudged } = await sweepOrders(input);
  return { nudged };
}
