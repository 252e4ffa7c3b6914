import { createHash } from 'node:crypto';
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { Adder, changed, extraRow, fits, generatedRows, isOfBill, rowOfRecord } from './bill-rows';
import type { BillRow } from './bill-rows';
import { billBytes } from './bill-text';
import type {
  BillExtraRow,
  BillFileDefects,
  BillKey,
  BillNotReady,
  BillRowChange,
  BillSetup,
  GeneratedRows,
  MadeBill,
} from './bill-types';
import type { Books, Dialect } from './books';
import { BusinessZone } from './business-zone';
import type { Settings } from './control-types';
import type { Account } from './dialect';
import type { Ledger } from './ledger';

/** What was set for one bill. */
export interface BillPlan {
  notReady: BillNotReady | null;
  file: BillFileDefects;
  rows: BillRowChange[];
  extraRows: BillExtraRow[];
  generated: GeneratedRows | null;
  refundsProcessing: boolean;
}

/** A bill's file on disk. */
export interface BillFile extends MadeBill {
  path: string;
  charset: 'utf-8' | 'gbk' | 'utf-16le';
}

const PLAIN: BillPlan = {
  notReady: null,
  file: {},
  rows: [],
  extraRows: [],
  generated: null,
  refundsProcessing: false,
};

/**
 * Makes trade bills out of the books, as files in a folder of their own: whatever their size, they
 * pass through memory in chunks. A bill is made again when the books or what was set has changed.
 */
export class Bills {
  private readonly plans = new Map<string, BillPlan>();
  private readonly made = new Map<string, { state: string; file: Promise<BillFile> }>();
  private readonly zones = new Map<string, BusinessZone>();
  private version = 0;
  private files = 0;
  private folder: string | undefined;
  private readonly scanned: Record<Dialect, { upTo: number; last: number }> = {
    'mock-a': { upTo: 0, last: 0 },
    'mock-b': { upTo: 0, last: 0 },
  };

  constructor(
    private readonly parts: {
      books: Books;
      ledger: Ledger;
      settings: Settings;
      accounts: Record<Dialect, Account>;
      /** Where the files' own folder is made. */
      parentFolder: string;
    },
  ) {}

  plan(key: BillKey): BillPlan {
    return this.plans.get(nameOf(key)) ?? PLAIN;
  }

  set({ dialect, day, ...change }: BillSetup): BillPlan {
    const before = this.plan({ dialect, day });
    const plan: BillPlan = {
      notReady: change.notReady === undefined ? before.notReady : change.notReady,
      file: { ...before.file, ...change.file },
      rows: [...before.rows, ...(change.rows ?? [])],
      extraRows: [...before.extraRows, ...(change.extraRows ?? [])],
      generated: change.generated === undefined ? before.generated : change.generated,
      refundsProcessing: change.refundsProcessing ?? before.refundsProcessing,
    };
    this.plans.set(nameOf({ dialect, day }), plan);
    this.version += 1;
    return plan;
  }

  reset(key: BillKey): void {
    this.plans.delete(nameOf(key));
    this.version += 1;
  }

  /** What a question for the bill is told in place of it; counts down. Undefined: it is there. */
  askNotReady(key: BillKey): BillNotReady | undefined {
    // No channel has the bill of a day that is not over, whatever its clock for payments says.
    if (this.zone(key.dialect).dateOf(Date.now()) <= key.day) return {};
    const { notReady } = this.plan(key);
    if (!notReady) return undefined;
    if (notReady.times !== undefined) {
      const times = notReady.times - 1;
      this.set({ ...key, notReady: times > 0 ? { ...notReady, times } : null });
    }
    return notReady;
  }

  /** How the download that now begins is cut off; counts down. Undefined: it comes whole. */
  takeCutOff(key: BillKey): BillFileDefects['cutOff'] {
    const { cutOff } = this.plan(key).file;
    if (cutOff?.times !== undefined) {
      const times = cutOff.times - 1;
      this.set({ ...key, file: { cutOff: times > 0 ? { ...cutOff, times } : undefined } });
    }
    return cutOff;
  }

  /** The bill as the books and what was set for it have it now. */
  async make(key: BillKey): Promise<BillFile> {
    const { settings } = this.parts;
    const { timeZone, billCharset, feeBasisPoints } = settings;
    const last = this.lastRecord(key.dialect);
    const state = JSON.stringify([this.version, last, timeZone, billCharset, feeBasisPoints]);
    const known = this.made.get(nameOf(key));
    if (known?.state === state) return known.file;
    const file = this.write(key);
    this.made.set(nameOf(key), { state, file });
    file.catch(() => this.made.delete(nameOf(key)));
    return file;
  }

  close(): void {
    if (this.folder !== undefined) rmSync(this.folder, { recursive: true, force: true });
  }

  private async write(key: BillKey): Promise<BillFile> {
    const { dialect, day } = key;
    const defects = this.plan(key).file;
    const charset =
      defects.charset ?? (dialect === 'mock-a' ? this.parts.settings.billCharset : 'utf-8');
    this.folder ??= mkdtempSync(join(this.parts.parentFolder, 'mock-channel-bills-'));
    this.files += 1;
    const path = join(this.folder, String(this.files));
    const hash = createHash('sha256');
    let bytes = 0;
    const adder = new Adder();
    const { accountId } = this.parts.accounts[dialect];
    const chunks = billBytes(
      dialect,
      accountId,
      this.zone(dialect),
      this.rows(key),
      { ...defects, charset },
      adder,
    );
    const counted = async function* (source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
      for await (const chunk of source) {
        hash.update(chunk);
        bytes += chunk.length;
        yield chunk;
      }
    };
    const source = Readable.from(chunks, { objectMode: true });
    const sink = createWriteStream(path);
    const packed = dialect === 'mock-b' && !defects.notPacked;
    if (packed) await pipeline(source, createGzip({ level: 1 }), counted, sink);
    else await pipeline(source, counted, sink);
    const made: MadeBill = {
      fileName: `${dialect}-${accountId}-${day}${dialect === 'mock-b' ? '.csv.gz' : '.csv'}`,
      rows: adder.rows,
      bytes,
      sha256: hash.digest('hex'),
      totals: adder.totals(),
    };
    const { books } = this.parts;
    const { rows, sha256 } = made;
    books.append({ type: 'bill_made', dialect, day, rows, bytes, sha256 });
    return { ...made, path, charset };
  }

  /** The rows of a bill, with everything that was set for them. */
  private *rows(key: BillKey): Generator<BillRow> {
    const { rows: changes, generated, refundsProcessing } = this.plan(key);
    const { feeBasisPoints } = this.parts.settings;
    for (const row of this.ownRows(key)) {
      const shown = refundsProcessing && row.kind === 'refund';
      yield* changed(shown ? { ...row, status: 'processing' } : row, changes);
    }
    const yesterday = { dialect: key.dialect, day: dayBefore(key.day) };
    const moved = this.plan(yesterday).rows.filter((change) => change.do === 'next_day');
    if (moved.length > 0) {
      for (const row of this.ownRows(yesterday)) {
        if (moved.some((change) => fits(row, change))) yield* changed(row, changes);
      }
    }
    if (!generated) return;
    const zone = this.zone(key.dialect);
    for (const row of generatedRows(key.day, generated, zone, feeBasisPoints)) {
      if (changes.length === 0) yield row;
      else yield* changed(row, changes);
    }
  }

  private *ownRows(key: BillKey): Generator<BillRow> {
    const { books, ledger, settings } = this.parts;
    const zone = this.zone(key.dialect);
    for (const record of books.records) {
      if (!isOfBill(record, key.dialect)) continue;
      if (zone.dateOf(record.businessAt ?? record.at) !== key.day) continue;
      const row = rowOfRecord(record, ledger, settings.feeBasisPoints);
      if (row) yield row;
    }
    for (const [index, extra] of this.plan(key).extraRows.entries()) {
      yield extraRow(key, index, extra, zone, settings.feeBasisPoints);
    }
  }

  /** The newest record of the books that can change a bill of the dialect. */
  private lastRecord(dialect: Dialect): number {
    const { records } = this.parts.books;
    const scanned = this.scanned[dialect];
    for (; scanned.upTo < records.length; scanned.upTo += 1) {
      const record = records[scanned.upTo];
      if (record && isOfBill(record, dialect)) scanned.last = record.seq;
    }
    return scanned.last;
  }

  private zone(dialect: Dialect): BusinessZone {
    const { timeZone } = this.parts.settings;
    const name = typeof timeZone === 'string' ? timeZone : timeZone[dialect];
    let zone = this.zones.get(name);
    if (!zone) this.zones.set(name, (zone = new BusinessZone(name)));
    return zone;
  }
}

function nameOf({ dialect, day }: BillKey): string {
  return `${dialect} ${day}`;
}

function dayBefore(day: string): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) - 86_400_000).toISOString().slice(0, 10);
}
