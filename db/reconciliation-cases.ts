import type { DifferenceKind } from '../domain/differences';
import { BILL_KINDS, STILL_PROCESSING } from '../domain/differences';
import { sentenceOf } from '../domain/difference-words';
import type { CaseNews } from './cases';
import { openCase, saidBy } from './cases';
import { fromRow, lockOrder } from './rows';
import type { Pool, Queryable } from './transaction';
import { withTransaction } from './transaction';

const CASE_KIND = 'reconciliation';
/** Lines of a bill shown in one case; the report has all. */
const EVIDENCE_LINES_MAX = 100;
/**
 * More open differences of one kind than this are one defect of a file, not so many separate stories: one
 * case holds the rest.
 */
const CASES_PER_KIND_MAX = 1_000;
/** Read at a time. */
const PAGE = 100;

interface Difference {
  differenceId: number;
  channel: string;
  day: string;
  kind: DifferenceKind;
  reason: string;
  subject: string;
  lineNo: number | null;
  merchantId: string | null;
  orderId: string | null;
  refundNo: string | null;
  ours: Record<string, unknown> | null;
  channelSays: Record<string, unknown> | null;
}

const DIFFERENCE_SQL = `select difference_id, channel, business_date::text as day, kind, reason, subject,
  line_no, merchant_id, order_id, refund_no, ours, channel_says from differences`;

/**
 * Puts every open difference of the date before a person: those about the file in one case per kind,
 * those of an order in the order's case, any other in a case of its own number. A refund under way on
 * both sides is none. Returns how many differences are newly in a case.
 */
export async function openCasesOf(
  pool: Pool,
  { channel, day }: { channel: string; day: string },
  onProgress: (cases: number) => void = () => undefined,
): Promise<number> {
  await pool.query(
    `update differences set status = 'waiting'
     where channel = $1::text and business_date = $2::date and status = 'open'
       and kind = 'refund_status' and reason = $3::text`,
    [channel, day, STILL_PROCESSING],
  );
  let cases = 0;
  const { rows: kinds } = await pool.query<{ kind: DifferenceKind; n: number }>(
    `select kind, count(*)::int as n from differences
     where channel = $1::text and business_date = $2::date and status = 'open'
     group by kind order by kind`,
    [channel, day],
  );
  for (const { kind, n } of kinds) {
    if (!BILL_KINDS.includes(kind) && n <= CASES_PER_KIND_MAX) continue;
    cases += await openCollectiveCase(pool, { channel, day, kind });
    onProgress(cases);
  }
  for (let after = 0; ;) {
    const { rows } = await pool.query<{ difference_id: number }>(
      `select difference_id from differences
       where channel = $1::text and business_date = $2::date and status = 'open'
         and difference_id > $3::bigint
       order by difference_id limit $4::int`,
      [channel, day, after, PAGE],
    );
    for (const { difference_id: id } of rows) if (await openCaseOf(pool, id)) cases += 1;
    onProgress(cases);
    if (rows.length < PAGE) return cases;
    after = rows.at(-1)?.difference_id ?? after;
  }
}

/** Puts one difference before a person, unless it is there or gone. True when it was put there. */
export async function openCaseOf(pool: Pool, differenceId: number): Promise<boolean> {
  return withTransaction(pool, async (client) => {
    // Read, and read again once the order is locked, which always comes first.
    const seen = await readStanding(client, differenceId);
    if (!seen) return false;
    if (seen.merchantId !== null && seen.orderId !== null)
      await lockOrder(client, { merchantId: seen.merchantId, orderId: seen.orderId });
    const moved = await client.query(
      `update differences set status = 'case'
       where difference_id = $1::bigint and status in ('open', 'waiting', 'suspense')`,
      [differenceId],
    );
    const difference = await readStanding(client, differenceId, ['case']);
    if (moved.rowCount === 0 || !difference) return false;
    const news = {
      kind: CASE_KIND,
      summary: sentenceOf(difference),
      channel: difference.channel,
      subjectNo: caseSubject(difference),
      evidence: evidenceOf(difference),
      figures: figuresOf(difference),
    };
    const { merchantId, orderId } = difference;
    if (merchantId !== null && orderId !== null)
      await openCase(client, { merchantId, orderId }, news);
    else await openNumberCase(client, news);
    return true;
  });
}

async function readStanding(
  client: Queryable,
  differenceId: number,
  statuses = ['open', 'waiting', 'suspense'],
): Promise<Difference | undefined> {
  const { rows } = await client.query<Record<string, unknown>>(
    `${DIFFERENCE_SQL} where difference_id = $1::bigint and status = any ($2::text[])`,
    [differenceId, statuses],
  );
  return rows[0] && fromRow<Difference>(rows[0]);
}

/** Our number where either side names one, so that it is the case a callback may have opened. */
function caseSubject({ kind, subject, ours, channelSays }: Difference): string {
  const name = kind.startsWith('refund_') ? 'out_refund_no' : 'out_trade_no';
  const said = channelSays?.[name] ?? ours?.[name];
  return typeof said === 'string' && said !== '' ? said : subject;
}

function evidenceOf(difference: Difference) {
  const { channel, day, kind, reason, lineNo, ours, channelSays } = difference;
  return { channel, day, difference: kind, reason, line: lineNo, ours, channel_says: channelSays };
}

/** What makes the same difference news again: its figures, not where the file has it. */
function figuresOf({ reason, ours, channelSays }: Difference) {
  const { refunded_minor: _refunded, ...oursSays } = ours ?? {};
  const { file: _file, line: _line, ...channelFigures } = channelSays ?? {};
  return {
    reason,
    ours: ours && oursSays,
    channel_says: channelSays && channelFigures,
  };
}

/** One case for all open differences of a kind; the first of them are its evidence. */
async function openCollectiveCase(
  pool: Pool,
  { channel, day, kind }: { channel: string; day: string; kind: DifferenceKind },
): Promise<number> {
  return withTransaction(pool, async (client) => {
    const { rows } = await client.query<Record<string, unknown>>(
      `${DIFFERENCE_SQL} where channel = $1::text and business_date = $2::date and kind = $3::text
         and status in ('open', 'case')
       order by line_no nulls last, subject limit $4::int`,
      [channel, day, kind, EVIDENCE_LINES_MAX],
    );
    const moved = await client.query(
      `update differences set status = 'case'
       where channel = $1::text and business_date = $2::date and kind = $3::text
         and status = 'open'`,
      [channel, day, kind],
    );
    const count = moved.rowCount ?? 0;
    await openBillCase(client, {
      channel,
      day,
      what: kind,
      summary: `${channel} (bill of ${day}): ${count} × ${kind}`,
      evidence: rows.map((row) => evidenceOf(fromRow<Difference>(row))),
      figures: rows.map((row) => figuresOf(fromRow<Difference>(row))),
    });
    return count;
  });
}

/** A case about the bill of a date, whatever it is about: `missing`, `rejected`, or a difference kind. */
export async function openBillCase(
  client: Queryable,
  news: Pick<CaseNews, 'summary' | 'evidence' | 'figures'> & {
    channel: string;
    day: string;
    what: string;
  },
): Promise<void> {
  await openNumberCase(client, {
    kind: CASE_KIND,
    channel: news.channel,
    subjectNo: `bill:${news.day}:${news.what}`,
    summary: news.summary,
    evidence: news.evidence,
    figures: news.figures,
  });
}

/**
 * Opens the case of a number that belongs to no order, or adds evidence to the one that is open. The same
 * words twice change nothing.
 */
async function openNumberCase(client: Queryable, news: CaseNews): Promise<void> {
  const said = { kind: news.kind, summary: news.summary };
  await client.query(
    `insert into cases as k (channel, subject_no, kind, summary, evidence)
     values ($1::text, $2::text, $3::text, $4::text, $6::jsonb)
     on conflict (channel, subject_no) where status = 'open' and order_id is null do update set
       version = k.version + 1, evidence = k.evidence || excluded.evidence
       where not k.evidence @> $5::jsonb`,
    [
      news.channel,
      news.subjectNo,
      news.kind,
      news.summary,
      saidBy(news),
      JSON.stringify([{ ...said, at: new Date().toISOString(), evidence: news.evidence }]),
    ],
  );
}

/** The missing report has come after all: said in the case, which stays open for a person. */
export async function noteReportCame(
  client: Queryable,
  { channel, day }: { channel: string; day: string },
): Promise<void> {
  const said = { kind: CASE_KIND, summary: `the report of ${day} is there now` };
  await client.query(
    `update cases set version = version + 1, evidence = evidence || $3::jsonb
     where channel = $1::text and subject_no = any ($2::text[]) and status = 'open'
       and order_id is null and not evidence @> $4::jsonb`,
    [
      channel,
      [`bill:${day}:missing`, `bill:${day}:rejected`],
      JSON.stringify([{ ...said, at: new Date().toISOString() }]),
      JSON.stringify([said]),
    ],
  );
}
