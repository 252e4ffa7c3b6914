/** What a fact about a refund changes, with the figures. */
import type { LearntFrom, RefundFact, RefundFactState } from '../../domain/channel-facts';
import type { Order, Refund } from '../../domain/orders';
import { settle } from '../../domain/settlement';
import type { Change } from '../../domain/verdicts';
import type { RefundState } from '../../domain/states';
import {
  aCapture,
  aContext,
  aPaidState,
  aPayRecord,
  aRefund,
  aRefundFact,
} from '../support/builders';

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
function outcome(
  refund: Partial<Refund> = {},
  fact: Partial<RefundFact> = {},
  refundedMinor = 0,
  order: Partial<Order> = {},
) {
  const row = aRefund(refund);
  const isReserved = !['succeeded', 'failed', 'returned'].includes(row.status);
  const capture = aCapture({ reservedMinor: isReserved ? row.amountMinor : 0, refundedMinor });
  const state = aPaidState({ captures: [capture], refunds: [row] });
  Object.assign(state.order, order);
  return settle(state, aRefundFact(fact), aContext());
}

const moved = (from: RefundState, to: RefundState, reason: string | null = null): Change => ({
  change: 'move_refund',
  refundId: 1,
  from,
  to,
  reason,
});

describe('a refund paid out', () => {
  const booked = (releaseMinor: number, refundedMinor: number): Change => ({
    change: 'book_refund',
    refundId: 1,
    captureId: 1,
    releaseMinor,
    refundedMinor,
  });

  it.each(['created', 'submitting', 'processing', 'abnormal'] as const)(
    'from %s: its reservation becomes a booking, the merchant is told',
    (status) => {
      expect(outcome({ status })).toEqual({
        verdict: 'refund_succeeded',
        changes: [
          moved(status, 'succeeded'),
          booked(3_000, 3_000),
          { change: 'notify', event: 'refund.succeeded', subjectNo: 'r-1' },
        ],
        next: 'none',
      });
    },
  );

  it('of a surplus is told as that', () => {
    const { changes } = outcome({ origin: 'surplus', refundNo: 'auto:2' });
    expect(changes).toContainEqual({
      change: 'notify',
      event: 'payment.surplus_refunded',
      subjectNo: 'auto:2',
    });
  });

  it.each([
    ['less', 2_999, 'CNY', 'the channel paid 2999 CNY, we asked for 3000 CNY (minor units)'],
    ['more', 3_001, 'CNY', 'the channel paid 3001 CNY, we asked for 3000 CNY (minor units)'],
    [
      'another currency',
      3_000,
      'JPY',
      'the channel paid 3000 JPY, we asked for 3000 CNY (minor units)',
    ],
  ])(
    'with %s: the channel’s figure counts, and a person looks',
    (_, amountMinor, currency, what) => {
      const { changes } = outcome({}, { amountMinor, currency });
      expect(changes).toContainEqual(booked(3_000, amountMinor));
      expect(changes).toContainEqual({
        change: 'open_case',
        kind: 'refund_amount',
        summary: `refund r-1: ${what}`,
      });
    },
  );

  it('without figures is booked as we asked for it', () => {
    const { changes } = outcome({}, { amountMinor: null, currency: null });
    expect(changes.map((c) => c.change)).toEqual(['move_refund', 'book_refund', 'notify']);
    expect(changes).toContainEqual(booked(3_000, 3_000));
  });

  it('after it was held as failed is a fact, with a case and nothing left to release', () => {
    const { changes } = outcome({ status: 'failed' });
    expect(changes.slice(0, 3)).toEqual([
      moved('failed', 'succeeded'),
      booked(0, 3_000),
      {
        change: 'open_case',
        kind: 'refund_revived',
        summary: 'refund r-1: a refund held as failed was paid after all',
      },
    ]);
  });

  it('B58: an earlier refund’s callback again changes nothing beside a later refund', () => {
    const refunds = [aRefund({ status: 'succeeded' }), aRefund({ refundId: 2 })];
    const state = aPaidState({
      captures: [aCapture({ refundedMinor: 3_000, reservedMinor: 3_000 })],
      refunds,
    });
    for (const eventId of [null, 'new'])
      expect(settle(state, aRefundFact({ eventId }), aContext()).verdict).toBe('no_effect');
  });
});

describe('a refund refused', () => {
  it.each(['query', 'trade_bill'] as const)(
    'by the word of a %s is failed and releases its money',
    (learntFrom) => {
      expect(outcome({}, { state: 'failed', learntFrom, refusalCode: 'TRADE_CLOSED' })).toEqual({
        verdict: 'refund_failed',
        changes: [
          moved('processing', 'failed', 'TRADE_CLOSED'),
          { change: 'release_reservation', captureId: 1, amountMinor: 3_000 },
          { change: 'notify', event: 'refund.failed', subjectNo: 'r-1' },
        ],
        next: 'none',
      });
    },
  );

  it.each(['submit', 'callback', 'operator'] as const)(
    'B53: by the word of a %s keeps its money and is asked about',
    (learntFrom) => {
      expect(outcome({}, { state: 'failed', learntFrom })).toEqual({
        verdict: 'refund_pending',
        changes: [],
        next: 'query',
      });
    },
  );

  it.each(['surplus', 'fulfilment', 'operator'] as const)(
    'that nobody outside asked for (%s) is a case: its money stays in sight',
    (origin) => {
      const { changes } = outcome({ origin }, { state: 'failed', learntFrom: 'query', word: 'NO' });
      expect(changes).toContainEqual({
        change: 'open_case',
        kind: 'refund_failed',
        summary: 'refund r-1: an automatic refund was refused: NO',
      });
      // Surplus money is no affair of the merchant's order before it has gone back.
      expect(changes.filter((c) => c.change === 'notify')).toEqual(
        origin === 'surplus'
          ? []
          : [{ change: 'notify', event: 'refund.failed', subjectNo: 'r-1' }],
      );
    },
  );

  it.each<[Order['fulfilmentStatus'], Order['fulfilmentFailure'], boolean]>([
    ['none', null, false],
    ['running', null, false],
    ['done', null, false],
    // Its end gives back all that is left then.
    ['compensating', 'step_refused', false],
    ['failed', 'step_refused', true],
    ['compensating', 'refunded', true],
    ['failed', 'refunded', true],
    // A person decides already.
    ['failed', 'review', false],
  ])('that a merchant asked for, fulfilment %s for %s: a case is %s', (...said) => {
    const [fulfilmentStatus, fulfilmentFailure, isCase] = said;
    const fact = { state: 'failed', learntFrom: 'query', word: 'NO' } as const;
    const { changes } = outcome({}, fact, 0, { fulfilmentStatus, fulfilmentFailure });
    expect(changes.filter(({ change }) => change === 'open_case')).toEqual(
      isCase
        ? [
            {
              change: 'open_case',
              kind: 'refund_failed',
              summary:
                'refund r-1: money of an order that was not delivered was not given back: NO',
            },
          ]
        : [],
    );
    expect(changes.at(-1)).toEqual({
      change: 'notify',
      event: 'refund.failed',
      subjectNo: 'r-1',
    });
  });

  it('at its only send and unknown to a query is failed', () => {
    const refused = { status: 'submitting', refusalCode: 'NO', sends: 1 } as const;
    const { verdict, changes } = outcome(refused, { state: 'not_found', learntFrom: 'query' });
    expect(verdict).toBe('refund_failed');
    expect(changes[0]).toEqual(moved('submitting', 'failed', 'NO'));
  });

  const notFinal: [string, Partial<Refund>, LearntFrom][] = [
    ['after an earlier send of unknown outcome', { refusalCode: 'NO', sends: 2 }, 'query'],
    ['without a refusal', { refusalCode: null, sends: 1 }, 'query'],
    ['but not asked by a query', { refusalCode: 'NO', sends: 1 }, 'callback'],
  ];
  it.each(notFinal)('B54: and not found, %s, is still open', (_, refund, learntFrom) => {
    expect(outcome(refund, { state: 'not_found', learntFrom })).toEqual({
      verdict: 'refund_pending',
      changes: [],
      next: 'none',
    });
  });

  it.each(['created', 'submitting'] as const)(
    'B61: for lack of balance stays in progress, its money reserved, from %s',
    (status) => {
      expect(outcome({ status }, { state: 'not_enough_balance', word: 'NOT_ENOUGH' })).toEqual({
        verdict: 'refund_pending',
        changes: [moved(status, 'processing', 'NOT_ENOUGH')],
        next: 'none',
      });
    },
  );

  it.each<[LearntFrom, RefundState, 'none' | 'query']>([
    ['submit', 'abnormal', 'none'],
    ['callback', 'abnormal', 'query'],
    ['query', 'processing', 'none'],
    ['trade_bill', 'processing', 'none'],
    ['operator', 'processing', 'none'],
  ])(
    'that waits for a person and is processing by the word of a %s is %s',
    (learntFrom, to, next) => {
      const said = outcome({ status: 'abnormal' }, { state: 'processing', learntFrom });
      expect(said.changes).toEqual(to === 'abnormal' ? [] : [moved('abnormal', to)]);
      expect(said.next).toBe(next);
    },
  );

  it('that the channel wants a person for is abnormal, with a case', () => {
    expect(outcome({}, { state: 'abnormal', word: 'ABNORMAL' })).toEqual({
      verdict: 'refund_abnormal',
      changes: [
        moved('processing', 'abnormal', 'ABNORMAL'),
        {
          change: 'open_case',
          kind: 'refund_abnormal',
          summary: 'refund r-1: the channel wants a person to act: ABNORMAL',
        },
      ],
      next: 'none',
    });
  });

  it('B59: or said to be in progress moves only once', () => {
    expect(outcome({ status: 'submitting' }, { state: 'processing' }).changes).toEqual([
      moved('submitting', 'processing'),
    ]);
    expect(outcome({}, { state: 'processing', learntFrom: 'query' })).toEqual({
      verdict: 'refund_pending',
      changes: [],
      next: 'none',
    });
  });

  it('B86: or said to be a word we do not know is a warning and moves nothing', () => {
    expect(outcome({}, { state: 'unknown', word: 'FROZEN' })).toEqual({
      verdict: 'unknown_state',
      changes: [{ change: 'warn', subject: 'refund', subjectId: 1, word: 'FROZEN' }],
      next: 'none',
    });
  });
});

describe('a refund whose money comes back', () => {
  const ends = [
    {
      change: 'open_case',
      kind: 'refund_returned',
      summary: 'refund r-1: the money of a refund came back to us',
    },
    { change: 'notify', event: 'refund.returned', subjectNo: 'r-1' },
  ];

  it('is returned, its sum taken off, with a case', () => {
    expect(outcome({ status: 'succeeded' }, { state: 'returned', word: 'BACK' }, 3_000)).toEqual({
      verdict: 'refund_returned',
      changes: [
        moved('succeeded', 'returned', 'BACK'),
        { change: 'unbook_refund', captureId: 1, amountMinor: 3_000 },
        ...ends,
      ],
      next: 'none',
    });
  });

  it.each(['created', 'submitting', 'processing', 'abnormal'] as const)(
    'before its success was known (%s) is booked and taken off in one go, told once',
    (status) => {
      const { changes } = outcome({ status }, { state: 'returned', word: 'BACK' });
      expect(changes).toEqual([
        moved(status, 'succeeded'),
        {
          change: 'book_refund',
          refundId: 1,
          captureId: 1,
          releaseMinor: 3_000,
          refundedMinor: 3_000,
        },
        moved('succeeded', 'returned', 'BACK'),
        { change: 'unbook_refund', captureId: 1, amountMinor: 3_000 },
        ...ends,
      ]);
    },
  );

  it('takes off no more than the channel’s figure that was booked', () => {
    const { changes } = outcome(
      { status: 'succeeded' },
      { state: 'returned', amountMinor: null },
      2_000,
    );
    expect(changes).toContainEqual({ change: 'unbook_refund', captureId: 1, amountMinor: 2_000 });
  });
});

describe('a refund we never made', () => {
  const foreign = (said: Partial<RefundFact>) =>
    settle(
      aPaidState(),
      aRefundFact({ outRefundNo: 'THEIRS', amountMinor: 700, ...said }),
      aContext(),
    );

  it.each([
    ['its channel_trade_no', { outTradeNo: null }],
    ['our out_trade_no', { channelTradeNo: null }],
  ])('is booked as external by %s, with a case', (_, said) => {
    expect(foreign(said)).toEqual({
      verdict: 'refund_external',
      changes: [
        {
          change: 'insert_external_refund',
          captureId: 1,
          outRefundNo: 'THEIRS',
          amountMinor: 700,
          currency: 'CNY',
          channelRefundNo: 'CR1',
        },
        {
          change: 'open_case',
          kind: 'refund_external',
          summary: 'ch-a paid back 700 (minor units) under THEIRS, which we never asked for',
        },
        { change: 'notify', event: 'refund.succeeded', subjectNo: 'external:THEIRS' },
      ],
      next: 'none',
    });
  });

  it.each([
    'processing',
    'failed',
    'not_found',
    'abnormal',
    'not_enough_balance',
    'unknown',
  ] as const)('has no effect while it is %s', (state) => {
    expect(foreign({ state }).verdict).toBe('no_effect');
  });

  it.each([
    ['of no capture of this order', { outTradeNo: null, channelTradeNo: 'T9' }],
    ['without any number of a payment', { outTradeNo: null, channelTradeNo: null }],
    ['without an amount', { amountMinor: null }],
    ['at another channel', { channel: 'ch-b' }],
  ])('%s is misdirected', (_, said) => {
    expect(foreign(said).verdict).toBe('misdirected');
  });
});

describe('a refund fact is misdirected', () => {
  it.each([
    ['from another channel', { channel: 'ch-b' }],
    ['from another account', { accountId: 'acc-b' }],
    ['from another app', { appId: 'app-b' }],
    ['about another attempt’s number', { outTradeNo: 'OUT9' }],
  ])('%s: nothing moves', (_, fact) => {
    for (const state of FACT_STATES) {
      const { verdict, changes } = outcome({}, { state, ...fact });
      expect([verdict, changes.map((c) => c.change)]).toEqual(['misdirected', ['open_case']]);
    }
  });

  it('when its capture is not of this order', () => {
    const state = aPaidState({
      records: [aPayRecord({ status: 'paid' })],
      refunds: [aRefund({ captureId: 9 })],
    });
    expect(settle(state, aRefundFact(), aContext()).verdict).toBe('misdirected');
  });
});
