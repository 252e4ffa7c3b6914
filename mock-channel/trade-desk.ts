import { randomInt } from 'node:crypto';
import type { Books, Dialect } from './books';
import type { CaptureOrder, FaultAction, FinishRefund, Reversal, Settings } from './control-types';
import { refundableMinor, type Capture, type Ledger, type Refund, type Trade } from './ledger';

/** A refusal, by the codes of PROTOCOL.md. */
export interface Refused {
  ok: false;
  code: string;
}
export type TradeOutcome = { ok: true; trade: Trade } | Refused;
export type RefundOutcome = { ok: true; refund: Refund; trade: Trade } | Refused;

/** Something the merchant is told by callback. */
export type News =
  | { kind: 'payment'; trade: Trade; capture: Capture | null }
  | { kind: 'refund'; trade: Trade; refund: Refund };

export interface NewTrade {
  dialect: Dialect;
  outTradeNo: string;
  subject: string;
  amountMinor: number;
  currency: string;
  expiresAt: string;
  payMethod: 'redirect' | 'qr_code';
  returnUrl: string | null;
  /** The channel's number, when a fault fixes it. */
  channelTradeNo?: string;
}

export interface NewRefund {
  dialect: Dialect;
  outTradeNo: string;
  outRefundNo: string;
  channelTradeNo: string | null;
  amountMinor: number;
  currency: string;
}

const refused = (code: string): Refused => ({ ok: false, code });

/**
 * What the channel does with trades and refunds, whichever dialect asked: every effect is a record
 * in the books first, news for the callbacks second.
 */
export class TradeDesk {
  private readonly timers = new Set<NodeJS.Timeout>();
  /** Refunds accepted and due by timer. */
  pendingRefundTimers = 0;

  constructor(
    private readonly books: Books,
    private readonly ledger: Ledger,
    private readonly settings: Settings,
    private readonly tell: (news: News) => void,
  ) {
    const sweep = setInterval(() => this.closeExpired(), 250);
    sweep.unref();
    this.timers.add(sweep);
    // Refunds accepted before a restart go on; one held by a fault is executed then too.
    for (const refund of ledger.refunds.values()) {
      if (refund.status === 'processing') this.executeLater(refund, settings.refundAfterMs);
    }
  }

  close(): void {
    for (const timer of this.timers) clearTimeout(timer);
  }

  /** Same number, amount and currency: the same trade as it stands. Another amount: refused. */
  create(order: NewTrade): TradeOutcome {
    const known = this.find(order.dialect, order.outTradeNo);
    if (known) {
      const same = known.amountMinor === order.amountMinor && known.currency === order.currency;
      return same ? { ok: true, trade: known } : refused('TRADE_CONFLICT');
    }
    const { channelTradeNo, ...fields } = order;
    this.books.append({
      type: 'trade_created',
      ...fields,
      channelTradeNo: channelTradeNo ?? this.freshNumber(order.dialect),
    });
    return this.query(order.dialect, order.outTradeNo);
  }

  query(dialect: Dialect, outTradeNo: string): TradeOutcome {
    const trade = this.find(dialect, outTradeNo);
    return trade ? { ok: true, trade } : refused('TRADE_NOT_EXIST');
  }

  /** Closes an unpaid trade; again for one already closed or failed it is the same answer. */
  closeTrade(dialect: Dialect, outTradeNo: string): TradeOutcome {
    const trade = this.find(dialect, outTradeNo);
    if (!trade) return refused('TRADE_NOT_EXIST');
    if (trade.captures.length > 0) return refused('TRADE_ALREADY_PAID');
    if (this.ledger.payable.has(trade)) {
      this.move(trade, 'closed', 'merchant');
      if (this.settings.closeCallbacks) this.tell({ kind: 'payment', trade, capture: null });
    }
    return { ok: true, trade };
  }

  /** The payer pays. Refused when the trade is paid already, closed, failed or expired. */
  approve(trade: Trade, payerTotalMinor?: number): TradeOutcome {
    this.closeIfExpired(trade);
    if (trade.captures.length > 0) return refused('TRADE_ALREADY_PAID');
    if (!this.ledger.payable.has(trade)) return refused('TRADE_CLOSED');
    this.capture(trade, payerTotalMinor === undefined ? {} : { payerTotalMinor });
    return { ok: true, trade };
  }

  /** The payer declines: a definite end of this trade. */
  decline(trade: Trade): TradeOutcome {
    this.closeIfExpired(trade);
    if (!this.ledger.payable.has(trade)) return refused('TRADE_CLOSED');
    this.move(trade, 'failed', 'payer');
    this.tell({ kind: 'payment', trade, capture: null });
    return { ok: true, trade };
  }

  /** The channel holds the payment for review: pending until approved or declined. */
  review(trade: Trade): TradeOutcome {
    if (!this.ledger.payable.has(trade)) return refused('TRADE_CLOSED');
    this.move(trade, 'review', 'channel');
    return { ok: true, trade };
  }

  /** Money is taken, whatever state the trade is in. A test's doing, or the payer's. */
  capture(trade: Trade, order: Omit<CaptureOrder, 'outTradeNo' | 'dialect'>): Capture {
    const amountMinor = order.amountMinor ?? trade.amountMinor;
    const channelTradeNo =
      order.channelTradeNo ??
      (trade.captures.length === 0 ? trade.channelTradeNo : this.freshNumber(trade.dialect));
    if (trade.captures.some((capture) => capture.channelTradeNo === channelTradeNo)) {
      throw new RangeError(`trade number ${channelTradeNo} is captured already`);
    }
    const entry = {
      type: 'captured' as const,
      dialect: trade.dialect,
      outTradeNo: trade.outTradeNo,
      channelTradeNo,
      amountMinor,
      currency: order.currency ?? trade.currency,
      payerTotalMinor: order.payerTotalMinor ?? amountMinor,
    };
    this.books.append(entry, order.at);
    const capture = captureOf(trade, channelTradeNo);
    if (!capture) throw new Error('a capture just booked is missing');
    if (order.callback !== false) this.tell({ kind: 'payment', trade, capture });
    return capture;
  }

  /** The channel takes money back (or gives it back): in part, or all that is left. */
  reverse(trade: Trade, order: Reversal, type: 'reversed' | 'reinstated'): TradeOutcome {
    const capture = captureOf(trade, order.channelTradeNo);
    if (!capture) return refused('TRADE_NOT_PAID');
    const most =
      type === 'reversed' ? capture.amountMinor - capture.reversedMinor : capture.reversedMinor;
    const amountMinor = order.amountMinor ?? most;
    if (amountMinor < 1 || amountMinor > most) return refused('AMOUNT_OUT_OF_RANGE');
    this.books.append({
      type,
      dialect: trade.dialect,
      outTradeNo: trade.outTradeNo,
      channelTradeNo: capture.channelTradeNo,
      amountMinor,
      currency: capture.currency,
    });
    if (order.callback !== false) this.tell({ kind: 'payment', trade, capture });
    return { ok: true, trade };
  }

  /** Accepts a refund, or repeats the one under this number; a fault may decide its fate. */
  refund(order: NewRefund, fault: FaultAction | undefined): RefundOutcome {
    const trade = this.find(order.dialect, order.outTradeNo);
    const known = this.ledger.refund(order.outRefundNo, order.dialect);
    if (known) {
      const same =
        known.outTradeNo === order.outTradeNo &&
        known.amountMinor === order.amountMinor &&
        known.currency === order.currency &&
        (order.channelTradeNo === null || known.channelTradeNo === order.channelTradeNo);
      if (!same || !trade) return refused('REFUND_CONFLICT');
      if (fault?.refund === 'now') this.execute(known);
      // "abnormal" waits for the merchant to send the same number again.
      else if (known.status === 'abnormal') this.executeLater(known, this.settings.refundAfterMs);
      if (known.status === 'failed') return refused(known.failCode ?? 'REFUND_REFUSED');
      return { ok: true, refund: known, trade };
    }
    if (!trade) return refused('TRADE_NOT_EXIST');
    const capture = captureOf(trade, order.channelTradeNo ?? undefined);
    if (!capture) return refused('TRADE_NOT_PAID');
    if (capture.currency !== order.currency) return refused('INVALID_REQUEST');
    if (fault?.refund === 'not_enough_balance') return refused('BALANCE_NOT_ENOUGH');
    if (order.amountMinor > refundableMinor(capture)) return refused('REFUND_EXCEEDS');
    this.books.append({
      type: 'refund_accepted',
      ...order,
      channelTradeNo: capture.channelTradeNo,
      channelRefundNo: this.freshNumber(order.dialect),
    });
    const refund = this.ledger.refund(order.outRefundNo, order.dialect);
    if (!refund) throw new Error('a refund just booked is missing');
    return this.begin(refund, trade, fault);
  }

  queryRefund(dialect: Dialect, outRefundNo: string): RefundOutcome {
    const refund = this.ledger.refund(outRefundNo, dialect);
    const trade = refund && this.ledger.trade(refund.outTradeNo, dialect);
    return refund && trade ? { ok: true, refund, trade } : refused('REFUND_NOT_EXIST');
  }

  /** Ends a refund by hand. @returns false when it is past that already */
  finishRefund(refund: Refund, order: Pick<FinishRefund, 'result' | 'code' | 'callback'>): boolean {
    const waiting = refund.status === 'processing' || refund.status === 'abnormal';
    if (order.result === 'return' ? refund.status !== 'succeeded' : !waiting) return false;
    if (order.result === 'abnormal' && refund.status === 'abnormal') return false;
    const { dialect, outTradeNo, outRefundNo, channelTradeNo, amountMinor, currency } = refund;
    const entry = { dialect, outTradeNo, outRefundNo, channelTradeNo, amountMinor, currency };
    switch (order.result) {
      case 'succeed':
        this.books.append({ type: 'refund_executed', ...entry });
        break;
      case 'fail':
        this.books.append({
          type: 'refund_refused',
          ...entry,
          code: order.code ?? 'REFUND_REFUSED',
        });
        break;
      case 'abnormal':
        this.books.append({ type: 'refund_abnormal', ...entry });
        break;
      case 'return':
        this.books.append({ type: 'refund_returned', ...entry });
        break;
    }
    const trade = this.ledger.trade(outTradeNo, dialect);
    if (trade && order.callback !== false) this.tell({ kind: 'refund', trade, refund });
    return true;
  }

  /** Closes every unpaid trade past its expiry. */
  closeExpired(): void {
    for (const trade of this.ledger.payable) this.closeIfExpired(trade);
  }

  private begin(refund: Refund, trade: Trade, fault: FaultAction | undefined): RefundOutcome {
    const afterMs = fault?.refundAfterMs ?? this.settings.refundAfterMs;
    switch (fault?.refund) {
      case 'hold':
        break;
      case 'now':
        this.execute(refund);
        break;
      case 'refuse':
        this.finishRefund(refund, { result: 'fail', code: fault.code, callback: false });
        return refused(fault.code ?? 'REFUND_REFUSED');
      case 'fail_later':
        this.later(afterMs, () => this.finishRefund(refund, { result: 'fail', code: fault.code }));
        break;
      case 'abnormal':
        this.later(afterMs, () => this.finishRefund(refund, { result: 'abnormal' }));
        break;
      default:
        this.executeLater(refund, afterMs);
    }
    return { ok: true, refund, trade };
  }

  private execute(refund: Refund): void {
    this.finishRefund(refund, { result: 'succeed' });
  }

  private executeLater(refund: Refund, afterMs: number): void {
    this.later(afterMs, () => this.execute(refund));
  }

  private later(afterMs: number, act: () => void): void {
    this.pendingRefundTimers += 1;
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      this.pendingRefundTimers -= 1;
      act();
    }, afterMs);
    this.timers.add(timer);
  }

  private find(dialect: Dialect, outTradeNo: string): Trade | undefined {
    const trade = this.ledger.trade(outTradeNo, dialect);
    if (trade) this.closeIfExpired(trade);
    return trade;
  }

  private closeIfExpired(trade: Trade): void {
    if (!this.ledger.payable.has(trade) || Date.parse(trade.expiresAt) > Date.now()) return;
    // A payment under review is the channel's to decide: its expiry does not end it.
    if (trade.status === 'review') return;
    this.move(trade, 'closed', 'expiry');
    if (this.settings.expiryCallbacks) this.tell({ kind: 'payment', trade, capture: null });
  }

  private move(
    trade: Trade,
    status: 'review' | 'failed' | 'closed',
    cause: 'merchant' | 'expiry' | 'payer' | 'channel',
  ): void {
    const { dialect, outTradeNo } = trade;
    this.books.append({ type: 'trade_moved', dialect, outTradeNo, status, cause });
  }

  /** 28 digits: the date, the dialect's mark and 18 random ones, never given out before. */
  private freshNumber(dialect: Dialect): string {
    const date = new Date().toISOString().slice(0, 10).replace(/-/g, '');
    const nine = (): string => String(randomInt(1_000_000_000)).padStart(9, '0');
    for (let tries = 0; tries < 100; tries += 1) {
      const number = `${date}${dialect === 'mock-a' ? '22' : '42'}${nine()}${nine()}`;
      if (!this.ledger.channelNumbers.has(number)) return number;
    }
    throw new Error('no fresh number in 100 tries');
  }
}

/** The capture under a channel number, or the trade's first one. */
export function captureOf(trade: Trade, channelTradeNo?: string): Capture | null {
  const found = channelTradeNo
    ? trade.captures.find((capture) => capture.channelTradeNo === channelTradeNo)
    : trade.captures[0];
  return found ?? null;
}
