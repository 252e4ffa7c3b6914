import type { Totals } from './bill-rows';
import type { Dialect, Operation } from './books';
import type { CallbackOverrides } from './control-types';
import type { Capture, Refund, Trade } from './ledger';
import type { Keys } from './signing';
import type { NewRefund, NewTrade } from './trade-desk';

/** The merchant's account at the channel, as one dialect knows it. */
export interface Account {
  dialect: Dialect;
  accountId: string;
  appId: string;
  keys: Keys;
}

/** A message's content: flat text in mock-a, nested JSON in mock-b. */
export type Content = Record<string, unknown>;

/** A question for a trade bill, and the download it leads to. */
export type BillCall =
  { operation: 'bill'; day: string } | { operation: 'bill_file'; path: string };

/** A request whose signature and form are in order. */
export type ReadCall = TradeCall | BillCall;

export type TradeCall =
  | { operation: 'create'; order: NewTrade }
  | { operation: 'query' | 'close'; outTradeNo: string }
  | { operation: 'refund'; order: NewRefund }
  | { operation: 'refund_query'; outRefundNo: string; outTradeNo: string | null };

/** A request, read: the call, or which refusal it gets and as much as could be read of it. */
export type Reading =
  | { ok: true; call: ReadCall }
  | {
      ok: false;
      code: 'INVALID_SIGNATURE' | 'INVALID_REQUEST' | 'ACCOUNT_MISMATCH';
      why: string;
      operation: Operation;
      outTradeNo: string | null;
      outRefundNo: string | null;
    };

export interface IncomingRequest {
  method: string;
  /** Path with its query, as signed. */
  path: string;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
}

export interface WireMessage {
  headers: Record<string, string>;
  body: Buffer;
}

/** What one notice is about: fixed when the event happens, signed anew at every delivery. */
export interface Notice {
  noticeId: string;
  dialect: Dialect;
  outTradeNo: string;
  outRefundNo: string | null;
  subject: string;
  kind: 'payment' | 'refund';
  /** The status word, in the dialect's spelling. */
  word: string;
  currency: string;
  content: Content;
}

/** What a dialect tells of a bill. */
export interface BillHead {
  day: string;
  fileName: string;
  sha256: string;
  /** Null: it states none. */
  totals: Totals[] | null;
  charset: string;
  /** Where it can be fetched, when that is another call. */
  path: string;
}

/** The bill itself behind these headers, or words that say where it is. */
export type BillAnswer = { headers: Record<string, string> } | { content: Content };

/** Everything that differs between the dialects; PROTOCOL.md sections 1 and 2. */
export interface DialectFormat {
  readonly dialect: Dialect;
  readonly acknowledgement: { contentType: string; body: string };
  /** The field with the channel's own number in an answer about a trade, and about a refund. */
  readonly tradeNoField: string;
  readonly refundNoField: string;
  readRequest(account: Account, request: IncomingRequest, now: Date): Reading;
  tradeContent(account: Account, trade: Trade, capture: Capture | null): Content;
  refundContent(account: Account, refund: Refund, trade: Trade): Content;
  /** Adds to a create's answer where the payer goes. */
  payParameters(trade: Trade, payUrl: string): Content;
  /** Puts another status word into a content. */
  setWord(content: Content, kind: 'payment' | 'refund', word: string): Content;
  wordOf(content: Content, kind: 'payment' | 'refund'): string;
  /** The word for "closed, unpaid". */
  readonly closedWord: string;
  /** The word for "paid". */
  readonly paidWord: string;
  refusal(code: string, why: string, numbers: Content): Content;
  /** The body's text with the signature headers over exactly it. */
  signAnswer(account: Account, body: Buffer): WireMessage;
  answerText(content: Content): string;
  /** The answer to a question for a bill: its head, and where the file is. */
  billAnswer(account: Account, bill: BillHead): BillAnswer;
  buildCallback(
    account: Account,
    notice: Notice,
    overrides: CallbackOverrides,
    now: Date,
  ): WireMessage;
}

/** The key a callback is signed with; `unknown` is one that nobody shares. */
export function callbackKey(keys: Keys, which: CallbackOverrides['key']): string {
  if (which === 'previous') return keys.previous ?? 'no previous key was configured';
  return which === 'unknown' ? 'a key that nobody shares with the merchant' : keys.current;
}

/** What is sent in place of a good signature. Undefined: the field or header is left out. */
export function spoilSignature(
  good: string,
  ofOtherBody: () => string,
  wanted: CallbackOverrides['signature'],
): string | undefined {
  if (typeof wanted === 'object') return wanted.text;
  switch (wanted) {
    case 'absent':
      return undefined;
    case 'empty':
      return '';
    case 'null':
      return 'null';
    case 'truncated':
      return good.slice(0, -8);
    case 'other_body':
      return ofOtherBody();
    default:
      return good;
  }
}

/** The Unix time in whole seconds that a callback claims; undefined: none. */
export function claimedTimestamp(overrides: CallbackOverrides, now: Date): string | undefined {
  if (overrides.timestamp === null) return undefined;
  if (overrides.timestamp !== undefined) return overrides.timestamp;
  return String(Math.floor(now.getTime() / 1000) + (overrides.timestampShiftSeconds ?? 0));
}

/** How far a request's timestamp may be off, both ways, in seconds. */
export const REQUEST_WINDOW_SECONDS = 300;

export const OUR_NUMBER = /^[A-Za-z0-9]{1,32}$/;

/** Whether a request's Unix time in whole seconds lies in the window around now. */
export function isTimely(timestamp: string, now: Date): boolean {
  if (!/^[0-9]{1,12}$/.test(timestamp)) return false;
  const offSeconds = Math.abs(Number(timestamp) - now.getTime() / 1000);
  return offSeconds <= REQUEST_WINDOW_SECONDS;
}

/** Whether the text is an instant as the protocol writes it. */
export function isInstant(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$/.test(text) && !isNaN(Date.parse(text));
}

/** Whether the text is a date of the calendar, `2026-05-01`. */
export function isDate(text: string): boolean {
  const at = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  return !isNaN(at) && new Date(at).toISOString().startsWith(text);
}
