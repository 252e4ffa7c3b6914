import type { Classification, DifferenceKind } from '../../domain/differences';
import { DIFFERENCE_KINDS, classify, expectedFeeMinor, questionOf } from '../../domain/differences';
import { sentenceOf } from '../../domain/difference-words';
import { DIFFERENCE_CASES } from '../support/difference-cases';

/** Not of a pair of a row and our books: the file's own sums. */
const OF_THE_FILE: DifferenceKind[] = ['file_total'];

function said(result: Classification): string {
  if (result.class === 'matched') return 'matched';
  return `${result.class} ${result.standing} ${result.reason}`.trim();
}

describe('the rule of differences', () => {
  it.each(DIFFERENCE_CASES.map((c) => [c.name, c.expected, c] as const))(
    '%s: %s',
    (_name, expected, { pair, feeBasisPoints }) =>
      expect(said(classify(pair, feeBasisPoints))).toBe(expected),
  );

  it('has a case for every kind of difference in the table', () => {
    const kinds = new Set(DIFFERENCE_CASES.map(({ expected }) => expected.split(' ')[0]));
    expect(DIFFERENCE_KINDS.filter((kind) => !kinds.has(kind))).toEqual(OF_THE_FILE);
  });
});

describe('the fee that is due', () => {
  it.each([
    [10_000, 60, 60],
    [100, 60, 1],
    [83, 60, 0],
    [84, 60, 1],
    [250, 60, 2],
    [249, 60, 1],
    [1, 60, 0],
    [123_456, 60, 741],
    [2_500_000, 60, 15_000],
    [9_007_199_254_740_991, 10_000, 9_007_199_254_740_991],
    [10_000, 0, 0],
  ])('of %d at %d basis points is %d', (amountMinor, rate, fee) =>
    expect(expectedFeeMinor(amountMinor, rate)).toBe(fee),
  );

  it('is exact for every amount', () => {
    for (let i = 0; i < 20_000; i++) {
      const amount = Math.floor(Math.random() * Number.MAX_SAFE_INTEGER);
      const rate = Math.floor(Math.random() * 10_000);
      const exact = (BigInt(amount) * BigInt(rate) + 5_000n) / 10_000n;
      expect([amount, rate, BigInt(expectedFeeMinor(amount, rate))]).toEqual([amount, rate, exact]);
    }
  });
});

describe('what is asked about a difference', () => {
  it('is the payment, the refund, or nothing', () => {
    expect(DIFFERENCE_KINDS.filter((kind) => questionOf(kind) === 'payment')).toEqual([
      'channel_only',
      'ours_only',
      'duplicate_payment',
      'currency',
      'amount',
      'status',
    ]);
    expect(DIFFERENCE_KINDS.filter((kind) => questionOf(kind) === 'refund')).toEqual([
      'refund_ours_only',
      'refund_amount',
      'refund_status',
    ]);
  });

  it('every kind has a sentence that names the number, the date and the line', () => {
    for (const kind of DIFFERENCE_KINDS) {
      const sentence = sentenceOf({
        channel: 'ch-a',
        day: '2026-05-01',
        kind,
        reason: '',
        subject: 'T1',
        lineNo: 7,
      });
      expect(sentence).toMatch(/^ch-a \(bill of 2026-05-01, line 7\): .+ T1$/);
    }
  });
});
