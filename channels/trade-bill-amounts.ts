import { isCurrency, parseDecimal } from '../domain/money';

/** How a channel writes amounts in its trade bills, as its manual declares it. */
export interface BillAmountFormat {
  /** `decimal`: "25000.00" with a point. `minor`: whole minor units, "2500000". */
  unit: 'decimal' | 'minor';
  /** Whether commas may stand between groups of three digits. */
  grouping: boolean;
  /** Whether the sign or the code of the row's currency may stand in front. */
  currencySigns: boolean;
}

/** Signs that may stand for a currency. One that fits another currency than the row's is refused. */
const SIGNS: Readonly<Record<string, readonly string[]>> = {
  CNY: ['CN¥', '¥', 'RMB'],
  JPY: ['JP¥', '¥'],
  USD: ['US$', '$'],
  HKD: ['HK$'],
  EUR: ['€'],
  GBP: ['£'],
  KRW: ['₩'],
};

const GROUPED = /^-?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?$/;
const WHOLE = /^-?(?:0|[1-9][0-9]{0,15})$/;

/**
 * Reads an amount exactly, or not at all: blanks around it and full-width forms are read as what
 * they stand for; separators and currency signs only as far as the format declares them.
 *
 * @returns minor units, or undefined when the text is not exactly an amount of that currency
 */
export function readBillAmount(
  text: string,
  currency: string,
  format: BillAmountFormat,
): number | undefined {
  if (!isCurrency(currency)) return undefined;
  return (
    readPlain(text, currency, format) ??
    readPlain(simplify(text, currency, format), currency, format)
  );
}

function readPlain(text: string, currency: string, format: BillAmountFormat): number | undefined {
  if (format.unit === 'decimal') return parseDecimal(text, currency);
  const minor = WHOLE.test(text) ? Number(text) : Number.NaN;
  // Not -0: it would not equal the 0 of our books in every comparison.
  return Number.isSafeInteger(minor) ? minor || 0 : undefined;
}

/** The same amount in plain ASCII; a text that is not the declared format stays unreadable. */
function simplify(text: string, currency: string, format: BillAmountFormat): string {
  // NFKC: full-width digits, signs and punctuation become their ASCII forms, ￥ becomes ¥.
  let plain = text
    .normalize('NFKC')
    .replace(/\u2212/g, '-')
    .trim();
  if (format.currencySigns) {
    const minus = plain.startsWith('-') ? '-' : '';
    const unsigned = plain.slice(minus.length);
    const sign = [...(SIGNS[currency] ?? []), currency].find((one) => unsigned.startsWith(one));
    if (sign !== undefined) plain = minus + unsigned.slice(sign.length).trim();
  }
  return format.grouping && GROUPED.test(plain) ? plain.replaceAll(',', '') : plain;
}
