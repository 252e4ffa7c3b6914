import type { LearntFrom } from '../domain/channel-facts';

/**
 * Refusals that tell us the number is already in use at the channel. Only a query knows how it
 * stands. TRADE_CONFLICT and REFUND_CONFLICT belong here: they refuse *this* content for good, but
 * something of ours lives under the number and may have moved money.
 */
const ALREADY_KNOWN: ReadonlySet<string> = new Set([
  'TRADE_ALREADY_PAID',
  'ALREADY_PROCESSED',
  'TRADE_CONFLICT',
  'REFUND_CONFLICT',
]);

export function isAlreadyKnown(code: string): boolean {
  return ALREADY_KNOWN.has(code);
}

/**
 * Refusals that are an answer about the refund rather than about the call. "Not found" counts only
 * as the answer to a query; to a create it would be about something else.
 */
export function refusedRefundState(
  learntFrom: LearntFrom,
  code: string,
): 'not_found' | 'not_enough_balance' | undefined {
  if (code === 'REFUND_NOT_EXIST' && learntFrom === 'query') return 'not_found';
  if (code === 'BALANCE_NOT_ENOUGH' && learntFrom === 'submit') return 'not_enough_balance';
  return undefined;
}
