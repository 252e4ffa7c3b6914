import { decidePay, isClosing, isLive, liveAttempt } from '../../domain/attempts';
import type { PayRecord } from '../../domain/orders';
import type { PayRecordStatus } from '../../domain/states';
import { anOrder, aPayRecord, at, NOW } from '../support/builders';

type Question = Parameters<typeof decidePay>[0];

function aQuestion(said: Partial<Question> = {}): Question {
  return {
    order: anOrder(),
    records: [],
    own: undefined,
    settled: undefined,
    channel: 'ch-a',
    channelEnabled: true,
    now: NOW,
    ...said,
  };
}

const live = aPayRecord();
const settled = aPayRecord({ payRecordId: 7, status: 'paid' });
const expiredParameters = { type: 'redirect', value: 'x', expiresAt: at('12:04') };

describe('a request to pay', () => {
  const opens: [string, Partial<Question>][] = [
    ['is the first one', { order: anOrder({ status: 'created' }) }],
    ['follows a failed attempt', { records: [aPayRecord({ status: 'failed' })] }],
    ['follows a closed attempt', { records: [aPayRecord({ status: 'closed' })] }],
  ];
  it.each(opens)('opens an attempt when it %s', (_, said) => {
    expect(decidePay(aQuestion(said))).toEqual({ decision: 'open' });
  });

  const joins: [string, PayRecord][] = [
    ['not yet sent', aPayRecord({ status: 'created' })],
    ['of unknown outcome', aPayRecord({ status: 'submitting', payParameters: null })],
    ['pending', aPayRecord()],
    [
      'pending with parameters still good',
      aPayRecord({
        payParameters: { type: 'redirect', value: 'x', expiresAt: at('12:06') },
      }),
    ],
  ];
  it.each(joins)('B02: joins the live attempt at the same channel: %s', (_, record) => {
    expect(decidePay(aQuestion({ records: [record] }))).toEqual({ decision: 'join', record });
  });

  const closesFirst: [string, PayRecord, string][] = [
    ['it is at another channel', live, 'ch-b'],
    ['its pay parameters have expired', aPayRecord({ payParameters: expiredParameters }), 'ch-a'],
    [
      'its parameters expire this instant',
      aPayRecord({
        payParameters: { type: 'redirect', value: 'x', expiresAt: NOW },
      }),
      'ch-a',
    ],
    [
      'its parameters expired by a clock in another zone',
      aPayRecord({
        payParameters: { type: 'redirect', value: 'x', expiresAt: '2026-03-01T20:04:00+08:00' },
      }),
      'ch-a',
    ],
    ['it is on its way out', aPayRecord({ closeRequestedAt: at('12:03') }), 'ch-a'],
  ];
  it.each(closesFirst)('B04: closes the live attempt first when %s', (_, record, channel) => {
    expect(decidePay(aQuestion({ records: [record], channel }))).toEqual({
      decision: 'close_first',
      record,
    });
  });

  const refused: [string, string, Partial<Question>][] = [
    ['the order is in review', 'order_in_review', { order: anOrder({ status: 'review' }) }],
    ['the order is closed', 'order_closed', { order: anOrder({ status: 'closed' }) }],
    [
      'the order was refunded in full',
      'order_refunded',
      {
        order: anOrder({ status: 'paid', refundStatus: 'full' }),
        settled,
      },
    ],
    ['the deadline has passed', 'order_expired', { order: anOrder({ expiresAt: at('12:04') }) }],
    ['the deadline is this instant', 'order_expired', { order: anOrder({ expiresAt: NOW }) }],
    [
      'the order is being closed',
      'order_expired',
      {
        order: anOrder({ closeRequestedAt: at('12:04'), closeReason: 'cancelled' }),
        records: [live],
      },
    ],
    ['the channel takes no payments', 'channel_disabled', { channelEnabled: false }],
  ];
  it.each(refused)('is refused when %s: %s', (_, reason, said) => {
    expect(decidePay(aQuestion(said))).toEqual({ decision: 'refuse', reason });
  });

  it.each(['none', 'pending', 'partial'] as const)(
    'B102: of a paid order with refunds %p is answered with the payment, at any channel',
    (refundStatus) => {
      const order = anOrder({ status: 'paid', refundStatus, expiresAt: at('12:00') });
      expect(decidePay(aQuestion({ order, settled, channel: 'ch-b' }))).toEqual({
        decision: 'paid',
        record: settled,
      });
    },
  );

  it.each([[[]], [[live]]])('never opens or joins an attempt of a paid order', (records) => {
    const order = anOrder({ status: 'paid' });
    expect(decidePay(aQuestion({ order, settled: undefined, records })).decision).toBe('refuse');
  });

  it.each(['created', 'paying', 'paid', 'closed', 'review'] as const)(
    'under a number already used is answered with its own record though the order is %s',
    (status) => {
      const own = aPayRecord({ payRecordId: 3, status: 'failed' });
      const order = anOrder({ status, refundStatus: 'full', expiresAt: at('12:00') });
      expect(decidePay(aQuestion({ order, own, settled, records: [live, own] }))).toEqual({
        decision: 'same',
        record: own,
      });
    },
  );

  it('joins at a channel that no longer takes new payments: the attempt is there already', () => {
    expect(decidePay(aQuestion({ records: [live], channelEnabled: false })).decision).toBe('join');
  });
});

describe('a live attempt', () => {
  it.each([
    ['created', true],
    ['submitting', true],
    ['pending', true],
    ['paid', false],
    ['failed', false],
    ['closed', false],
  ] as [PayRecordStatus, boolean][])('%s: %p', (status, expected) => {
    const record = aPayRecord({ status });
    expect(isLive(record)).toBe(expected);
    expect(liveAttempt([aPayRecord({ status: 'failed' }), record])).toBe(
      expected ? record : undefined,
    );
  });

  it.each([
    ['the order is open', anOrder(), aPayRecord(), false],
    ['the order has just been made', anOrder({ status: 'created' }), aPayRecord(), false],
    ['the order is to be closed', anOrder({ closeRequestedAt: at('12:04') }), aPayRecord(), true],
    ['it is to be closed itself', anOrder(), aPayRecord({ closeRequestedAt: at('12:04') }), true],
    ['the order is paid', anOrder({ status: 'paid' }), aPayRecord(), true],
    ['the order is closed', anOrder({ status: 'closed' }), aPayRecord(), true],
    ['the order is in review', anOrder({ status: 'review' }), aPayRecord(), true],
  ])('is on its way out when %s: %#', (_, order, record, expected) => {
    expect(isClosing(order, record)).toBe(expected);
  });
});
