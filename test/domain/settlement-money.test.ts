/** What facts about money change, row by row of the verdict table, with the figures. */
import type { PaymentFact } from '../../domain/channel-facts';
import type { SettlementContext, SettlementState } from '../../domain/verdicts';
import { settle } from '../../domain/settlement';
import {
  aCapture,
  aContext,
  anOrder,
  aPaidState,
  aPayRecord,
  aPaymentFact,
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
        { change: 'notify', event: 'order.review', subjectNo: 'amount_mismatch:T1:1' },
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
        { change: 'notify', event: 'order.review', subjectNo: 'reversed:T1:10000' },
      ],
      next: 'query',
    });
  });

  it('reversed: an order in review already is told as reversed only', () => {
    const state = aPaidState();
    const { changes } = outcome(
      { ...state, order: { ...state.order, status: 'review' } },
      { state: 'reversed' },
    );
    expect(changes.filter((c) => c.change === 'notify')).toEqual([
      { change: 'notify', event: 'payment.reversed', subjectNo: 'T1:10000' },
    ]);
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

  it('reversed, reinstated: an answer to our own question is believed, also when the sum is lower', () => {
    const state = aPaidState({
      order: anOrder({ status: 'review' }),
      captures: [aCapture({ status: 'reversed', reversedMinor: 10_000 })],
    });
    const said = { state: 'reversed', reversedMinor: 400, learntFrom: 'query' } as const;
    const { changes, next } = outcome(state, said);
    expect(changes[0]).toMatchObject({ from: 'reversed', to: 'captured', reversedMinor: 400 });
    expect(next).toBe('none');
    expect(outcome(state, { state: 'reinstated', learntFrom: 'query' }).next).toBe('none');
  });

  it('B40: a smaller reversed sum may be old, or the first word of what came after: it is asked about', () => {
    const state = aPaidState({
      order: anOrder({ status: 'review' }),
      captures: [aCapture({ status: 'reversed', reversedMinor: 10_000 })],
    });
    expect(outcome(state, { state: 'reversed', reversedMinor: 400 })).toEqual({
      verdict: 'contradicts_paid',
      changes: [],
      next: 'query',
    });
  });

  it('reversed again by the same sum after a reinstatement is told under another subject', () => {
    const reinstatedAt = at('13:00');
    const captures = [aCapture({ reinstatedAt })];
    const { verdict, changes } = outcome(aPaidState({ captures }), {
      state: 'reversed',
      learntFrom: 'query',
    });
    expect(verdict).toBe('reversed');
    const subjectNo = `T1:10000:after ${reinstatedAt}`;
    expect(changes.filter(({ change }) => change === 'notify')).toEqual([
      { change: 'notify', event: 'payment.reversed', subjectNo },
      { change: 'notify', event: 'order.review', subjectNo: `reversed:${subjectNo}` },
    ]);
  });

  it('reversed: of a trade number that no query tells of, nobody is asked', () => {
    const state = aPaidState({ captures: [aCapture({ channelTradeNo: 'T2' })] });
    expect(outcome(state, { state: 'reversed', channelTradeNo: 'T2' }).next).toBe('none');
  });

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
        next: 'query',
      });
  });
});
