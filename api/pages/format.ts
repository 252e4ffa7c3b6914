import { formatDecimal } from '../../domain/money';

/** Minor units as people of that locale write them: ¥1,234.50. Exact: the number stays text. */
export function formatAmount(amountMinor: number, currency: string, locale: string): string {
  const text = formatDecimal(amountMinor, currency) as `${number}`;
  return new Intl.NumberFormat(locale, { style: 'currency', currency }).format(text as never);
}
