import { orphanHoldsMoney } from '../domain/held-money';
import type { ActRefusal } from '../domain/operator-acts';
import { finishAct, readAct } from './act-rows';
import type { StoredAct } from './act-rows';
import type { Client, Pool, Queryable } from './transaction';
import { withTransaction } from './transaction';

/**
 * Performs an accepted act about a case that belongs to no order (so that there is no run to ask): it
 * may be noted and closed. Under the case's own lock; safe to repeat.
 */
export async function performOrphanAct(pool: Pool, actNo: string): Promise<void> {
  await withTransaction(pool, async (client) => {
    const asked = await readAct(client, actNo);
    if (!asked || asked.orderId !== null) return;
    const { rows } = await client.query<{ version: number; status: string; evidence: unknown[] }>(
      `select version, status, evidence from cases
       where case_id = $1::bigint and order_id is null for update`,
      [asked.caseId],
    );
    // Read again behind the lock: somebody else may just have performed it.
    const act = await readAct(client, actNo);
    const found = rows[0];
    if (!act || act.status !== 'accepted') return;
    const reason = refusalOf(act, found);
    if (reason) return finishAct(client, actNo, 'refused', { reason });
    await apply(client, act);
    const caseStatus = act.kind === 'close_case' ? 'closed' : 'open';
    await finishAct(client, actNo, 'done', { caseStatus, refundNos: [] });
  });
}

/** Accepted acts about cases of no order that nobody performed for so long, the oldest first. */
export async function overdueOrphanActs(
  client: Queryable,
  input: { pastDueMs: number; limit: number },
): Promise<string[]> {
  const { rows } = await client.query<{ act_no: string }>(
    `select act_no from operator_acts
     where status = 'accepted' and order_id is null
       and coalesce(confirmed_at, created_at)
         < now() - make_interval(secs => $1::double precision / 1000)
     order by act_id limit $2::int`,
    [input.pastDueMs, input.limit],
  );
  return rows.map((row) => row.act_no);
}

function refusalOf(
  act: StoredAct,
  found: { version: number; status: string; evidence: unknown[] } | undefined,
): ActRefusal | undefined {
  if (!found || found.status !== 'open') return 'no_open_case';
  if (act.kind === 'note') return undefined;
  if (act.caseVersion !== found.version) return 'case_version_outdated';
  if (!orphanHoldsMoney(found.evidence)) return undefined;
  if (!act.evidence) return 'evidence_missing';
  return act.secondKey === null ? 'second_person_needed' : undefined;
}

async function apply(client: Client, act: StoredAct): Promise<void> {
  if (act.kind === 'note') {
    await client.query(
      `update cases set version = version + 1, evidence = evidence || jsonb_build_array(
           jsonb_build_object('kind', 'note', 'summary', $2::text, 'at', now(), 'act_no', $3::text,
             'by', $4::text))
       where case_id = $1::bigint and status = 'open'`,
      [act.caseId, act.reason, act.actNo, act.actorName],
    );
    return;
  }
  await client.query(
    `update cases set status = 'closed', closed_at = now(), version = version + 1,
       decision = jsonb_build_object('act_no', $2::text, 'kind', 'close_case', 'decided_by', $3::text,
         'name', $4::text, 'reason', $5::text, 'evidence', $6::text, 'second', $7::text,
         'second_name', $8::text, 'second_reason', $9::text)
     where case_id = $1::bigint and status = 'open'`,
    [
      act.caseId,
      act.actNo,
      act.actorKey,
      act.actorName,
      act.reason,
      act.evidence,
      act.secondKey,
      act.secondName,
      act.secondReason,
    ],
  );
}
