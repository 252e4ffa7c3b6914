import currencyCodes from 'currency-codes';
import {
  CURRENCIES,
  MAX_AMOUNT_MINOR,
  exponentOf,
  formatDecimal,
  isAmountMinor,
  isCurrency,
  parseDecimal,
} from '../../domain/money';

describe('decimal text', () => {
  it('B43: reads and writes each of 0.01 … 100.00 as exactly its cents', () => {
    const wrong: string[] = [];
    for (let cents = 1; cents <= 10_000; cents += 1) {
      // The expected text is made of digits only: no float takes part.
      const text = `${(cents - (cents % 100)) / 100}.${cents % 100 < 10 ? '0' : ''}${cents % 100}`;
      if (parseDecimal(text, 'CNY') !== cents) wrong.push(`parse ${text}`);
      if (formatDecimal(cents, 'CNY') !== text) wrong.push(`format ${cents}`);
    }
    expect(wrong).toEqual([]);
  });

  it.each([
    ['19.99', 'CNY', 1_999],
    ['8.20', 'CNY', 820],
    ['0.01', 'CNY', 1],
    ['500', 'CNY', 50_000],
    ['500.0', 'CNY', 50_000],
    ['500.00', 'CNY', 50_000],
    ['500.000', 'CNY', 50_000],
    ['2000', 'JPY', 2_000],
    ['2000.00', 'JPY', 2_000],
    ['1.234', 'KWD', 1_234],
    ['1.2', 'KWD', 1_200],
    ['0.001', 'KWD', 1],
    ['21474836.48', 'CNY', 2_147_483_648],
    ['100000000.00', 'CNY', 10_000_000_000],
    ['90071992547409.91', 'CNY', MAX_AMOUNT_MINOR],
    ['9007199254740991', 'JPY', MAX_AMOUNT_MINOR],
    ['9007199254740.991', 'KWD', MAX_AMOUNT_MINOR],
    ['-3.21', 'CNY', -321],
    ['0', 'CNY', 0],
  ])('reads %p %s as %d minor units', (text, currency, minor) => {
    expect(parseDecimal(text, currency)).toBe(minor);
  });

  it.each([
    ['an exponent', '1e3', 'CNY'],
    ['a thousands separator', '1,000.00', 'CNY'],
    ['a decimal comma', '1.000,00', 'CNY'],
    ['a space before', ' 100', 'CNY'],
    ['a space after', '100 ', 'CNY'],
    ['a newline after', '100\n', 'CNY'],
    ['a plus', '+1', 'CNY'],
    ['two minuses', '--1', 'CNY'],
    ['full-width digits', '１０', 'CNY'],
    ['Arabic digits', '١٠', 'CNY'],
    ['no whole part', '.5', 'CNY'],
    ['no decimals after the point', '5.', 'CNY'],
    ['leading zeros', '00.1', 'CNY'],
    ['a leading zero', '01', 'CNY'],
    ['hexadecimal', '0x10', 'CNY'],
    ['an underscore', '1_000', 'CNY'],
    ['nothing', '', 'CNY'],
    ['a lone minus', '-', 'CNY'],
    ['no number', 'NaN', 'CNY'],
    ['infinity', 'Infinity', 'CNY'],
    ['a currency sign', '￥1.00', 'CNY'],
    ['a third decimal', '1.001', 'CNY'],
    ['decimals of yen', '16.24', 'JPY'],
    ['a fourth decimal of dinars', '1.2345', 'KWD'],
    ['one more than the largest', '90071992547409.92', 'CNY'],
    ['2^53 + 1, which a float rounds', '9007199254740993', 'JPY'],
    ['more digits than any amount has', '1'.repeat(40), 'JPY'],
  ])('refuses %s: %p %s', (_, text, currency) => {
    expect(parseDecimal(text, currency)).toBeUndefined();
  });

  it.each(['-0', '-0.00', '0.00'])('reads %p as no amount and never as minus zero', (text) => {
    const minor = parseDecimal(text, 'CNY');
    expect(isAmountMinor(minor)).toBe(false);
    expect(Object.is(minor, -0)).toBe(false);
  });

  it.each([
    [1_999, 'CNY', '19.99'],
    [5, 'CNY', '0.05'],
    [0, 'CNY', '0.00'],
    [-5, 'CNY', '-0.05'],
    [2_000, 'JPY', '2000'],
    [1, 'JPY', '1'],
    [1, 'KWD', '0.001'],
    [1_234_567, 'KWD', '1234.567'],
    [MAX_AMOUNT_MINOR, 'CNY', '90071992547409.91'],
  ])('writes %d %s as %p', (minor, currency, text) => {
    expect(formatDecimal(minor, currency)).toBe(text);
  });

  it.each([0.5, NaN, Infinity, MAX_AMOUNT_MINOR + 1])('refuses to write %p', (minor) => {
    expect(() => formatDecimal(minor, 'CNY')).toThrow(RangeError);
  });

  it.each(['XXX', 'cny', 'CNY ', ''])('refuses the currency %p by name', (currency) => {
    expect(() => parseDecimal('1', currency)).toThrow(RangeError);
    expect(() => formatDecimal(1, currency)).toThrow(RangeError);
  });

  it('reads back what it wrote in every currency, at every power of ten', () => {
    for (const currency of CURRENCIES) {
      for (let minor = 1; minor < MAX_AMOUNT_MINOR; minor *= 10) {
        for (const amount of [minor - 1, minor, minor + 1]) {
          expect(parseDecimal(formatDecimal(amount, currency), currency)).toBe(amount);
        }
      }
    }
  });
});

describe('an amount', () => {
  it.each([1, 2_000, MAX_AMOUNT_MINOR])('may be %d minor units', (amount) => {
    expect(isAmountMinor(amount)).toBe(true);
  });

  it.each([
    [0],
    [-0],
    [-1],
    [0.5],
    [NaN],
    [Infinity],
    [MAX_AMOUNT_MINOR + 1],
    ['100'],
    [null],
    [undefined],
    [[100]],
    [100n],
  ])('may not be %p', (amount) => {
    expect(isAmountMinor(amount)).toBe(false);
  });
});

describe('currencies', () => {
  /** Codes of ISO 4217 that we leave out, with the reason. */
  const LEFT_OUT: Record<string, string[]> = {
    'units of account, funds and bonds, in which no shop is paid':
      'BOV CHE CHW CLF COU MXV USN UYW XBA XBB XBC XBD XDR XSU XUA'.split(' '),
    'metals, tests and no currency': 'XAG XAU XPD XPT XTS XXX'.split(' '),
    'withdrawn or out of use': 'ANG CUC SVC VED'.split(' '),
  };
  /** Newer than the witness's list of June 2024: the Caribbean guilder took the place of ANG in 2025. */
  const NEWER = new Set(['XCG']);

  it('have the exponents that an independently kept list has', () => {
    const disagreements = CURRENCIES.filter((code) => {
      const witness = currencyCodes.code(code);
      return witness ? witness.digits !== exponentOf(code) : !NEWER.has(code);
    });
    expect(disagreements).toEqual([]);
  });

  it('are all of that list but those left out on purpose', () => {
    const missing = currencyCodes.codes().filter((code) => !isCurrency(code));
    expect(missing.sort()).toEqual(Object.values(LEFT_OUT).flat().sort());
  });

  it('are each listed once', () => {
    expect(new Set(CURRENCIES).size).toBe(CURRENCIES.length);
  });

  it.each([
    ['JPY', 0],
    ['KRW', 0],
    ['CNY', 2],
    ['EUR', 2],
    ['KWD', 3],
    ['BHD', 3],
  ])('%s has %d decimals', (currency, exponent) => {
    expect(exponentOf(currency)).toBe(exponent);
  });

  it.each(['cny', 'CN', 'CNYY', ' CNY', 'RMB', 'toString', '__proto__', ''])(
    'do not include %p',
    (text) => expect(isCurrency(text)).toBe(false),
  );
});
