/** Rules about giving money back: may it be promised, which call comes next. */
import type { ChannelPolicy } from './channel-policy';
import { isAmountMinor } from './money';
import type { Capture, Order, Refund } from './orders';
import { refundableMinor } from './orders';

export type RefundDecision =
  | { decision: 'same'; refund: Refund }
  | { decision: 'open'; capture: Capture; amountMinor: number }
  | {
      decision: 'refuse';
      reason:
        | 'over_the_rest'
        | 'nothing_captured'
        | 'order_in_review'
        | 'too_old'
        | 'too_many'
        | 'refunds_disabled';
      refundableMinor: number;
    };

/**
 * What becomes of a merchant's request for a refund. It draws on the settling capture only; the
 * money of surplus captures goes back by itself.
 *
 * @param amountMinor null: the rest
 */
export function decideRefund(input: {
  order: Order;
  own: Refund | undefined;
  refunds: readonly Refund[];
  settling: Capture | undefined;
  amountMinor: number | null;
  /** Of the settling capture's channel. */
  policy: ChannelPolicy | undefined;
  refundsEnabled: boolean;
  now: string;
}): RefundDecision {
  const { order, own, refunds, settling, amountMinor, policy, refundsEnabled, now } = input;
  if (own) return { decision: 'same', refund: own };
  const restMinor = settling ? refundableMinor(settling) : 0;
  const refuse = (reason: Extract<RefundDecision, { decision: 'refuse' }>['reason']) =>
    ({ decision: 'refuse', reason, refundableMinor: restMinor }) as const;
  if (order.status === 'review') return refuse('order_in_review');
  if (!settling || !policy || order.status !== 'paid') return refuse('nothing_captured');
  const wanted = amountMinor ?? restMinor;
  if (!isAmountMinor(wanted) || wanted > restMinor) return refuse('over_the_rest');
  if (!refundsEnabled) return refuse('refunds_disabled');
  const capturedAt = Date.parse(settling.paidAt ?? settling.learntAt);
  if (Date.parse(now) - capturedAt > policy.refundMaxAgeMs) return refuse('too_old');
  const counted = refunds.filter(
    (r) => r.captureId === settling.captureId && r.status !== 'failed',
  );
  if (counted.length >= policy.maxRefundsPerCapture) return refuse('too_many');
  return { decision: 'open', capture: settling, amountMinor: wanted };
}

/** Stands in place of the channel's last word when an operator has an abnormal refund sent again. */
export const SEND_AGAIN = 'send_again';

/** Last words about a refund after which its number is sent again. */
export const SENT_AGAIN_AFTER: readonly string[] = ['not_found', 'not_enough_balance', SEND_AGAIN];

/**
 * The next call for an open refund, under the same rules as a charge: a query before any retry; a
 * number the channel does not know, or refused for lack of balance, is sent again, the same.
 */
export function nextRefundCall(
  refund: Refund,
  policy: ChannelPolicy,
  now: string,
): 'submit' | 'query' {
  if (refund.status === 'created' && refund.sends === 0) return 'submit';
  if (refund.lastCall !== 'query') return 'query';
  const remembered =
    refund.firstSentAt === null ||
    Date.parse(now) - Date.parse(refund.firstSentAt) < policy.keyLifetimeMs;
  const sendAgain = SENT_AGAIN_AFTER.includes(refund.lastFactState ?? '');
  return sendAgain && remembered ? 'submit' : 'query';
}

/**
 * Whether a refund that was promised may still go out, checked again under the lock right before its
 * first send: its capture must still hold the money, and what made an automatic refund right must
 * still be so. A chargeback in between would otherwise pay the same money back twice.
 */
export function refundStillStands(
  order: Order,
  captures: readonly Capture[],
  refund: Refund,
): boolean {
  const capture = captures.find((c) => c.captureId === refund.captureId);
  if (!capture || capture.status !== 'captured') return false;
  const owed = capture.reservedMinor + capture.refundedMinor + capture.reversedMinor;
  if (owed > capture.amountMinor) return false;
  if (refund.origin !== 'surplus') return true;
  if (capture.kind === 'surplus_late') return order.status === 'closed' || order.status === 'paid';
  return order.status === 'paid' && captures.some((c) => c.settles && c.status === 'captured');
}
