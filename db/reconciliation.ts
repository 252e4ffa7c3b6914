import { SUSPENSE_DAYS, questionOf, DIFFERENCE_KINDS } from '../domain/differences';
import type { RunStatus } from '../domain/states';
import type { BillTotals } from '../domain/trade-bill';
import { compareBill } from './comparison';
import type { Comparison } from './comparison';
import { countStanding, findFileTotals, storeFound, totalsOf } from './comparison-result';
import type { ComparisonCounts } from './comparison-result';
import { withLongTransaction } from './long-transaction';
import { noteReportCame, openBillCase, openCaseOf, openCasesOf } from './reconciliation-cases';
import { fromRow } from './rows';
import { overdue, pairSuspense, settleWaiting } from './suspense';
import type { BillSums } from './trade-bill-sums';
import { lockRun } from './trade-bills';
import type { Client, Pool } from './transaction';
import { withTransaction } from './transaction';

/** The key of everything in reconciliation. `day` is `2026-05-01`, in the channel's own zone. */
export interface ChannelDay {
  channel: string;
  day: string;
}

/** A run as it stands. */
export interface RunState extends ChannelDay {
  status: RunStatus;
  dryRun: boolean;
  billId: number | null;
  reason: string | null;
}

export interface QuestionToAsk {
  differenceId: number;
  merchantId: string;
  orderId: string;
  /** One of the two: what the channel is to be asked about. */
  payRecordId: number | null;
  refundNo: string | null;
}

/** A channel's missing or rejected bill is looked for again after this long. */
const TRY_AGAIN_MS = 3_600_000;
/** A run that began so long ago may have lost its workflow; one that still has it is left alone. */
const ABANDONED_AFTER = `interval '10 minutes'`;
/** How far back a missing report is looked for, when nobody says. */
const DAYS_BACK = 7;

/**
 * Every (channel, business date) that has ended and has no report: `c` the channel, `d.day` the date.
 * From the date on which the channel was configured, or of its first capture if that is older.
 */
const UNREPORTED_SQL = `
  from channels c
  cross join lateral (select coalesce($1::timestamptz, now()) as now) clock
  cross join lateral (select (clock.now at time zone c.time_zone)::date as today) t
  cross join lateral (select t.today - back as day from generate_series(1, $2::int) back) d
  left join reconciliation_runs r on r.channel = c.channel and r.business_date = d.day
  where r.reported_at is null
    and d.day >= least((c.created_at at time zone c.time_zone)::date,
      (select (min(coalesce(k.paid_at, k.learnt_at)) at time zone c.time_zone)::date
       from captures k where k.channel = c.channel))`;

/** A date is compared again no more often than this, though more of it may have become ours since. */
const COMPARE_AGAIN_AFTER = `interval '6 hours'`;

/**
 * Dates that have a report, but of which more became ours after they were compared: a payment that we
 * learnt late (the index captures_learnt_late), a refund that was still under way. Comparing them again
 * makes `compared_at` newer, which ends it.
 */
const COMPARE_AGAIN_SQL = `
  select r.channel, r.business_date from reconciliation_runs r
  join channels c on c.channel = r.channel
  cross join lateral (select coalesce($1::timestamptz, now()) as now) clock
  cross join lateral (select r.business_date::timestamp at time zone c.time_zone as from_at,
    (r.business_date + 1)::timestamp at time zone c.time_zone as to_at) d
  where r.status = 'done' and not r.dry_run and r.reported_at is not null
    and r.business_date between (clock.now at time zone c.time_zone)::date - $2::int
      and (clock.now at time zone c.time_zone)::date - 1
    and r.compared_at < clock.now - ${COMPARE_AGAIN_AFTER}
    and (exists (select from captures k where k.channel = r.channel and k.status = 'captured'
        and coalesce(k.paid_at, k.learnt_at) >= d.from_at
        and coalesce(k.paid_at, k.learnt_at) < d.to_at
        and k.learnt_at - k.paid_at > interval '10 minutes' and k.learnt_at > r.compared_at)
      or exists (select from refunds f where f.channel = r.channel and f.status = 'succeeded'
        and coalesce(f.first_sent_at, f.created_at) >= d.from_at
        and coalesce(f.first_sent_at, f.created_at) < d.to_at
        and f.finished_at > r.compared_at))`;

/**
 * Pairs whose business date has ended in the channel's zone and that have no report, oldest first; not
 * those whose next try is later, and none more than `daysBack` days ago. A dry run is no report. Also those
 * of any date that began and did not end: somebody may have ended the workflow by force. And those with a
 * report of which more has become ours since it was compared.
 */
export async function dueDays(
  pool: Pool,
  input: { daysBack: number; limit: number; now?: string },
): Promise<ChannelDay[]> {
  const { rows } = await pool.query<ChannelDay>(
    `select channel, day::text as day from (
       select c.channel, d.day ${UNREPORTED_SQL}
         and coalesce(r.next_try_at <= clock.now, true)
       union
       select channel, business_date from reconciliation_runs
       where status in ('running', 'waiting_bill') and finished_at is null and not dry_run
         and started_at < coalesce($1::timestamptz, now()) - ${ABANDONED_AFTER}
         and next_try_at <= coalesce($1::timestamptz, now())
       union ${COMPARE_AGAIN_SQL}
     ) due
     order by due.day, channel limit $3::int`,
    [input.now ?? null, input.daysBack, input.limit],
  );
  return rows;
}

/** Puts the pair's one row into `running`; one that is there already starts over. */
export async function beginRun(
  pool: Pool,
  input: ChannelDay & { dryRun: boolean; actor?: string },
): Promise<RunState> {
  const { rows } = await pool.query<Record<string, unknown>>(
    `insert into reconciliation_runs as r (channel, business_date, dry_run, actor)
     values ($1::text, $2::date, $3::boolean, $4::text)
     on conflict (channel, business_date) do update set status = 'running',
       dry_run = excluded.dry_run, actor = excluded.actor, started_at = now(), reason = null,
       asked_at = null, finished_at = null
     returning channel, business_date::text as day, status, dry_run, bill_id, reason`,
    [input.channel, input.day, input.dryRun, input.actor ?? 'system'],
  );
  return fromRow<RunState>(rows[0] ?? {});
}

/** The channel has not made the bill yet: `waiting_bill`, with the reason and when it is tried again. */
export async function noteWaiting(
  pool: Pool,
  input: ChannelDay & { reason: string; nextTryInMs: number },
): Promise<void> {
  await pool.query(
    `update reconciliation_runs set status = 'waiting_bill', reason = $3::text,
       next_try_at = now() + make_interval(secs => $4::double precision / 1000)
     where channel = $1::text and business_date = $2::date and status in ('running', 'waiting_bill')`,
    [input.channel, input.day, input.reason, input.nextTryInMs],
  );
}

/** The bill did not come in time: `no_bill`, tried again in an hour; a case, but for a dry run. */
export async function noteNoBill(
  pool: Pool,
  input: ChannelDay & { dryRun: boolean; reason: string },
): Promise<void> {
  await endWithoutReport(pool, input, 'no_bill', {
    what: 'missing',
    summary: `${input.channel} gives no trade bill of ${input.day}: ${input.reason}`,
    evidence: { reason: input.reason },
  });
}

/** The file cannot be used: `rejected`, tried again in an hour; a case, but for a dry run. */
export async function noteRejected(
  pool: Pool,
  input: ChannelDay & { dryRun: boolean; fault: string; message: string },
): Promise<void> {
  await endWithoutReport(
    pool,
    { ...input, reason: `${input.fault}: ${input.message}` },
    'rejected',
    {
      what: 'rejected',
      summary: `the trade bill of ${input.channel} for ${input.day} cannot be used (${input.fault}): ${input.message}`,
      evidence: { fault: input.fault, message: input.message },
    },
  );
}

async function endWithoutReport(
  pool: Pool,
  input: ChannelDay & { dryRun: boolean; reason: string },
  status: 'no_bill' | 'rejected',
  news: { what: string; summary: string; evidence: unknown },
): Promise<void> {
  await withTransaction(pool, async (client) => {
    await client.query(
      `update reconciliation_runs set status = $3::text, reason = $4::text, finished_at = now(),
         next_try_at = now() + make_interval(secs => $5::double precision / 1000)
       where channel = $1::text and business_date = $2::date
         and status in ('running', 'waiting_bill', $3::text)`,
      [input.channel, input.day, status, input.reason, TRY_AGAIN_MS],
    );
    if (!input.dryRun) await openBillCase(client, { ...input, ...news });
  });
}

/**
 * Compares the bill that counts with our books, fresh, in one transaction: the differences of the date
 * are afterwards those that were found, each still the same row as before.
 * @throws when no bill of the date is loaded
 */
export async function compareDay(
  pool: Pool,
  input: ChannelDay & { feeBasisPoints: number; now?: string },
): Promise<ComparisonCounts> {
  return withLongTransaction(pool, async (client) => {
    await lockRun(client, input.channel, input.day);
    const { comparison, stated, sums, rows } = await prepare(client, input);
    await compareBill(client, comparison);
    await findFileTotals(client, comparison, stated, sums);
    const totals = await totalsOf(client, sums);
    await storeFound(client, comparison);
    await pairSuspense(client, input.channel);
    await client.query(
      `update reconciliation_runs set status = 'running', bill_id = $3::bigint, totals = $4::jsonb,
         fee_basis_points = $5::int, compared_at = now(), reason = null
       where channel = $1::text and business_date = $2::date`,
      [input.channel, input.day, comparison.billId, JSON.stringify(totals), input.feeBasisPoints],
    );
    return { rows, ...(await countStanding(client, input.channel, input.day)) };
  });
}

async function prepare(
  client: Client,
  input: ChannelDay & { feeBasisPoints: number; now?: string },
) {
  const { rows } = await client.query<
    Omit<Comparison, 'channel' | 'day' | 'feeBasisPoints' | 'billId' | 'fileName'> & {
      billId: number;
      fileName: string;
      stated: BillTotals[] | null;
      sums: BillSums[];
      rows: number;
    }
  >(
    `select b.bill_id as "billId", b.file_name as "fileName", b.stated, b.sums,
       b.line_count as rows, c.time_zone as "timeZone", r.started_at as "startedAt",
       $2::date::timestamp at time zone c.time_zone as "from",
       ($2::date + 1)::timestamp at time zone c.time_zone as "to",
       coalesce($3::timestamptz, now()) as now,
       coalesce((select jsonb_agg(o.bill_id order by o.bill_id) from trade_bills o
         where o.channel = c.channel and o.status = 'loaded' and o.bill_id <> b.bill_id
           and o.business_date between $2::date - $4::int and $2::date + $4::int), '[]')
         as "billsAround",
       (select count(*) = $4::int from reconciliation_runs l where l.channel = c.channel
         and l.business_date between $2::date + 1 and $2::date + $4::int
         and l.compared_at is not null) as "laterBillsCompared"
     from channels c
     join reconciliation_runs r on r.channel = c.channel and r.business_date = $2::date
     join trade_bills b on b.channel = c.channel and b.business_date = $2::date
       and b.status = 'loaded'
     where c.channel = $1::text`,
    [input.channel, input.day, input.now ?? null, SUSPENSE_DAYS],
  );
  const row = rows[0];
  if (!row) throw new Error(`no bill of ${input.channel} for ${input.day} is loaded`);
  const { stated, sums, rows: count, ...known } = row;
  const { channel, day, feeBasisPoints } = input;
  return { comparison: { channel, day, feeBasisPoints, ...known }, stated, sums, rows: count };
}

const asked = (about: 'payment' | 'refund') =>
  DIFFERENCE_KINDS.filter((kind) => questionOf(kind) === about)
    .map((kind) => `'${kind}'`)
    .join(', ');

/** Open differences of a known order that the channel can be asked about. */
const QUESTION_SQL = `d.channel = $1::text and d.business_date = $2::date and d.status = 'open'
  and d.order_id is not null
  and (d.kind in (${asked('payment')}) and d.pay_record_id is not null
    or d.kind in (${asked('refund')}) and d.refund_no is not null)`;

/** Differences about which the channel can be asked, by id, after `after` (0: from the first). */
export async function differencesToAsk(
  pool: Pool,
  input: ChannelDay & { after: number; limit: number },
): Promise<QuestionToAsk[]> {
  const { rows } = await pool.query<Record<string, unknown>>(
    `select d.difference_id, d.merchant_id, d.order_id,
       case when d.kind in (${asked('payment')}) then d.pay_record_id end as pay_record_id,
       case when d.kind in (${asked('refund')}) then d.refund_no end as refund_no
     from differences d where ${QUESTION_SQL} and d.difference_id > $3::bigint
     order by d.difference_id limit $4::int`,
    [input.channel, input.day, input.after, input.limit],
  );
  return rows.map((row) => fromRow<QuestionToAsk>(row));
}

/** How many of them have no answer of the channel that was settled at `askedAt` or later. */
export async function openQuestions(
  pool: Pool,
  input: ChannelDay & { askedAt: string },
): Promise<number> {
  const { rows } = await pool.query<{ unanswered: number }>(
    `select count(*)::int as unanswered from differences d
     left join pay_records r on r.pay_record_id = d.pay_record_id and d.kind in (${asked('payment')})
     left join refunds f on f.merchant_id = d.merchant_id and f.order_id = d.order_id
       and f.refund_no = d.refund_no and d.kind in (${asked('refund')})
     where ${QUESTION_SQL}
       and (coalesce(r.last_call, f.last_call) = 'query'
         and coalesce(r.last_fact_state, f.last_fact_state) is not null
         and coalesce(r.last_call_at, f.last_call_at) >= $3::timestamptz) is not true`,
    [input.channel, input.day, input.askedAt],
  );
  return rows[0]?.unanswered ?? 0;
}

/**
 * Puts what remains before a person (not after a dry run) and ends the run with its report: `done`.
 * Broken off, it goes on where it was: what is in a case stays there. `onProgress` hears the cases.
 */
export async function closeRun(
  pool: Pool,
  input: ChannelDay & { dryRun: boolean; onProgress?: (cases: number) => void },
): Promise<ComparisonCounts & { cases: number }> {
  const { channel, day, dryRun } = input;
  const cases = dryRun ? 0 : await openCasesOf(pool, { channel, day }, input.onProgress);
  const { rows } = await pool.query<{ line_count: number }>(
    `update reconciliation_runs r set status = 'done', dry_run = $3::boolean, reason = null,
       finished_at = now(), reported_at = case when $3::boolean then reported_at else now() end
     from trade_bills b
     where r.channel = $1::text and r.business_date = $2::date and r.status in ('running', 'done')
       and b.bill_id = r.bill_id
     returning b.line_count`,
    [channel, day, dryRun],
  );
  if (!dryRun) await noteReportCame(pool, { channel, day });
  return { rows: rows[0]?.line_count ?? 0, ...(await countStanding(pool, channel, day)), cases };
}

/**
 * A case for each pair that has no report by noon, by the clocks of the channel's zone, of the day after
 * its business date; one for ever, also when it was closed. Of one channel, or of all. Returns how many
 * were opened.
 */
export async function openMissingReportCases(
  pool: Pool,
  input: { daysBack?: number; now?: string; channel?: string } = {},
): Promise<number> {
  const { rows } = await pool.query<ChannelDay & { status: string; reason: string | null }>(
    `select c.channel, d.day::text as day, coalesce(r.status, 'never begun') as status, r.reason
     ${UNREPORTED_SQL}
       and ($3::text is null or c.channel = $3::text)
       and clock.now >= (d.day + 1 + time '12:00') at time zone c.time_zone
       and not exists (select from cases k where k.channel = c.channel and k.order_id is null
         and k.subject_no = 'bill:' || d.day::text || ':missing')
     order by d.day, c.channel`,
    [input.now ?? null, input.daysBack ?? DAYS_BACK, input.channel ?? null],
  );
  for (const { channel, day, status, reason } of rows) {
    await openBillCase(pool, {
      channel,
      day,
      what: 'missing',
      summary: `${day} has no reconciliation of ${channel} (${status})`,
      evidence: { status, reason },
    });
  }
  return rows.length;
}

/**
 * Looks again at what waits: for the bill of another date (found there: resolved; not found in time: a
 * case), and for a refund that was under way (done: resolved; not under way any more: a case).
 */
export async function reviseSuspense(
  pool: Pool,
  channel: string,
  input: { now?: string } = {},
): Promise<{ resolved: number; cases: number }> {
  const resolved = await withTransaction(pool, async (client) => {
    const paired = await pairSuspense(client, channel);
    return paired + (await settleWaiting(client, channel));
  });
  let cases = 0;
  for (const differenceId of await overdue(pool, channel, input.now ?? null))
    if (await openCaseOf(pool, differenceId)) cases += 1;
  return { resolved, cases };
}
