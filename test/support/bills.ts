import { createHash } from 'node:crypto';
import type { BillToLoad } from '../../db/trade-bills';
import type { BillLine, BillTotals, TradeBillError } from '../../domain/trade-bill';

/** A payment of 100.00 CNY with a fee of 0.6 %, but for what is said. */
export function aLine(said: Partial<BillLine> = {}): BillLine {
  return {
    lineNo: 1,
    kind: 'payment',
    status: 'succeeded',
    outTradeNo: null,
    channelTradeNo: null,
    outRefundNo: null,
    channelRefundNo: null,
    amountMinor: 10_000,
    currency: 'CNY',
    feeMinor: 60,
    occurredAt: '2026-05-01T12:00:00.000Z',
    word: 'PAID',
    error: null,
    ...said,
  };
}

/** A bill of these rows in batches, numbered from line 2 on as after a header, unless they say. */
export function aBill(
  lines: readonly BillLine[],
  options: {
    totals?: BillTotals[] | null;
    fileName?: string;
    batch?: number;
    /** Thrown after all lines were given out. */
    fault?: TradeBillError | Error;
    /** Awaited after each batch. */
    between?: () => Promise<void>;
  } = {},
): BillToLoad {
  const numbered = lines.map((line, i) => (line.lineNo === 1 ? { ...line, lineNo: i + 2 } : line));
  const text = JSON.stringify([numbered, options.totals]);
  return {
    fileName: options.fileName ?? 'bill.csv',
    async *lines() {
      const size = options.batch ?? 1_000;
      for (let i = 0; i < numbered.length; i += size) {
        yield numbered.slice(i, i + size);
        await options.between?.();
      }
      if (options.fault) throw options.fault;
    },
    end: () => ({
      sha256: createHash('sha256').update(text).digest('hex'),
      bytes: text.length,
      totals: options.totals ?? null,
    }),
  };
}
