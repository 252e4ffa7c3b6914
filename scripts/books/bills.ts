import type { Pool } from '../../db/transaction';
import { dayAt } from '../../domain/business-day';
import { expectedFeeMinor } from '../../domain/differences';
import type { BookRecord } from '../../mock-channel/books';
import type { Findings } from './findings';
import { inspect, together } from './findings';

/** A reconciled date: its report is there, and the bill that it is about is the channel's own. */
interface ReconciledDay {
  channel: string;
  dialect: string;
  day: string;
  timeZone: string;
  dryRun: boolean;
  feeBasisPoints: number;
  billId: number;
  sha256: string;
  stated: StatedTotals[] | null;
}

interface StatedTotals {
  currency: string;
  payments: number;
  paymentsMinor: number;
  refunds: number;
  refundsMinor: number;
  feesMinor: number;
}

interface Line {
  lineNo: number;
  kind: string;
  status: string;
  outTradeNo: string | null;
  channelTradeNo: string | null;
  outRefundNo: string | null;
  amountMinor: number | null;
  currency: string | null;
  feeMinor: number | null;
}

interface DifferenceRow {
  kind: string;
  subject: string;
  status: string;
  lineNo: number | null;
}

/** Bills larger than this are the benchmark's, which injects and counts by itself. */
const LINES_MAX = 50_000;

/**
 * I9: reconciliation finds exactly what the bill says otherwise than the channel's own books do. Each row
 * of a loaded bill is held against the books, and each difference against the rows: a row that is wrong
 * has a difference, one that is right has none that still stands (but "paid twice", which is true), a
 * capture that the file leaves out is told, and nothing else is.
 */
export async function checkBills(pool: Pool, records: readonly BookRecord[]): Promise<Findings> {
  const findings: Findings[] = [];
  for (const day of await readDays(pool)) {
    // Two dates without a trade have the same file: the hash alone does not name the bill.
    const madeAt = records.findLast(
      (r) =>
        r.type === 'bill_made' &&
        r.dialect === day.dialect &&
        r.day === day.day &&
        r.sha256 === day.sha256,
    )?.at;
    // A file that these books did not make proves nothing about them.
    if (madeAt === undefined) continue;
    const truth = truthOf(day, records, madeAt);
    const lines = await readLines(pool, day);
    const differences = await readDifferences(pool, day);
    findings.push(checkLines(day, lines, truth, differences));
    findings.push(await checkLeftOut(pool, day, lines, truth, differences));
    findings.push(checkTold(day, lines, differences));
  }
  return together(findings);
}

/** What the books hold of the date, as the rows of a right bill would say it. */
interface Truth {
  /** By what a row says; true: of this very date. */
  rows: Map<string, boolean>;
  captures: { outTradeNo: string; channelTradeNo: string }[];
}

function truthOf(day: ReconciledDay, records: readonly BookRecord[], madeAt: string): Truth {
  const truth: Truth = { rows: new Map(), captures: [] };
  for (const record of records) {
    if (!('dialect' in record) || record.dialect !== day.dialect) continue;
    const isOfDay = dayAt(new Date(record.businessAt ?? record.at), day.timeZone) === day.day;
    switch (record.type) {
      case 'captured': {
        const { outTradeNo, channelTradeNo } = record;
        truth.rows.set(paymentRow(record), isOfDay);
        if (isOfDay && record.at <= madeAt) truth.captures.push({ outTradeNo, channelTradeNo });
        break;
      }
      case 'refund_accepted':
        truth.rows.set(refundRow(record), isOfDay);
        break;
      case 'reversed':
        truth.rows.set(reversalRow(record), isOfDay);
        break;
      default:
        break;
    }
  }
  return truth;
}

interface Said {
  outTradeNo: string | null;
  channelTradeNo: string | null;
  amountMinor: number | null;
  currency?: string | null;
  outRefundNo?: string | null;
}
const paymentRow = (said: Said) =>
  `payment ${said.outTradeNo} ${said.channelTradeNo} ${said.amountMinor} ${said.currency}`;
const refundRow = (said: Said) => `refund ${said.outRefundNo} ${said.amountMinor}`;
const reversalRow = (said: Said) => `reversal ${said.channelTradeNo} ${said.amountMinor}`;

/**
 * Whether the row says what the books say, fee included: of this date, of another one, or not at all.
 * Manual, unknown and unreadable rows never do.
 */
function rightness(
  line: Line,
  truth: Truth,
  feeBasisPoints: number,
): 'right' | 'other_day' | 'wrong' {
  const due = expectedFeeMinor(line.amountMinor ?? 0, feeBasisPoints);
  const hasFee = (sign: number) => feeBasisPoints === 0 || line.feeMinor === sign * due + 0;
  const isOfDay = () => {
    switch (line.kind) {
      case 'payment':
        return line.status === 'succeeded' && hasFee(1)
          ? truth.rows.get(paymentRow(line))
          : undefined;
      case 'refund':
        return line.status !== 'failed' && hasFee(-1) ? truth.rows.get(refundRow(line)) : undefined;
      case 'reversal':
        return truth.rows.get(reversalRow(line));
      default:
        return undefined;
    }
  };
  const found = isOfDay();
  if (found === undefined) return 'wrong';
  return found ? 'right' : 'other_day';
}

/** Kinds that are true of a right row: the order was paid twice; the books say so, too. */
const TRUE_OF_RIGHT_ROWS = ['duplicate_payment'];

function checkLines(
  day: ReconciledDay,
  lines: readonly Line[],
  truth: Truth,
  differences: readonly DifferenceRow[],
): Findings {
  const byLine = new Map<number, DifferenceRow[]>();
  for (const difference of differences) {
    if (difference.lineNo === null) continue;
    const others = byLine.get(difference.lineNo) ?? [];
    byLine.set(difference.lineNo, [...others, difference]);
  }
  const seen = new Set<string>();
  const name = ({ lineNo }: Line) => `bill ${day.channel}/${day.day} line ${lineNo}`;
  return inspect('I9', lines, name, function* (line) {
    const told = byLine.get(line.lineNo) ?? [];
    const identity = `${line.kind} ${line.outRefundNo ?? ''} ${line.channelTradeNo ?? ''}`;
    const isRepeated = seen.has(identity) && line.kind !== 'reversal';
    seen.add(identity);
    const how = rightness(line, truth, day.feeBasisPoints);
    if (isRepeated || how === 'wrong') {
      if (told.length === 0) yield 'is not what the books say, and no difference tells it';
      return;
    }
    // A dry run repairs nothing, so what no callback told still stands. A row of another date is right
    // where it waited for this bill, and wrong where it stands a second time.
    if (day.dryRun || how === 'other_day') return;
    for (const { kind, status } of told) {
      const stands = status === 'open' || status === 'case';
      if (stands && !TRUE_OF_RIGHT_ROWS.includes(kind)) {
        yield `is what the books say, and the difference ${kind} (${status}) stands`;
      }
    }
  });
}

async function checkLeftOut(
  pool: Pool,
  day: ReconciledDay,
  lines: readonly Line[],
  truth: Truth,
  differences: readonly DifferenceRow[],
): Promise<Findings> {
  const inFile = new Set(lines.map(({ channelTradeNo }) => channelTradeNo));
  const leftOut = truth.captures.filter(({ channelTradeNo }) => !inFile.has(channelTradeNo));
  const { rows } = await pool.query<{ channel_trade_no: string }>(
    `select k.channel_trade_no from captures k
     where k.channel = $1::text and k.channel_trade_no = any ($2::text[])
       and not exists (select from trade_bill_lines l join trade_bills b on b.bill_id = l.bill_id
         where b.channel = k.channel and b.status = 'loaded'
           and l.channel_trade_no = k.channel_trade_no)`,
    [day.channel, leftOut.map(({ channelTradeNo }) => channelTradeNo)],
  );
  const ours = new Set(rows.map((row) => row.channel_trade_no));
  const told = new Set(
    differences.filter(({ kind }) => kind === 'ours_only').map(({ subject }) => subject),
  );
  const name = (c: { channelTradeNo: string }) => `capture ${day.dialect}/${c.channelTradeNo}`;
  return inspect('I9', leftOut, name, function* ({ channelTradeNo }) {
    if (ours.has(channelTradeNo) && !told.has(channelTradeNo)) {
      yield `no bill has it, and the report of ${day.channel}/${day.day} does not tell it`;
    }
  });
}

/** What stands beside the rows must have its reason in the file, too. */
function checkTold(
  day: ReconciledDay,
  lines: readonly Line[],
  differences: readonly DifferenceRow[],
): Findings {
  const inFile = new Set(lines.flatMap((l) => [l.channelTradeNo, l.outTradeNo, l.outRefundNo]));
  const beside = differences.filter(
    ({ lineNo, status }) => lineNo === null && (status === 'open' || status === 'case'),
  );
  const name = (d: DifferenceRow) => `difference ${day.channel}/${day.day}/${d.kind} ${d.subject}`;
  return inspect('I9', beside, name, function* ({ kind, subject }) {
    if (kind === 'file_total') {
      if (sumsAreStated(day, lines, subject)) yield 'the sums that the file states are its own';
    } else if (kind !== 'ours_only' && kind !== 'refund_ours_only') {
      yield 'it is about no row';
    } else if (inFile.has(subject)) {
      yield 'only we have it, says the difference; the file has it';
    }
  });
}

function sumsAreStated(day: ReconciledDay, lines: readonly Line[], currency: string): boolean {
  const of = (kind: string) => lines.filter((l) => l.kind === kind && l.currency === currency);
  const sum = (rows: readonly Line[], field: 'amountMinor' | 'feeMinor') =>
    rows.reduce((total, row) => total + (row[field] ?? 0), 0);
  const stated = day.stated?.find((totals) => totals.currency === currency);
  const [payments, refunds] = [of('payment'), of('refund')];
  const all = lines.filter((l) => l.currency === currency && l.kind !== 'error');
  return (
    (stated?.payments ?? 0) === payments.length &&
    (stated?.paymentsMinor ?? 0) === sum(payments, 'amountMinor') &&
    (stated?.refunds ?? 0) === refunds.length &&
    (stated?.refundsMinor ?? 0) === sum(refunds, 'amountMinor') &&
    (stated?.feesMinor ?? 0) === sum(all, 'feeMinor')
  );
}

async function readDays(pool: Pool): Promise<ReconciledDay[]> {
  const { rows } = await pool.query<ReconciledDay>(
    `select r.channel, c.adapter as dialect, r.business_date::text as day, c.time_zone as "timeZone",
       r.dry_run as "dryRun", coalesce(r.fee_basis_points, 0) as "feeBasisPoints",
       b.bill_id as "billId", b.sha256, b.stated
     from reconciliation_runs r
     join channels c on c.channel = r.channel
     join trade_bills b on b.bill_id = r.bill_id
     where r.status = 'done' and b.status = 'loaded' and b.line_count <= $1::int
     order by r.business_date, r.channel`,
    [LINES_MAX],
  );
  return rows;
}

async function readLines(pool: Pool, { billId }: ReconciledDay): Promise<Line[]> {
  const { rows } = await pool.query<Line>(
    `select line_no as "lineNo", kind, status, out_trade_no as "outTradeNo",
       channel_trade_no as "channelTradeNo", out_refund_no as "outRefundNo",
       amount_minor as "amountMinor", currency, fee_minor as "feeMinor"
     from trade_bill_lines where bill_id = $1::bigint order by line_no`,
    [billId],
  );
  return rows;
}

async function readDifferences(pool: Pool, day: ReconciledDay): Promise<DifferenceRow[]> {
  const { rows } = await pool.query<DifferenceRow>(
    `select kind, subject, status, line_no as "lineNo" from differences
     where channel = $1::text and business_date = $2::date
       and (bill_id = $3::bigint or line_no is null)`,
    [day.channel, day.day, day.billId],
  );
  return rows;
}
