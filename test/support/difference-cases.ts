/**
 * One table of pairs for two tests: the pure rule (test/domain/differences.test.ts) and the comparison
 * in SQL (test/db/comparison-table.test.ts) must say the same of each. Fee: 0.6 % unless said.
 */
import type {
  CaptureSide,
  ComparedPair,
  Elsewhere,
  LineSide,
  RefundSide,
} from '../../domain/differences';

export interface DifferenceCase {
  name: string;
  pair: ComparedPair;
  feeBasisPoints: number;
  /** `matched`, or kind, standing and reason. */
  expected: string;
}

const line = (said: Partial<LineSide> = {}): LineSide => ({
  kind: 'payment',
  status: 'succeeded',
  amountMinor: 10_000,
  currency: 'CNY',
  feeMinor: said.kind === 'refund' ? -60 : 60,
  appearance: 1,
  inOtherBill: false,
  reversedMinor: 0,
  namesOther: false,
  orderPaid: false,
  secondRefund: false,
  ...said,
});
const capture = (said: Partial<CaptureSide> = {}): CaptureSide => ({
  amountMinor: 10_000,
  currency: 'CNY',
  kind: 'settling',
  settles: said.kind === undefined || said.kind === 'settling',
  status: 'captured',
  reservedMinor: 0,
  refundedMinor: 0,
  reversedMinor: 0,
  reversedLater: false,
  ...said,
});
const refund = (said: Partial<RefundSide> = {}): RefundSide => ({
  amountMinor: 10_000,
  currency: 'CNY',
  status: 'succeeded',
  answeredSince: false,
  ...said,
});

type Row = [name: string, expected: string, pair: ComparedPair, feeBasisPoints?: number];

const paid = (l: Partial<LineSide>, c: Partial<CaptureSide> | null = {}): ComparedPair => ({
  line: line(l),
  capture: c && capture(c),
  refund: null,
});
const takenBack = (sum: number, l: Partial<LineSide>, c: Partial<CaptureSide> | null) =>
  paid({ kind: 'reversal', amountMinor: sum, reversedMinor: sum, feeMinor: null, ...l }, c);
const refunded = (l: Partial<LineSide>, f: Partial<RefundSide> | null = {}): ComparedPair => ({
  line: line({ kind: 'refund', ...l }),
  capture: null,
  refund: f && refund(f),
});
const elsewhere = (said: Partial<Elsewhere> = {}): Elsewhere => ({
  pairedElsewhere: false,
  nearMidnight: false,
  poolOver: false,
  ...said,
});
const onlyCapture = (said: Partial<Elsewhere>, c: Partial<CaptureSide> = {}): ComparedPair => ({
  line: null,
  capture: capture(c),
  refund: null,
  elsewhere: elsewhere(said),
});
const onlyRefund = (said: Partial<Elsewhere>): ComparedPair => ({
  line: null,
  capture: null,
  refund: refund(),
  elsewhere: elsewhere(said),
});

const reversed = { status: 'reversed', reversedMinor: 10_000 } as const;
const second = { kind: 'surplus_duplicate' } as const;

const ROWS: Row[] = [
  ['a payment both have', 'matched', paid({})],
  ['a payment that a case holds', 'matched', paid({}, { kind: 'held' })],
  ['a payment of which part was refunded', 'matched', paid({}, { refundedMinor: 5_000 })],
  ['a payment of which part was taken back', 'matched', paid({}, { reversedMinor: 5_000 })],
  ['a payment only the channel has', 'channel_only open', paid({}, null)],
  [
    'a second trade of a paid order',
    'duplicate_payment open second_trade',
    paid({ orderPaid: true }, null),
  ],
  ['another amount by one', 'amount open', paid({ amountMinor: 10_001 })],
  ['no amount', 'amount open', paid({ amountMinor: null })],
  ['another currency', 'currency open', paid({ currency: 'USD' })],
  ['no currency', 'currency open', paid({ currency: null })],
  [
    'another amount and another currency',
    'currency open',
    paid({ currency: 'USD', amountMinor: 1 }),
  ],
  ['the number of another attempt', 'status open number_of_another', paid({ namesOther: true })],
  ['reversed here, not in the bill', 'status open reversed_here', paid({}, reversed)],
  ['reversed here after the date', 'matched', paid({}, { ...reversed, reversedLater: true })],
  ['reversed here and in the bill', 'matched', paid({ reversedMinor: 10_000 }, reversed)],
  ['another amount of a reversed one', 'amount open', paid({ amountMinor: 1 }, reversed)],
  ['a surplus not yet given back', 'duplicate_payment open surplus', paid({}, second)],
  [
    'a surplus being given back',
    'duplicate_payment waiting being_refunded',
    paid({}, { ...second, reservedMinor: 10_000 }),
  ],
  [
    'a surplus of which part was given back',
    'duplicate_payment open surplus',
    paid({}, { ...second, refundedMinor: 9_999 }),
  ],
  ['a surplus given back', 'matched', paid({}, { ...second, refundedMinor: 10_000 })],
  [
    'a surplus given back and taken back in parts',
    'matched',
    paid({}, { ...second, refundedMinor: 4_000, reversedMinor: 6_000 }),
  ],
  ['a late payment', 'duplicate_payment open surplus', paid({}, { kind: 'surplus_late' })],
  [
    'a surplus with another amount',
    'amount open',
    paid({ amountMinor: 10_001 }, { ...second, reservedMinor: 10_000 }),
  ],
  ['no fee', 'fee open missing', paid({ feeMinor: null })],
  ['a fee of zero', 'fee open wrong', paid({ feeMinor: 0 })],
  ['a fee wrong by one', 'fee open wrong', paid({ feeMinor: 61 })],
  ['a negative fee of a payment', 'fee open wrong', paid({ feeMinor: -60 })],
  ['no fee where none is compared', 'matched', paid({ feeMinor: null }), 0],
  [
    'a fee rounded half up',
    'matched',
    paid({ amountMinor: 250, feeMinor: 2 }, { amountMinor: 250 }),
  ],
  [
    'a fee rounded down where half up is due',
    'fee open wrong',
    paid({ amountMinor: 250, feeMinor: 1 }, { amountMinor: 250 }),
  ],
  [
    'the fee of the largest amount',
    'matched',
    paid(
      { amountMinor: 9_007_199_254_740_991, feeMinor: 54_043_195_528_446 },
      { amountMinor: 9_007_199_254_740_991 },
    ),
  ],
  ['another fee of another amount', 'amount open', paid({ amountMinor: 20_000, feeMinor: 1 })],
  ['the same row again', 'duplicate_row open repeated', paid({ appearance: 2 })],
  ['the same row a third time', 'duplicate_row open repeated', paid({ appearance: 3 })],
  [
    'the same row again with another amount',
    'duplicate_row open repeated',
    paid({ appearance: 2, amountMinor: 1 }),
  ],
  [
    'the same row again, only the channel has it',
    'duplicate_row open repeated',
    paid({ appearance: 2 }, null),
  ],
  ['a row that the earlier bill has', 'duplicate_row open other_bill', paid({ inOtherBill: true })],
  ['a payment of an unknown state', 'unknown_row open state', paid({ status: 'unknown' })],
  ['a payment that has not succeeded', 'unknown_row open state', paid({ status: 'processing' })],
  ['a row nobody knows', 'unknown_row open', paid({ kind: 'unknown', amountMinor: -321 }, null)],
  [
    'an entry by hand',
    'adjustment open',
    paid({ kind: 'adjustment', amountMinor: -500, feeMinor: null }, null),
  ],
  [
    'a row that cannot be read',
    'row_error open',
    paid({ kind: 'error', status: 'unknown', amountMinor: null, currency: null }, null),
  ],

  ['a reversal both have', 'matched', takenBack(10_000, {}, reversed)],
  ['a part taken back on both sides', 'matched', takenBack(4_000, {}, { reversedMinor: 4_000 })],
  ['a part, and more of it since', 'matched', takenBack(4_000, {}, { reversedMinor: 5_000 })],
  ['a reversal we lack', 'status open not_reversed_here', takenBack(10_000, {}, {})],
  [
    'a reversal of which we have a part',
    'status open not_reversed_here',
    takenBack(4_001, {}, { reversedMinor: 4_000 }),
  ],
  ['a reversal of unknown money', 'channel_only open reversal', takenBack(10_000, {}, null)],
  [
    'a reversal in another currency',
    'currency open',
    takenBack(10_000, { currency: 'USD' }, reversed),
  ],
  [
    'a reversal of an unknown state',
    'unknown_row open state',
    takenBack(10_000, { status: 'unknown' }, reversed),
  ],

  ['a refund both have', 'matched', refunded({})],
  ['a refund that came back to us later', 'matched', refunded({}, { status: 'returned' })],
  ['a refund only the channel has', 'refund_channel_only open', refunded({}, null)],
  ['a refund of another amount', 'refund_amount open', refunded({ amountMinor: 9_999 })],
  ['a refund in another currency', 'refund_amount open', refunded({ currency: 'USD' })],
  ['the same refund again', 'duplicate_row open repeated', refunded({ appearance: 2 })],
  [
    'a refund that the earlier bill has',
    'duplicate_row open other_bill',
    refunded({ inOtherBill: true }),
  ],
  [
    'a refund paid again under our number',
    'refund_channel_only open second_refund',
    refunded({ secondRefund: true }),
  ],
  [
    'another amount paid again under our number',
    'refund_channel_only open second_refund',
    refunded({ secondRefund: true, amountMinor: 9_999 }),
  ],
  [
    'a refund paid under our number that failed here',
    'refund_channel_only open second_refund',
    refunded({ secondRefund: true }, { status: 'failed' }),
  ],
  [
    'the second refund’s row again',
    'duplicate_row open repeated',
    refunded({ secondRefund: true, appearance: 2 }),
  ],
  ['a refund without its fee', 'fee open missing', refunded({ feeMinor: null })],
  ['a refund that keeps the fee', 'fee open wrong', refunded({ feeMinor: 60 })],
  ['no fee of a refund where none is compared', 'matched', refunded({ feeMinor: null }), 0],
  ...(['created', 'submitting', 'processing', 'failed', 'abnormal'] as const).map((status): Row => [
    `a refund done there and ${status} here`,
    'refund_status open not_succeeded_here',
    refunded({}, { status }),
  ]),
  ['frozen in the file, done here', 'matched', refunded({ status: 'processing' })],
  [
    'frozen in the file, returned here',
    'matched',
    refunded({ status: 'processing' }, { status: 'returned' }),
  ],
  ...(['created', 'submitting', 'processing'] as const).map((status): Row => [
    `under way there and ${status} here`,
    'refund_status open processing',
    refunded({ status: 'processing' }, { status }),
  ]),
  [
    'under way on both sides, and asked',
    'refund_status waiting processing',
    refunded({ status: 'processing' }, { status: 'processing', answeredSince: true }),
  ],
  ...(['failed', 'abnormal'] as const).map((status): Row => [
    `under way there and ${status} here`,
    'refund_status open not_processing_here',
    refunded({ status: 'processing' }, { status }),
  ]),
  ['failed on both sides', 'matched', refunded({ status: 'failed' }, { status: 'failed' })],
  ...(['succeeded', 'processing', 'returned'] as const).map((status): Row => [
    `failed there and ${status} here`,
    'refund_status open failed_there',
    refunded({ status: 'failed' }, { status }),
  ]),
  [
    'a refund of an unknown word',
    'refund_status open unknown_word',
    refunded({ status: 'unknown' }),
  ],

  ['a payment only we have', 'ours_only open', onlyCapture({})],
  [
    'a payment only we have, near midnight',
    'ours_only suspense',
    onlyCapture({ nearMidnight: true }),
  ],
  [
    'a payment only we have, near midnight, for too long',
    'ours_only open',
    onlyCapture({ nearMidnight: true, poolOver: true }),
  ],
  ['a payment in the neighbour’s bill', 'matched', onlyCapture({ pairedElsewhere: true })],
  [
    'a payment near midnight in the neighbour’s bill',
    'matched',
    onlyCapture({ pairedElsewhere: true, nearMidnight: true }),
  ],
  ['a surplus only we have', 'ours_only open', onlyCapture({}, second)],
  ['a refund only we have', 'refund_ours_only open', onlyRefund({})],
  [
    'a refund only we have, near midnight',
    'refund_ours_only suspense',
    onlyRefund({ nearMidnight: true }),
  ],
  [
    'a refund only we have, near midnight, for too long',
    'refund_ours_only open',
    onlyRefund({ nearMidnight: true, poolOver: true }),
  ],
  ['a refund in the neighbour’s bill', 'matched', onlyRefund({ pairedElsewhere: true })],
];

export const DIFFERENCE_CASES: DifferenceCase[] = ROWS.map(
  ([name, expected, pair, feeBasisPoints = 60]) => ({ name, expected, pair, feeBasisPoints }),
);
