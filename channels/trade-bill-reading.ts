import { createHash } from 'node:crypto';
import { pipeline } from 'node:stream';
import { TextDecoder } from 'node:util';
import { createGunzip } from 'node:zlib';
import type { BillLine, BillTotals } from '../domain/trade-bill';
import { TradeBillError } from '../domain/trade-bill';
import type { TradeBillAnswer, TradeBillSource } from './contract';
import { CsvRecords } from './csv-records';
import type { CsvRecord } from './csv-records';
import { unreadable } from './http-answer';
import { DownloadError } from './http-download';
import { BillRowReader, cleanCell, findColumns, readSummaryRow } from './trade-bill-rows';
import type { BillFormat, Positions, SummaryColumn } from './trade-bill-rows';

/** A trade bill that is being downloaded, and what its channel said about it. */
export interface BillFile {
  fileName: string;
  /** As sent, packed if it is packed. */
  body: AsyncIterable<Buffer>;
  packed: 'gzip' | null;
  /** The charset the channel names; it is believed, and a byte that does not fit it is a fault. */
  charset: string;
  /** SHA-256 in hex that the channel states, if it does. */
  statedSha256: string | null;
  /** Sums that the channel states beside the file; null: those in the file count, if any. */
  statedTotals: BillTotals[] | null;
  /** Bytes, unpacked, above which it is not read on. */
  maxBytes: number;
  format: BillFormat;
  /** What is wrong with it already, by what the channel said about it; told to its reader. */
  fault: TradeBillError | undefined;
}

/** The fault of a bill that the channel calls another day's; undefined when it is the right one. */
export function wrongDay(asked: string, said: string): TradeBillError | undefined {
  if (said === asked) return undefined;
  const message = `asked for the bill of ${asked}, the file is of "${said.slice(0, 20)}"`;
  return new TradeBillError('wrong_day', message);
}

/** Lines handed over at a time: enough that the hand-over costs nothing, few kilobytes of memory. */
const BATCH_LINES = 500;
/** A bill that nobody begins to read holds its connection for at most this long. */
const UNREAD_MS = 60_000;

/**
 * The part that all adapters share: waits for the first bytes of a bill (none at all: `not_ready`)
 * and makes a source of the rest. Whatever its size, a bill takes the memory of some chunks and one
 * batch of lines.
 */
export async function openBillFile(file: BillFile): Promise<TradeBillAnswer> {
  const reading = new BillReading(file);
  const failure = await reading.begin();
  if (failure === 'empty')
    return { outcome: 'not_ready', reason: 'zero_bytes', retryAfterMs: null };
  if (failure) {
    return failure.why === 'aborted'
      ? { outcome: 'unknown', reason: 'time_limit', retryAfterMs: null, trouble: true }
      : { ...unreadable('answer_cut_off'), trouble: true };
  }
  return { outcome: 'ready', bill: reading };
}

class BillReading implements TradeBillSource {
  readonly fileName: string;
  private readonly hash = createHash('sha256');
  private readonly unpacked: AsyncIterator<Buffer>;
  private readonly first: Promise<IteratorResult<Buffer>>;
  private unread: NodeJS.Timeout | undefined;
  private bytes = 0;
  private state: 'opened' | 'reading' | 'ended' = 'opened';
  private sha256 = '';
  private totals: BillTotals[] | null;

  constructor(private readonly file: BillFile) {
    this.fileName = file.fileName;
    this.totals = file.statedTotals;
    this.unpacked = this.unpack()[Symbol.asyncIterator]();
    this.first = this.unpacked.next();
    // Asked for again by whoever reads the lines.
    this.first.catch(() => undefined);
  }

  /** Waits for the first bytes. Faults of the file itself are told to the reader of the lines. */
  async begin(): Promise<'empty' | DownloadError | undefined> {
    try {
      if ((await this.first).done) return 'empty';
      this.unread = setTimeout(() => void this.unpacked.return?.(), UNREAD_MS).unref();
      return undefined;
    } catch (error) {
      if (error instanceof DownloadError) return error;
      // Nothing at all is no packed file that ends too early.
      return this.bytes === 0 ? 'empty' : undefined;
    }
  }

  async *lines(): AsyncGenerator<BillLine[]> {
    if (this.state !== 'opened') throw new Error('a trade bill is read once');
    this.state = 'reading';
    clearTimeout(this.unread);
    const table = new BillTable(this.file.format);
    const csv = new CsvRecords();
    try {
      if (this.file.fault) throw this.file.fault;
      for await (const text of this.texts()) {
        table.take(csv.push(text));
        if (table.lines.length >= BATCH_LINES) yield table.handOver();
      }
      table.take(csv.end());
      if (table.lines.length > 0) yield table.handOver();
      this.totals = table.end() ?? this.totals;
      this.sha256 = this.hash.digest('hex');
      const { statedSha256 } = this.file;
      if (statedSha256 !== null && statedSha256.toLowerCase() !== this.sha256) {
        const message = `the channel states SHA-256 ${statedSha256}, the file has ${this.sha256}`;
        throw new TradeBillError('wrong_hash', message);
      }
      this.state = 'ended';
    } catch (error) {
      throw explain(error);
    } finally {
      await this.unpacked.return?.();
    }
  }

  end(): { sha256: string; bytes: number; totals: BillTotals[] | null } {
    if (this.state !== 'ended') throw new Error('the trade bill has not been read to its end');
    return { sha256: this.sha256, bytes: this.bytes, totals: this.totals };
  }

  /** The text of the file, without its byte-order mark. */
  private async *texts(): AsyncGenerator<string> {
    const decoder = decoderFor(this.file.charset);
    let isFirst = true;
    let next = await this.first;
    for (; !next.done; next = await this.unpacked.next()) {
      if (isFirst) refuseUtf16(next.value);
      isFirst = false;
      yield decode(decoder, next.value);
    }
    yield decode(decoder);
  }

  private unpack(): AsyncIterable<Buffer> {
    if (this.file.packed === null) return this.limited(this.sent());
    const unpacked = pipeline(
      this.sent(),
      createGunzip({ chunkSize: 64 * 1024 }),
      // Its errors come out of the iteration.
      () => undefined,
    );
    return this.limited(unpacked as AsyncIterable<Buffer>);
  }

  /** The file as sent: hashed and counted. */
  private async *sent(): AsyncGenerator<Buffer> {
    for await (const chunk of this.file.body) {
      this.hash.update(chunk);
      this.bytes += chunk.length;
      // A packed file may hold many members without a byte in any.
      if (this.bytes > this.file.maxBytes) throw tooBig(this.file.maxBytes);
      yield chunk;
    }
  }

  private async *limited(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    let unpackedBytes = 0;
    for await (const chunk of chunks) {
      unpackedBytes += chunk.length;
      if (unpackedBytes > this.file.maxBytes) throw tooBig(this.file.maxBytes);
      if (chunk.length > 0) yield chunk;
    }
  }
}

/** The rows of a bill between its header and its summary. */
class BillTable {
  lines: BillLine[] = [];
  private rows = 0;
  private reader: BillRowReader | undefined;
  private summaryPositions: Positions<SummaryColumn> | undefined;
  private readonly totals: BillTotals[] = [];

  private readonly summaryNames: ReadonlySet<string>;

  constructor(private readonly format: BillFormat) {
    this.summaryNames = new Set(Object.values(format.summary ?? {}));
  }

  take(records: CsvRecord[]): void {
    for (const record of records) this.takeOne(record);
  }

  handOver(): BillLine[] {
    const { lines } = this;
    this.lines = [];
    return lines;
  }

  /**
   * The sums of the file's own summary; null when the format has none, or the file is a header
   * alone.
   * @throws TradeBillError when the table did not come to its end
   */
  end(): BillTotals[] | null {
    if (!this.reader) throw new TradeBillError('unreadable', 'the file has no header');
    if (this.summaryPositions) return this.totals;
    if (this.format.summary !== null && this.rows > 0) {
      throw new TradeBillError('cut_off', `no summary after ${this.rows} rows`);
    }
    return null;
  }

  private takeOne(record: CsvRecord): void {
    const { format } = this;
    if (!this.reader) {
      const positions = findColumns(record, format.columns);
      this.reader = new BillRowReader(format, positions, record.cells.length);
    } else if (this.summaryPositions) {
      this.totals.push(readSummaryRow(format, this.summaryPositions, record));
    } else if (format.summary && this.isSummaryHeader(record)) {
      this.summaryPositions = findColumns(record, format.summary);
    } else {
      this.rows += 1;
      this.lines.push(this.reader.read(record));
    }
  }

  /** Whichever column of sums stands first: no row begins with the name of one. */
  private isSummaryHeader({ cells: [first] }: CsvRecord): boolean {
    return first !== undefined && first.length <= 64 && this.summaryNames.has(cleanCell(first));
  }
}

function decoderFor(charset: string): TextDecoder {
  switch (charset.toLowerCase()) {
    case 'utf-8':
    case 'utf8':
      return new TextDecoder('utf-8', { fatal: true });
    case 'gbk':
    case 'gb2312':
    case 'gb18030':
      // The widest of the family reads all three.
      return new TextDecoder('gb18030', { fatal: true });
    default:
      throw new TradeBillError('wrong_encoding', `the charset ${charset.slice(0, 40)} is not read`);
  }
}

/** UTF-16 decodes as UTF-8 often enough, into cells full of NUL characters. */
function refuseUtf16(start: Buffer): void {
  const isMarked =
    (start[0] === 0xff && start[1] === 0xfe) || (start[0] === 0xfe && start[1] === 0xff);
  if (isMarked || start.subarray(0, 64).includes(0)) {
    throw new TradeBillError('wrong_encoding', 'the file is UTF-16, which is not read');
  }
}

function decode(decoder: TextDecoder, chunk?: Buffer): string {
  try {
    return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true });
  } catch (error) {
    if (chunk === undefined) {
      throw new TradeBillError('cut_off', 'the file ends in the middle of a character');
    }
    const message = `a byte of the file is not ${decoder.encoding}`;
    throw Object.assign(new TradeBillError('wrong_encoding', message), { cause: error });
  }
}

function tooBig(maxBytes: number): TradeBillError {
  return new TradeBillError('too_big', `the file is bigger than ${maxBytes} bytes`);
}

/** What went wrong with the file; an error that is not the file's stays what it is. */
function explain(error: unknown): unknown {
  if (error instanceof TradeBillError) return error;
  if (error instanceof DownloadError) {
    if (error.why === 'aborted') return new DOMException(error.message, 'AbortError');
    return Object.assign(new TradeBillError('cut_off', error.message), { cause: error });
  }
  const code = (error as { code?: unknown }).code;
  if (typeof code !== 'string' || !code.startsWith('Z_')) return error;
  const fault =
    code === 'Z_BUF_ERROR'
      ? new TradeBillError('cut_off', 'the packed file ends too early')
      : new TradeBillError('unreadable', `the file cannot be unpacked: ${code}`);
  return Object.assign(fault, { cause: error });
}
