/**
 * Money: an integer count of minor units plus an upper-case ISO 4217 currency code.
 *
 * Never a float: 19.99 * 100 is 1998.9999999999998. Decimal text is parsed digit by digit, exactly,
 * or refused; nothing is ever rounded.
 */

/** The largest amount accepted, in minor units: the largest integer JavaScript holds exactly. */
export const MAX_AMOUNT_MINOR = Number.MAX_SAFE_INTEGER;

/**
 * Digits after the decimal point of each currency we accept.
 * Source: ISO 4217 list one (active codes with a minor unit), maintained by SIX.
 */
const EXPONENTS: Record<number, string> = {
  0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
  2:
    'AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF ' +
    'CHF CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD ' +
    'HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK ' +
    'MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD ' +
    'RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH ' +
    'USD UYU UZS VES WST XCD XCG YER ZAR ZMW ZWG',
  3: 'BHD IQD JOD KWD LYD OMR TND',
};

const EXPONENT_BY_CURRENCY: ReadonlyMap<string, number> = new Map(
  Object.entries(EXPONENTS).flatMap(([exponent, codes]) =>
    codes.split(' ').map((code): [string, number] => [code, Number(exponent)]),
  ),
);

/** Every currency code we accept, sorted. */
export const CURRENCIES: readonly string[] = [...EXPONENT_BY_CURRENCY.keys()].sort();

/** Whether the text is an upper-case ISO 4217 code we know the minor unit of. */
export function isCurrency(text: string): boolean {
  return EXPONENT_BY_CURRENCY.has(text);
}

/**
 * Digits after the decimal point for a currency: JPY 0, CNY 2, KWD 3.
 * @throws RangeError for a code not in the list
 */
export function exponentOf(currency: string): number {
  const exponent = EXPONENT_BY_CURRENCY.get(currency);
  if (exponent === undefined) throw new RangeError(`unknown currency ${JSON.stringify(currency)}`);
  return exponent;
}

/** Whether the value is an amount we take or give back: an integer from 1 to MAX_AMOUNT_MINOR. */
export function isAmountMinor(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1;
}

/**
 * Reads a channel's decimal text exactly: optional minus, digits, at most as many decimals as the
 * currency has, extra decimals only when they are zero. No signs, spaces, separators or exponents.
 * "500", "500.0" and "500.00" are the same CNY amount; "16.24" is no JPY amount.
 *
 * @returns minor units, or undefined when the text is not exactly an amount (the caller says why)
 */
export function parseDecimal(text: string, currency: string): number | undefined {
  const match = /^(-?)(0|[1-9][0-9]{0,17})(?:\.([0-9]{1,18}))?$/.exec(text);
  if (!match) return undefined;
  const exponent = exponentOf(currency);
  const decimals = match[3] ?? '';
  if (/[1-9]/.test(decimals.slice(exponent))) return undefined;
  const minor = Number((match[2] ?? '') + decimals.slice(0, exponent).padEnd(exponent, '0'));
  if (!Number.isSafeInteger(minor)) return undefined;
  return match[1] === '-' && minor !== 0 ? -minor : minor;
}

/**
 * Writes minor units as decimal text with exactly the currency's decimals: 1999 CNY is "19.99".
 * @throws RangeError when the amount is not a safe integer or the currency is unknown
 */
export function formatDecimal(amountMinor: number, currency: string): string {
  if (!Number.isSafeInteger(amountMinor)) throw new RangeError(`not an amount: ${amountMinor}`);
  const exponent = exponentOf(currency);
  const digits = String(Math.abs(amountMinor)).padStart(exponent + 1, '0');
  const whole = digits.slice(0, digits.length - exponent);
  const sign = amountMinor < 0 ? '-' : '';
  return exponent === 0 ? sign + whole : `${sign}${whole}.${digits.slice(-exponent)}`;
}
