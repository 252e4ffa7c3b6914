/** What a reconciliation says of itself: its runs, and the report that people read. */
import type { DifferenceKind } from './differences';
import type { DifferenceStatus, RunStatus } from './states';
import type { BillFault } from './trade-bill';

/** A sum of minor units; as decimal text where it leaves the safe integers. */
export type SumMinor = number | string;

/** Money in: payments; money out: refunds and reversals; `other`: what no rule adds up. */
export interface CurrencySums {
  rows: number;
  /** Payments − refunds − reversals + others, as the rows say. */
  netMinor: SumMinor;
}

/** matched + differences + unknown = file, to the minor unit, for each currency. */
export interface CurrencyTotals {
  /** `''` for rows without one that can be read. */
  currency: string;
  file: CurrencySums & {
    paymentsMinor: SumMinor;
    refundsMinor: SumMinor;
    reversalsMinor: SumMinor;
    otherMinor: SumMinor;
    feesMinor: SumMinor;
  };
  matched: CurrencySums;
  /** Rows with a difference but those of `unknown`. */
  differences: CurrencySums;
  /** Rows that cannot be read, rows of a type nobody knows, and manual entries. */
  unknown: CurrencySums;
  /** Ours that the bill does not have; no part of the file. */
  oursOnly: CurrencySums;
}

export interface ReportedDifference {
  kind: DifferenceKind;
  subject: string;
  status: DifferenceStatus;
  reason: string;
  merchantId: string | null;
  orderId: string | null;
  refundNo: string | null;
  lineNo: number | null;
  ours: Record<string, unknown> | null;
  channelSays: Record<string, unknown> | null;
  resolution: string | null;
}

/**
 * The report of one channel and business date. The same books and the same file make the same report
 * to the byte: nothing in it comes from our clock or from the order in which rows were written.
 */
export interface ReconciliationReport {
  channel: string;
  day: string;
  timeZone: string;
  status: RunStatus;
  /** Nobody was asked and no case was opened. */
  dryRun: boolean;
  /** Why there is no comparison, or null. */
  reason: string | null;
  bill: {
    fileName: string;
    sha256: string;
    bytes: number;
    rows: number;
    rowErrors: number;
  } | null;
  /** The newest file that was refused, when it is newer than the bill that counts. */
  rejected: { fileName: string; fault: BillFault; message: string } | null;
  totals: CurrencyTotals[];
  /** Differences that stand (all but the resolved ones), by kind; kinds without any are left out. */
  byKind: Partial<Record<DifferenceKind, number>>;
  byStatus: Record<DifferenceStatus, number>;
  /** Sorted by kind and subject; at most as many as were asked for. */
  differences: ReportedDifference[];
  /** How many there are, however many are listed. */
  differencesTotal: number;
}

/** One line of the list of reports. */
export type ReportSummary = Omit<ReconciliationReport, 'differences' | 'totals'>;
