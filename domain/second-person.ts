/** Which acts one person may not decide alone. */
import { captureOf, holdsMoney, isHere, restWithoutHeld } from './operator-acts';
import type { ActContent, ActState } from './operator-acts';

/**
 * Whether a second person must confirm: money above what one may decide alone, and every case that
 * closes while it holds money. What was given back of the order without a second person before counts
 * together with what is decided now: a large amount in small parts is a large amount.
 *
 * @param aloneUpToMinor by currency, minor units
 */
export function needsSecondPerson(
  state: ActState,
  act: ActContent,
  aloneUpToMinor: (currency: string) => number,
): boolean {
  const isAbove = (amountMinor: number, currency: string) => amountMinor > aloneUpToMinor(currency);
  const isAboveInAll = (amountMinor: number, currency: string) =>
    isAbove(amountMinor + (state.decidedAlone[currency] ?? 0), currency);
  switch (act.kind) {
    case 'accept_money': {
      const sums = new Map<string, number>();
      for (const c of state.captures.filter((one) => isHere(state, one))) {
        sums.set(c.currency, (sums.get(c.currency) ?? 0) + restWithoutHeld(state, c));
      }
      return [...sums].some(([currency, minor]) => isAboveInAll(minor, currency));
    }
    case 'refund_money': {
      const capture = captureOf(state, act.captureId);
      if (!capture) return false;
      return isAboveInAll(act.amountMinor ?? restWithoutHeld(state, capture), capture.currency);
    }
    case 'resend_refund': {
      const refund = state.refunds.find((r) => r.refundNo === act.refundNo);
      return refund !== undefined && isAbove(refund.amountMinor, refund.currency);
    }
    case 'close_case':
      return holdsMoney(state);
    case 'note':
    case 'query_now':
    case 'resend_callback':
    case 'restart_run':
      return false;
  }
}
