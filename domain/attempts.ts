/**
 * Rules about one attempt to pay: may it be opened, which call to the channel comes next, when.
 */
import type { ChannelPolicy } from './channel-policy';
import type { ChannelCall, Order, PayRecord } from './orders';
import { LIVE_ATTEMPT } from './states';

export type PayDecision =
  | { decision: 'same'; record: PayRecord }
  | { decision: 'paid'; record: PayRecord }
  | { decision: 'join'; record: PayRecord }
  | { decision: 'open' }
  /** Another attempt must be definitely closed first. */
  | { decision: 'close_first'; record: PayRecord }
  | {
      decision: 'refuse';
      reason:
        | 'order_closed'
        | 'order_in_review'
        | 'order_refunded'
        | 'order_expired'
        | 'channel_disabled';
    };

export function isLive(record: PayRecord): boolean {
  return LIVE_ATTEMPT.includes(record.status);
}

export function liveAttempt(records: readonly PayRecord[]): PayRecord | undefined {
  return records.find(isLive);
}

/**
 * What becomes of a request to pay, the first that fits: the same request → its own record; an order
 * that takes no money → refused; paid → the payment; a live attempt at the same channel → joined;
 * one elsewhere, expired or on its way out → close it first; else open.
 *
 * @param own the record this request number already opened or joined
 */
export function decidePay(input: {
  order: Order;
  records: readonly PayRecord[];
  own: PayRecord | undefined;
  /** The record whose capture settled the order. */
  settled: PayRecord | undefined;
  channel: string;
  channelEnabled: boolean;
  now: string;
}): PayDecision {
  const { order, records, own, settled, channel, channelEnabled, now } = input;
  if (own) return { decision: 'same', record: own };
  if (order.status === 'review') return { decision: 'refuse', reason: 'order_in_review' };
  if (order.status === 'closed') return { decision: 'refuse', reason: 'order_closed' };
  if (order.status === 'paid') {
    if (order.refundStatus === 'full') return { decision: 'refuse', reason: 'order_refunded' };
    // Paid, and no record that settled it: only a person can say by what. Never a second attempt.
    if (!settled) return { decision: 'refuse', reason: 'order_in_review' };
    return { decision: 'paid', record: settled };
  }
  if (order.closeRequestedAt || order.expiresAt <= now) {
    return { decision: 'refuse', reason: 'order_expired' };
  }
  const live = liveAttempt(records);
  if (live) {
    // The channel's own instant, in whatever spelling: compared as time, not as text.
    const parametersExpired =
      live.payParameters?.expiresAt != null &&
      Date.parse(live.payParameters.expiresAt) <= Date.parse(now);
    if (live.channel === channel && !parametersExpired && !live.closeRequestedAt) {
      return { decision: 'join', record: live };
    }
    return { decision: 'close_first', record: live };
  }
  if (!channelEnabled) return { decision: 'refuse', reason: 'channel_disabled' };
  return { decision: 'open' };
}

/** Whether the attempt must be taken through query → close → query instead of waited for. */
export function isClosing(order: Order, record: PayRecord): boolean {
  return (
    record.closeRequestedAt !== null ||
    order.closeRequestedAt !== null ||
    (order.status !== 'created' && order.status !== 'paying')
  );
}

/** When closing was asked for: by the attempt's own request or by the order's. */
function closingSince(order: Order, record: PayRecord): string {
  return record.closeRequestedAt ?? order.closeRequestedAt ?? '';
}

/**
 * The next call to the channel for a live attempt. Record first, then call; after a call whose
 * outcome nobody knows a query comes before anything else; a number that the channel does not know
 * is sent again, the same; one that exists without our having its pay parameters is sent again to
 * fetch them.
 */
export function nextCall(
  order: Order,
  record: PayRecord,
  policy: ChannelPolicy,
  now: string,
): ChannelCall {
  if (isClosing(order, record)) {
    // query → close → query: never a close without a fresh answer that there is something to close,
    // and never "closed" on the word of the close alone.
    const asked = record.lastCallAt !== null && record.lastCallAt >= closingSince(order, record);
    return asked && record.lastCall === 'query' && record.lastFactState === 'pending'
      ? 'close'
      : 'query';
  }
  if (record.status === 'created' && record.sends === 0) return 'submit';
  if (record.lastCall !== 'query' || !mayResend(record, policy, now)) return 'query';
  if (record.lastFactState === 'not_found') return 'submit';
  const isThere = record.lastFactState === 'pending';
  if (isThere && lacksParameters(record) && record.sends < policy.maxSends) return 'submit';
  return 'query';
}

/** Whether the channel still remembers the number, so that a re-send cannot make a second trade. */
function mayResend(record: PayRecord, policy: ChannelPolicy, now: string): boolean {
  if (record.firstSentAt === null) return true;
  return Date.parse(now) - Date.parse(record.firstSentAt) < policy.keyLifetimeMs;
}

/** The channel has the attempt, but the answer with its pay parameters never reached us. */
function lacksParameters(record: PayRecord): boolean {
  return record.status === 'pending' && record.outcomeUnknown && record.payParameters === null;
}

/**
 * Whether an attempt is to be given up: the channel has it, will not hand out its parameters, and
 * every send allowed has been made (or the channel no longer keeps the number, so that none may be).
 * It is closed at the channel so that the payer can try anew.
 */
export function isUseless(record: PayRecord, policy: ChannelPolicy, now: string): boolean {
  return (
    lacksParameters(record) &&
    (record.sends >= policy.maxSends || !mayResend(record, policy, now)) &&
    record.lastCall === 'query' &&
    record.lastFactState === 'pending'
  );
}

/**
 * Whether "no such order" is final: only while closing, and only when nothing can arrive any more.
 * Never sent: at once. Sent: after the order's deadline (the channel's own expiry) and the last send,
 * plus a grace longer than a call may take.
 */
export function notFoundIsFinal(
  order: Order,
  record: PayRecord,
  policy: ChannelPolicy,
  now: string,
): boolean {
  if (!isClosing(order, record)) return false;
  if (record.sends === 0) return true;
  const lastPossible = Math.max(Date.parse(order.expiresAt), Date.parse(record.lastSentAt ?? now));
  return Date.parse(now) > lastPossible + policy.notFoundGraceMs;
}
