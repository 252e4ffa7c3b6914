import type { BillLine, BillTotals } from '../domain/trade-bill';

/** What the rows of a bill add up to in one currency; sums as decimal text, exact whatever the size. */
export interface BillSums {
  /** `''`: rows without a currency that can be read. */
  currency: string;
  rows: number;
  payments: number;
  paymentsMinor: string;
  refunds: number;
  refundsMinor: string;
  reversals: number;
  reversalsMinor: string;
  others: number;
  otherMinor: string;
  feesMinor: string;
}

/** An exact sum: a number while it is small, which is nearly always, so that a row costs little. */
class ExactSum {
  private small = 0;
  private large = 0n;
  add(minor: number): void {
    this.small += minor;
    // Two safe integers below this never add up to an unsafe one unnoticed.
    if (this.small > 2 ** 51 || this.small < -(2 ** 51)) this.flush();
  }
  private flush(): void {
    this.large += BigInt(this.small);
    this.small = 0;
  }
  total(): bigint {
    this.flush();
    return this.large;
  }
}

interface Adding {
  rows: number;
  counts: Record<'payment' | 'refund' | 'reversal' | 'other', number>;
  sums: Record<'payment' | 'refund' | 'reversal' | 'other', ExactSum>;
  fees: ExactSum;
}

/** Adds a bill up while it is read, so that no row is held. */
export class BillAdder {
  rows = 0;
  rowErrors = 0;
  private readonly byCurrency = new Map<string, Adding>();

  add(batch: readonly BillLine[]): void {
    for (const line of batch) {
      this.rows += 1;
      if (line.kind === 'error') this.rowErrors += 1;
      const adding = this.of(line.currency ?? '');
      adding.rows += 1;
      const { kind } = line;
      const part = kind === 'payment' || kind === 'refund' || kind === 'reversal' ? kind : 'other';
      adding.counts[part] += 1;
      if (line.amountMinor !== null) adding.sums[part].add(line.amountMinor);
      if (line.feeMinor !== null) adding.fees.add(line.feeMinor);
    }
  }

  sums(): BillSums[] {
    return [...this.byCurrency]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([currency, { rows, counts, sums, fees }]) => ({
        currency,
        rows,
        payments: counts.payment,
        paymentsMinor: String(sums.payment.total()),
        refunds: counts.refund,
        refundsMinor: String(sums.refund.total()),
        reversals: counts.reversal,
        reversalsMinor: String(sums.reversal.total()),
        others: counts.other,
        otherMinor: String(sums.other.total()),
        feesMinor: String(fees.total()),
      }));
  }

  private of(currency: string): Adding {
    let adding = this.byCurrency.get(currency);
    if (!adding) {
      adding = {
        rows: 0,
        counts: { payment: 0, refund: 0, reversal: 0, other: 0 },
        sums: {
          payment: new ExactSum(),
          refund: new ExactSum(),
          reversal: new ExactSum(),
          other: new ExactSum(),
        },
        fees: new ExactSum(),
      };
      this.byCurrency.set(currency, adding);
    }
    return adding;
  }
}

/** The currencies whose stated sums are not what the rows add up to, with both figures. */
export function wrongTotals(
  stated: readonly BillTotals[] | null,
  sums: readonly BillSums[],
): { currency: string; stated: BillTotals; summed: BillSums | null }[] {
  return (stated ?? []).flatMap((total) => {
    const summed = sums.find(({ currency }) => currency === total.currency) ?? null;
    const agrees =
      total.payments === (summed?.payments ?? 0) &&
      BigInt(total.paymentsMinor) === BigInt(summed?.paymentsMinor ?? 0) &&
      total.refunds === (summed?.refunds ?? 0) &&
      BigInt(total.refundsMinor) === BigInt(summed?.refundsMinor ?? 0) &&
      BigInt(total.feesMinor) === BigInt(summed?.feesMinor ?? 0);
    return agrees ? [] : [{ currency: total.currency, stated: total, summed }];
  });
}
