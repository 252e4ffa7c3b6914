import type { TradeBillAnswer } from './contract';
import { unreadable } from './http-answer';
import type { NoAnswer } from './http-answer';

/**
 * Channels say "there is no bill (yet)" in more spellings than their manuals know: the same channel
 * has written `NO_STATEMENT_EXIST`, `No Bill Exist` and `BILL_NOT_EXIST`. Compared are the letters
 * alone, in lower case.
 */
const NOT_READY: ReadonlySet<string> = new Set(
  ['bill', 'statement'].flatMap((it) => [
    `no${it}`,
    `no${it}exist`,
    `no${it}exists`,
    `${it}notexist`,
    `${it}notexists`,
    `${it}isnotexist`,
    `${it}doesnotexist`,
    `${it}notfound`,
    `${it}notready`,
    `${it}notgenerated`,
    `${it}creating`,
    `${it}iscreating`,
    `${it}generating`,
    `${it}isgenerating`,
  ]),
);

/** What a channel said, where a bill could have come: its own words, or nothing usable. */
export type SaidOfBill =
  | { code: 'success' }
  | { code: 'refusal'; word: string; sentence: string; retryAfterMs: number | null }
  | NoAnswer;

/** Sorts an answer that is no bill: not ready, refused, or unknown. */
export function billNoAnswer(said: SaidOfBill): TradeBillAnswer {
  if ('outcome' in said) return said;
  if (said.code === 'success') return unreadable('answer_without_bill');
  const { word, sentence, retryAfterMs } = said;
  if (saysBillNotReady(word, sentence)) {
    return { outcome: 'not_ready', reason: word.slice(0, 64), retryAfterMs };
  }
  return { outcome: 'refused', code: word.slice(0, 64), alreadyKnown: false };
}

/**
 * Whether a refusal of a bill means that it is not there yet, by its code or by its sentence (some
 * channels put all of this under one general code).
 */
export function saysBillNotReady(code: string, sentence: string): boolean {
  return NOT_READY.has(lettersOf(code)) || NOT_READY.has(lettersOf(sentence));
}

function lettersOf(text: string): string {
  return text
    .slice(0, 200)
    .toLowerCase()
    .replace(/doesn['’]?t/g, 'does not')
    .replace(/isn['’]?t/g, 'is not')
    .replace(/_/g, ' ')
    .replace(/\b(?:the|a|trade|yet)\b/g, '')
    .replace(/[^a-z]/g, '');
}
