import { isCurrency, parseDecimal } from '../../../domain/money';
import { Problem } from '../../problems';
import { formatAmount } from '../format';

const LOCALE = 'en';

/** Minor units as money. What cannot be shown exactly so (an unknown code, a sum past 2^53) stays digits. */
export function money(minor: number | string | null | undefined, currency: unknown): string {
  if (minor === null || minor === undefined) return '';
  const code = typeof currency === 'string' ? currency : '';
  const amount = Number(minor);
  if (!isCurrency(code) || !Number.isSafeInteger(amount)) return `${minor} ${code} (minor units)`;
  return formatAmount(amount, code, LOCALE);
}

/**
 * What a person typed, in minor units.
 * @throws Problem unacceptable_value that says how to write it
 */
export function typedAmount(text: string, currency: string): number {
  const minor = isCurrency(currency) ? parseDecimal(text.trim(), currency) : undefined;
  if (minor !== undefined && minor > 0) return minor;
  throw new Problem(
    'unacceptable_value',
    `amount: "${text.slice(0, 40)}" is no amount of ${currency}: write it with digits and a point, such as 12.50`,
  );
}
