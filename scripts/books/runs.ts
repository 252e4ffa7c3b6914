import type { Client } from '@temporalio/client';
import { orderOfWorkflowId } from '../../workflows/ids';
import { MERCHANT_ID, ORDER_ID } from '../../workflows/search-attributes';
import { ORDER_WORKFLOW_TYPE } from '../../workflows/start-options';
import type { Findings } from './findings';
import { inspect, together } from './findings';
import type { Snapshot } from './snapshot';
import { orderKey } from './snapshot';

/** An order's open runs, by `merchant/order`. */
export type OpenRuns = Map<string, string[]>;

/**
 * Every open run of an order that Temporal lists, of the named merchants or of all. The order is the
 * one its search attributes name, so a run under a foreign workflow id is found too.
 */
export async function listOpenRuns(
  client: Client,
  merchantIds: string[] | null,
): Promise<OpenRuns> {
  const of = merchantIds?.map((id) => `'${id}'`).join(', ');
  const query =
    `WorkflowType = '${ORDER_WORKFLOW_TYPE}' and ExecutionStatus = 'Running'` +
    (of === undefined ? '' : ` and ${MERCHANT_ID.name} in (${of})`);
  const runs: OpenRuns = new Map();
  for await (const run of client.workflow.list({ query })) {
    const merchantId = run.typedSearchAttributes.get(MERCHANT_ID);
    const orderId = run.typedSearchAttributes.get(ORDER_ID);
    const ref = merchantId && orderId ? { merchantId, orderId } : orderOfWorkflowId(run.workflowId);
    if (!ref) continue;
    const names = runs.get(orderKey(ref)) ?? [];
    runs.set(orderKey(ref), [...names, `${run.workflowId} (${run.runId})`]);
  }
  return runs;
}

/**
 * I7: at most one open run per order; and every order that has work has one, or an appointment at
 * which the sweep takes it: its earliest due time is at most `pickUpMs` past.
 */
export function checkRuns(snapshot: Snapshot, runs: OpenRuns, pickUpMs: number): Findings {
  const single = inspect(
    'I7',
    runs,
    ([order]) => `order ${order}`,
    function* ([, names]) {
      if (names.length > 1) yield `has ${names.length} open runs: ${names.join(', ')}`;
    },
  );
  const now = Date.parse(snapshot.now);
  const carried = inspect(
    'I7',
    snapshot.work,
    (row) => `order ${orderKey(row)}`,
    function* (row) {
      if (runs.has(orderKey(row))) return;
      if (row.nextDueAt === null) {
        yield `has work (${row.reasons}), no open run and no appointment`;
        return;
      }
      const pastMs = now - Date.parse(row.nextDueAt);
      if (pastMs > pickUpMs) {
        yield `has work (${row.reasons}) and no open run, due ${Math.round(pastMs / 1000)} s ago`;
      }
    },
  );
  return together([single, carried]);
}
