/** Every refund status × every refund fact state × every way of learning. */
import type { LearntFrom, RefundFact, RefundFactState } from '../../domain/channel-facts';
import type { Refund } from '../../domain/orders';
import { settle } from '../../domain/settlement';
import type { Verdict } from '../../domain/verdicts';
import type { RefundState } from '../../domain/states';
import { mayMove } from '../../domain/states';
import { aCapture, aContext, aPaidState, aRefund, aRefundFact } from '../support/builders';

const STATUSES: RefundState[] = [
  'created',
  'submitting',
  'processing',
  'succeeded',
  'failed',
  'returned',
  'abnormal',
];
const FACT_STATES: RefundFactState[] = [
  'processing',
  'succeeded',
  'failed',
  'not_enough_balance',
  'abnormal',
  'returned',
  'not_found',
  'unknown',
];
const WAYS: LearntFrom[] = ['submit', 'callback', 'query', 'close', 'trade_bill', 'operator'];

function outcome(refund: Partial<Refund> = {}, fact: Partial<RefundFact> = {}, refundedMinor = 0) {
  const row = aRefund(refund);
  const isReserved = !['succeeded', 'failed', 'returned'].includes(row.status);
  const capture = aCapture({ reservedMinor: isReserved ? row.amountMinor : 0, refundedMinor });
  return settle(aPaidState({ captures: [capture], refunds: [row] }), aRefundFact(fact), aContext());
}

function verdictOfTable(status: RefundState, state: RefundFactState, from: LearntFrom): Verdict {
  const open = ['created', 'submitting', 'processing'].includes(status);
  const waits = open || status === 'abnormal';
  switch (state) {
    case 'unknown':
      return 'unknown_state';
    case 'succeeded':
      return status === 'succeeded' || status === 'returned' ? 'no_effect' : 'refund_succeeded';
    case 'returned':
      return status === 'returned' ? 'no_effect' : 'refund_returned';
    case 'failed': // Only a query's or a bill's word ends it; any other is asked about.
      if (!waits) return 'no_effect';
      return from === 'query' || from === 'trade_bill' ? 'refund_failed' : 'refund_pending';
    case 'abnormal':
      return open ? 'refund_abnormal' : 'no_effect';
    case 'processing':
    case 'not_enough_balance':
      if (!waits || (status === 'processing' && from === 'callback')) return 'no_effect';
      if (status === 'abnormal' && from === 'submit') return 'no_effect';
      return 'refund_pending';
    case 'not_found':
      return open ? 'refund_pending' : 'no_effect';
  }
}

const CASES = STATUSES.flatMap((s) =>
  FACT_STATES.map((f): [RefundState, RefundFactState] => [s, f]),
);

describe('a refund', () => {
  it.each(CASES)('that is %s and said to be "%s" has the verdict of the table', (status, state) => {
    for (const learntFrom of WAYS)
      expect([learntFrom, outcome({ status }, { state, learntFrom }).verdict]).toEqual([
        learntFrom,
        verdictOfTable(status, state, learntFrom),
      ]);
  });

  it.each(CASES)(
    'that is %s and said to be "%s" moves inside the table, its sums within bounds',
    (status, state) => {
      for (const learntFrom of WAYS)
        for (const amountMinor of [3_000, 1, 20_000, null])
          for (const refundedMinor of [0, 3_000]) {
            // A succeeded refund has its figure booked.
            if (status === 'succeeded' && refundedMinor === 0) continue;
            const { changes, verdict, next } = outcome(
              { status },
              { state, learntFrom, amountMinor },
              refundedMinor,
            );
            let at: string = status;
            const isReserved = !['succeeded', 'failed', 'returned'].includes(status);
            const sums = { reserved: isReserved ? 3_000 : 0, refunded: refundedMinor };
            for (const c of changes) {
              if (c.change === 'move_refund') {
                expect(c.from).toBe(at);
                expect([c.from, c.to, mayMove('refund', c.from, c.to)]).toEqual([
                  c.from,
                  c.to,
                  true,
                ]);
                at = c.to;
              }
              if (c.change === 'book_refund') {
                sums.reserved -= c.releaseMinor;
                sums.refunded += c.refundedMinor;
              }
              if (c.change === 'release_reservation') sums.reserved -= c.amountMinor;
              if (c.change === 'unbook_refund') sums.refunded -= c.amountMinor;
            }
            expect(Math.min(sums.reserved, sums.refunded)).toBeGreaterThanOrEqual(0);
            // The reservation lasts exactly as long as the refund may still be paid out.
            const stillReserved = ['created', 'submitting', 'processing', 'abnormal'].includes(at);
            expect(sums.reserved).toBe(stillReserved ? 3_000 : 0);
            if (verdict === 'no_effect') expect([changes, next]).toEqual([[], 'none']);
          }
    },
  );
});
