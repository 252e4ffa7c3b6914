import type { DifferenceKind } from '../domain/differences';
import type { CurrencySums, CurrencyTotals, SumMinor } from '../domain/reconciliation';
import type { DifferenceStatus } from '../domain/states';
import type { BillTotals } from '../domain/trade-bill';
import type { Comparison } from './comparison';
import { longQuery } from './long-transaction';
import type { BillSums } from './trade-bill-sums';
import { wrongTotals } from './trade-bill-sums';
import type { Client, Queryable } from './transaction';

export interface ComparisonCounts {
  /** Rows of the bill that were compared. */
  rows: number;
  open: number;
  waiting: number;
  suspense: number;
  case: number;
  /** All that stand, by kind. */
  byKind: Partial<Record<DifferenceKind, number>>;
}

/** A bill's stated sums that are not those of its rows join what was found, one per currency. */
export async function findFileTotals(
  client: Client,
  comparison: Comparison,
  stated: BillTotals[] | null,
  sums: BillSums[],
): Promise<void> {
  for (const { currency, ...both } of wrongTotals(stated, sums)) {
    await client.query(
      `insert into found (kind, subject, standing, reason, currency, channel_says)
       values ('file_total', $1::text, 'open', '', $1::text, $2::jsonb)`,
      [currency, JSON.stringify({ file: comparison.fileName, ...both })],
    );
  }
}

/** What a person was told of a difference (d); not where it stands in a file, nor what is refunded since. */
const told = (d: string) =>
  `(${d}.reason, ${d}.ours - 'refunded_minor', ${d}.channel_says - array['file', 'line'])`;

/**
 * Writes what was found: a difference that is there already stays the same row, what is not found any
 * more is resolved. One that is before a person stays there, unless it says something else now: then it
 * is open again, and the person is told.
 */
export async function storeFound(client: Client, comparison: Comparison): Promise<void> {
  const values = [comparison.channel, comparison.day, comparison.billId];
  await longQuery(
    client,
    `insert into differences as d (channel, business_date, kind, subject, status, reason, bill_id,
         line_no, capture_id, refund_id, merchant_id, order_id, pay_record_id, refund_no, ours,
         channel_says)
       select $1::text, $2::date, kind, subject, standing, reason, $3::bigint, line_no, capture_id,
         refund_id, merchant_id, order_id, pay_record_id, refund_no, ours, channel_says
       from found where kind <> 'matched' order by line_no nulls last, kind, subject
       on conflict (channel, business_date, kind, subject) do update set
         status = case when d.status = 'case' and (excluded.status <> 'open'
             or ${told('d')} is not distinct from ${told('excluded')})
           then 'case' else excluded.status end,
         reason = excluded.reason, bill_id = excluded.bill_id, line_no = excluded.line_no,
         capture_id = excluded.capture_id, refund_id = excluded.refund_id,
         merchant_id = excluded.merchant_id, order_id = excluded.order_id,
         pay_record_id = excluded.pay_record_id, refund_no = excluded.refund_no,
         ours = excluded.ours, channel_says = excluded.channel_says,
         resolved_at = null, resolution = null
       where (case when d.status = 'case' then excluded.status else d.status end, d.reason, d.bill_id,
           d.line_no, d.capture_id, d.refund_id, d.order_id, d.ours, d.channel_says)
         is distinct from (excluded.status, excluded.reason, excluded.bill_id, excluded.line_no,
           excluded.capture_id, excluded.refund_id, excluded.order_id, excluded.ours,
           excluded.channel_says)`,
    values,
  );
  await longQuery(
    client,
    `update differences d set status = 'resolved', resolved_at = now(),
         resolution = 'no longer differs'
       where d.channel = $1::text and d.business_date = $2::date and d.status <> 'resolved'
         and not exists (select from found f where f.kind = d.kind and f.subject = d.subject)`,
    values.slice(0, 2),
  );
}

/** What stands of a date's differences. */
export async function countStanding(
  client: Queryable,
  channel: string,
  day: string,
): Promise<Omit<ComparisonCounts, 'rows'>> {
  const { rows } = await client.query<{
    kind: DifferenceKind;
    status: DifferenceStatus;
    n: number;
  }>(
    `select kind, status, count(*)::int as n from differences
     where channel = $1::text and business_date = $2::date and status <> 'resolved'
     group by kind, status order by kind, status`,
    [channel, day],
  );
  const counts: Omit<ComparisonCounts, 'rows'> = {
    open: 0,
    waiting: 0,
    suspense: 0,
    case: 0,
    byKind: {},
  };
  for (const { kind, status, n } of rows) {
    if (status !== 'resolved') counts[status] += n;
    counts.byKind[kind] = (counts.byKind[kind] ?? 0) + n;
  }
  return counts;
}

type Part = 'matched' | 'differences' | 'unknown' | 'oursOnly';
const PARTS: readonly Part[] = ['matched', 'differences', 'unknown', 'oursOnly'];

/**
 * What was compared, per currency: every row of the file in exactly one part.
 * @throws when the parts do not add up to the file as it was added up while it was read: then rows were
 * lost or counted twice, which no report may hide
 */
export async function totalsOf(client: Client, sums: BillSums[]): Promise<CurrencyTotals[]> {
  const { rows } = await client.query<{
    currency: string;
    part: Part;
    line_count: number;
    net: string;
  }>(
    `select currency, part, sum(line_count)::bigint as line_count,
       sum(case when line_kind in ('refund', 'reversal') then -amount else amount end)::text as net
     from (
       select coalesce(currency, '') as currency, 'matched' as part, kind as line_kind, line_count,
         coalesce(amount_minor, 0) as amount
       from compared where line_no is null and our_id is null
       union all
       select coalesce(currency, ''), case
           when line_kind is null then 'oursOnly'
           when kind = 'matched' then 'matched'
           when kind in ('row_error', 'unknown_row', 'adjustment') then 'unknown'
           else 'differences' end,
         coalesce(line_kind, case when kind = 'refund_ours_only' then 'refund' end), 1,
         coalesce(amount_minor, 0)
       from found
       where kind <> 'file_total' and not (kind = 'matched' and line_kind is null)
     ) c group by currency, part`,
  );
  const currencies = [...new Set([...sums, ...rows].map(({ currency }) => currency))].sort();
  return currencies.map((currency) => {
    const parts = Object.fromEntries(
      PARTS.map((part): [Part, CurrencySums] => {
        const row = rows.find((r) => r.currency === currency && r.part === part);
        return [part, { rows: row?.line_count ?? 0, netMinor: sumMinor(row?.net ?? '0') }];
      }),
    ) as Record<Part, CurrencySums>;
    const file = fileSums(sums.find((s) => s.currency === currency));
    const { matched, differences, unknown } = parts;
    const net = [matched, differences, unknown].reduce((sum, p) => sum + BigInt(p.netMinor), 0n);
    if (
      matched.rows + differences.rows + unknown.rows !== file.rows ||
      net !== BigInt(file.netMinor)
    ) {
      throw new Error(`the comparison lost or doubled rows in ${currency || 'no currency'}`);
    }
    return { currency, file, ...parts };
  });
}

function fileSums(sums: BillSums | undefined): CurrencyTotals['file'] {
  const net = sums
    ? BigInt(sums.paymentsMinor) -
      BigInt(sums.refundsMinor) -
      BigInt(sums.reversalsMinor) +
      BigInt(sums.otherMinor)
    : 0n;
  return {
    rows: sums?.rows ?? 0,
    netMinor: sumMinor(String(net)),
    paymentsMinor: sumMinor(sums?.paymentsMinor ?? '0'),
    refundsMinor: sumMinor(sums?.refundsMinor ?? '0'),
    reversalsMinor: sumMinor(sums?.reversalsMinor ?? '0'),
    otherMinor: sumMinor(sums?.otherMinor ?? '0'),
    feesMinor: sumMinor(sums?.feesMinor ?? '0'),
  };
}

function sumMinor(text: string): SumMinor {
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : text;
}
