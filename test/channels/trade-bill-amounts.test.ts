import { readBillAmount } from '../../channels/trade-bill-amounts';
import type { BillAmountFormat } from '../../channels/trade-bill-amounts';

const DECIMAL: BillAmountFormat = { unit: 'decimal', grouping: true, currencySigns: true };
const PLAIN: BillAmountFormat = { unit: 'decimal', grouping: false, currencySigns: false };
const MINOR: BillAmountFormat = { unit: 'minor', grouping: false, currencySigns: false };

describe('an amount of a trade bill', () => {
  it.each<[string, string, number | undefined]>([
    ['25,000.00', 'CNY', 2_500_000],
    ['25,000', 'CNY', 2_500_000],
    ['1,234,567.89', 'CNY', 123_456_789],
    ['-1,234.56', 'CNY', -123_456],
    ['￥1,234.56', 'CNY', 123_456],
    ['¥1,234.56', 'CNY', 123_456],
    ['-¥3.21', 'CNY', -321],
    ['CNY 1,234.56', 'CNY', 123_456],
    ['￥2,000', 'JPY', 2_000],
    ['$1,234.56', 'USD', 123_456],
    [' 10.00 ', 'CNY', 1_000],
    ['\u300010.00\u00a0', 'CNY', 1_000],
    ['１，２３４．５６', 'CNY', 123_456],
    ['−3.21', 'CNY', -321],
    ['2000', 'JPY', 2_000],
    ['2000.00', 'JPY', 2_000],
    ['1.234', 'KWD', 1_234],
    // What the declared format does not say is not read, even where one could guess.
    ['1.234,56', 'CNY', undefined],
    ['1 234.56', 'CNY', undefined],
    ['1,23', 'CNY', undefined],
    ['12,34,567.00', 'CNY', undefined],
    ['1234,567.00', 'CNY', undefined],
    ['$1,234.56', 'CNY', undefined],
    ['￥1,234.56', 'USD', undefined],
    ['16.24', 'JPY', undefined],
    ['10.001', 'CNY', undefined],
    ['+10.00', 'CNY', undefined],
    ['1e3', 'CNY', undefined],
    ['', 'CNY', undefined],
    ['-', 'CNY', undefined],
    ['NaN', 'CNY', undefined],
    ['90071992547409.92', 'CNY', undefined],
    ['10.00', 'XXX', undefined],
    ['10.00', '', undefined],
  ])('B91: %j of %s is %p', (text, currency, minor) => {
    expect(readBillAmount(text, currency, DECIMAL)).toBe(minor);
  });

  it.each([['25,000.00'], ['￥1,234.56'], ['CNY 1.00']])(
    'B91: %j is refused where neither separators nor signs are declared',
    (text) => expect(readBillAmount(text, 'CNY', PLAIN)).toBeUndefined(),
  );

  it.each<[string, number | undefined]>([
    ['2500000', 2_500_000],
    [' １０００ ', 1_000],
    ['0', 0],
    ['-0', 0],
    ['-321', -321],
    ['25,000', undefined],
    ['10.00', undefined],
    ['007', undefined],
    ['9007199254740992', undefined],
    ['', undefined],
  ])('in minor units %j is %p', (text, minor) => {
    expect(readBillAmount(text, 'CNY', MINOR)).toBe(minor);
  });

  it('B43: reads each of 0.01 … 100.00 exactly, in every spelling', () => {
    let mismatches = 0;
    for (let minor = 1; minor <= 10_000; minor += 1) {
      const text = `${Math.floor(minor / 100)}.${String(minor % 100).padStart(2, '0')}`;
      for (const spelt of [text, ` ${text} `, `￥${text}`]) {
        if (readBillAmount(spelt, 'CNY', DECIMAL) !== minor) mismatches += 1;
      }
      if (readBillAmount(String(minor), 'CNY', MINOR) !== minor) mismatches += 1;
    }
    expect(mismatches).toBe(0);
  });

  it('B41: reads yen as yen, neither hundredfold nor by the hundred', () => {
    for (const format of [DECIMAL, MINOR])
      expect(readBillAmount('2000', 'JPY', format)).toBe(2_000);
  });
});
