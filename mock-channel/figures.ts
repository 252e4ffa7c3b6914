import type { BookRecord, Dialect, Operation } from './books';

/** Count of movements and their sum in minor units, by currency. */
export interface Movements {
  count: number;
  sums: Record<string, number>;
}

/** What tests assert about a set of trades, from the channel's own books. */
export interface Summary {
  /** Trades opened at the channel. */
  trades: number;
  captures: Movements;
  refunds: Movements;
  returned: Movements;
  reversed: Movements;
  reinstated: Movements;
  /** captured − refunded + returned − reversed + reinstated, by currency. */
  netMinor: Record<string, number>;
  /** Requests received, by operation, whatever they were answered. */
  calls: Record<Operation, number>;
  /** Different `out_trade_no`s that create calls carried. */
  createNumbers: string[];
  /** Different `out_refund_no`s that refund calls carried. */
  refundNumbers: string[];
  /** Requests answered 429. */
  rateLimited: number;
  callbacks: CallbackFigures;
}

export interface CallbackFigures {
  /** Different notices: one per event, however often it was sent. */
  notices: number;
  /** Deliveries, everything counted. */
  sent: number;
  /** Deliveries that the ladder had to make again because the one before was not acknowledged. */
  resent: number;
  /** Deliveries answered exactly as the dialect demands. */
  acknowledged: number;
  /** Deliveries answered otherwise, or not at all. */
  notAcknowledged: number;
  /** Answers by HTTP status; `none` when no answer came. */
  answers: Record<string, number>;
}

type Movement = 'captures' | 'refunds' | 'returned' | 'reversed' | 'reinstated';

interface Tally {
  summary: Summary;
  createNumbers: Set<string>;
  refundNumbers: Set<string>;
  notices: Set<string>;
}

/** Running figures per trade number, so that a summary never reads the whole books again. */
export class Figures {
  private readonly tallies = new Map<string, Tally>();
  private readonly tradeOfRefund = new Map<string, string>();

  apply(record: BookRecord): void {
    if (record.type === 'request') return this.applyRequest(record);
    if (record.type === 'bill_made') return;
    const tally = this.tally(record.dialect, record.outTradeNo);
    switch (record.type) {
      case 'trade_created':
        tally.summary.trades += 1;
        return;
      case 'captured':
        return move(tally, 'captures', record.amountMinor, record.currency, 1);
      case 'refund_executed':
        return move(tally, 'refunds', record.amountMinor, record.currency, -1);
      case 'refund_returned':
        return move(tally, 'returned', record.amountMinor, record.currency, 1);
      case 'reversed':
        return move(tally, 'reversed', record.amountMinor, record.currency, -1);
      case 'reinstated':
        return move(tally, 'reinstated', record.amountMinor, record.currency, 1);
      case 'callback_sent':
        tally.notices.add(record.noticeId);
        tally.summary.callbacks.sent += 1;
        if (record.cause === 'natural' && record.attempt > 1) tally.summary.callbacks.resent += 1;
        return;
      case 'callback_answered': {
        const { callbacks } = tally.summary;
        if (record.acknowledged) callbacks.acknowledged += 1;
        else callbacks.notAcknowledged += 1;
        add(callbacks.answers, String(record.httpStatus ?? 'none'), 1);
        return;
      }
      default:
        return;
    }
  }

  /** Figures of the named trade numbers, of one dialect or both; undefined numbers mean all. */
  summary(outTradeNos: string[] | undefined, dialect?: Dialect): Summary {
    const wanted = outTradeNos && new Set(outTradeNos);
    const total = emptySummary();
    const createNumbers = new Set<string>();
    const refundNumbers = new Set<string>();
    const keys = wanted
      ? [...wanted].flatMap((no) => [`mock-a:${no}`, `mock-b:${no}`])
      : this.tallies.keys();
    for (const key of keys) {
      const tally = this.tallies.get(key);
      if (!tally || (dialect && !key.startsWith(`${dialect}:`))) continue;
      addTally(total, tally);
      for (const number of tally.createNumbers) createNumbers.add(number);
      for (const number of tally.refundNumbers) refundNumbers.add(number);
    }
    return { ...total, createNumbers: [...createNumbers], refundNumbers: [...refundNumbers] };
  }

  private applyRequest(record: BookRecord & { type: 'request' }): void {
    let outTradeNo = record.outTradeNo;
    if (record.outRefundNo !== null) {
      const key = `${record.dialect}:${record.outRefundNo}`;
      if (outTradeNo === null) outTradeNo = this.tradeOfRefund.get(key) ?? null;
      else if (record.operation === 'refund') this.tradeOfRefund.set(key, outTradeNo);
    }
    // Requests that name no trade we know of are counted under the empty number: only in totals.
    const tally = this.tally(record.dialect, outTradeNo ?? '');
    tally.summary.calls[record.operation] += 1;
    if (record.httpStatus === 429) tally.summary.rateLimited += 1;
    if (record.operation === 'create' && outTradeNo) tally.createNumbers.add(outTradeNo);
    if (record.operation === 'refund' && record.outRefundNo) {
      tally.refundNumbers.add(record.outRefundNo);
    }
  }

  private tally(dialect: Dialect, outTradeNo: string): Tally {
    const key = `${dialect}:${outTradeNo}`;
    let tally = this.tallies.get(key);
    if (!tally) {
      tally = {
        summary: emptySummary(),
        createNumbers: new Set(),
        refundNumbers: new Set(),
        notices: new Set(),
      };
      this.tallies.set(key, tally);
    }
    return tally;
  }
}

function emptySummary(): Summary {
  const none = (): Movements => ({ count: 0, sums: {} });
  return {
    trades: 0,
    captures: none(),
    refunds: none(),
    returned: none(),
    reversed: none(),
    reinstated: none(),
    netMinor: {},
    calls: {
      create: 0,
      query: 0,
      close: 0,
      refund: 0,
      refund_query: 0,
      bill: 0,
      bill_file: 0,
      unknown: 0,
    },
    createNumbers: [],
    refundNumbers: [],
    rateLimited: 0,
    callbacks: { notices: 0, sent: 0, resent: 0, acknowledged: 0, notAcknowledged: 0, answers: {} },
  };
}

function add(sums: Record<string, number>, key: string, amount: number): void {
  sums[key] = (sums[key] ?? 0) + amount;
}

function move(
  tally: Tally,
  kind: Movement,
  amountMinor: number,
  currency: string,
  sign: 1 | -1,
): void {
  tally.summary[kind].count += 1;
  add(tally.summary[kind].sums, currency, amountMinor);
  add(tally.summary.netMinor, currency, sign * amountMinor);
}

function addTally(total: Summary, { summary, notices }: Tally): void {
  total.trades += summary.trades;
  total.rateLimited += summary.rateLimited;
  for (const kind of ['captures', 'refunds', 'returned', 'reversed', 'reinstated'] as const) {
    total[kind].count += summary[kind].count;
    for (const [currency, sum] of Object.entries(summary[kind].sums)) {
      add(total[kind].sums, currency, sum);
    }
  }
  for (const [currency, sum] of Object.entries(summary.netMinor)) {
    add(total.netMinor, currency, sum);
  }
  for (const operation of Object.keys(summary.calls) as Operation[]) {
    total.calls[operation] += summary.calls[operation];
  }
  total.callbacks.notices += notices.size;
  total.callbacks.sent += summary.callbacks.sent;
  total.callbacks.resent += summary.callbacks.resent;
  total.callbacks.acknowledged += summary.callbacks.acknowledged;
  total.callbacks.notAcknowledged += summary.callbacks.notAcknowledged;
  for (const [status, count] of Object.entries(summary.callbacks.answers)) {
    add(total.callbacks.answers, status, count);
  }
}
