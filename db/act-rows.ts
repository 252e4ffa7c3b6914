import type { ActContent, ActKind, ActRefusal } from '../domain/operator-acts';
import { fromRow } from './rows';
import type { Queryable } from './transaction';

export type ActStatus = 'waiting_second' | 'accepted' | 'done' | 'refused';

/** What became of an act; of a refused one, why. */
export interface ActResult {
  reason?: ActRefusal;
  orderStatus?: string;
  caseStatus?: string | null;
  refundNos?: string[];
}

/** One act as it is stored, for ever. */
export interface StoredAct extends ActContent {
  /** Null: about a case that belongs to no order. */
  merchantId: string | null;
  orderId: string | null;
  currency: string | null;
  actorKey: string;
  actorName: string;
  fingerprint: Buffer;
  needsSecond: boolean;
  secondKey: string | null;
  secondName: string | null;
  secondReason: string | null;
  confirmedAt: string | null;
  status: ActStatus;
  result: ActResult | null;
  createdAt: string;
  finishedAt: string | null;
}

export type NewAct = ActContent & {
  merchantId: string | null;
  orderId: string | null;
  currency: string | null;
  actorKey: string;
  actorName: string;
  fingerprint: Buffer;
  needsSecond: boolean;
};

export async function readAct(client: Queryable, actNo: string): Promise<StoredAct | undefined> {
  const { rows } = await client.query<Record<string, unknown>>(
    `select * from operator_acts where act_no = $1::text`,
    [actNo],
  );
  return rows[0] && fromRow<StoredAct>(rows[0]);
}

/**
 * Stores the act, or finds the one stored before under the same number; the caller compares
 * fingerprints. One statement decides who is first.
 */
export async function storeAct(
  client: Queryable,
  act: NewAct,
): Promise<{ act: StoredAct; stored: boolean }> {
  const { rows } = await client.query<Record<string, unknown>>(
    `insert into operator_acts (act_no, kind, merchant_id, order_id, case_id, case_version,
       capture_id, amount_minor, currency, refund_no, callback_id, reason, evidence, actor_key,
       actor_name, fingerprint, needs_second, status)
     values ($1::text, $2::text, $3::text, $4::text, $5::bigint, $6::int, $7::bigint, $8::bigint,
       $9::text, $10::text, $11::bigint, $12::text, $13::text, $14::text, $15::text, $16::bytea,
       $17::boolean, case when $17::boolean then 'waiting_second' else 'accepted' end)
     on conflict (act_no) do nothing
     returning *`,
    [
      act.actNo,
      act.kind,
      act.merchantId,
      act.orderId,
      act.caseId,
      act.caseVersion,
      act.captureId,
      act.amountMinor,
      act.currency,
      act.refundNo,
      act.callbackId,
      act.reason,
      act.evidence,
      act.actorKey,
      act.actorName,
      act.fingerprint,
      act.needsSecond,
    ],
  );
  if (rows[0]) return { act: fromRow<StoredAct>(rows[0]), stored: true };
  const stored = await readAct(client, act.actNo);
  if (!stored) throw new Error(`act ${act.actNo} is neither stored nor there`);
  return { act: stored, stored: false };
}

/**
 * The second person's word: the act may now be performed. Only while it waits for one, and never by the
 * key that asked for it; true for the one call that confirmed it.
 */
export async function confirmAct(
  client: Queryable,
  second: { actNo: string; key: string; name: string; reason: string },
): Promise<boolean> {
  const { rowCount } = await client.query(
    `update operator_acts set status = 'accepted', second_key = $2::text, second_name = $3::text,
       second_reason = $4::text, confirmed_at = now()
     where act_no = $1::text and status = 'waiting_second' and actor_key <> $2::text`,
    [second.actNo, second.key, second.name, second.reason],
  );
  return rowCount === 1;
}

/** Says for ever what became of an act; an act has one end. */
export async function finishAct(
  client: Queryable,
  actNo: string,
  status: 'done' | 'refused',
  result: ActResult,
): Promise<void> {
  await client.query(
    `update operator_acts set status = $2::text, result = $3::jsonb, finished_at = now()
     where act_no = $1::text and status = 'accepted'`,
    [actNo, status, JSON.stringify(result)],
  );
}

export interface ActFilter {
  merchantId: string | undefined;
  orderId: string | undefined;
  caseId?: number | undefined;
  status: ActStatus | undefined;
  kind: ActKind | undefined;
  /** Acts older than this one. */
  before: number | undefined;
  limit: number;
}

/** Acts, newest first, one page. */
export async function listActs(
  client: Queryable,
  filter: ActFilter,
): Promise<{ acts: StoredAct[]; next: number | undefined }> {
  const { rows } = await client.query<Record<string, unknown> & { act_id: number }>(
    `select * from operator_acts
     where ($1::text is null or merchant_id = $1::text) and ($2::text is null or order_id = $2::text)
       and ($3::text is null or status = $3::text) and ($4::text is null or kind = $4::text)
       and ($5::bigint is null or act_id < $5::bigint)
       and ($7::bigint is null or case_id = $7::bigint)
     order by act_id desc limit $6::int + 1`,
    [
      filter.merchantId ?? null,
      filter.orderId ?? null,
      filter.status ?? null,
      filter.kind ?? null,
      filter.before ?? null,
      filter.limit,
      filter.caseId ?? null,
    ],
  );
  const page = rows.slice(0, filter.limit);
  const next = rows.length > filter.limit ? page.at(-1)?.act_id : undefined;
  return { acts: page.map((row) => fromRow<StoredAct>(row)), next };
}
