import { closeSync, fstatSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';

export type Dialect = 'mock-a' | 'mock-b';
export const DIALECTS: readonly Dialect[] = ['mock-a', 'mock-b'];

/**
 * The five calls of the protocol, the question for a trade bill and its download (mock-b);
 * `unknown` is a request that named none of them.
 */
export type Operation =
  'create' | 'query' | 'close' | 'refund' | 'refund_query' | 'bill' | 'bill_file' | 'unknown';

interface OfTrade {
  dialect: Dialect;
  outTradeNo: string;
}
interface OfCapture extends OfTrade {
  channelTradeNo: string;
  amountMinor: number;
  currency: string;
}
interface OfRefund extends OfCapture {
  outRefundNo: string;
}

/** What can be written into the books; PROTOCOL.md section 4 describes every field. */
export type BookEntry =
  | {
      type: 'request';
      dialect: Dialect;
      operation: Operation;
      outTradeNo: string | null;
      outRefundNo: string | null;
      amountMinor: number | null;
      currency: string | null;
      outcome: string;
      httpStatus: number | null;
    }
  | ({
      type: 'trade_created';
      subject: string;
      expiresAt: string;
      payMethod: 'redirect' | 'qr_code';
      returnUrl: string | null;
    } & OfCapture)
  | ({
      type: 'trade_moved';
      status: 'open' | 'review' | 'failed' | 'closed';
      cause: 'merchant' | 'expiry' | 'payer' | 'channel';
    } & OfTrade)
  | ({ type: 'captured'; payerTotalMinor: number } & OfCapture)
  | ({ type: 'reversed' } & OfCapture)
  | ({ type: 'reinstated' } & OfCapture)
  | ({ type: 'refund_accepted'; channelRefundNo: string } & OfRefund)
  | ({ type: 'refund_executed' } & OfRefund)
  | ({ type: 'refund_refused'; code: string } & OfRefund)
  | ({ type: 'refund_abnormal' } & OfRefund)
  | ({ type: 'refund_returned' } & OfRefund)
  | ({
      type: 'callback_sent';
      noticeId: string;
      deliveryId: string;
      kind: 'payment' | 'refund';
      word: string;
      attempt: number;
      cause: DeliveryCause;
      url: string;
    } & OfTrade)
  | ({
      type: 'callback_answered';
      noticeId: string;
      deliveryId: string;
      httpStatus: number | null;
      acknowledged: boolean;
    } & OfTrade)
  | {
      type: 'bill_made';
      dialect: Dialect;
      day: string;
      rows: number;
      bytes: number;
      sha256: string;
    };

/** Why a delivery was sent: the channel's own doing, a duplicate by fault, a control call, a replay. */
export type DeliveryCause = 'natural' | 'fault_copy' | 'control' | 'replay';

/** `businessAt`: when it happened by the channel's business clock, where that is not `at`. */
export type BookRecord = { seq: number; at: string; businessAt?: string } & BookEntry;

/** Entries that the business clock dates. */
const DATED: ReadonlySet<BookEntry['type']> = new Set([
  'captured',
  'reversed',
  'reinstated',
  'refund_accepted',
  'refund_executed',
  'refund_refused',
  'refund_abnormal',
  'refund_returned',
] as const);

/**
 * The channel's books: an append-only file of JSON lines, the truth that tests compare our database
 * with. A record is written (synchronously, so before the channel answers) and then applied; at the
 * start the file is read back through the same `apply`.
 */
export class Books {
  readonly records: BookRecord[] = [];
  private fd: number | null = null;

  /**
   * @param path the file, or null to keep the books in memory only
   * @param apply folds a record into the ledger
   * @param businessOffsetMs how far the business clock is from the real one, now
   * @throws Error when a line in the middle of the file is not a record in sequence
   */
  constructor(
    path: string | null,
    private readonly apply: (record: BookRecord) => void,
    private readonly businessOffsetMs: () => number = () => 0,
  ) {
    if (path === null) return;
    this.fd = openSync(path, 'a+');
    try {
      this.readBack(path);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** @param businessAt when it happened, where neither clock says so */
  append(entry: BookEntry, businessAt?: string): BookRecord {
    const now = Date.now();
    const offsetMs = DATED.has(entry.type) ? this.businessOffsetMs() : 0;
    const dated = businessAt ?? (offsetMs === 0 ? undefined : isoOf(now + offsetMs));
    const record = {
      seq: this.records.length + 1,
      at: isoOf(now),
      ...(dated === undefined ? {} : { businessAt: dated }),
      ...entry,
    };
    if (this.fd !== null) writeSync(this.fd, `${JSON.stringify(record)}\n`);
    this.records.push(record);
    this.apply(record);
    return record;
  }

  close(): void {
    if (this.fd !== null) closeSync(this.fd);
    this.fd = null;
  }

  private readBack(path: string): void {
    const bytes = readFileSync(path);
    // A line without its end was being written when the process died: nobody was told of it.
    const complete = bytes.lastIndexOf(0x0a) + 1;
    if (this.fd !== null && complete < fstatSync(this.fd).size) ftruncateSync(this.fd, complete);
    for (const line of bytes.subarray(0, complete).toString('utf8').split('\n')) {
      if (line === '') continue;
      const record = JSON.parse(line) as BookRecord;
      if (record.seq !== this.records.length + 1) {
        throw new Error(`books out of sequence after record ${this.records.length}: ${path}`);
      }
      this.records.push(record);
      this.apply(record);
    }
  }
}

function isoOf(at: number): string {
  return new Date(at).toISOString();
}
