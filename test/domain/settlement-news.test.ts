/** News without money: what changes nothing, what contradicts, how an attempt ends. */
import type { PaymentFact } from '../../domain/channel-facts';
import type { SettlementContext, SettlementState } from '../../domain/verdicts';
import { settle } from '../../domain/settlement';
import {
  aCapture,
  aContext,
  anOrder,
  NOW,
  aPaidState,
  aPayRecord,
  aPaymentFact,
  aRefund,
  aState,
  at,
} from '../support/builders';

function outcome(
  state: SettlementState,
  fact: Partial<PaymentFact> = {},
  context: Partial<SettlementContext> = {},
) {
  return settle(state, aPaymentFact(fact), aContext(context));
}

const recordPaid = {
  change: 'move_record',
  payRecordId: 1,
  from: 'pending',
  to: 'paid',
  reason: null,
  channelTradeNo: 'T1',
};

describe('news that changes nothing', () => {
  const rows: [string, SettlementState, Partial<PaymentFact>][] = [
    ['B27: the success again', aPaidState(), {}],
    [
      'B27: the success again after a full refund',
      aPaidState({
        order: anOrder({ status: 'paid', refundStatus: 'full' }),
        captures: [aCapture({ refundedMinor: 10_000 })],
      }),
      { eventId: 'another' },
    ],
    ['B83: the success again as a query’s answer', aPaidState(), { learntFrom: 'query' }],
    [
      'the success of a trade that was reversed',
      aPaidState({
        order: anOrder({ status: 'review' }),
        captures: [aCapture({ status: 'reversed' })],
      }),
      {},
    ],
    [
      'the success of a reversed trade at another amount',
      aPaidState({
        order: anOrder({ status: 'review' }),
        captures: [aCapture({ status: 'reversed', reversedMinor: 10_000 })],
      }),
      { amountMinor: 9_999 },
    ],
    [
      'B40: the success after its reversal',
      aState({
        order: anOrder({ status: 'review' }),
        records: [aPayRecord({ status: 'paid' })],
        captures: [aCapture({ kind: 'early_reversal', status: 'reversed', reversedMinor: 10_000 })],
      }),
      {},
    ],
    ['"pending" on a paid attempt', aPaidState(), { state: 'pending' }],
    ['"pending" again', aState(), { state: 'pending' }],
    [
      '"no such order" on a paid attempt',
      aPaidState(),
      { state: 'not_found', learntFrom: 'query' },
    ],
    [
      'B34: an expiry of an attempt that failed',
      aState({
        records: [aPayRecord({ status: 'failed' })],
      }),
      { state: 'closed' },
    ],
    [
      'B32: "closed" that a refund explains',
      aPaidState({
        captures: [aCapture({ refundedMinor: 10_000 })],
      }),
      { state: 'closed' },
    ],
    [
      'B32: "closed" that a part refund explains',
      aPaidState({
        captures: [aCapture({ refundedMinor: 1 })],
      }),
      { state: 'closed' },
    ],
    [
      '"closed" that a refund on its way explains',
      aPaidState({ refunds: [aRefund()] }),
      {
        state: 'closed',
      },
    ],
    [
      '"closed" that a reversal explains',
      aPaidState({
        order: anOrder({ status: 'review' }),
        captures: [aCapture({ status: 'reversed', reversedMinor: 10_000 })],
      }),
      { state: 'closed' },
    ],
    [
      'the same reversal again',
      aPaidState({
        order: anOrder({ status: 'review' }),
        captures: [aCapture({ status: 'reversed', reversedMinor: 10_000 })],
      }),
      { state: 'reversed' },
    ],
    [
      'a smaller reversed sum of a trade number that no query tells of',
      aPaidState({ captures: [aCapture({ channelTradeNo: 'T2', reversedMinor: 500 })] }),
      { state: 'reversed', channelTradeNo: 'T2', reversedMinor: 400 },
    ],
    ['a reinstatement of what was not reversed', aPaidState(), { state: 'reinstated' }],
  ];
  it.each(rows)('no_effect: %s', (_, state, fact) => {
    expect(outcome(state, fact)).toEqual({ verdict: 'no_effect', changes: [], next: 'none' });
  });
});

describe('a contradiction of a payment', () => {
  it.each(['callback', 'submit', 'close'] as const)(
    'by a %s is asked about before anybody is troubled',
    (learntFrom) => {
      for (const state of ['failed', 'closed'] as const)
        expect(outcome(aPaidState(), { state, learntFrom })).toEqual({
          verdict: 'contradicts_paid',
          changes: [],
          next: 'query',
        });
    },
  );

  it.each(['query', 'trade_bill', 'operator'] as const)(
    'by a %s is a case; nothing moves',
    (learntFrom) => {
      const { changes, next } = outcome(aPaidState(), { state: 'closed', learntFrom });
      expect(next).toBe('none');
      expect(changes).toEqual([
        {
          change: 'open_case',
          kind: 'contradicts_paid',
          summary: 'ch-a says CLOSED for OUT1, which we hold as paid',
        },
      ]);
    },
  );

  it('is not explained by a refund that was never sent', () => {
    const state = aPaidState({ refunds: [aRefund({ status: 'created', sends: 0 })] });
    expect(outcome(state, { state: 'closed' }).verdict).toBe('contradicts_paid');
  });

  it('is not explained by a refund of another capture', () => {
    const state = aPaidState({ refunds: [aRefund({ captureId: 2 })] });
    expect(outcome(state, { state: 'closed' }).verdict).toBe('contradicts_paid');
  });
});

describe('an attempt without money', () => {
  it.each([
    ['failed', 'attempt_failed', 'FAILED'],
    ['closed', 'attempt_closed', 'CLOSED'],
  ] as const)('%s → %s: the record moves, the order stays open', (state, verdict, word) => {
    expect(outcome(aState(), { state, learntFrom: 'query' })).toEqual({
      verdict,
      changes: [
        {
          change: 'move_record',
          payRecordId: 1,
          from: 'pending',
          to: state,
          reason: word,
          channelTradeNo: null,
        },
      ],
      next: 'none',
    });
  });

  it.each(['expired', 'cancelled'] as const)(
    'ends the order that waits to be closed: %s',
    (reason) => {
      const order = anOrder({ closeRequestedAt: at('12:04'), closeReason: reason });
      const { changes } = outcome(aState({ order }), { state: 'closed', learntFrom: 'query' });
      expect(changes.slice(1)).toEqual([
        { change: 'move_order', from: 'paying', to: 'closed', reason },
        { change: 'notify', event: 'order.closed', subjectNo: '' },
      ]);
    },
  );

  it('B35: an old attempt’s end does not close an order with another live attempt', () => {
    const order = anOrder({ closeRequestedAt: at('12:04'), closeReason: 'expired' });
    const records = [aPayRecord(), aPayRecord({ payRecordId: 2 })];
    const { changes } = outcome(aState({ order, records }), { state: 'closed' });
    expect(changes.map((c) => c.change)).toEqual(['move_record']);
  });

  it.each(['paid', 'review', 'closed'] as const)('does not move an order that is %s', (status) => {
    const order = anOrder({ status, closeRequestedAt: at('12:04'), closeReason: 'expired' });
    const { changes } = outcome(aState({ order }), { state: 'closed', learntFrom: 'query' });
    expect(changes.map((c) => c.change)).toEqual(['move_record']);
  });

  it('B37: the word of the close is confirmed by a query', () => {
    expect(outcome(aState(), { state: 'closed', learntFrom: 'close' })).toEqual({
      verdict: 'still_pending',
      changes: [],
      next: 'query',
    });
  });

  it('B14: a refusal of a re-send is no failure, the refusal of the only send is', () => {
    const refusal = { state: 'failed', learntFrom: 'submit' } as const;
    const sent = (sends: number) =>
      aState({ records: [aPayRecord({ status: 'submitting', sends })] });
    expect(outcome(sent(2), refusal)).toMatchObject({ verdict: 'still_pending', next: 'query' });
    expect(outcome(sent(1), refusal).verdict).toBe('attempt_failed');
  });

  it('B16: "no such order" is not final before the deadline and its grace', () => {
    const notFound = { state: 'not_found', learntFrom: 'query' } as const;
    const order = anOrder({ closeRequestedAt: at('12:30'), closeReason: 'expired' });
    expect(outcome(aState(), notFound).verdict).toBe('still_pending');
    expect(outcome(aState({ order }), notFound, { now: at('12:31') }).verdict).toBe(
      'still_pending',
    );
    const final = outcome(aState({ order }), notFound, { now: at('12:31:01') });
    expect(final.verdict).toBe('attempt_closed');
    expect(final.changes.map((c) => c.change)).toEqual(['move_record', 'move_order', 'notify']);
  });

  it.each(['created', 'submitting'] as const)(
    '"pending" moves a %s attempt, with its trade number',
    (from) => {
      const state = aState({ records: [aPayRecord({ status: from })] });
      expect(outcome(state, { state: 'pending' })).toEqual({
        verdict: 'still_pending',
        changes: [{ ...recordPaid, from, to: 'pending' }],
        next: 'none',
      });
    },
  );

  it('B86: unknown_state: a word we do not know is one warning and moves nothing', () => {
    for (const state of [aState(), aPaidState(), aState({ order: anOrder({ status: 'closed' }) })])
      expect(outcome(state, { state: 'unknown', word: 'FROZEN' })).toEqual({
        verdict: 'unknown_state',
        changes: [{ change: 'warn', subject: 'pay_record', subjectId: 1, word: 'FROZEN' }],
        next: 'none',
      });
  });
});

describe('a reversal after the channel gave the money back', () => {
  const given = aPaidState({ captures: [aCapture({ reinstatedAt: NOW })] });
  const reversal = (learntFrom: 'callback' | 'query') =>
    settle(given, aPaymentFact({ state: 'reversed', learntFrom }), aContext());

  it('may be a late copy of the old one when a callback says it: the channel is asked', () => {
    expect(reversal('callback')).toEqual({
      verdict: 'contradicts_paid',
      changes: [],
      next: 'query',
    });
  });

  it('is believed when a query says it', () => {
    expect(reversal('query').verdict).toBe('reversed');
  });
});
