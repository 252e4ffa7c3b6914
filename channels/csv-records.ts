import { parse } from 'csv-parse/sync';
import { TradeBillError } from '../domain/trade-bill';

/** One record of a CSV file. `broken`: what about it is not CSV; it then has no cells. */
export interface CsvRecord {
  /** Line of the file, from 1, on which it begins. */
  lineNo: number;
  cells: string[];
  broken: string | null;
}

/** Longer than any row of a trade bill; a quote that is never closed would swallow the file. */
const MAX_RECORD_CHARS = 64 * 1024;

const CSV = { relax_column_count: true, relax_quotes: true, record_delimiter: ['\n', '\r\n'] };

/**
 * Splits CSV text that comes in pieces into records (RFC 4180; lines end with LF or CRLF, the last
 * one may lack its end, empty lines are no records).
 *
 * A line without a quote is nothing but cells between commas and is split here, at a million lines
 * per second; csv-parse, which looks at every byte, reads 150,000. So it gets the records that need
 * it: those with quotes, all of a piece in one call.
 */
export class CsvRecords {
  private rest = '';
  private lineNo = 0;
  private open: { lineNo: number; text: string } | null = null;

  /**
   * The records that are complete with this piece.
   * @throws TradeBillError `unreadable` when a record is longer than any row can be
   */
  push(text: string): CsvRecord[] {
    const all = this.rest + text;
    const records: CsvRecord[] = [];
    const quoted: { record: CsvRecord; text: string }[] = [];
    const hasQuotes = this.open !== null || all.includes('"');
    let from = 0;
    for (;;) {
      const end = all.indexOf('\n', from);
      if (end < 0) break;
      this.line(all.slice(from, end), hasQuotes, records, quoted);
      from = end + 1;
    }
    this.rest = all.slice(from);
    this.limit(this.rest.length + (this.open?.text.length ?? 0));
    readQuoted(quoted);
    return records;
  }

  /**
   * The record of a last line without its end.
   * @throws TradeBillError `cut_off` when the file ends inside of a quoted cell
   */
  end(): CsvRecord[] {
    const records: CsvRecord[] = [];
    const quoted: { record: CsvRecord; text: string }[] = [];
    if (this.rest !== '') this.line(this.rest, true, records, quoted);
    this.rest = '';
    if (this.open) {
      const { lineNo } = this.open;
      throw new TradeBillError('cut_off', `the file ends inside of a quoted cell (line ${lineNo})`);
    }
    readQuoted(quoted);
    return records;
  }

  private line(
    raw: string,
    hasQuotes: boolean,
    records: CsvRecord[],
    quoted: { record: CsvRecord; text: string }[],
  ): void {
    this.lineNo += 1;
    if (!hasQuotes || (this.open === null && !raw.includes('"'))) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
      if (line === '') return;
      this.limit(line.length);
      records.push({ lineNo: this.lineNo, cells: line.split(','), broken: null });
      return;
    }
    const lineNo = this.open?.lineNo ?? this.lineNo;
    const text = this.open ? `${this.open.text}\n${raw}` : raw;
    this.limit(text.length);
    if (endsInsideQuotes(raw, this.open !== null)) {
      this.open = { lineNo, text };
      return;
    }
    this.open = null;
    const record: CsvRecord = { lineNo, cells: [], broken: null };
    records.push(record);
    quoted.push({ record, text: text.endsWith('\r') ? text.slice(0, -1) : text });
  }

  private limit(chars: number): void {
    if (chars <= MAX_RECORD_CHARS) return;
    const lineNo = this.open?.lineNo ?? this.lineNo;
    throw new TradeBillError('unreadable', `a row longer than 64 KiB begins near line ${lineNo}`);
  }
}

/** Whether a line leaves a quoted cell open; a quote inside of an unquoted cell is a character. */
function endsInsideQuotes(line: string, wasInside: boolean): boolean {
  let inside = wasInside;
  let atCellStart = !wasInside;
  for (let at = 0; at < line.length; at += 1) {
    const char = line[at];
    if (inside) {
      if (char !== '"') continue;
      if (line[at + 1] === '"') at += 1;
      else inside = false;
    } else if (char === '"' && atCellStart) {
      inside = true;
      atCellStart = false;
    } else atCellStart = char === ',';
  }
  return inside;
}

/** Fills in the cells of records with quotes. */
function readQuoted(quoted: { record: CsvRecord; text: string }[]): void {
  if (quoted.length === 0) return;
  try {
    const rows: string[][] = parse(quoted.map(({ text }) => text).join('\n'), CSV);
    if (rows.length === quoted.length) {
      for (const [index, { record }] of quoted.entries()) record.cells = rows[index] ?? [];
      return;
    }
  } catch {
    // One of them is not CSV: each by itself tells which.
  }
  for (const { record, text } of quoted) {
    try {
      const rows: string[][] = parse(text, CSV);
      if (rows.length === 1) record.cells = rows[0] ?? [];
      else record.broken = `reads as ${rows.length} rows`;
    } catch (error) {
      record.broken = (error as Error).message;
    }
  }
}
