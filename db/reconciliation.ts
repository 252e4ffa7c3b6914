import type { DifferenceKind, DifferenceStatus } from '../domain/differences';
import type { RunStatus } from '../domain/reconciliation';
import type { Pool } from './transaction';

/** The key of everything in reconciliation. `day` is `2026-05-01`, in the channel's own zone. */
export interface ChannelDay {
  channel: string;
  day: string;
}

/** A run as it stands. */
export interface RunState extends ChannelDay {
  status: RunStatus;
  dryRun: boolean;
  /** A run that was no dry run has ended with a report. */
  reported: boolean;
  billId: number | null;
  reason: string | null;
  /** Noon of the channel's zone on the day after: from then on a missing report is a case. */
  missingAt: string;
}

export interface ComparisonCounts {
  /** Rows of the bill that were compared. */
  rows: number;
  open: number;
  waiting: number;
  suspense: number;
  case: number;
  byKind: Partial<Record<DifferenceKind, number>>;
}

export interface QuestionToAsk {
  differenceId: number;
  status: DifferenceStatus;
  merchantId: string;
  orderId: string;
  payRecordId: number | null;
  refundNo: string | null;
}

/** Pairs whose business date has ended and that have no report yet, oldest first. */
export async function dueDays(
  _pool: Pool,
  _input: { daysBack: number; limit: number; now?: string },
): Promise<ChannelDay[]> {
  throw new Error('not built yet');
}

/** Puts the pair's one row into `running`; a row that is there already starts over. */
export async function beginRun(
  _pool: Pool,
  _input: ChannelDay & { dryRun: boolean; actor: string },
): Promise<RunState> {
  throw new Error('not built yet');
}

/** The bill is not there yet: `waiting_bill`, to be tried again at `nextTryAt`. */
export async function noteWaiting(
  _pool: Pool,
  _input: ChannelDay & { reason: string; nextTryAt: string },
): Promise<void> {
  throw new Error('not built yet');
}

/** The bill did not come in time: `no_bill`, the missing report is a case (not for a dry run). */
export async function noteNoBill(
  _pool: Pool,
  _input: ChannelDay & { reason: string; nextTryAt: string },
): Promise<void> {
  throw new Error('not built yet');
}

/** The file cannot be used: `rejected`, and a case (not for a dry run). */
export async function noteRejected(
  _pool: Pool,
  _input: ChannelDay & { billId: number; fault: string; message: string; nextTryAt: string },
): Promise<void> {
  throw new Error('not built yet');
}

/** Compares the loaded bill with our books, in one transaction. @throws when no bill is loaded. */
export async function compareDay(
  _pool: Pool,
  _input: ChannelDay & { feeBasisPoints: number; now?: string },
): Promise<ComparisonCounts> {
  throw new Error('not built yet');
}

/** Differences about which the channel can be asked, by id, after `after` (0: from the first). */
export async function differencesToAsk(
  _pool: Pool,
  _input: ChannelDay & { after: number; limit: number },
): Promise<QuestionToAsk[]> {
  throw new Error('not built yet');
}

/** How many of them nobody has an answer to that is younger than `askedAt`. */
export async function openQuestions(
  _pool: Pool,
  _input: ChannelDay & { askedAt: string },
): Promise<number> {
  throw new Error('not built yet');
}

/** Opens cases for what remains (not for a dry run) and ends the run with its report: `done`. */
export async function closeRun(
  _pool: Pool,
  _input: ChannelDay & { onProgress?: (cases: number) => void },
): Promise<ComparisonCounts & { casesOpened: number }> {
  throw new Error('not built yet');
}

/** A case for each pair that has no report by noon of the day after. Returns how many were opened. */
export async function openMissingReportCases(
  _pool: Pool,
  _input?: { daysBack?: number; now?: string },
): Promise<number> {
  throw new Error('not built yet');
}

/** Looks again at what waits for the bills of other days, or for a refund: resolved, or a case. */
export async function reviseSuspense(
  _pool: Pool,
  _channel: string,
  _input?: { now?: string },
): Promise<{ resolved: number; cases: number }> {
  throw new Error('not built yet');
}
