/**
 * Books and a trade bill of one day that agree but for a known number of differences: made in SQL, so
 * that a million rows take seconds, and seeded, so that every run compares the same.
 */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import type { DifferenceKind } from '../domain/differences';

export const CHANNEL = 'bench';
export const FEE_BASIS_POINTS = 60;
/** Of 20 rows of the bill one is a refund. */
const REFUND_SHARE = 20;

/** Differences that one payment or one refund may be given; `file_total` there is once. */
const OF_PAYMENTS: readonly DifferenceKind[] = [
  'channel_only',
  'ours_only',
  'amount',
  'currency',
  'status',
  'fee',
  'duplicate_payment',
  'duplicate_row',
  'row_error',
  'unknown_row',
  'adjustment',
];
const OF_REFUNDS: readonly DifferenceKind[] = [
  'refund_channel_only',
  'refund_ours_only',
  'refund_amount',
  'refund_status',
];

export interface BillOfBench {
  /** Rows of the bill. */
  rows: number;
  gzipFile: string;
  sha256: string;
  /** The same rows in the text format of COPY, for the floor. */
  textFile: string;
  /** The sums that the channel states, one of them wrong. */
  totals: Record<string, unknown>[];
  /** `kind subject`, sorted. */
  expected: string[];
}

/** Fills the database and writes the files. `day` is a business date in UTC. */
export async function makeBooks(
  databaseUrl: string,
  input: { rows: number; differences: number; day: string; folder: string },
): Promise<BillOfBench> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    // The rows are consistent by how they are made; foreign keys need not be looked up each time.
    await client.query(`set session_replication_role = replica; set work_mem = '256MB'`);
    await makePlan(client, input);
    await makeOurs(client, input.day);
    await makeRows(client);
    await client.query('vacuum (analyze) captures');
    await client.query('vacuum (analyze) pay_records');
    await client.query('vacuum (analyze) refunds');
    await client.query('vacuum (analyze) orders');
    const gzipFile = `${input.folder}/bill-${input.rows}.csv.gz`;
    const textFile = `${input.folder}/bill-${input.rows}.copy`;
    const sha256 = await writeGzip(client, gzipFile);
    await writeText(client, textFile);
    const counted = await client.query<{ n: number }>('select count(*)::int as n from bench_rows');
    const totals = await readTotals(client);
    const expected = await client.query<{ said: string }>(
      `select kind || ' ' || subject as said from bench_expected order by said`,
    );
    await client.query('drop table bench_plan, bench_rows');
    // What was written is on disk before anything is measured.
    await client.query('checkpoint');
    return {
      rows: counted.rows[0]?.n ?? 0,
      gzipFile,
      textFile,
      sha256,
      totals,
      expected: expected.rows.map(({ said }) => said),
    };
  } finally {
    await client.end();
  }
}

/** Every payment and refund of the day, and which of them differs in what. */
async function makePlan(
  client: pg.Client,
  { rows, differences, day }: { rows: number; differences: number; day: string },
): Promise<void> {
  const refunds = Math.floor(rows / REFUND_SHARE);
  const payments = rows - refunds;
  const onRefunds = Math.min(Math.floor(differences / 5), Math.floor(refunds / 4));
  const onPayments = differences - 1 - onRefunds;
  const list = (kinds: readonly string[]) => `(array[${kinds.map((k) => `'${k}'`).join(', ')}])`;
  await client.query(`
    create table bench_plan as
    select n, is_refund, case when is_refund then 'payer-' || n else 'order-' || n end as order_id,
      upper(substr(md5((case when is_refund then 'o' else 'O' end) || n), 1, 30)) as out_trade_no,
      case when is_refund then '4300' else '4200' end || lpad(n::text, 24, '0') as channel_trade_no,
      upper(substr(md5('R' || n), 1, 30)) as out_refund_no,
      '5000' || lpad(n::text, 24, '0') as channel_refund_no,
      100 + (n * 7919::bigint) % 1000000 as amount,
      '${day}T00:00:00Z'::timestamptz + ((n % 86400) || ' seconds')::interval as at,
      case when (n - 1) % stride = 0 and (n - 1) / stride < injected
        then kinds[((n - 1) / stride) % array_length(kinds, 1) + 1] end as difference
    from (
      select n, false as is_refund, ${Math.floor(payments / onPayments)} as stride,
        ${onPayments} as injected, ${list(OF_PAYMENTS)} as kinds
      from generate_series(1, ${payments}) n
      union all
      select n, true, ${Math.floor(refunds / onRefunds)}, ${onRefunds}, ${list(OF_REFUNDS)}
      from generate_series(1, ${refunds}) n
    ) p`);
  await client.query('analyze bench_plan');
  await client.query(`
    create table bench_expected as
    select difference as kind, case
        when difference in ('row_error', 'unknown_row', 'adjustment') then null
        when is_refund then out_refund_no else channel_trade_no end as subject, n
    from bench_plan where difference is not null
    union all select 'file_total', 'CNY', 0`);
}

/** Our side: an order, an attempt and a capture for each payment; a refund of an older one for each refund. */
async function makeOurs(client: pg.Client, day: string): Promise<void> {
  await client.query(`
    insert into merchants (merchant_id, name) values ('bench', 'bench');
    insert into channels (channel, adapter, account_id, app_id, gateway_url, created_at)
    values ('${CHANNEL}', 'mock-b', 'acc', 'app', 'http://127.0.0.1:9', '${day}T00:00:00Z');
    insert into orders (merchant_id, order_id, amount_minor, currency, subject, expires_at, status,
      paid_at, created_at, next_due_at)
    select 'bench', order_id, amount, 'CNY', 'bench', at, 'paid', at, at, at from bench_plan`);
  await client.query(`
    insert into pay_records (merchant_id, order_id, channel, request_no, out_trade_no, amount_minor,
      currency, status, channel_trade_no, created_at, next_due_at, updated_at)
    select 'bench', order_id, '${CHANNEL}', 'k', out_trade_no, amount, 'CNY',
      case when difference = 'channel_only' then 'closed' else 'paid' end, channel_trade_no, at, at, at
    from bench_plan`);
  await client.query(`
    insert into captures (channel, channel_trade_no, merchant_id, order_id, pay_record_id, amount_minor,
      currency, settles, kind, status, reversed_minor, refunded_minor, paid_at, learnt_from, learnt_at)
    select '${CHANNEL}', p.channel_trade_no, 'bench', p.order_id, r.pay_record_id, p.amount, 'CNY',
      p.difference is distinct from 'duplicate_payment',
      case when p.difference = 'duplicate_payment' then 'surplus_duplicate' else 'settling' end,
      case when p.difference = 'status' then 'reversed' else 'captured' end,
      case when p.difference = 'status' then p.amount else 0 end,
      case when p.is_refund and p.difference not in ('refund_channel_only', 'refund_status')
        is not false then p.amount else 0 end,
      -- What was refunded on the day had been paid ten days before.
      case when p.is_refund then p.at - interval '10 days' else p.at end, 'callback', p.at
    from bench_plan p join pay_records r on r.out_trade_no = p.out_trade_no
    where p.difference is distinct from 'channel_only'`);
  await client.query(`
    insert into refunds (merchant_id, order_id, refund_no, capture_id, channel, out_refund_no,
      amount_minor, currency, origin, status, channel_refund_no, first_sent_at, created_at,
      next_due_at, updated_at, finished_at)
    select 'bench', p.order_id, 'r-1', c.capture_id, '${CHANNEL}', p.out_refund_no, p.amount, 'CNY',
      'merchant', case when p.difference = 'refund_status' then 'failed' else 'succeeded' end,
      p.channel_refund_no, p.at, p.at, p.at, p.at, p.at
    from bench_plan p join captures c on c.channel = '${CHANNEL}'
      and c.channel_trade_no = p.channel_trade_no
    where p.is_refund and p.difference is distinct from 'refund_channel_only'`);
  await client.query(`
    insert into order_events (merchant_id, order_id, subject, subject_id, from_status, to_status, cause,
      actor, created_at)
    select 'bench', c.order_id, 'capture', c.capture_id::text, 'captured', 'reversed', 'reversed',
      '${CHANNEL}', c.paid_at
    from captures c where c.status = 'reversed'`);
}

/** The channel's side: a row for each, but for what the plan says; in the order of time. */
async function makeRows(client: pg.Client): Promise<void> {
  await client.query(`
    create table bench_rows as
    select row_number() over (order by at, is_refund, n, copy) + 1 as line_no, v.* from (
      select n, is_refund, at, 0 as copy, difference, channel_trade_no, out_trade_no,
        case when is_refund then channel_refund_no end as channel_refund_no,
        case when is_refund then out_refund_no end as out_refund_no,
        case when is_refund then 'REFUND' else 'PAY' end as type,
        case when difference = 'currency' then 'USD' else 'CNY' end as currency,
        (amount + case when difference in ('amount', 'refund_amount') then 1 else 0 end)::text
          as amount,
        case when difference = 'fee' and n % 2 = 0 then null else (case when is_refund then -1 else 1 end
          * ((amount * ${FEE_BASIS_POINTS} + 5000) / 10000)
          + case when difference = 'fee' then 1 else 0 end)::text end as fee,
        'SUCCESS' as state
      from bench_plan where difference is null
        or difference not in ('ours_only', 'refund_ours_only')
      union all
      -- Rows beside those of our books: the same again, and what no number of ours belongs to.
      select n, is_refund, at, 1, difference, channel_trade_no, out_trade_no, null, null,
        case difference when 'unknown_row' then 'ADVANCE' when 'adjustment' then 'ADJUSTMENT'
          else 'PAY' end,
        'CNY', case difference when 'row_error' then '1,000' when 'unknown_row' then '-321'
          when 'adjustment' then '-500' else amount::text end,
        case when difference in ('unknown_row', 'adjustment') then null
          else ((amount * ${FEE_BASIS_POINTS} + 5000) / 10000)::text end,
        'SUCCESS'
      from bench_plan where difference in ('duplicate_row', 'row_error', 'unknown_row', 'adjustment')
    ) v`);
  await client.query(`
    update bench_expected e set subject = 'line ' || r.line_no from bench_rows r
    where e.subject is null and r.copy = 1 and r.n = e.n and not r.is_refund`);
  await client.query(`analyze bench_rows`);
}

const INSTANT = `to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;

/** The bill as the channel sends it. Returns its SHA-256. */
async function writeGzip(client: pg.Client, file: string): Promise<string> {
  const hash = createHash('sha256');
  const hashed = new PassThrough();
  hashed.on('data', (chunk: Buffer) => hash.update(chunk));
  const rows = client.query(
    copyTo(`copy (
      select ${INSTANT} as success_time, type as trade_type, channel_trade_no as transaction_id,
        out_trade_no, channel_refund_no as refund_id, out_refund_no, currency, amount, fee,
        state as trade_state
      from bench_rows order by line_no) to stdout with (format csv, header)`),
  );
  await pipeline(rows, createGzip(), hashed, createWriteStream(file));
  return hash.digest('hex');
}

/** What the bill's own reader would make of each row, ready for COPY. */
async function writeText(client: pg.Client, file: string): Promise<void> {
  const rows = client.query(
    copyTo(`copy (
      select line_no, case when difference = 'row_error' and copy = 1 then 'error'
          when type = 'PAY' then 'payment' when type = 'REFUND' then 'refund'
          when type = 'ADJUSTMENT' then 'adjustment' else 'unknown' end,
        'succeeded', out_trade_no, channel_trade_no, out_refund_no, channel_refund_no,
        case when amount ~ ',' then null else amount end, currency, fee,
        ${INSTANT}, type || ' ' || state, null::text
      from bench_rows order by line_no) to stdout`),
  );
  await pipeline(rows, createWriteStream(file));
}

async function readTotals(client: pg.Client): Promise<Record<string, unknown>[]> {
  const { rows } = await client.query<{ totals: Record<string, unknown> }>(`
    select jsonb_build_object('currency', currency,
      'payments', count(*) filter (where type = 'PAY'),
      -- One of them wrong by a cent.
      'payments_amount', coalesce(sum(amount::bigint) filter (where type = 'PAY'), 0)
        + case when currency = 'CNY' then 1 else 0 end,
      'refunds', count(*) filter (where type = 'REFUND'),
      'refunds_amount', coalesce(sum(amount::bigint) filter (where type = 'REFUND'), 0),
      'fees', coalesce(sum(fee::bigint), 0)) as totals
    from bench_rows where amount !~ ',' group by currency order by currency`);
  return rows.map(({ totals }) => totals);
}
