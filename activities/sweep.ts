import { WorkflowNotFoundError } from '@temporalio/client';
import { overdueOrders } from '../db/work';
import { readOrder } from '../db/rows';
import type { OrderRef } from '../domain/orders';
import { orderOfWorkflowId, orderWorkflowId } from '../workflows/ids';
import { nudgeSignal } from '../workflows/messages';
import { ORDER_WORKFLOW_TYPE, orderStartOptions } from '../workflows/start-options';
import type { ActivityDeps } from './deps';

export interface SweepResult {
  overdue: number;
  ended: number;
  nudged: number;
}

/** Orders nudged by one sweep at most; the next sweep takes the rest. */
const NUDGES_MAX = 500;

/**
 * Finds the orders that nobody carries: what is past its due time, and what lost its run to an
 * operator's terminate or cancel. A nudge starts a run where none is open.
 */
export function createSweepSteps(deps: ActivityDeps) {
  async function nudge(ref: OrderRef): Promise<boolean> {
    const order = await readOrder(deps.pool, ref);
    if (!order) return false;
    await deps.client.workflow.signalWithStart(ORDER_WORKFLOW_TYPE, {
      ...orderStartOptions(order, deps.taskQueue),
      signal: nudgeSignal,
      signalArgs: [],
    });
    return true;
  }

  /** Runs that did not end by themselves since `sinceMs` ago, whose orders still have work. */
  async function endedRuns(sinceMs: number): Promise<OrderRef[]> {
    const since = new Date(Date.now() - sinceMs).toISOString();
    const found = new Map<string, OrderRef>();
    const runs = deps.client.workflow.list({
      query:
        `WorkflowType = '${ORDER_WORKFLOW_TYPE}' and CloseTime > '${since}' and ` +
        `ExecutionStatus in ('Terminated', 'Canceled', 'Failed', 'TimedOut')`,
    });
    for await (const run of runs) {
      const ref = orderOfWorkflowId(run.workflowId);
      if (ref) found.set(run.workflowId, ref);
      if (found.size >= NUDGES_MAX) break;
    }
    return [...found.values()];
  }

  async function hasWork(ref: OrderRef): Promise<boolean> {
    const { rowCount } = await deps.pool.query(
      `select from orders_with_work where merchant_id = $1::text and order_id = $2::text limit 1`,
      [ref.merchantId, ref.orderId],
    );
    return (rowCount ?? 0) > 0;
  }

  async function hasOpenRun(ref: OrderRef): Promise<boolean> {
    try {
      const run = await deps.client.workflow.getHandle(orderWorkflowId(ref)).describe();
      return run.status.name === 'RUNNING';
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return false;
      throw error;
    }
  }

  return {
    async sweepOrders(input: { pastDueMs: number; lookBackMs: number }): Promise<SweepResult> {
      const overdue = await overdueOrders(deps.pool, {
        pastDueMs: input.pastDueMs,
        limit: NUDGES_MAX,
      });
      const ended = [];
      for (const ref of await endedRuns(input.lookBackMs)) {
        if ((await hasWork(ref)) && !(await hasOpenRun(ref))) ended.push(ref);
      }
      let nudged = 0;
      for (const ref of [...overdue, ...ended]) if (await nudge(ref)) nudged++;
      return { overdue: overdue.length, ended: ended.length, nudged };
    },
  };
}
