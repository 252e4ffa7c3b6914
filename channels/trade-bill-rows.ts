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

/**
 * Reads the rows of one file. A row becomes our line; one with a cell that cannot be read becomes a
 * line of kind `error`, never a guess. (A class, and no closure per row: there are millions.)
 */
export class BillRowReader {
  /** @param width how many cells the header has */
  constructor(
    private readonly format: BillFormat,
    private readonly positions: Positions<BillColumn>,
    private readonly width: number,
  ) {}

  read(record: CsvRecord): BillLine {
    const { format } = this;
    const { cells } = record;
    const type = this.cell(cells, 'type');
    const statusWord = this.cell(cells, 'status');
    const line: BillLine = {
      lineNo: record.lineNo,
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
      word: printable(`${type} ${statusWord}`.trim(), MAX_WORD),
      error: null,
    };
    const wrong = this.fill(line, record);
    if (wrong === undefined) return line;
    line.kind = 'error';
    line.status = 'unknown';
    line.amountMinor = null;
    line.feeMinor = null;
    line.error = printable(wrong, MAX_ERROR);
    return line;
  }

  /** Fills in what the row says. @returns what about it cannot be read */
  private fill(line: BillLine, { cells, broken }: CsvRecord): string | undefined {
    const { format } = this;
    if (broken !== null) return `not CSV: ${broken}`;
    if (cells.length !== this.width) {
      return `${cells.length} cells where the header has ${this.width}: ${cells.join(',')}`;
    }
    let hasNumber = false;
    for (const column of NUMBERS) {
      const number = this.cell(cells, column);
      if (number === '') continue;
      if (!NUMBER.test(number)) return this.said(column, number);
      line[column] = number;
      hasNumber = true;
    }
    const currency = this.cell(cells, 'currency');
    if (CURRENCY.test(currency)) line.currency = currency;
    const time = this.cell(cells, 'time');
    if (time !== '') {
      const occurredAt = format.readTime(time);
      if (occurredAt === undefined) return this.said('time', time);
      line.occurredAt = occurredAt;
    }
    const amount = this.cell(cells, 'amount');
    const amountMinor = readBillAmount(amount, currency, format.amounts);
    if (amountMinor === undefined) {
      return `${this.said('amount', amount)}, currency "${currency}"`;
    }
    const fee = this.cell(cells, 'fee');
    // An empty fee, or a dash, is "the file does not say", which is not the same as no fee.
    const feeMinor =
      fee === '' || fee === '-' ? null : readBillAmount(fee, currency, format.amounts);
    if (feeMinor === undefined) return this.said('fee', fee);

    if (line.kind === 'payment' || line.kind === 'refund' || line.kind === 'reversal') {
      if (amountMinor < 0) return `${this.said('amount', amount)} is negative`;
      if (!hasNumber) return 'a row about money without any number';
    }
    line.amountMinor = amountMinor;
    line.feeMinor = feeMinor;
    return undefined;
  }

  private cell(cells: readonly string[], column: BillColumn): string {
    return cleanCell(cells[this.positions[column]]);
  }

  private said(column: BillColumn, text: string): string {
    return `${this.format.columns[column]}: "${text}"`;
  }
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
const PLAIN = /^[\x20-\x7e]*$/;
/** Source: domain/trade-bill.ts. */
const MAX_WORD = 64;
const MAX_ERROR = 200;

/** Channel text as evidence: no control characters (a database takes no NUL), bounded. */
export function printable(text: string, maxChars: number): string {
  if (text.length <= maxChars && PLAIN.test(text)) return text;
  return (
    text
      .slice(0, maxChars)
      // Half of a pair that the cut has left.
      .replace(/[\ud800-\udbff]$/, '')
      // eslint-disable-next-line no-control-regex
      .replace(/[\u0000-\u001f\u007f]/g, ' ')
  );
}
