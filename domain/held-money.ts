/** Which money an order's case holds: captured, and neither paying the order nor given back. */
import type { Capture, Refund } from './orders';
import { refundableMinor } from './orders';
import type { SettlementState } from './verdicts';

/**
 * What the case holds of one capture, minor units. Money that pays a paid order is held by nobody,
 * except what waits in a refund that only a person can set going again. Of any other capture: what is
 * free, and what is on its way back until it has arrived.
 */
export function heldBy(state: SettlementState, capture: Capture): number {
  const waiting = state.refunds
    .filter((r) => r.captureId === capture.captureId && r.status === 'abnormal')
    .reduce((sum, r) => sum + r.amountMinor, 0);
  if (capture.settles && state.order.status === 'paid') return waiting;
  return refundableMinor(capture) + capture.reservedMinor;
}

export function heldCaptures(state: SettlementState): Capture[] {
  return state.captures.filter((capture) => heldBy(state, capture) > 0);
}

/** A refund that was promised and is held: nothing of it can have reached the channel. */
export function isUnsent(refund: Refund): boolean {
  return refund.status === 'abnormal' && refund.sends === 0;
}

/**
 * Whether a case that belongs to no order speaks of money that a channel holds for us: a callback of a
 * payment, or a payment in a trade bill, whose number nobody knows.
 */
export function orphanHoldsMoney(evidence: readonly unknown[]): boolean {
  return evidence.some((piece) => {
    const { fact, evidence: told } = (piece ?? {}) as Evidence;
    if (fact?.kind === 'payment' && fact.state === 'paid') return true;
    return [told].flat().some((d) => d?.difference === 'channel_only' && d.reason !== 'reversal');
  });
}

interface Evidence {
  /** Of a callback (db/callbacks.ts). */
  fact?: { kind?: unknown; state?: unknown };
  /** Of reconciliation (db/reconciliation-cases.ts): one difference, or several of one bill. */
  evidence?: ToldDifference | ToldDifference[];
}
interface ToldDifference {
  difference?: unknown;
  reason?: unknown;
}
