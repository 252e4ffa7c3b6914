import { readFileSync } from 'node:fs';
import type { BookRecord } from '../../mock-channel/books';
import { MockChannelControl } from '../../mock-channel/control-client';

/** One sum that the channel took, folded from its own books; minor units. */
export interface ChannelCapture {
  dialect: string;
  outTradeNo: string;
  channelTradeNo: string;
  amountMinor: number;
  currency: string;
  /** ISO 8601. */
  at: string;
  /** Executed refunds, less what came back. */
  refundedMinor: number;
  /** Refunds accepted and not final. */
  underWayMinor: number;
}

/** What the channel did under one of our refund numbers. */
export interface ChannelRefund {
  dialect: string;
  outRefundNo: string;
  outTradeNo: string;
  channelTradeNo: string;
  amountMinor: number;
  accepted: number;
  executed: number;
  refused: number;
  returned: number;
  /** When its state last changed; ISO 8601. */
  at: string;
}

export interface ChannelBooks {
  captures: Map<string, ChannelCapture>;
  refunds: Map<string, ChannelRefund>;
}

/** A channel may repeat a trade number under another of our numbers, so both name a capture. */
export function captureKey(dialect: string, outTradeNo: string, channelTradeNo: string): string {
  return `${dialect}:${outTradeNo}:${channelTradeNo}`;
}

export function refundKey(dialect: string, outRefundNo: string): string {
  return `${dialect}:${outRefundNo}`;
}

/** Folds the records (the format is described in mock-channel/PROTOCOL.md, section 4). */
export function foldBooks(records: Iterable<BookRecord>): ChannelBooks {
  const books: ChannelBooks = { captures: new Map(), refunds: new Map() };
  for (const record of records) {
    switch (record.type) {
      case 'captured': {
        const { dialect, outTradeNo, channelTradeNo, amountMinor, currency, at } = record;
        books.captures.set(captureKey(dialect, outTradeNo, channelTradeNo), {
          ...{ dialect, outTradeNo, channelTradeNo, amountMinor, currency, at },
          ...{ refundedMinor: 0, underWayMinor: 0 },
        });
        break;
      }
      case 'refund_accepted':
      case 'refund_executed':
      case 'refund_refused':
      case 'refund_abnormal':
      case 'refund_returned':
        applyRefund(books, record);
        break;
      default:
        break;
    }
  }
  return books;
}

type RefundRecord = Extract<BookRecord, { outRefundNo: string; channelTradeNo: string }>;

function applyRefund(books: ChannelBooks, record: RefundRecord): void {
  const { dialect, outRefundNo, outTradeNo, channelTradeNo, amountMinor, at } = record;
  const key = refundKey(dialect, outRefundNo);
  const refund = books.refunds.get(key) ?? {
    ...{ dialect, outRefundNo, outTradeNo, channelTradeNo, amountMinor },
    ...{ accepted: 0, executed: 0, refused: 0, returned: 0, at },
  };
  refund.at = at;
  books.refunds.set(key, refund);
  const capture = books.captures.get(captureKey(dialect, outTradeNo, channelTradeNo));
  // A refund is under way once, however often the books say that it ended.
  const wasUnderWay = refund.accepted > 0 && refund.executed + refund.refused === 0;
  if (record.type === 'refund_accepted') refund.accepted++;
  if (record.type === 'refund_executed') refund.executed++;
  if (record.type === 'refund_refused') refund.refused++;
  if (record.type === 'refund_returned') refund.returned++;
  const isUnderWay = refund.accepted > 0 && refund.executed + refund.refused === 0;
  if (!capture) return;
  capture.underWayMinor += (Number(isUnderWay) - Number(wasUnderWay)) * amountMinor;
  if (record.type === 'refund_executed') capture.refundedMinor += amountMinor;
  if (record.type === 'refund_returned') capture.refundedMinor -= amountMinor;
}

/**
 * The records of a books file, or of a running channel when given its control address.
 * @throws Error when a line is no record; a last line without its end was never told to anybody
 */
export async function readChannelBooks(fileOrControlUrl: string): Promise<BookRecord[]> {
  if (/^https?:\/\//.test(fileOrControlUrl)) {
    return new MockChannelControl(fileOrControlUrl.replace(/\/$/, '')).books();
  }
  return readJsonLines<BookRecord>(fileOrControlUrl);
}

/** Every complete line of a file of JSON lines. */
export function readJsonLines<Line>(file: string): Line[] {
  const text = readFileSync(file, 'utf8');
  const complete = text.slice(0, text.lastIndexOf('\n') + 1);
  return complete.split('\n').flatMap((line, index) => {
    if (line === '') return [];
    try {
      return [JSON.parse(line) as Line];
    } catch (error) {
      throw new Error(`${file}, line ${index + 1} is no JSON`, { cause: error });
    }
  });
}
