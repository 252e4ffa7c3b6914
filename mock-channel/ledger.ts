import type { BookRecord, Dialect } from './books';
import { Figures } from './figures';

/** What the payer or the channel made of a trade before money was taken. */
export type TradeStatus = 'open' | 'review' | 'failed' | 'closed';

export interface Trade {
  dialect: Dialect;
  outTradeNo: string;
  channelTradeNo: string;
  subject: string;
  amountMinor: number;
  currency: string;
  expiresAt: string;
  payMethod: 'redirect' | 'qr_code';
  returnUrl: string | null;
  status: TradeStatus;
  createdAt: string;
  captures: Capture[];
  refunds: Refund[];
}

export interface Capture {
  channelTradeNo: string;
  amountMinor: number;
  currency: string;
  payerTotalMinor: number;
  capturedAt: string;
  /** Executed refunds that did not come back. */
  refundedMinor: number;
  /** Refunds accepted and not final. */
  reservedMinor: number;
  reversedMinor: number;
  everReversed: boolean;
}

export type RefundStatus = 'processing' | 'succeeded' | 'failed' | 'abnormal' | 'returned';

export interface Refund {
  dialect: Dialect;
  outTradeNo: string;
  outRefundNo: string;
  channelRefundNo: string;
  channelTradeNo: string;
  amountMinor: number;
  currency: string;
  status: RefundStatus;
  failCode: string | null;
  finishedAt: string | null;
}

/** State of a trade as a query would tell it, in neither dialect's words. */
export type TradeState =
  'pending' | 'under_review' | 'paid' | 'failed' | 'closed' | 'reversed' | 'reinstated';

/** The state of a trade seen from one of its captures, or from none. */
export function tradeState(trade: Trade, capture: Capture | null): TradeState {
  if (capture) {
    if (capture.reversedMinor > 0) return 'reversed';
    return capture.everReversed ? 'reinstated' : 'paid';
  }
  switch (trade.status) {
    case 'open':
      return 'pending';
    case 'review':
      return 'under_review';
    case 'failed':
    case 'closed':
      return trade.status;
  }
}

/** What of a capture can still be given back, in minor units. */
export function refundableMinor(capture: Capture): number {
  return (
    capture.amountMinor - capture.refundedMinor - capture.reservedMinor - capture.reversedMinor
  );
}

/** The books, folded: every trade, capture and refund as they stand. Changes only by `apply`. */
export class Ledger {
  readonly trades = new Map<string, Trade>();
  readonly refunds = new Map<string, Refund>();
  readonly channelNumbers = new Set<string>();
  /** Trades by the number they were created under at the channel. */
  readonly byChannelNumber = new Map<string, Trade>();
  /** Trades that may still be paid by the payer: what the expiry sweep looks at. */
  readonly payable = new Set<Trade>();
  readonly figures = new Figures();

  /** Finds a trade by our number; without a dialect in either of them. */
  trade(outTradeNo: string, dialect?: Dialect): Trade | undefined {
    if (dialect) return this.trades.get(`${dialect}:${outTradeNo}`);
    return this.trades.get(`mock-a:${outTradeNo}`) ?? this.trades.get(`mock-b:${outTradeNo}`);
  }

  refund(outRefundNo: string, dialect?: Dialect): Refund | undefined {
    if (dialect) return this.refunds.get(`${dialect}:${outRefundNo}`);
    return this.refunds.get(`mock-a:${outRefundNo}`) ?? this.refunds.get(`mock-b:${outRefundNo}`);
  }

  apply(record: BookRecord): void {
    this.figures.apply(record);
    switch (record.type) {
      case 'trade_created': {
        const { type: _type, seq: _seq, at, ...fields } = record;
        const trade: Trade = {
          ...fields,
          status: 'open',
          createdAt: at,
          captures: [],
          refunds: [],
        };
        this.trades.set(`${record.dialect}:${record.outTradeNo}`, trade);
        this.channelNumbers.add(record.channelTradeNo);
        this.byChannelNumber.set(record.channelTradeNo, trade);
        this.payable.add(trade);
        return;
      }
      case 'trade_moved': {
        const trade = this.known(record);
        trade.status = record.status;
        if (record.status === 'closed' || record.status === 'failed') this.payable.delete(trade);
        return;
      }
      case 'captured': {
        const trade = this.known(record);
        this.channelNumbers.add(record.channelTradeNo);
        this.payable.delete(trade);
        trade.captures.push({
          channelTradeNo: record.channelTradeNo,
          amountMinor: record.amountMinor,
          currency: record.currency,
          payerTotalMinor: record.payerTotalMinor,
          capturedAt: record.businessAt ?? record.at,
          refundedMinor: 0,
          reservedMinor: 0,
          reversedMinor: 0,
          everReversed: false,
        });
        return;
      }
      case 'reversed': {
        const capture = this.capture(record);
        capture.reversedMinor += record.amountMinor;
        capture.everReversed = true;
        return;
      }
      case 'reinstated':
        this.capture(record).reversedMinor -= record.amountMinor;
        return;
      case 'refund_accepted': {
        const refund: Refund = {
          dialect: record.dialect,
          outTradeNo: record.outTradeNo,
          outRefundNo: record.outRefundNo,
          channelRefundNo: record.channelRefundNo,
          channelTradeNo: record.channelTradeNo,
          amountMinor: record.amountMinor,
          currency: record.currency,
          status: 'processing',
          failCode: null,
          finishedAt: null,
        };
        this.refunds.set(`${record.dialect}:${record.outRefundNo}`, refund);
        this.known(record).refunds.push(refund);
        this.channelNumbers.add(record.channelRefundNo);
        this.capture(record).reservedMinor += record.amountMinor;
        return;
      }
      case 'refund_executed':
        this.finish(record, 'succeeded');
        this.capture(record).reservedMinor -= record.amountMinor;
        this.capture(record).refundedMinor += record.amountMinor;
        return;
      case 'refund_refused':
        this.finish(record, 'failed').failCode = record.code;
        this.capture(record).reservedMinor -= record.amountMinor;
        return;
      case 'refund_abnormal':
        this.finish(record, 'abnormal');
        return;
      case 'refund_returned':
        this.finish(record, 'returned');
        this.capture(record).refundedMinor -= record.amountMinor;
        return;
      case 'request':
      case 'callback_sent':
      case 'callback_answered':
      case 'bill_made':
        return;
    }
  }

  private known(record: { dialect: Dialect; outTradeNo: string }): Trade {
    const trade = this.trade(record.outTradeNo, record.dialect);
    if (!trade) throw new Error(`books name an unknown trade ${record.outTradeNo}`);
    return trade;
  }

  private capture(record: { dialect: Dialect; outTradeNo: string; channelTradeNo: string }) {
    const capture = this.known(record).captures.find(
      (one) => one.channelTradeNo === record.channelTradeNo,
    );
    if (!capture) throw new Error(`books name an unknown capture ${record.channelTradeNo}`);
    return capture;
  }

  private finish(
    record: { at: string; businessAt?: string; dialect: Dialect; outRefundNo: string },
    status: RefundStatus,
  ): Refund {
    const refund = this.refund(record.outRefundNo, record.dialect);
    if (!refund) throw new Error(`books name an unknown refund ${record.outRefundNo}`);
    refund.status = status;
    refund.finishedAt = record.businessAt ?? record.at;
    return refund;
  }
}
