import { randomUUID } from 'node:crypto';
import type { z } from '@hono/zod-openapi';
import { listActs, readAct, storeAct } from '../../db/act-rows';
import { listCases, readCase } from '../../db/case-reads';
import type { Case } from '../../db/case-reads';
import { readOrderState } from '../../db/rows';
import { orphanHoldsMoney } from '../../domain/held-money';
import { answerAct, refusedAct, requireSameAct } from '../act-answers';
import { performStored } from '../act-calls';
import { fingerprintOf } from '../fingerprint';
import {
  act as actSchema,
  actView,
  capturesView,
  caseDetail,
  caseList,
  caseView,
} from '../ops-answers';
import { caseParams, casesQuery, newCaseAct } from '../ops-schemas';
import type { NewCaseActBody } from '../ops-schemas';
import { Problem } from '../problems';
import { route } from '../route';
import type { RouteDeps } from '../route';

const PAGE_DEFAULT = 20;
/** Of one case; older ones are found with GET /ops/acts. */
const ACTS_SHOWN = 100;

export const listCasesRoute = route<object, z.infer<typeof casesQuery>, undefined>({
  method: 'get',
  path: '/ops/cases',
  scope: 'operator',
  summary: 'List cases, newest first: what waits for a person',
  query: casesQuery,
  answers: { 200: { description: 'One page of cases.', schema: caseList } },
  refusals: [],
  async act({ query }, deps) {
    const { cases, next } = await listCases(deps.pool, {
      status: query.status ?? 'open',
      kind: query.kind,
      merchantId: query.merchant_id,
      before: query.cursor === undefined ? undefined : Number(query.cursor),
      limit: query.limit === undefined ? PAGE_DEFAULT : Number(query.limit),
    });
    return {
      status: 200,
      body: {
        cases: cases.map((found) => caseView(found, deps)),
        next_cursor: next === undefined ? null : String(next),
      },
    };
  },
});

export const readCaseRoute = route<z.infer<typeof caseParams>, undefined, undefined>({
  method: 'get',
  path: '/ops/cases/{case_id}',
  scope: 'operator',
  summary: 'Read a case: its evidence, the money it holds, what was done about it',
  params: caseParams,
  answers: { 200: { description: 'The case as it stands.', schema: caseDetail } },
  refusals: [404],
  async act({ params }, deps) {
    const found = await requireCase(deps, params.case_id);
    const { merchantId, orderId, caseId } = found;
    const ref = merchantId && orderId ? { merchantId, orderId } : undefined;
    const state = ref && (await readOrderState(deps.pool, ref));
    const { acts } = await listActs(deps.pool, {
      merchantId: ref?.merchantId,
      orderId: ref?.orderId,
      caseId: ref ? undefined : caseId,
      status: undefined,
      kind: undefined,
      before: undefined,
      limit: ACTS_SHOWN,
    });
    return {
      status: 200,
      body: {
        ...caseView(found, deps),
        evidence: found.evidence,
        decision: found.decision,
        captures: state ? capturesView(state) : [],
        acts: acts.map(actView),
      },
    };
  },
});

export const actOnCase = route<z.infer<typeof caseParams>, undefined, NewCaseActBody>({
  method: 'post',
  path: '/ops/cases/{case_id}/acts',
  scope: 'operator',
  summary: 'Act on a case that belongs to no order: note, close',
  params: caseParams,
  body: newCaseAct as z.ZodType<NewCaseActBody>,
  answers: {
    201: { description: 'Done.', schema: actSchema },
    200: { description: 'The same act, as it ended.', schema: actSchema },
    202: { description: 'Stored: it waits for a second person.', schema: actSchema },
  },
  refusals: [404, 409],
  async act({ caller, params, body, idempotencyKey }, deps) {
    const caseId = Number(params.case_id);
    const caseVersion = body.kind === 'close_case' ? body.case_version : null;
    const evidence = body.kind === 'close_case' ? (body.evidence ?? null) : null;
    const actNo = body.act_no ?? idempotencyKey ?? randomUUID();
    const fingerprint = fingerprintOf({ actNo, kind: body.kind, caseId, caseVersion, evidence });
    const before = await readAct(deps.pool, actNo);
    if (before) {
      requireSameAct(before, fingerprint);
      return answerAct(await performStored(deps, before), false);
    }
    const found = await requireCase(deps, params.case_id);
    if (found.orderId !== null) throw belongsToOrder(found);
    const holdsMoney = body.kind === 'close_case' && orphanHoldsMoney(found.evidence);
    if (found.status !== 'open') throw refusedAct('no_open_case', actNo, undefined);
    if (caseVersion !== null && caseVersion !== found.version) {
      throw refusedAct('case_version_outdated', actNo, undefined);
    }
    if (holdsMoney && evidence === null) throw refusedAct('evidence_missing', actNo, undefined);
    const { act: stored, stored: isNew } = await storeAct(deps.pool, {
      kind: body.kind,
      actNo,
      merchantId: null,
      orderId: null,
      caseId,
      caseVersion,
      captureId: null,
      amountMinor: null,
      currency: null,
      refundNo: null,
      callbackId: null,
      reason: body.reason,
      evidence,
      actorKey: caller.keyId,
      actorName: body.name,
      fingerprint,
      needsSecond: holdsMoney,
    });
    requireSameAct(stored, fingerprint);
    return answerAct(await performStored(deps, stored), isNew);
  },
});

/** @throws Problem case_not_found */
async function requireCase(deps: RouteDeps, caseId: string): Promise<Case> {
  const found = await readCase(deps.pool, Number(caseId));
  if (found) return found;
  throw new Problem('case_not_found', `no case ${caseId}: list them with GET /ops/cases`);
}

function belongsToOrder({ caseId, merchantId, orderId }: Case): Problem {
  return new Problem(
    'case_of_order',
    `case ${caseId} is about an order: use POST /ops/orders/${merchantId}/${orderId}/acts`,
  );
}
