import { randomUUID } from 'node:crypto';
import type { z } from '@hono/zod-openapi';
import { lockActState } from '../../db/act-state';
import { confirmAct, listActs, readAct, storeAct } from '../../db/act-rows';
import type { StoredAct } from '../../db/act-rows';
import { failpoint } from '../../db/failpoint';
import { withTransaction } from '../../db/transaction';
import { amountOf, decideAct } from '../../domain/operator-acts';
import type { ActContent, ActContext, ActState } from '../../domain/operator-acts';
import type { OrderRef } from '../../domain/orders';
import { needsSecondPerson } from '../../domain/second-person';
import type { Caller } from '../../db/merchants';
import { answerAct, refusedAct, requireSameAct } from '../act-answers';
import { performStored } from '../act-calls';
import { fingerprintOf } from '../fingerprint';
import { actList, act as actSchema, actView } from '../ops-answers';
import { actParams, actsQuery, confirmation, newAct, opsOrderParams } from '../ops-schemas';
import type { NewActBody } from '../ops-schemas';
import { orderNotFound, Problem } from '../problems';
import { route } from '../route';
import type { ApiAnswer, RouteDeps } from '../route';

const PAGE_DEFAULT = 20;

const ACT_ANSWERS = {
  201: { description: 'Done.', schema: actSchema },
  200: { description: 'The same act, as it ended.', schema: actSchema },
  202: { description: 'Stored: it waits for a second person, or for its run.', schema: actSchema },
};

export const actOnOrder = route<z.infer<typeof opsOrderParams>, undefined, NewActBody>({
  method: 'post',
  path: '/ops/orders/{merchant_id}/{order_id}/acts',
  scope: 'operator',
  summary: 'Act on an order: decide its case, give money back, look again',
  params: opsOrderParams,
  body: newAct as z.ZodType<NewActBody>,
  answers: ACT_ANSWERS,
  refusals: [404, 409],
  act: ({ caller, params, body, idempotencyKey }, deps) =>
    act(
      deps,
      caller,
      { merchantId: params.merchant_id, orderId: params.order_id },
      contentOf(body, idempotencyKey),
      body.name,
    ),
});

/** What was asked, with a number of its own where none was given. */
function contentOf(body: NewActBody, idempotencyKey: string | undefined): ActContent {
  const id = (value: string | undefined) => (value === undefined ? null : Number(value));
  return {
    kind: body.kind,
    actNo: body.act_no ?? idempotencyKey ?? randomUUID(),
    caseId: 'case_id' in body ? id(body.case_id) : null,
    caseVersion: 'case_version' in body ? (body.case_version ?? null) : null,
    captureId: 'capture_id' in body ? id(body.capture_id) : null,
    amountMinor: 'amount' in body ? (body.amount ?? null) : null,
    refundNo: 'refund_no' in body ? body.refund_no : null,
    callbackId: 'callback_id' in body ? id(body.callback_id) : null,
    reason: body.reason,
    evidence: 'evidence' in body ? (body.evidence ?? null) : null,
  };
}

/** Stores the act, unless what is known refuses it now, and has the order's run perform it. */
async function act(
  deps: RouteDeps,
  caller: Caller,
  ref: OrderRef,
  content: ActContent,
  actorName: string,
): Promise<ApiAnswer> {
  // Who acts and why is no content: the first word of the same act is kept.
  const { reason: _, ...same } = content;
  const fingerprint = fingerprintOf({ ...ref, ...same });
  const before = await readAct(deps.pool, content.actNo);
  if (before) {
    requireSameAct(before, fingerprint);
    return answerAct(await performStored(deps, before), false);
  }
  const context = await contextOf(deps);
  // Under the order's lock: acts that are asked for at the same moment count one another.
  const { act: stored, stored: isNew } = await withTransaction(deps.pool, async (client) => {
    const state = await lockActState(client, ref, content.callbackId);
    if (!state) throw orderNotFound(ref.orderId);
    requireAllowed(state, content, context);
    return storeAct(client, {
      ...content,
      ...ref,
      // An act that decides nothing is kept beside the case that was open.
      caseId: content.caseId ?? (content.kind === 'note' ? (state.openCase?.caseId ?? null) : null),
      amountMinor: amountOf(state, content),
      currency: currencyOf(state, content),
      actorKey: caller.keyId,
      actorName,
      fingerprint,
      needsSecond: needsSecondPerson(state, content, aloneUpTo(deps)),
    });
  });
  requireSameAct(stored, fingerprint);
  await failpoint('api:act-stored', ref.orderId);
  return answerAct(await performStored(deps, stored), isNew);
}

function aloneUpTo({ limits }: RouteDeps): (currency: string) => number {
  return (currency) => limits.aloneUpTo.byCurrency[currency] ?? limits.aloneUpTo.otherwise;
}

function currencyOf(state: ActState, { captureId, refundNo }: ActContent): string | null {
  const capture = state.captures.find((c) => c.captureId === captureId);
  const refund = state.refunds.find((r) => r.refundNo === refundNo);
  return capture?.currency ?? refund?.currency ?? null;
}

/** Read before the lock is asked for: a transaction that waits for a second connection may wait for ever. */
async function contextOf(deps: RouteDeps): Promise<ActContext> {
  const channels = new Map((await deps.channels.all()).map((c) => [c.row.channel, c]));
  return {
    now: new Date().toISOString(),
    policyOf: (channel) => {
      const configured = channels.get(channel);
      if (!configured) throw new Error(`channel ${channel} is not configured`);
      return configured.policy;
    },
    refundsEnabled: (channel) => channels.get(channel)?.row.refundEnabled ?? false,
    confirmed: true,
  };
}

/** What is refused already now binds no number: the operator reads the case again, and decides anew. */
function requireAllowed(state: ActState, act: ActContent, context: ActContext): void {
  const decision = decideAct(state, act, context);
  if (decision.decision === 'refuse') throw refusedAct(decision.reason, act.actNo, undefined);
}

export const confirmRoute = route<
  z.infer<typeof actParams>,
  undefined,
  z.infer<typeof confirmation>
>({
  method: 'post',
  path: '/ops/acts/{act_no}/confirm',
  scope: 'operator',
  summary: 'Be the second person of an act',
  params: actParams,
  body: confirmation as z.ZodType<z.infer<typeof confirmation>>,
  answers: ACT_ANSWERS,
  refusals: [404, 409],
  async act({ caller, params, body }, deps) {
    const waiting = await requireAct(deps, params.act_no);
    if (waiting.actorKey === caller.keyId) throw mustBeAnother(waiting);
    const confirmed = await confirmAct(deps.pool, {
      actNo: waiting.actNo,
      key: caller.keyId,
      name: body.name,
      reason: body.reason,
    });
    const stored = await requireAct(deps, params.act_no);
    if (stored.secondKey !== caller.keyId) {
      throw new Problem(
        'act_not_waiting',
        `act ${stored.actNo} is ${stored.status}: read it with GET /ops/acts/${stored.actNo}`,
      );
    }
    return answerAct(await performStored(deps, stored), confirmed);
  },
});

function mustBeAnother(act: StoredAct): Problem {
  return new Problem(
    'second_person_needed',
    `act ${act.actNo} was asked for with this very key: another person confirms it, with another key`,
  );
}

export const readActRoute = route<z.infer<typeof actParams>, undefined, undefined>({
  method: 'get',
  path: '/ops/acts/{act_no}',
  scope: 'operator',
  summary: 'Read an act and what became of it',
  params: actParams,
  answers: { 200: { description: 'The act as it stands.', schema: actSchema } },
  refusals: [404],
  async act({ params }, deps) {
    return { status: 200, body: actView(await requireAct(deps, params.act_no)) };
  },
});

export const listActsRoute = route<object, z.infer<typeof actsQuery>, undefined>({
  method: 'get',
  path: '/ops/acts',
  scope: 'operator',
  summary: 'List acts, newest first',
  query: actsQuery,
  answers: { 200: { description: 'One page of acts.', schema: actList } },
  refusals: [],
  async act({ query }, deps) {
    const { acts, next } = await listActs(deps.pool, {
      merchantId: query.merchant_id,
      orderId: query.order_id,
      status: query.status,
      kind: query.kind,
      before: query.cursor === undefined ? undefined : Number(query.cursor),
      limit: query.limit === undefined ? PAGE_DEFAULT : Number(query.limit),
    });
    return {
      status: 200,
      body: { acts: acts.map(actView), next_cursor: next === undefined ? null : String(next) },
    };
  },
});

/** @throws Problem act_not_found */
async function requireAct(deps: RouteDeps, actNo: string): Promise<StoredAct> {
  const act = await readAct(deps.pool, actNo);
  if (act) return act;
  throw new Problem('act_not_found', `no act ${actNo}: list them with GET /ops/acts`);
}
