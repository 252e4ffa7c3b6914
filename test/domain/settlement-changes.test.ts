/** What each verdict changes, row by row of the table, with the figures. */
import type { PaymentFact } from '../../domain/channel-facts';
import type { SettlementContext, SettlementState } from '../../domain/settlement';
import { settle } from '../../domain/settlement';
import {
  aCapture,
  aContext,
  anOrder,
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

const storedCapture = {
  change: 'insert_capture',
  payRecordId: 1,
  channelTradeNo: 'T1',
  amountMinor: 10_000,
  currency: 'CNY',
  payerTotalMinor: null,
  status: 'captured',
  reversedMinor: 0,
  paidAt: at('12:02'),
};
const recordPaid = {
  change: 'move_record',
  payRecordId: 1,
  from: 'pending',
  to: 'paid',
  reason: null,
  channelTradeNo: 'T1',
};

describe('money for an open order', () => {
  it('first_success: the capture settles, record and order are paid, others closed, merchant told', () => {
    expect(outcome(aState())).toEqual({
      verdict: 'first_success',
      changes: [
        recordPaid,
        { ...storedCapture, kind: 'settling' },
        { change: 'move_order', from: 'paying', to: 'paid', reason: null },
        { change: 'close_other_attempts', exceptPayRecordId: 1, reason: 'order_paid' },
        { change: 'notify', event: 'order.paid', subjectNo: '' },
      ],
      next: 'none',
    });
  });

  it('first_success counts the order’s amount, not what the payer paid after coupons', () => {
    const { verdict, changes } = outcome(aState(), { payerTotalMinor: 8_000 });
    expect(verdict).toBe('first_success');
    expect(changes).toContainEqual({ ...storedCapture, kind: 'settling', payerTotalMinor: 8_000 });
  });

  it('B37: pays an order that waits to be closed', () => {
    const order = anOrder({ closeRequestedAt: at('12:04'), closeReason: 'cancelled' });
    expect(outcome(aState({ order })).verdict).toBe('first_success');
  });

  it.each(['failed', 'closed'] as const)(
    'B14, B35: pays though the attempt was held %s',
    (status) => {
      const { verdict, changes } = outcome(aState({ records: [aPayRecord({ status })] }));
      expect(verdict).toBe('first_success');
      expect(changes[0]).toEqual({ ...recordPaid, from: status });
    },
  );

  it.each([10, 49_999, 50_001])(
    'B47: amount_mismatch: %d for 50000 is held for a person',
    (minor) => {
      const order = anOrder({ amountMinor: 50_000 });
      expect(outcome(aState({ order }), { amountMinor: minor })).toEqual({
        verdict: 'amount_mismatch',
        changes: [
          recordPaid,
          { ...storedCapture, kind: 'held', amountMinor: minor },
          { change: 'move_order', from: 'paying', to: 'review', reason: 'amount_mismatch' },
          { change: 'close_other_attempts', exceptPayRecordId: 1, reason: 'order_review' },
          {
            change: 'open_case',
            kind: 'amount_mismatch',
            summary: `received ${minor} CNY against 50000 CNY due (minor units)`,
          },
          { change: 'notify', event: 'order.review', subjectNo: 'amount_mismatch' },
        ],
        next: 'none',
      });
    },
  );

  it('amount_mismatch: the right figure in another currency is not the right amount', () => {
    const { verdict, changes } = outcome(aState(), { currency: 'JPY' });
    expect(verdict).toBe('amount_mismatch');
    expect(changes).toContainEqual(
      expect.objectContaining({
        summary: 'received 10000 JPY against 10000 CNY due (minor units)',
      }),
    );
  });

  it.each([
    ['its trade number', { channelTradeNo: null }],
    ['its amount', { amountMinor: null }],
    ['its currency', { currency: null }],
  ])('"paid" without %s proves nothing and is asked about', (_, fact) => {
    expect(outcome(aState(), fact)).toEqual({
      verdict: 'still_pending',
      changes: [],
      next: 'query',
    });
  });
});

describe('money for an order that takes none', () => {
  it('surplus_duplicate: B03: another trade number on a paid order goes back by itself', () => {
    expect(outcome(aPaidState(), { channelTradeNo: 'T9' })).toEqual({
      verdict: 'surplus_duplicate',
      changes: [
        { ...storedCapture, channelTradeNo: 'T9', kind: 'surplus_duplicate' },
        { change: 'refund_capture', channelTradeNo: 'T9', reason: 'second payment of one order' },
      ],
      next: 'none',
    });
  });

  it('surplus_duplicate: B04: also through another attempt, whatever the amount', () => {
    const second = aPayRecord({ payRecordId: 2, channel: 'ch-b' });
    const state = aPaidState();
    const { verdict, changes } = outcome(
      { ...state, records: [...state.records, second] },
      { channel: 'ch-b', outTradeNo: 'OUT2', channelTradeNo: 'T1', amountMinor: 1 },
    );
    expect(verdict).toBe('surplus_duplicate');
    expect(changes.map((c) => c.change)).toEqual([
      'move_record',
      'insert_capture',
      'refund_capture',
    ]);
  });

  it.each([10_000, 1, 99_999])(
    'surplus_late: %d on a closed order goes back by itself',
    (minor) => {
      const state = aState({
        order: anOrder({ status: 'closed' }),
        records: [aPayRecord({ status: 'closed' })],
      });
      expect(outcome(state, { amountMinor: minor })).toEqual({
        verdict: 'surplus_late',
        changes: [
          { ...recordPaid, from: 'closed' },
          { ...storedCapture, amountMinor: minor, kind: 'surplus_late' },
          {
            change: 'refund_capture',
            channelTradeNo: 'T1',
            reason: 'late payment on a closed order',
          },
        ],
        next: 'none',
      });
    },
  );

  const revivable = () =>
    aState({
      order: anOrder({ status: 'closed', latePaymentPolicy: 'revive' }),
      records: [aPayRecord({ status: 'closed' })],
    });

  it('revived: a closed order is paid late where the merchant’s policy says so', () => {
    const { verdict, changes } = outcome(revivable());
    expect(verdict).toBe('revived');
    expect(changes).toContainEqual({
      change: 'move_order',
      from: 'closed',
      to: 'paid',
      reason: 'revived',
    });
    expect(changes).toContainEqual({ change: 'notify', event: 'order.paid', subjectNo: '' });
  });

  it.each([
    ['by another amount', {}, { amountMinor: 9_999 }],
    ['in another currency', {}, { currency: 'JPY' }],
    ['a second time', { captures: [aCapture({ captureId: 9, status: 'reversed' as const })] }, {}],
  ])('surplus_late: is not revived %s', (_, said, fact) => {
    expect(outcome({ ...revivable(), ...said }, fact).verdict).toBe('surplus_late');
  });

  it('joins_review: B38: 60.00 and 50.00 of 100.00 are both held, and the case names 110.00', () => {
    const first = outcome(aState(), { amountMinor: 6_000 });
    expect(first.verdict).toBe('amount_mismatch');
    const state = aState({
      order: anOrder({ status: 'review' }),
      records: [aPayRecord({ status: 'paid', channelTradeNo: 'T1' })],
      captures: [aCapture({ kind: 'held', amountMinor: 6_000 })],
    });
    expect(outcome(state, { channelTradeNo: 'T2', amountMinor: 5_000 })).toEqual({
      verdict: 'joins_review',
      changes: [
        { ...storedCapture, channelTradeNo: 'T2', amountMinor: 5_000, kind: 'held' },
        {
          change: 'open_case',
          kind: 'amount_mismatch',
          summary: 'received 11000 CNY against 10000 CNY due (minor units)',
        },
      ],
      next: 'none',
    });
  });

  it('joins_review: the right amount pays no order that a person is looking at', () => {
    const { changes } = outcome(aState({ order: anOrder({ status: 'review' }) }));
    expect(changes.map((c) => c.change)).toEqual(['move_record', 'insert_capture', 'open_case']);
  });

  it('joins_review: the case names each currency received by itself', () => {
    const state = aState({
      order: anOrder({ status: 'review' }),
      captures: [
        aCapture({ captureId: 8, kind: 'held', amountMinor: 70, currency: 'JPY' }),
        aCapture({ captureId: 9, kind: 'held', amountMinor: 500, reversedMinor: 100 }),
        aCapture({ captureId: 10, kind: 'held', amountMinor: 999, status: 'reversed' }),
      ],
    });
    const { changes } = outcome(state, { amountMinor: 1 });
    expect(changes).toContainEqual(
      expect.objectContaining({
        summary: 'received 70 JPY + 401 CNY against 10000 CNY due (minor units)',
      }),
    );
  });
});

describe('the same trade number with two amounts', () => {
  it.each(['callback', 'submit', 'close', 'operator'] as const)(
    'is asked about when a %s names the other one: both are kept, nothing moves',
    (learntFrom) => {
      const settlement = outcome(aPaidState(), { learntFrom, amountMinor: 1 });
      expect(settlement).toMatchObject({ verdict: 'amount_mismatch', next: 'query' });
      expect(settlement.changes).toEqual([
        {
          change: 'open_case',
          kind: 'amount_mismatch',
          summary: 'ch-a names two amounts for trade T1: 10000 CNY and 1 CNY (minor units)',
        },
      ]);
    },
  );

  it.each(['query', 'trade_bill'] as const)(
    'counts as the %s says, and the order it paid goes to review',
    (learntFrom) => {
      const settlement = outcome(aPaidState(), { learntFrom, amountMinor: 1 });
      expect(settlement.next).toBe('none');
      expect(settlement.changes.slice(1)).toEqual([
        { change: 'correct_capture', captureId: 1, amountMinor: 1, currency: 'CNY' },
        { change: 'move_order', from: 'paid', to: 'review', reason: 'amount_mismatch' },
        { change: 'notify', event: 'order.review', subjectNo: 'amount_mismatch' },
      ]);
    },
  );

  it.each(['surplus_duplicate', 'surplus_late', 'held', 'early_reversal'] as const)(
    'corrects a capture that is %s without moving the order',
    (kind) => {
      const state = aPaidState({ captures: [aCapture({ kind })] });
      const { changes } = outcome(state, { learntFrom: 'query', amountMinor: 1 });
      expect(changes.map((c) => c.change)).toEqual(['open_case', 'correct_capture']);
    },
  );
});

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
      'an older reversal sum',
      aPaidState({ captures: [aCapture({ reversedMinor: 500 })] }),
      {
        state: 'reversed',
        reversedMinor: 400,
      },
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

describe('money the channel takes back', () => {
  it('reversed: the capture is reversed, the order goes to review, merchant and operator told', () => {
    expect(outcome(aPaidState(), { state: 'reversed' })).toEqual({
      verdict: 'reversed',
      changes: [
        {
          change: 'reverse_capture',
          captureId: 1,
          from: 'captured',
          to: 'reversed',
          reversedMinor: 10_000,
        },
        { change: 'move_order', from: 'paid', to: 'review', reason: 'reversed' },
        { change: 'close_other_attempts', exceptPayRecordId: 1, reason: 'order_review' },
        {
          change: 'open_case',
          kind: 'reversed',
          summary: 'reversed by channel ch-a: 10000 CNY (minor units) of trade T1',
        },
        { change: 'notify', event: 'payment.reversed', subjectNo: 'T1:10000' },
      ],
      next: 'none',
    });
  });

  it('reversed: a part leaves the capture captured, with the sum', () => {
    const { changes } = outcome(aPaidState(), { state: 'reversed', reversedMinor: 400 });
    expect(changes[0]).toMatchObject({ from: 'captured', to: 'captured', reversedMinor: 400 });
  });

  it('reversed: more than was captured is stored as said', () => {
    const { changes } = outcome(aPaidState(), { state: 'reversed', reversedMinor: 10_001 });
    expect(changes[0]).toMatchObject({ to: 'reversed', reversedMinor: 10_001 });
  });

  it('reversed: without a trade number speaks of the attempt’s own capture', () => {
    const { changes } = outcome(aPaidState(), { state: 'reversed', channelTradeNo: null });
    expect(changes[0]).toMatchObject({ change: 'reverse_capture', captureId: 1 });
  });

  it('reversed: without a trade number and without a capture is asked about', () => {
    expect(outcome(aState(), { state: 'reversed', channelTradeNo: null })).toMatchObject({
      verdict: 'unknown_state',
      next: 'query',
    });
  });

  it.each(['created', 'submitting', 'pending', 'failed', 'closed'] as const)(
    'B40: learnt before the capture was: stored as gone, a %s attempt is over, nothing settles',
    (status) => {
      const { changes } = outcome(aState({ records: [aPayRecord({ status })] }), {
        state: 'reversed',
      });
      expect(changes.slice(0, 3)).toEqual([
        { ...recordPaid, from: status, reason: 'reversed' },
        { ...storedCapture, kind: 'early_reversal', status: 'reversed', reversedMinor: 10_000 },
        { change: 'move_order', from: 'paying', to: 'review', reason: 'reversed' },
      ]);
    },
  );

  it('reinstated: the capture stands again, a person decides about the order', () => {
    const state = aPaidState({
      order: anOrder({ status: 'review' }),
      captures: [aCapture({ status: 'reversed', reversedMinor: 10_000 })],
    });
    for (const channelTradeNo of ['T1', null])
      expect(outcome(state, { state: 'reinstated', channelTradeNo })).toEqual({
        verdict: 'reinstated',
        changes: [
          { change: 'reinstate_capture', captureId: 1 },
          {
            change: 'open_case',
            kind: 'reversed',
            summary: 'reinstated by channel ch-a: trade T1',
          },
        ],
        next: 'none',
      });
  });
});
