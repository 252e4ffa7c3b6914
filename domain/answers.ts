/**
 * What a run learnt from one call to a channel, as it travels from the activity to settlement. The
 * outcomes are those of channels/contract.ts, plus `not_sent`: the database did not let the call go.
 */
import type { PaymentFact, RefundFact } from './channel-facts';

/** The reason of a call that our own rate brake held back; it comes with the time of its place. */
export const RATE_BRAKE = 'rate_brake';

export type CallAnswer<Fact> =
  | { outcome: 'answered'; fact: Fact }
  | { outcome: 'refused'; code: string; alreadyKnown: boolean }
  | { outcome: 'never_left'; reason: string; retryAfterMs: number | null }
  | { outcome: 'unknown'; reason: string; retryAfterMs: number | null }
  | { outcome: 'not_sent' };

export type PaymentAnswer = CallAnswer<PaymentFact>;
export type RefundAnswer = CallAnswer<RefundFact>;
