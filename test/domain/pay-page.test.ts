import { isIdentifier } from '../../domain/orders';
import type { Order, PayRecord } from '../../domain/orders';
import { isLinkOver, pageRequestNo, payPageView } from '../../domain/pay-page';
import type { PayPageState } from '../../domain/pay-page';
import { anOrder, aPayRecord } from '../support/builders';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const LATER = '2026-03-01T12:10:00.000Z';
const BEFORE = '2026-03-01T11:59:59.000Z';
const parameters = { type: 'redirect', value: 'https://channel.example/pay/1', expiresAt: null };

interface Row {
  says: string;
  order?: Partial<Order>;
  records?: Partial<PayRecord>[];
  state: PayPageState;
  mayPay: boolean;
  attemptNo?: number;
  isOver?: boolean;
}

const OVER = { mayPay: false, isOver: true };

describe('what the payer’s page says of an order', () => {
  it.each<Row>([
    {
      says: 'nothing tried',
      order: { status: 'created' },
      state: 'choosing',
      mayPay: true,
      attemptNo: 1,
    },
    {
      says: 'waits for the payer at the channel',
      records: [{ status: 'pending', payParameters: parameters }],
      state: 'going',
      mayPay: true,
      attemptNo: 2,
    },
    { says: 'not sent yet', records: [{ status: 'created' }], state: 'waiting', mayPay: true },
    {
      says: 'outcome unknown',
      records: [{ status: 'submitting' }],
      state: 'waiting',
      mayPay: true,
    },
    {
      says: 'pending without a way to pay it',
      records: [{ status: 'pending', payParameters: null }],
      state: 'waiting',
      mayPay: true,
    },
    {
      says: 'the attempt is being closed',
      records: [{ status: 'pending', payParameters: parameters, closeRequestedAt: BEFORE }],
      state: 'waiting',
      mayPay: true,
    },
    {
      says: 'the order is being closed',
      order: { closeRequestedAt: BEFORE },
      records: [{ status: 'pending', payParameters: parameters }],
      state: 'waiting',
      mayPay: false,
    },
    {
      says: 'the deadline has passed, closing is not confirmed',
      order: { expiresAt: BEFORE },
      records: [{ status: 'pending', payParameters: parameters }],
      state: 'waiting',
      mayPay: false,
    },
    {
      says: 'the deadline has passed, nothing tried',
      order: { expiresAt: BEFORE },
      state: 'waiting',
      mayPay: false,
    },
    {
      says: 'declined',
      records: [{ status: 'failed' }],
      state: 'again',
      mayPay: true,
      attemptNo: 2,
    },
    {
      says: 'the first was declined, the second waits',
      records: [{ status: 'failed' }, { status: 'pending', payParameters: parameters }],
      state: 'going',
      mayPay: true,
      attemptNo: 3,
    },
    {
      says: 'paid',
      order: { status: 'paid' },
      records: [{ status: 'paid' }],
      state: 'paid',
      ...OVER,
    },
    {
      says: 'partly refunded',
      order: { status: 'paid', refundStatus: 'partial' },
      state: 'paid',
      ...OVER,
    },
    {
      says: 'refunded',
      order: { status: 'paid', refundStatus: 'full' },
      state: 'refunded',
      ...OVER,
    },
    { says: 'closed', order: { status: 'closed' }, state: 'closed', ...OVER },
    {
      says: 'under review',
      order: { status: 'review' },
      state: 'review',
      mayPay: false,
      isOver: false,
    },
  ])('$says: $state', ({ order, records = [], says: _, ...expected }) => {
    const view = payPageView(
      {
        order: anOrder({ status: 'paying', expiresAt: LATER, ...order }),
        records: records.map((record) => aPayRecord(record)),
      },
      NOW,
    );
    expect(view).toMatchObject(expected);
    expect(view.record).toEqual(
      ['going', 'again', 'waiting'].includes(view.state) && records.length > 0
        ? aPayRecord(records.at(-1))
        : undefined,
    );
  });

  it('the number of an attempt follows from the order, one for each channel, and fits everywhere', () => {
    expect(pageRequestNo(1, 'mock-a')).toBe('page-1-mock-a');
    expect(pageRequestNo(2, 'mock-a')).not.toBe(pageRequestNo(1, 'mock-a'));
    expect(pageRequestNo(1, 'mock-b')).not.toBe(pageRequestNo(1, 'mock-a'));
    expect(isIdentifier(pageRequestNo(123_456, 'c'.repeat(64)))).toBe(true);
  });

  it.each([
    ['paying', BEFORE, false],
    ['paid', LATER, false],
    ['paid', '2026-02-28T12:00:01.000Z', false],
    ['paid', '2026-02-28T11:59:59.000Z', true],
    ['closed', '2026-02-28T11:59:59.000Z', true],
    ['review', '2026-02-01T00:00:00.000Z', false],
    ['paying', '2026-02-01T00:00:00.000Z', false],
  ] as const)('the link of an order %s until %s is over: %s', (status, expiresAt, isOver) => {
    expect(isLinkOver(anOrder({ status, expiresAt }), NOW)).toBe(isOver);
  });
});
