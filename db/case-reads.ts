import { fromRow } from './rows';
import type { Queryable } from './transaction';

export interface Case {
  caseId: number;
  /** Null: about a number that belongs to no order. */
  merchantId: string | null;
  orderId: string | null;
  channel: string | null;
  subjectNo: string;
  kind: string;
  status: 'open' | 'closed';
  summary: string;
  version: number;
  evidence: unknown[];
  decision: Record<string, unknown> | null;
  openedAt: string;
  closedAt: string | null;
  orderStatus: string | null;
}

const CASE = `select k.*, o.status as order_status from cases k
  left join orders o on o.merchant_id = k.merchant_id and o.order_id = k.order_id`;

export async function readCase(client: Queryable, caseId: number): Promise<Case | undefined> {
  const { rows } = await client.query<Record<string, unknown>>(
    `${CASE} where k.case_id = $1::bigint`,
    [caseId],
  );
  return rows[0] && fromRow<Case>(rows[0]);
}

/** Every case of an order, the newest first. */
export async function casesOfOrder(
  client: Queryable,
  ref: { merchantId: string; orderId: string },
): Promise<Case[]> {
  const { rows } = await client.query<Record<string, unknown>>(
    `${CASE} where k.merchant_id = $1::text and k.order_id = $2::text order by k.case_id desc`,
    [ref.merchantId, ref.orderId],
  );
  return rows.map((row) => fromRow<Case>(row));
}

/** Cases, the newest first, one page. */
export async function listCases(
  client: Queryable,
  filter: {
    status: 'open' | 'closed';
    kind: string | undefined;
    merchantId: string | undefined;
    /** Cases older than this one. */
    before: number | undefined;
    limit: number;
  },
): Promise<{ cases: Case[]; next: number | undefined }> {
  const { rows } = await client.query<Record<string, unknown>>(
    `${CASE}
     where k.status = $1::text and ($2::text is null or k.kind = $2::text)
       and ($3::text is null or k.merchant_id = $3::text)
       and ($4::bigint is null or k.case_id < $4::bigint)
     order by k.case_id desc limit $5::int + 1`,
    [
      filter.status,
      filter.kind ?? null,
      filter.merchantId ?? null,
      filter.before ?? null,
      filter.limit,
    ],
  );
  const cases = rows.slice(0, filter.limit).map((row) => fromRow<Case>(row));
  return { cases, next: rows.length > filter.limit ? cases.at(-1)?.caseId : undefined };
}
