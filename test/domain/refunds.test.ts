import type { Refund } from '../../domain/orders';
import { refundableMinor } from '../../domain/orders';
import { decideRefund, nextRefundCall, refundStillStands } from '../../domain/refunds';
import { aCapture, anOrder, aPolicy, aRefund, at, NOW } from '../support/builders';

type Question = Parameters<typeof decideRefund>[0];

function aQuestion(said: Partial<Question> = {}): Question {
  return {
    order: anOrder({ status: 'paid' }),
    own: undefined,
    refunds: [],
    settling: aCapture(),
    amountMinor: 3_000,
    policy: aPolicy(),
    refundsEnabled: true,
    now: NOW,
    ...said,
  };
}

describe('what is left to refund', () => {
  it.each([
    [{}, 10_000],
    [{ reservedMinor: 1 }, 9_999],
    [{ refundedMinor: 6_000, reservedMinor: 3_000, reversedMinor: 500 }, 500],
    [{ refundedMinor: 10_000 }, 0],
    [{ refundedMinor: 10_000, reversedMinor: 10_000 }, 0],
    [{ status: 'reversed' as const }, 0],
  ])('of a capture of 10000 with %j is %d', (said, rest) => {
    expect(refundableMinor(aCapture(said))).toBe(rest);
  });
});

describe('a request for a refund', () => {
  const opened: [string, number | null, Question['settling'], number][] = [
    ['of a part', 3_000, aCapture(), 3_000],
    ['of one cent', 1, aCapture(), 1],
    ['of everything', 10_000, aCapture(), 10_000],
    [
      'without an amount: the rest',
      null,
      aCapture({ refundedMinor: 3_333, reservedMinor: 3_333 }),
      3_334,
    ],
    ['B64: of exactly the rest', 3_334, aCapture({ refundedMinor: 6_666 }), 3_334],
  ];
  it.each(opened)('is opened %s', (_, amountMinor, settling, expected) => {
    expect(decideRefund(aQuestion({ amountMinor, settling }))).toEqual({
      decision: 'open',
      capture: settling,
      amountMinor: expected,
    });
  });

  const refused: [string, string, Partial<Question>][] = [
    ['B51: more is wanted than was captured', 'over_the_rest', { amountMinor: 10_001 }],
    [
      'B51: the rest is reserved',
      'over_the_rest',
      {
        amountMinor: 6_000,
        settling: aCapture({ reservedMinor: 6_000 }),
      },
    ],
    [
      'the rest is reversed',
      'over_the_rest',
      {
        amountMinor: 6_000,
        settling: aCapture({ reversedMinor: 6_000 }),
      },
    ],
    [
      'nothing is left and none was named',
      'over_the_rest',
      {
        amountMinor: null,
        settling: aCapture({ refundedMinor: 10_000 }),
      },
    ],
    ['B49: zero is wanted', 'over_the_rest', { amountMinor: 0 }],
    ['B50: minus zero is wanted', 'over_the_rest', { amountMinor: -0 }],
    ['B50: a negative amount is wanted', 'over_the_rest', { amountMinor: -1_000 }],
    ['B50: NaN is wanted', 'over_the_rest', { amountMinor: NaN }],
    ['a part of a cent is wanted', 'over_the_rest', { amountMinor: 1.5 }],
    ['the order is in review', 'order_in_review', { order: anOrder({ status: 'review' }) }],
    ['the order is not paid', 'nothing_captured', { order: anOrder(), settling: undefined }],
    ['the order is closed', 'nothing_captured', { order: anOrder({ status: 'closed' }) }],
    ['nothing settles the order', 'nothing_captured', { settling: undefined }],
    ['the channel gives nothing back', 'refunds_disabled', { refundsEnabled: false }],
    [
      'the payment is too old',
      'too_old',
      {
        policy: aPolicy({ refundMaxAgeMs: 60_000 }),
        settling: aCapture({ paidAt: at('12:03:59') }),
      },
    ],
    [
      'the payment, known only by when we learnt it, is too old',
      'too_old',
      {
        policy: aPolicy({ refundMaxAgeMs: 60_000 }),
        settling: aCapture({ paidAt: null, learntAt: at('12:03:59') }),
      },
    ],
    [
      'the capture had its number of refunds',
      'too_many',
      {
        policy: aPolicy({ maxRefundsPerCapture: 2 }),
        refunds: [aRefund(), aRefund({ refundId: 2, status: 'succeeded' })],
      },
    ],
  ];
  it.each(refused)('is refused when %s: %s', (_, reason, said) => {
    expect(decideRefund(aQuestion(said))).toMatchObject({ decision: 'refuse', reason });
  });

  it('is told how much is left when refused', () => {
    expect(
      decideRefund(aQuestion({ amountMinor: 9_000, settling: aCapture({ refundedMinor: 2_000 }) })),
    ).toMatchObject({ refundableMinor: 8_000 });
  });

  it('does not count failed refunds nor those of other captures', () => {
    const refunds = [aRefund({ status: 'failed' }), aRefund({ refundId: 2, captureId: 9 })];
    const policy = aPolicy({ maxRefundsPerCapture: 1 });
    expect(decideRefund(aQuestion({ refunds, policy })).decision).toBe('open');
  });

  it('is not yet too old at exactly the age allowed', () => {
    const policy = aPolicy({ refundMaxAgeMs: 60_000 });
    const settling = aCapture({ paidAt: at('12:04') });
    expect(decideRefund(aQuestion({ policy, settling })).decision).toBe('open');
  });

  it('B52: for the same amount under another number is another refund', () => {
    const said = { refunds: [aRefund()], settling: aCapture({ reservedMinor: 3_000 }) };
    expect(decideRefund(aQuestion(said)).decision).toBe('open');
  });

  it.each(['created', 'processing', 'succeeded', 'failed', 'returned', 'abnormal'] as const)(
    'under a number already used is that refund, %s or not, whatever became of the order',
    (status) => {
      const own = aRefund({ status });
      for (const orderStatus of ['paid', 'review', 'closed'] as const) {
        const order = anOrder({ status: orderStatus });
        expect(decideRefund(aQuestion({ own, order, settling: undefined }))).toEqual({
          decision: 'same',
          refund: own,
        });
      }
    },
  );

  it('B44, B64: parts add up to the whole and not a cent more', () => {
    for (const parts of [
      [1_000, 2_000, 7_000],
      [3_333, 3_333, 3_334],
      [10, 20, 9_970],
    ]) {
      let settling = aCapture();
      for (const amountMinor of parts) {
        expect(decideRefund(aQuestion({ settling, amountMinor })).decision).toBe('open');
        settling = { ...settling, refundedMinor: settling.refundedMinor + amountMinor };
      }
      expect(decideRefund(aQuestion({ settling, amountMinor: 1 }))).toMatchObject({
        decision: 'refuse',
        reason: 'over_the_rest',
        refundableMinor: 0,
      });
    }
  });
});

describe('the next call about a refund', () => {
  const fresh = aRefund({
    status: 'created',
    sends: 0,
    firstSentAt: null,
    lastCall: null,
    lastFactState: null,
  });
  const answered = (lastFactState: string, said: Partial<Refund> = {}) =>
    aRefund({ lastCall: 'query', lastFactState, ...said });
  const rows: [string, Refund, 'submit' | 'query'][] = [
    ['a new one is sent', fresh, 'submit'],
    [
      'B54: one that may have been sent is queried',
      { ...fresh, sends: 1, status: 'submitting' },
      'query',
    ],
    [
      'B53: one of unknown outcome is queried',
      aRefund({ status: 'submitting', outcomeUnknown: true }),
      'query',
    ],
    ['B56: a number the channel does not know is sent again', answered('not_found'), 'submit'],
    [
      'B61: one refused for lack of balance is sent again',
      answered('not_enough_balance'),
      'submit',
    ],
    [
      'B61: ... after a query',
      aRefund({ lastCall: 'submit', lastFactState: 'not_enough_balance' }),
      'query',
    ],
    ['one in progress is polled', answered('processing'), 'query'],
    ['an unknown word is asked about again', answered('unknown'), 'query'],
    [
      'a refusal is confirmed by a query',
      aRefund({ lastCall: 'submit', lastFactState: 'failed' }),
      'query',
    ],
    [
      'nothing is sent again once the channel may have forgotten the number',
      answered('not_found', { firstSentAt: '2026-02-28T12:05:00.000Z' }),
      'query',
    ],
    [
      '... nor for lack of balance',
      answered('not_enough_balance', { firstSentAt: '2026-02-28T12:05:00.000Z' }),
      'query',
    ],
    [
      '... to the millisecond',
      answered('not_found', { firstSentAt: '2026-02-28T12:05:00.001Z' }),
      'submit',
    ],
  ];
  it.each(rows)('%s', (_, refund, call) => {
    expect(nextRefundCall(refund, aPolicy(), NOW)).toBe(call);
  });
});

describe('an automatic refund goes out', () => {
  const settling = aCapture();
  const duplicate = aCapture({ captureId: 2, kind: 'surplus_duplicate' });
  const late = aCapture({ captureId: 2, kind: 'surplus_late' });
  const refund = aRefund({ captureId: 2, origin: 'surplus', amountMinor: 10_000 });
  const paid = anOrder({ status: 'paid' });

  it.each([
    ['of a duplicate on a paid order', paid, [settling, duplicate], true],
    ['of late money on a closed order', anOrder({ status: 'closed' }), [late], true],
    ['of late money on an order paid otherwise since', paid, [settling, late], true],
    [
      'not when the settling capture was reversed',
      paid,
      [aCapture({ status: 'reversed' }), duplicate],
      false,
    ],
    ['not when nothing settles the order', paid, [duplicate], false],
    [
      'not when the order is in review',
      anOrder({ status: 'review' }),
      [settling, duplicate],
      false,
    ],
    ['not of late money when the order is in review', anOrder({ status: 'review' }), [late], false],
    [
      'not when the duplicate was taken back by the channel',
      paid,
      [settling, { ...duplicate, status: 'reversed' as const }],
      false,
    ],
    [
      'not when the late money was taken back by the channel',
      anOrder({ status: 'closed' }),
      [{ ...late, status: 'reversed' as const }],
      false,
    ],
    ['not of a capture that is not there', paid, [settling], false],
  ])('%s', (_, order, captures, goes) => {
    expect(refundStillStands(order, captures, refund)).toBe(goes);
  });

  it.each(['merchant', 'operator', 'fulfilment'] as const)(
    'of a %s whatever the order became, while its capture holds the money',
    (origin) => {
      const asked = aRefund({ captureId: 1, origin, amountMinor: 3_000 });
      const review = anOrder({ status: 'review' });
      const holding = aCapture({ captureId: 1, reservedMinor: 3_000 });
      expect(refundStillStands(review, [holding], asked)).toBe(true);
      const chargedBack = { ...holding, reversedMinor: 8_000 };
      expect(refundStillStands(review, [chargedBack], asked)).toBe(false);
      expect(refundStillStands(review, [{ ...holding, status: 'reversed' }], asked)).toBe(false);
    },
  );
});
