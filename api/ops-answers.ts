import { z } from '@hono/zod-openapi';
import type { Case } from '../db/case-reads';
import type { StoredAct } from '../db/act-rows';
import type { FoundOrder } from '../db/search';
import type { TimelineEntry } from '../db/timeline';
import { heldBy } from '../domain/held-money';
import type { OrderRef } from '../domain/orders';
import { refundableMinor } from '../domain/orders';
import type { SettlementState } from '../domain/verdicts';
import { fulfilmentWorkflowId, orderWorkflowId, refundWorkflowId } from '../workflows/ids';
import { order } from './answer-schemas';
import type { ApiDeps } from './deps';

/** The shapes of what operators are answered, each beside the function that makes it. */
const instant = z.iso.datetime().nullable();
const text = z.string().nullable();
const minor = z.int();

export const act = z
  .object({
    act_no: z.string(),
    kind: z.string(),
    merchant_id: text,
    order_id: text,
    case_id: text,
    case_version: z.int().nullable(),
    capture_id: text,
    amount: minor.nullable(),
    currency: text,
    refund_no: text,
    callback_id: text,
    reason: z.string(),
    evidence: text,
    by: z.object({ key: z.string(), name: z.string() }),
    needs_second: z.boolean(),
    second: z.object({ key: text, name: text, reason: text, confirmed_at: instant }).nullable(),
    status: z.enum(['waiting_second', 'accepted', 'done', 'refused']),
    result: z
      .object({
        reason: text,
        order_status: text,
        case_status: text,
        refund_nos: z.array(z.string()),
      })
      .nullable(),
    created_at: instant,
    finished_at: instant,
  })
  .openapi('Act');

export const actList = z.object({ acts: z.array(act), next_cursor: text }).openapi('ActList');

export function actView(stored: StoredAct): z.infer<typeof act> {
  const { result } = stored;
  return {
    act_no: stored.actNo,
    kind: stored.kind,
    merchant_id: stored.merchantId,
    order_id: stored.orderId,
    case_id: idText(stored.caseId),
    case_version: stored.caseVersion,
    capture_id: idText(stored.captureId),
    amount: stored.amountMinor,
    currency: stored.currency,
    refund_no: stored.refundNo,
    callback_id: idText(stored.callbackId),
    reason: stored.reason,
    evidence: stored.evidence,
    by: { key: stored.actorKey, name: stored.actorName },
    needs_second: stored.needsSecond,
    second:
      stored.secondKey === null
        ? null
        : {
            key: stored.secondKey,
            name: stored.secondName,
            reason: stored.secondReason,
            confirmed_at: stored.confirmedAt,
          },
    status: stored.status,
    result: result && {
      reason: result.reason ?? null,
      order_status: result.orderStatus ?? null,
      case_status: result.caseStatus ?? null,
      refund_nos: result.refundNos ?? [],
    },
    created_at: stored.createdAt,
    finished_at: stored.finishedAt,
  };
}

const caseHead = z.object({
  case_id: z.string(),
  merchant_id: text,
  order_id: text,
  channel: text,
  subject_no: z.string(),
  kind: z.string(),
  status: z.enum(['open', 'closed']),
  summary: z.string(),
  version: z.int(),
  order_status: text,
  opened_at: instant,
  closed_at: instant,
  run_url: text,
});

export const caseList = z
  .object({ cases: z.array(caseHead), next_cursor: text })
  .openapi('CaseList');

const heldCapture = z.object({
  capture_id: z.string(),
  channel: z.string(),
  channel_trade_no: z.string(),
  amount: minor,
  currency: z.string(),
  settles: z.boolean(),
  kind: z.string(),
  status: z.string(),
  reserved: minor,
  refunded: minor,
  reversed: minor,
  rest: minor.openapi({ description: 'What a refund may still take.' }),
  held: minor.openapi({ description: 'What the case holds of it.' }),
});

export const caseDetail = caseHead
  .extend({
    evidence: z.array(z.unknown()),
    decision: z.record(z.string(), z.unknown()).nullable(),
    captures: z.array(heldCapture),
    acts: z.array(act),
  })
  .openapi('Case');

export function caseView(found: Case, deps: ApiDeps): z.infer<typeof caseHead> {
  const { merchantId, orderId } = found;
  return {
    case_id: String(found.caseId),
    merchant_id: merchantId,
    order_id: orderId,
    channel: found.channel,
    subject_no: found.subjectNo,
    kind: found.kind,
    status: found.status,
    summary: found.summary,
    version: found.version,
    order_status: found.orderStatus,
    opened_at: found.openedAt,
    closed_at: found.closedAt,
    run_url: merchantId && orderId ? runUrl(deps, orderWorkflowId({ merchantId, orderId })) : null,
  };
}

export function capturesView(state: SettlementState): z.infer<typeof heldCapture>[] {
  return state.captures.map((capture) => ({
    capture_id: String(capture.captureId),
    channel: capture.channel,
    channel_trade_no: capture.channelTradeNo,
    amount: capture.amountMinor,
    currency: capture.currency,
    settles: capture.settles,
    kind: capture.kind,
    status: capture.status,
    reserved: capture.reservedMinor,
    refunded: capture.refundedMinor,
    reversed: capture.reversedMinor,
    rest: refundableMinor(capture),
    held: heldBy(state, capture),
  }));
}

export const opsOrder = order
  .extend({
    merchant_id: z.string(),
    captures: z.array(heldCapture),
    cases: z.array(caseHead),
    run_url: text,
  })
  .openapi('OpsOrder');

export const timeline = z
  .object({
    order_id: z.string(),
    entries: z.array(
      z.object({
        at: instant,
        kind: z.string(),
        data: z.record(z.string(), z.unknown()),
        run_url: text.openapi({ description: 'The run in Temporal Web that carries this.' }),
      }),
    ),
    next_cursor: text,
  })
  .openapi('Timeline');

/** An entry with a link to the run that carries it: the order's, or its child's. */
export function entryView(
  entry: TimelineEntry,
  ref: OrderRef,
  deps: ApiDeps,
): z.infer<typeof timeline>['entries'][number] {
  const { at, kind, data } = entry;
  return { at, kind, data, run_url: runUrl(deps, workflowOf(entry, ref)) };
}

function workflowOf({ kind, data }: TimelineEntry, ref: OrderRef): string {
  const isRefund = kind === 'refund' || kind === 'refund_call';
  const refundNo = isRefund ? data['refund_no'] : undefined;
  if (typeof refundNo === 'string') return refundWorkflowId(ref, refundNo);
  const isFulfilment = kind === 'fulfilment_call' || data['subject'] === 'fulfilment_step';
  return isFulfilment ? fulfilmentWorkflowId(ref) : orderWorkflowId(ref);
}

/** The page of a workflow's latest run in Temporal Web, or null when none is configured. */
export function runUrl({ temporalUiUrl, client }: ApiDeps, workflowId: string): string | null {
  if (!temporalUiUrl) return null;
  const namespace = encodeURIComponent(client.options.namespace);
  const base = temporalUiUrl.replace(/\/+$/, '');
  return `${base}/namespaces/${namespace}/workflows/${encodeURIComponent(workflowId)}`;
}

const foundOrder = z.object({
  merchant_id: z.string(),
  order_id: z.string(),
  amount: minor,
  currency: z.string(),
  status: z.string(),
  refund_status: z.string(),
  matched: z.array(z.string()).openapi({ description: 'Which of its numbers were meant.' }),
  created_at: instant,
  run_url: text,
});

export const foundOrders = z
  .object({ orders: z.array(foundOrder), truncated: z.boolean() })
  .openapi('FoundOrders');

export function foundView(found: FoundOrder, deps: ApiDeps): z.infer<typeof foundOrder> {
  return {
    merchant_id: found.merchantId,
    order_id: found.orderId,
    amount: found.amountMinor,
    currency: found.currency,
    status: found.status,
    refund_status: found.refundStatus,
    matched: found.matched,
    created_at: found.createdAt,
    run_url: runUrl(deps, orderWorkflowId(found)),
  };
}

export const stuck = z
  .object({
    orders: z.array(
      z.object({
        merchant_id: z.string(),
        order_id: z.string(),
        status: z.string(),
        reasons: z.array(z.string()),
        due_at: instant,
        run: z
          .enum(['open', 'none', 'failing', 'unknown'])
          .openapi({ description: 'failing: its workflow task or an activity is being retried.' }),
        run_url: text,
      }),
    ),
    refunds: z.array(
      z.object({
        merchant_id: z.string(),
        order_id: z.string(),
        refund_no: z.string(),
        out_refund_no: z.string(),
        channel: z.string(),
        status: z.string(),
        amount: minor,
        currency: z.string(),
        created_at: instant,
        run_url: text,
      }),
    ),
    acts: z.array(act),
    callbacks: z.array(
      z.object({
        callback_id: z.string(),
        channel: z.string(),
        our_no: z.string(),
        copies: z.int(),
        received_at: instant,
      }),
    ),
  })
  .openapi('Stuck');

function idText(id: number | null): string | null {
  return id === null ? null : String(id);
}
