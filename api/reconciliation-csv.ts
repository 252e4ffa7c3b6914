import type { ReconciliationReport, ReportedDifference } from '../domain/reconciliation';

type Cell = (difference: ReportedDifference) => unknown;

const ours =
  (name: string): Cell =>
  (difference) =>
    difference.ours?.[name];
const theirs =
  (name: string): Cell =>
  (difference) =>
    difference.channelSays?.[name];

/** The columns, in an order that never changes: new ones are added at the end. */
const COLUMNS: readonly [string, Cell][] = [
  ['kind', (d) => d.kind],
  ['status', (d) => d.status],
  ['reason', (d) => d.reason],
  ['subject', (d) => d.subject],
  ['merchant_id', (d) => d.merchantId],
  ['order_id', (d) => d.orderId],
  ['refund_no', (d) => d.refundNo],
  ['line_no', (d) => d.lineNo],
  ['our_out_trade_no', ours('out_trade_no')],
  ['our_channel_trade_no', ours('channel_trade_no')],
  ['our_out_refund_no', ours('out_refund_no')],
  ['our_state', ours('state')],
  ['our_amount_minor', ours('amount_minor')],
  ['our_currency', ours('currency')],
  ['channel_out_trade_no', theirs('out_trade_no')],
  ['channel_trade_no', theirs('channel_trade_no')],
  ['channel_out_refund_no', theirs('out_refund_no')],
  ['channel_refund_no', theirs('channel_refund_no')],
  ['channel_state', theirs('state')],
  ['channel_amount_minor', theirs('amount_minor')],
  ['channel_currency', theirs('currency')],
  ['channel_fee_minor', theirs('fee_minor')],
  ['expected_fee_minor', theirs('expected_fee_minor')],
  ['occurred_at', theirs('occurred_at')],
  ['channel_word', theirs('word')],
  ['row_error', theirs('error')],
  ['resolution', (d) => d.resolution],
];

/**
 * The differences of the reports, one a line, as CSV (RFC 4180: CRLF, quotes doubled; UTF-8). What a
 * spreadsheet would take for a formula is text: such a cell begins with an apostrophe.
 */
export function differencesCsv(reports: readonly ReconciliationReport[]): string {
  const lines = [['channel', 'business_date', ...COLUMNS.map(([name]) => name)]];
  for (const { channel, day, differences } of reports) {
    for (const difference of differences) {
      lines.push([channel, day, ...COLUMNS.map(([, cell]) => cellOf(cell(difference)))]);
    }
  }
  return lines.map((line) => `${line.map(quoted).join(',')}\r\n`).join('');
}

/** Whole numbers are harmless and stay numbers: a fee that was given back is negative. */
const NUMBER = /^-?\d+$/;
/** Source: OWASP, CSV Injection. */
const FORMULA = /^[=+\-@\t\r\n]/;

function cellOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
}

function quoted(cell: string): string {
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
