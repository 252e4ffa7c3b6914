import type { OrderRef } from '../domain/orders';
import { recordEvent } from './order-events';
import type { Queryable } from './transaction';

export interface CaseNews {
  kind: string;
  /** One sentence an operator can act on. */
  summary: string;
  channel: string | null;
  /** The number the case is about: an out_trade_no, an out_refund_no, or the order id. */
  subjectNo: string;
  evidence: unknown;
  /** The part of the evidence without which the same words are news again; absent: the words alone. */
  figures?: unknown;
}

/** What an entry of a case must contain to say the same as this news. */
export function saidBy({ kind, summary, figures }: CaseNewsWords): string {
  return JSON.stringify([
    { kind, summary, ...(figures === undefined ? {} : { evidence: figures }) },
  ]);
}
type CaseNewsWords = Pick<CaseNews, 'kind' | 'summary' | 'figures'>;

/**
 * Opens the order's case, or adds evidence to the one that is open (its version grows, so that a
 * decision made on an older picture is refused). The same evidence twice changes nothing.
 */
export async function openCase(client: Queryable, ref: OrderRef, news: CaseNews): Promise<void> {
  const entry = saidBy(news);
  const full = JSON.stringify([
    {
      kind: news.kind,
      summary: news.summary,
      at: new Date().toISOString(),
      evidence: news.evidence,
    },
  ]);
  const { rows } = await client.query<{ case_id: number; inserted: boolean }>(
    `insert into cases as k (merchant_id, order_id, channel, subject_no, kind, summary, evidence)
     values ($1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $8::jsonb)
     on conflict (merchant_id, order_id) where status = 'open' do update set
       version = k.version + 1,
       evidence = k.evidence || excluded.evidence,
       summary = case when k.kind = excluded.kind then excluded.summary
                      else left(k.summary || '; ' || excluded.summary, 2000) end
       where not k.evidence @> $7::jsonb
     returning case_id, xmax = 0 as inserted`,
    [
      ref.merchantId,
      ref.orderId,
      news.channel,
      news.subjectNo,
      news.kind,
      news.summary,
      entry,
      full,
    ],
  );
  const row = rows[0];
  if (!row?.inserted) return;
  await recordEvent(client, ref, {
    subject: 'case',
    subjectId: row.case_id,
    from: null,
    to: 'open',
    cause: news.kind,
    evidence: { summary: news.summary },
    actor: 'system',
  });
}

/**
 * Opens a case for a number that belongs to no order of ours (an orphan callback). One open case per
 * channel and number; repeats add nothing.
 */
export async function openOrphanCase(client: Queryable, news: CaseNews): Promise<void> {
  await client.query(
    `insert into cases (channel, subject_no, kind, summary, evidence)
     values ($1::text, $2::text, $3::text, $4::text, jsonb_build_array($5::jsonb))
     on conflict (channel, subject_no) where status = 'open' and order_id is null do nothing`,
    [news.channel, news.subjectNo, news.kind, news.summary, JSON.stringify(news.evidence ?? {})],
  );
}

/** The case of an order that a person has not closed yet. */
export interface OpenCase {
  caseId: number;
  version: number;
  /** The version on which it was decided to close it once its refunds have succeeded. */
  awaitsVersion: number | null;
}

export async function readOpenCase(
  client: Queryable,
  ref: OrderRef,
): Promise<OpenCase | undefined> {
  const { rows } = await client.query<OpenCase>(
    `select case_id as "caseId", version, (decision->>'awaits_version')::int as "awaitsVersion"
     from cases where merchant_id = $1::text and order_id = $2::text and status = 'open'`,
    [ref.merchantId, ref.orderId],
  );
  return rows[0];
}

/**
 * Closes the order's case at the version it was decided on. In the transaction of what closes it, under
 * the order's lock. @returns false when the case is another by now, and nothing happened
 */
export async function closeCase(
  client: Queryable,
  ref: OrderRef,
  closing: { caseId: number; version: number; decision: object; cause: string; actor: string },
): Promise<boolean> {
  const { rowCount } = await client.query(
    `update cases set status = 'closed', closed_at = now(), version = version + 1,
       decision = coalesce(decision, '{}') || $3::jsonb
     where case_id = $1::bigint and version = $2::int and status = 'open'`,
    [closing.caseId, closing.version, JSON.stringify(closing.decision)],
  );
  if (rowCount !== 1) return false;
  await recordEvent(client, ref, {
    subject: 'case',
    subjectId: closing.caseId,
    from: 'open',
    to: 'closed',
    cause: closing.cause,
    evidence: closing.decision,
    actor: closing.actor,
  });
  return true;
}
