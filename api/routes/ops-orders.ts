import { setTimeout as delay } from 'node:timers/promises';
import type { z } from '@hono/zod-openapi';
import { WorkflowNotFoundError } from '@temporalio/client';
import { casesOfOrder } from '../../db/case-reads';
import { readOrderState } from '../../db/rows';
import { searchOrders } from '../../db/search';
import { oldRefunds, openActs, stuckOrders, unmatchedCallbacks } from '../../db/stuck';
import type { OrderRef } from '../../domain/orders';
import { orderWorkflowId, refundWorkflowId } from '../../workflows/ids';
import { orderView } from '../answers';
import {
  actView,
  capturesView,
  caseView,
  foundOrders,
  foundView,
  opsOrder,
  runUrl,
  stuck,
} from '../ops-answers';
import { opsOrderParams, searchQuery } from '../ops-schemas';
import { orderNotFound } from '../problems';
import { route } from '../route';
import type { RouteDeps } from '../route';

const FOUND_MAX = 50;
const STUCK_MAX = 50;
/** As long as the sweep takes to notice. */
const PAST_DUE_MS = 60_000;
const OLD_REFUND_MS = 24 * 60 * 60 * 1_000;
/** Runs that are looked at in Temporal for one answer, and for how long altogether. */
const RUNS_MAX = 20;
const RUNS_WITHIN_MS = 2_000;

export const readOpsOrder = route<z.infer<typeof opsOrderParams>, undefined, undefined>({
  method: 'get',
  path: '/ops/orders/{merchant_id}/{order_id}',
  scope: 'operator',
  summary: 'Read any merchant’s order, its captures and its cases',
  params: opsOrderParams,
  answers: { 200: { description: 'The order as it stands.', schema: opsOrder } },
  refusals: [404],
  async act({ params }, deps) {
    const ref = { merchantId: params.merchant_id, orderId: params.order_id };
    const state = await readOrderState(deps.pool, ref);
    if (!state) throw orderNotFound(ref.orderId);
    const cases = await casesOfOrder(deps.pool, ref);
    return {
      status: 200,
      body: {
        ...orderView(state, deps.publicUrl()),
        merchant_id: ref.merchantId,
        captures: capturesView(state),
        cases: cases.map((found) => caseView(found, deps)),
        run_url: runUrl(deps, orderWorkflowId(ref)),
      },
    };
  },
});

export const searchRoute = route<object, z.infer<typeof searchQuery>, undefined>({
  method: 'get',
  path: '/ops/search',
  scope: 'operator',
  summary: 'Find orders by any of their numbers, by amount and day, by status',
  query: searchQuery,
  answers: { 200: { description: 'The newest ones.', schema: foundOrders } },
  refusals: [],
  async act({ query }, deps) {
    const found = await searchOrders(deps.pool, {
      number: query.q,
      amountMinor: query.amount === undefined ? undefined : Number(query.amount),
      day: query.day === undefined ? undefined : { date: query.day, zone: query.zone ?? 'UTC' },
      status: query.status,
      limit: FOUND_MAX + 1,
    });
    return {
      status: 200,
      body: {
        orders: found.slice(0, FOUND_MAX).map((order) => foundView(order, deps)),
        truncated: found.length > FOUND_MAX,
      },
    };
  },
});

export const stuckRoute = route<object, undefined, undefined>({
  method: 'get',
  path: '/ops/stuck',
  scope: 'operator',
  summary: 'What should have gone on by now and has not',
  answers: { 200: { description: 'At most 50 of each, the oldest first.', schema: stuck } },
  refusals: [],
  async act(_request, deps) {
    const orders = await stuckOrders(deps.pool, { pastDueMs: PAST_DUE_MS, limit: STUCK_MAX });
    const refunds = await oldRefunds(deps.pool, { olderThanMs: OLD_REFUND_MS, limit: STUCK_MAX });
    const acts = await openActs(deps.pool, STUCK_MAX);
    const callbacks = await unmatchedCallbacks(deps.pool, STUCK_MAX);
    const runs = await lookAtRuns(deps, orders.slice(0, RUNS_MAX));
    return {
      status: 200,
      body: {
        orders: orders.map((order, i) => ({
          merchant_id: order.merchantId,
          order_id: order.orderId,
          status: order.status,
          reasons: order.reasons,
          due_at: order.dueAt,
          run: runs[i] ?? 'unknown',
          run_url: runUrl(deps, orderWorkflowId(order)),
        })),
        refunds: refunds.map((refund) => ({
          merchant_id: refund.merchantId,
          order_id: refund.orderId,
          refund_no: refund.refundNo,
          out_refund_no: refund.outRefundNo,
          channel: refund.channel,
          status: refund.status,
          amount: refund.amountMinor,
          currency: refund.currency,
          created_at: refund.createdAt,
          run_url: runUrl(deps, refundWorkflowId(refund, refund.refundNo)),
        })),
        acts: acts.map(actView),
        callbacks: callbacks.map((callback) => ({
          callback_id: String(callback.callbackId),
          channel: callback.channel,
          our_no: callback.ourNo,
          copies: callback.copies,
          received_at: callback.receivedAt,
        })),
      },
    };
  },
});

type Run = 'open' | 'none' | 'failing' | 'unknown';

/** How the orders' runs stand in Temporal; unknown when it does not say so in time. */
async function lookAtRuns(deps: RouteDeps, refs: readonly OrderRef[]): Promise<Run[]> {
  const timer = new AbortController();
  const late = delay(RUNS_WITHIN_MS, undefined, { signal: timer.signal }).catch(() => undefined);
  const looked = Promise.all(refs.map((ref) => lookAtRun(deps, ref)));
  const inTime = await Promise.race([looked, late]);
  timer.abort();
  return inTime ?? [];
}

async function lookAtRun({ client }: RouteDeps, ref: OrderRef): Promise<Run> {
  try {
    const { status, raw } = await client.withDeadline(Date.now() + RUNS_WITHIN_MS, () =>
      client.workflow.getHandle(orderWorkflowId(ref)).describe(),
    );
    if (status.name !== 'RUNNING') return 'none';
    const isRetried =
      (raw.pendingWorkflowTask?.attempt ?? 1) > 1 ||
      (raw.pendingActivities ?? []).some(({ attempt }) => (attempt ?? 1) > 1);
    return isRetried ? 'failing' : 'open';
  } catch (error) {
    return error instanceof WorkflowNotFoundError ? 'none' : 'unknown';
  }
}
