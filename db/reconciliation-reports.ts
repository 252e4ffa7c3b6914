import type { DifferenceKind } from '../domain/differences';
import { DIFFERENCE_KINDS } from '../domain/differences';
import type { OrderRef } from '../domain/orders';
import type {
  ReconciliationReport,
  ReportedDifference,
  ReportSummary,
} from '../domain/reconciliation';
import type { DifferenceStatus } from '../domain/states';
import { channelNo } from './comparison';
import { fromRow } from './rows';
import type { Queryable } from './transaction';

/** Differences listed unless a caller wants another number. */
const DIFFERENCES_MAX = 10_000;
/** Dates that one list covers at most, so that a typing error asks for no century. */
const REPORTS_MAX = 1_000;
const LINES_MAX = 200;

const DIFFERENCE_COLUMNS = `d.kind, d.subject, d.status, d.reason, d.merchant_id, d.order_id, d.refund_no,
  d.line_no, d.ours, d.channel_says, d.resolution`;
/** The same order whatever the server's collation. */
const DIFFERENCE_ORDER = `d.kind collate "C", d.subject collate "C"`;

/** The report of the pair, with at most `limit` of its differences, or undefined: never was a run. */
export async function readReport(
  client: Queryable,
  channel: string,
  day: string,
  options: { limit?: number } = {},
): Promise<ReconciliationReport | undefined> {
  const [found] = await readRuns(client, { from: day, to: day, channel }, true);
  if (!found) return undefined;
  const { rows } = await client.query<Record<string, unknown>>(
    `select ${DIFFERENCE_COLUMNS} from differences d
     where d.channel = $1::text and d.business_date = $2::date
     order by ${DIFFERENCE_ORDER} limit $3::int`,
    [channel, day, options.limit ?? DIFFERENCES_MAX],
  );
  const { totals, ...summary } = found;
  return { ...summary, totals, differences: rows.map((row) => fromRow<ReportedDifference>(row)) };
}

/** Reports of the dates `from` to `to`, by date and channel, without sums and differences. */
export async function listReports(
  client: Queryable,
  range: { from: string; to: string; channel?: string },
): Promise<ReportSummary[]> {
  const found = await readRuns(client, range, false);
  return found.map(({ totals: _totals, ...summary }) => summary);
}

type Found = ReportSummary & Pick<ReconciliationReport, 'totals'>;

async function readRuns(
  client: Queryable,
  range: { from: string; to: string; channel?: string },
  withTotals: boolean,
): Promise<Found[]> {
  const { rows } = await client.query<
    Record<string, unknown> & {
      counts: { kind: DifferenceKind; status: DifferenceStatus; n: number }[];
    }
  >(
    `select r.channel, r.business_date::text as day, c.time_zone, r.status, r.dry_run, r.reason,
       case when b.bill_id is not null then jsonb_build_object('fileName', b.file_name,
         'sha256', b.sha256, 'bytes', b.bytes, 'rows', b.line_count, 'rowErrors', b.row_errors) end
         as bill,
       case when x.status = 'rejected' then jsonb_build_object('fileName', x.file_name,
         'fault', x.fault, 'message', x.message) end as rejected,
       case when $4::boolean then r.totals end as totals,
       coalesce((select jsonb_agg(s order by s.kind, s.status) from (
         select d.kind, d.status, count(*)::int as n from differences d
         where d.channel = r.channel and d.business_date = r.business_date
         group by d.kind, d.status) s), '[]') as counts
     from reconciliation_runs r
     join channels c on c.channel = r.channel
     left join trade_bills b on b.bill_id = r.bill_id
     left join lateral (select x.* from trade_bills x where x.channel = r.channel
       and x.business_date = r.business_date order by x.bill_id desc limit 1) x on true
     where r.business_date between $1::date and $2::date
       and ($3::text is null or r.channel = $3::text)
     order by r.business_date, r.channel collate "C" limit $5::int`,
    [range.from, range.to, range.channel ?? null, withTotals, REPORTS_MAX],
  );
  return rows.map(({ counts, ...row }) => {
    // One order of names, so that the same report is the same text.
    const run = fromRow<Omit<Found, 'byKind' | 'byStatus' | 'differencesTotal'>>(row);
    const byKind: Found['byKind'] = {};
    const byStatus: Found['byStatus'] = { open: 0, waiting: 0, suspense: 0, case: 0, resolved: 0 };
    for (const { status, n } of counts) byStatus[status] += n;
    for (const kind of DIFFERENCE_KINDS) {
      const standing = counts
        .filter((count) => count.kind === kind && count.status !== 'resolved')
        .reduce((sum, { n }) => sum + n, 0);
      if (standing > 0) byKind[kind] = standing;
    }
    const differencesTotal = counts.reduce((sum, { n }) => sum + n, 0);
    return { ...run, byKind, byStatus, differencesTotal };
  });
}

/** Every difference about the order, resolved ones too, by business date. */
export async function differencesOfOrder(
  client: Queryable,
  ref: OrderRef,
): Promise<(ReportedDifference & { channel: string; day: string })[]> {
  const { rows } = await client.query<Record<string, unknown>>(
    `select d.channel, d.business_date::text as day, ${DIFFERENCE_COLUMNS} from differences d
     where d.merchant_id = $1::text and d.order_id = $2::text
     order by d.business_date, d.channel collate "C", ${DIFFERENCE_ORDER}`,
    [ref.merchantId, ref.orderId],
  );
  return rows.map((row) => fromRow<ReportedDifference & { channel: string; day: string }>(row));
}

/** A row of a bill that counts, as evidence in an order's timeline. */
export interface OrderBillLine {
  channel: string;
  day: string;
  fileName: string;
  lineNo: number;
  kind: string;
  status: string;
  outTradeNo: string | null;
  channelTradeNo: string | null;
  outRefundNo: string | null;
  channelRefundNo: string | null;
  amountMinor: number | null;
  currency: string | null;
  feeMinor: number | null;
  occurredAt: string | null;
  word: string;
}

/** Rows of the bills that count which name a number of the order, by business date and line. */
export async function billLinesOfOrder(client: Queryable, ref: OrderRef): Promise<OrderBillLine[]> {
  const { rows } = await client.query<Record<string, unknown>>(
    `select b.channel, b.business_date::text as day, b.file_name, l.line_no, l.kind, l.status,
       l.out_trade_no, l.channel_trade_no, l.out_refund_no, l.channel_refund_no, l.amount_minor,
       l.currency, l.fee_minor, l.occurred_at, l.word
     from (
       select channel, 'ours' as whose, out_trade_no as no from pay_records
       where merchant_id = $1::text and order_id = $2::text
       union select channel, 'theirs', channel_trade_no from captures
       where merchant_id = $1::text and order_id = $2::text
       union select channel, 'ours', out_refund_no from refunds
       where merchant_id = $1::text and order_id = $2::text
     ) n
     join trade_bills b on b.channel = n.channel and b.status = 'loaded'
     join lateral (
       select * from trade_bill_lines l where n.whose = 'ours' and l.bill_id = b.bill_id
         and l.our_hash = hashtextextended(n.no, 0)
         and coalesce(l.out_refund_no, l.out_trade_no) = n.no
       union
       select * from trade_bill_lines l where n.whose = 'theirs' and l.bill_id = b.bill_id
         and l.their_hash = hashtextextended(n.no, 0) and ${channelNo('l')} = n.no
     ) l on true
     group by b.channel, b.business_date, b.file_name, l.line_no, l.kind, l.status, l.out_trade_no,
       l.channel_trade_no, l.out_refund_no, l.channel_refund_no, l.amount_minor, l.currency,
       l.fee_minor, l.occurred_at, l.word
     order by b.business_date, b.channel collate "C", l.line_no limit $3::int`,
    [ref.merchantId, ref.orderId, LINES_MAX],
  );
  return rows.map((row) => fromRow<OrderBillLine>(row));
}
