import { once } from 'node:events';
import { from as copyFrom } from 'pg-copy-streams';
import { storableText } from '../domain/channel-facts';
import type { BillFault, BillLine, BillTotals } from '../domain/trade-bill';
import { TradeBillError } from '../domain/trade-bill';
import { failpoint } from './failpoint';
import { LONG_STATEMENT_MS, withLongTransaction } from './long-transaction';
import { COPY_COLUMNS, copyChunks } from './trade-bill-copy';
import { BillAdder } from './trade-bill-sums';
import type { Client, Pool } from './transaction';

/** A bill that is being read, once, from its first line to its end. The channels' adapters give one. */
export interface BillToLoad {
  fileName: string;
  /** @throws TradeBillError when the file cannot be used as a whole, also after lines were given out */
  lines(): AsyncIterable<BillLine[]>;
  /** What is known once `lines()` has ended. */
  end(): { sha256: string; bytes: number; totals: BillTotals[] | null };
}

export interface LoadedBill {
  /** `unchanged`: the bill that counts is this very file. `rejected`: nothing of it was kept. */
  status: 'loaded' | 'unchanged' | 'rejected';
  billId: number;
  fault?: BillFault;
  message?: string;
  rows: number;
  rowErrors: number;
}

/**
 * Loads the channel's bill of a business date: all of it, or nothing. One transaction holds the
 * pair's row, so of two loaders one waits for the other; the lines go by COPY into a table of their
 * own, which becomes part of `trade_bill_lines` only once the file was read to its end and its sums
 * are known. Memory does not grow with the file. A newer file supersedes the older one; the same file
 * again changes nothing. A file that cannot be used is noted as a rejected bill.
 * `onProgress` hears the rows read so far, after each batch.
 * @throws what reading or the database throws, but no TradeBillError; then nothing was changed
 */
export async function loadTradeBill(
  pool: Pool,
  input: {
    channel: string;
    day: string;
    source: BillToLoad;
    onProgress?: (rows: number) => void;
  },
): Promise<LoadedBill> {
  try {
    return await withLongTransaction(pool, (client) => load(client, input));
  } catch (error) {
    if (!(error instanceof TradeBillError)) throw error;
    return noteRejectedBill(pool, input, error);
  }
}

async function load(
  client: Client,
  { channel, day, source, onProgress }: Parameters<typeof loadTradeBill>[1],
): Promise<LoadedBill> {
  await lockRun(client, channel, day);
  const { rows: made } = await client.query<{ bill_id: number; table_name: string }>(
    `select bill_id, 'trade_bill_lines_' || bill_id as table_name
     from (select nextval(pg_get_serial_sequence('trade_bills', 'bill_id')) as bill_id) n`,
  );
  const { bill_id: billId, table_name: table } = made[0] ?? { bill_id: 0, table_name: '' };
  await client.query(
    `create table ${table} (like trade_bill_lines including generated);
     alter table ${table} alter bill_id set default ${billId}`,
  );
  await failpoint('bill:before-copy', day);
  const adder = new BillAdder();
  await copyIn(
    client,
    // Frozen: the table is of this transaction, so nobody reads the rows before they are committed.
    `copy ${table} (${COPY_COLUMNS}) from stdin with (freeze)`,
    copyChunks(source.lines(), (batch) => {
      adder.add(batch);
      onProgress?.(adder.rows);
    }),
  );
  const { sha256, bytes, totals } = source.end();
  await failpoint('bill:copied', day);
  const current = await currentBill(client, channel, day);
  if (current?.sha256 === sha256) {
    await client.query(`drop table ${table}`);
    return {
      status: 'unchanged',
      billId: current.bill_id,
      rows: current.line_count,
      rowErrors: current.row_errors,
    };
  }
  await client.query(
    `create index on ${table} (our_hash);
     create index on ${table} (their_hash);
     analyze ${table};
     alter table trade_bill_lines attach partition ${table} for values in (${billId})`,
  );
  await client.query(
    `update trade_bills set status = 'superseded'
     where channel = $1::text and business_date = $2::date and status = 'loaded'`,
    [channel, day],
  );
  await client.query(
    `insert into trade_bills (bill_id, channel, business_date, status, file_name, sha256, bytes,
       line_count, row_errors, stated, sums)
     overriding system value
     values ($1::bigint, $2::text, $3::date, 'loaded', $4::text, $5::text, $6::bigint, $7::bigint,
       $8::bigint, $9::jsonb, $10::jsonb)`,
    [
      billId,
      channel,
      day,
      storableText(source.fileName),
      sha256,
      bytes,
      adder.rows,
      adder.rowErrors,
      totals && JSON.stringify(totals),
      JSON.stringify(adder.sums()),
    ],
  );
  await failpoint('bill:before-commit', day);
  return { status: 'loaded', billId, rows: adder.rows, rowErrors: adder.rowErrors };
}

/** The row that stands for the pair, made if there is none: whoever changes its bill holds it. */
export async function lockRun(client: Client, channel: string, day: string): Promise<void> {
  await client.query(
    `insert into reconciliation_runs (channel, business_date) values ($1::text, $2::date)
     on conflict do nothing`,
    [channel, day],
  );
  await client.query(
    `select from reconciliation_runs where channel = $1::text and business_date = $2::date for update`,
    [channel, day],
  );
}

async function currentBill(client: Client, channel: string, day: string) {
  const { rows } = await client.query<{
    bill_id: number;
    sha256: string;
    line_count: number;
    row_errors: number;
  }>(
    `select bill_id, sha256, line_count, row_errors from trade_bills
     where channel = $1::text and business_date = $2::date and status = 'loaded'`,
    [channel, day],
  );
  return rows[0];
}

async function noteRejectedBill(
  pool: Pool,
  { channel, day, source }: Parameters<typeof loadTradeBill>[1],
  error: TradeBillError,
): Promise<LoadedBill> {
  return withLongTransaction(pool, async (client) => {
    await lockRun(client, channel, day);
    // The same file refused again for the same reason is no news.
    const { rows } = await client.query<{ bill_id: number }>(
      `with last as (
         select * from trade_bills
         where channel = $1::text and business_date = $2::date order by bill_id desc limit 1
       ), noted as (
         insert into trade_bills (channel, business_date, status, file_name, fault, message)
         select $1::text, $2::date, 'rejected', $3::text, $4::text, $5::text
         where not exists (select from last where status = 'rejected' and file_name = $3::text
           and fault = $4::text and message = $5::text)
         returning bill_id
       )
       select bill_id from noted union all
       select bill_id from last where not exists (select from noted)`,
      [
        channel,
        day,
        storableText(source.fileName),
        error.fault,
        storableText(error.message).slice(0, 1000),
      ],
    );
    return {
      status: 'rejected',
      billId: rows[0]?.bill_id ?? 0,
      fault: error.fault,
      message: error.message,
      rows: 0,
      rowErrors: 0,
    };
  });
}

/**
 * Streams the chunks into the COPY, no faster than PostgreSQL takes them. When the chunks fail, so
 * does the COPY, and the error is theirs.
 */
async function copyIn(
  client: Client,
  statement: string,
  chunks: AsyncIterable<Buffer>,
): Promise<void> {
  const copy = client.query(
    // The pool's time limit for one statement is made for rows, not for files.
    Object.assign(copyFrom(statement), { query_timeout: LONG_STATEMENT_MS }),
  );
  let refusal: Error | undefined;
  copy.on('error', (error: Error) => {
    refusal ??= error;
  });
  try {
    for await (const chunk of chunks) {
      if (refusal) throw refusal;
      if (!copy.write(chunk)) await once(copy, 'drain');
    }
    if (refusal) throw refusal;
    const finished = once(copy, 'finish');
    copy.end();
    await finished;
  } catch (error) {
    // PostgreSQL has ended the COPY by itself; else it must be told, and heard, before the next word.
    if (!refusal) {
      const closed = once(copy, 'close').catch(() => undefined);
      copy.destroy();
      await closed;
    }
    throw error;
  }
}
