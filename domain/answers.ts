/**
 * What a run learnt from one call to a channel, as it travels from the activity to settlement. The
 * outcomes are those of channels/contract.ts, plus `not_sent`: the database did not let the call go.
 */
import type { PaymentFact, RefundFact } from './channel-facts';

export type CallAnswer<Fact> =
  | { outcome: 'answered'; fact: Fact }
  | { outcome: 'refused'; code: string; alreadyKnown: boolean }
  | { outcome: 'never_left'; reason: string; retryAfterMs: number | null }
  | { outcome: 'unknown'; reason: string; retryAfterMs: number | null }
  | { outcome: 'not_sent' };

export type PaymentAnswer = CallAnswer<PaymentFact>;
export type RefundAnswer = CallAnswer<RefundFact>;
