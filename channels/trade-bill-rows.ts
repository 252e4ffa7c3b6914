import type { BillLine, BillLineKind, BillLineStatus, BillTotals } from '../domain/trade-bill';
import { TradeBillError } from '../domain/trade-bill';
import type { CsvRecord } from './csv-records';
import { readBillAmount } from './trade-bill-amounts';
import type { BillAmountFormat } from './trade-bill-amounts';

/** What a row has to say, by our names. */
export const BILL_COLUMNS = [
  'time',
  'type',
  'channelTradeNo',
  'outTradeNo',
  'channelRefundNo',
  'outRefundNo',
  'currency',
  'amount',
  'fee',
  'status',
] as const;
export type BillColumn = (typeof BILL_COLUMNS)[number];

export const SUMMARY_COLUMNS = [
  'currency',
  'payments',
  'paymentsAmount',
  'refunds',
  'refundsAmount',
  'fees',
] as const;
export type SummaryColumn = (typeof SUMMARY_COLUMNS)[number];

/** How one channel writes its trade bills: a table, then perhaps a table of sums. */
export interface BillFormat {
  /** The channel's name of each column. All must be there; others may be. */
  columns: Readonly<Record<BillColumn, string>>;
  /** The channel's words for what a row is; any other word is an `unknown` row. */
  kinds: Readonly<Record<string, Exclude<BillLineKind, 'unknown' | 'error'>>>;
  /** The channel's words for what became of it; any other word is status `unknown`. */
  statuses: Readonly<Record<string, BillLineStatus>>;
  amounts: BillAmountFormat;
  /** ISO 8601 in UTC; undefined when the text is no time of this channel. */
  readTime: (text: string) => string | undefined;
  /** The table of sums that the format promises after the rows; null: the file has none. */
  summary: Readonly<Record<SummaryColumn, string>> | null;
}

/** Where the columns stand in this file. */
export type Positions<Column extends string> = Readonly<Record<Column, number>>;

/** A cell without the blanks and the backtick that keep spreadsheets from reading it as a number. */
export function cleanCell(cell: string | undefined): string {
  if (cell === undefined) return '';
  // Charcode 96 is the backtick. Most cells need no more than this one look.
  const bare = cell.charCodeAt(0) === 96 ? cell.slice(1) : cell;
  const text = bare.trim();
  return text.charCodeAt(0) === 96 ? text.slice(1).trim() : text;
}

/**
 * Finds columns by their names, wherever they stand and whatever stands between them.
 * @throws TradeBillError `wrong_columns` that names those missing, or given twice
 */
export function findColumns<Column extends string>(
  header: CsvRecord,
  names: Readonly<Record<Column, string>>,
): Positions<Column> {
  const found = header.cells.map(cleanCell);
  const faults: string[] = [];
  const positions = {} as Record<Column, number>;
  for (const [column, name] of Object.entries(names) as [Column, string][]) {
    const at = found.indexOf(name);
    if (at < 0) faults.push(`no column "${name}"`);
    else if (found.includes(name, at + 1)) faults.push(`two columns "${name}"`);
    positions[column] = at;
  }
  if (faults.length === 0) return positions;
  const first = printable(found.slice(0, 4).join(', '), 80);
  throw new TradeBillError(
    'wrong_columns',
    `line ${header.lineNo}: ${faults.join('; ')}; the line begins: ${first}`,
  );
}

/** A row as our line; a cell that cannot be read makes it a line of kind `error`, never a guess. */
export function readBillRow(
  format: BillFormat,
  positions: Positions<BillColumn>,
  width: number,
  record: CsvRecord,
): BillLine {
  const { cells, lineNo } = record;
  const cell = (column: BillColumn): string => cleanCell(cells[positions[column]]);
  const type = cell('type');
  const statusWord = cell('status');
  const word = printable(`${type} ${statusWord}`.trim(), MAX_WORD);
  const line: BillLine = {
    lineNo,
    kind: (Object.hasOwn(format.kinds, type) ? format.kinds[type] : undefined) ?? 'unknown',
    status:
      (Object.hasOwn(format.statuses, statusWord) ? format.statuses[statusWord] : undefined) ??
      'unknown',
    outTradeNo: null,
    channelTradeNo: null,
    outRefundNo: null,
    channelRefundNo: null,
    amountMinor: null,
    currency: null,
    feeMinor: null,
    occurredAt: null,
    word,
    error: null,
  };
  const wrong = (what: string): BillLine => ({
    ...line,
    kind: 'error',
    status: 'unknown',
    amountMinor: null,
    feeMinor: null,
    error: printable(what, MAX_ERROR),
  });
  if (record.broken !== null) return wrong(`not CSV: ${record.broken}`);
  if (cells.length !== width) {
    return wrong(`${cells.length} cells where the header has ${width}: ${cells.join(',')}`);
  }

  for (const column of NUMBERS) {
    const number = cell(column);
    if (number === '') continue;
    if (!NUMBER.test(number)) return wrong(said(format, column, number));
    line[column] = number;
  }
  const currency = cell('currency');
  if (CURRENCY.test(currency)) line.currency = currency;
  const time = cell('time');
  if (time !== '') {
    const occurredAt = format.readTime(time);
    if (occurredAt === undefined) return wrong(said(format, 'time', time));
    line.occurredAt = occurredAt;
  }
  const amount = cell('amount');
  const amountMinor = readBillAmount(amount, currency, format.amounts);
  if (amountMinor === undefined) {
    return wrong(`${said(format, 'amount', amount)}, currency "${currency}"`);
  }
  const fee = cell('fee');
  // An empty fee, or a dash, is "the file does not say", which is not the same as no fee.
  const feeMinor = fee === '' || fee === '-' ? null : readBillAmount(fee, currency, format.amounts);
  if (feeMinor === undefined) return wrong(said(format, 'fee', fee));

  const ofMoney = line.kind === 'payment' || line.kind === 'refund' || line.kind === 'reversal';
  if (ofMoney) {
    if (amountMinor < 0) return wrong(`${said(format, 'amount', amount)} is negative`);
    if (NUMBERS.every((column) => line[column] === null)) return wrong('none of its numbers');
  }
  line.amountMinor = amountMinor;
  line.feeMinor = feeMinor;
  return line;
}

/**
 * One line of the table of sums.
 * @throws TradeBillError `unreadable` when it is not one
 */
export function readSummaryRow(
  format: BillFormat,
  positions: Positions<SummaryColumn>,
  record: CsvRecord,
): BillTotals {
  const cell = (column: SummaryColumn): string => cleanCell(record.cells[positions[column]]);
  const currency = cell('currency');
  const amount = (column: SummaryColumn) => readBillAmount(cell(column), currency, format.amounts);
  const count = (column: SummaryColumn) =>
    /^[0-9]{1,15}$/.test(cell(column)) ? Number(cell(column)) : undefined;
  const [payments, refunds] = [count('payments'), count('refunds')];
  const [paymentsMinor, refundsMinor] = [amount('paymentsAmount'), amount('refundsAmount')];
  const feesMinor = amount('fees');
  if (
    payments === undefined ||
    refunds === undefined ||
    paymentsMinor === undefined ||
    refundsMinor === undefined ||
    feesMinor === undefined
  ) {
    const said = printable(record.cells.join(','), 120);
    throw new TradeBillError('unreadable', `line ${record.lineNo} of the summary says: ${said}`);
  }
  return { currency, payments, paymentsMinor, refunds, refundsMinor, feesMinor };
}

const NUMBERS = ['outTradeNo', 'channelTradeNo', 'outRefundNo', 'channelRefundNo'] as const;
/** Wider than our own numbers: a bill may name numbers that others made. */
const NUMBER = /^[\x21-\x7e]{1,64}$/;
const CURRENCY = /^[A-Z]{3}$/;
/** Source: domain/trade-bill.ts. */
const MAX_WORD = 64;
const MAX_ERROR = 200;

function said(format: BillFormat, column: BillColumn, text: string): string {
  return `${format.columns[column]}: "${text}"`;
}

/** Channel text as evidence: no control characters (a database takes no NUL), bounded. */
export function printable(text: string, maxChars: number): string {
  return (
    text
      .slice(0, maxChars)
      // Half of a pair that the cut has left.
      .replace(/[\ud800-\udbff]$/, '')
      // eslint-disable-next-line no-control-regex
      .replace(/[\u0000-\u001f\u007f]/g, ' ')
  );
}
