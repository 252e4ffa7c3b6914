import type { OrderRef } from '../domain/orders';
import type {
  ReconciliationReport,
  ReportedDifference,
  ReportSummary,
} from '../domain/reconciliation';
import type { Queryable } from './transaction';

/** The report of the pair, or undefined when there never was a run. */
export async function readReport(
  _client: Queryable,
  _channel: string,
  _day: string,
  _options?: { limit?: number },
): Promise<ReconciliationReport | undefined> {
  throw new Error('not built yet');
}

/** Reports of the days `from` to `to`, by day and channel, without their differences. */
export async function listReports(
  _client: Queryable,
  _range: { from: string; to: string; channel?: string },
): Promise<ReportSummary[]> {
  throw new Error('not built yet');
}

/** Every difference about the order, resolved ones too, oldest business date first. */
export async function differencesOfOrder(
  _client: Queryable,
  _ref: OrderRef,
): Promise<(ReportedDifference & { channel: string; day: string })[]> {
  throw new Error('not built yet');
}

/** Rows of loaded bills that name a number of the order. */
export async function billLinesOfOrder(
  _client: Queryable,
  _ref: OrderRef,
): Promise<Record<string, unknown>[]> {
  throw new Error('not built yet');
}
