/**
 * What the payer's page says of an order. The page is an accelerator, never a boundary: whatever it
 * shows or sends, the order's run and the database decide.
 */
import { liveAttempt } from './attempts';
import type { Order, PayRecord } from './orders';

/**
 * - `choosing`: nothing was tried yet; `again`: what was tried has ended without money
 * - `going`: the attempt waits for the payer at its channel
 * - `waiting`: what became of the attempt, or of closing it, is not known yet; it is never called failed
 * - `paid`, `refunded`, `closed`, `review`: how the order stands
 */
export type PayPageState =
  'choosing' | 'again' | 'going' | 'waiting' | 'paid' | 'refunded' | 'closed' | 'review';

export interface PayPageView {
  state: PayPageState;
  /** The attempt that the state is about, if there is one. */
  record: PayRecord | undefined;
  /** Whether the payer may press "pay" now. */
  mayPay: boolean;
  /** Of the attempt that pressing "pay" opens: it counts the attempts that have been there. */
  attemptNo: number;
  /** Whether nothing will change here any more, but for what the shop does. */
  isOver: boolean;
}

/** A link goes on saying how its order ended for so long; after that it says nothing of it. */
const LINK_OUTLIVES_ORDER_MS = 24 * 60 * 60 * 1000;

/** Whether the link has expired with its order: it names the order to nobody any more. */
export function isLinkOver(order: Order, nowMs: number): boolean {
  const hasEnded = order.status === 'paid' || order.status === 'closed';
  return hasEnded && nowMs > Date.parse(order.expiresAt) + LINK_OUTLIVES_ORDER_MS;
}

export function payPageView(
  { order, records }: { order: Order; records: readonly PayRecord[] },
  nowMs: number,
): PayPageView {
  const live = liveAttempt(records);
  const over = (state: PayPageState): PayPageView => ({
    state,
    record: undefined,
    mayPay: false,
    attemptNo: records.length + 1,
    isOver: state !== 'review',
  });
  if (order.status === 'paid') return over(order.refundStatus === 'full' ? 'refunded' : 'paid');
  if (order.status === 'closed' || order.status === 'review') return over(order.status);
  const takesMoney = order.closeRequestedAt === null && Date.parse(order.expiresAt) > nowMs;
  const open = { mayPay: takesMoney, attemptNo: records.length + 1, isOver: false };
  if (live) {
    const waitsForPayer =
      takesMoney &&
      live.status === 'pending' &&
      live.closeRequestedAt === null &&
      !!live.payParameters;
    return { ...open, state: waitsForPayer ? 'going' : 'waiting', record: live };
  }
  if (!takesMoney) return { ...open, state: 'waiting', record: undefined };
  const last = records.at(-1);
  return { ...open, state: last ? 'again' : 'choosing', record: last };
}

/**
 * The request number of an attempt opened on the page. It follows from what the database holds, so a
 * reload, a second tab, another device and a repeat after a lost answer all send the same one.
 */
export function pageRequestNo(attemptNo: number, channel: string): string {
  return `page-${attemptNo}-${channel}`.slice(0, 64);
}
