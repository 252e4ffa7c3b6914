/**
 * What a run learnt from one call to a channel, as it travels from the activity to settlement. The
 * outcomes are those of channels/contract.ts, plus `not_sent`: the database did not let the call go.
 */
import type { PaymentFact, RefundFact } from './channel-facts';

/** The reason of a call that our own rate brake held back; it comes with the time of its place. */
export const RATE_BRAKE = 'rate_brake';

export type CallAnswer<Fact> =
  | {
      outcome: 'answered';
      fact: Fact;
      /** Of an answer to a query: the last send there had been when it was asked (ISO 8601). */
      sentBefore?: string | null;
      /** Of an answer to a query: when it was asked, by the database's clock (ISO 8601). */
      askedAt?: string;
    }
  | { outcome: 'refused'; code: string; alreadyKnown: boolean }
  | { outcome: 'never_left'; reason: string; retryAfterMs: number | null }
  | { outcome: 'unknown'; reason: string; retryAfterMs: number | null }
  | { outcome: 'not_sent' };

export type PaymentAnswer = CallAnswer<PaymentFact>;
export type RefundAnswer = CallAnswer<RefundFact>;

/**
 * What an answer is worth by the time it is settled. "No such number" to a question that was asked
 * before the last send says nothing of that send, which may be on its way: it counts as no answer.
 *
 * @param lastSentAt the last send there has been by now, read under the order's lock
 */
export function stillTrue<Fact extends { state: string }>(
  answer: CallAnswer<Fact>,
  lastSentAt: string | null,
): CallAnswer<Fact> {
  if (answer.outcome !== 'answered' || answer.fact.state !== 'not_found') return answer;
  if (answer.sentBefore === undefined || answer.sentBefore === lastSentAt) return answer;
  return { outcome: 'unknown', reason: 'asked_before_the_last_send', retryAfterMs: null };
}
