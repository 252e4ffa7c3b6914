import { Context } from '@temporalio/activity';
import { WorkflowNotFoundError } from '@temporalio/client';
import { overdueOrphanActs, performOrphanAct } from '../db/orphan-acts';
import { overdueOrders } from '../db/work';
import type { OrderRef } from '../domain/orders';
import { orderOfWorkflowId, orderWorkflowId } from '../workflows/ids';
import { nudgeSignal } from '../workflows/messages';
import { ORDER_WORKFLOW_TYPE } from '../workflows/start-options';
import type { ActivityDeps } from './deps';
import { inParallel, tellRuns } from './order-runs';

export interface SweepResult {
  overdue: number;
  ended: number;
  nudged: number;
}

/** Orders nudged by one sweep at most, for each of its two reasons; the next sweep takes the rest. */
const NUDGES_MAX = 2_000;
/** Acts about cases of no order performed by one sweep at most: people wrote them one by one. */
const ORPHAN_ACTS_MAX = 100;
/** Ended runs looked at by one sweep at most: an operator may have ended very many at once. */
const ENDED_RUNS_MAX = 10_000;

/**
 * Finds the orders that nobody carries: what is past its due time, and what lost its run to an
 * operator's terminate or cancel. A nudge starts a run where none is open. An act about a case of no
 * order has no run: what its request left behind is performed here.
 */
export function createSweepSteps(deps: ActivityDeps) {
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
      if (found.size >= ENDED_RUNS_MAX) break;
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

  async function performLeftActs(pastDueMs: number): Promise<void> {
    const actNos = await overdueOrphanActs(deps.pool, { pastDueMs, limit: ORPHAN_ACTS_MAX });
    for (const actNo of actNos) {
      try {
        await performOrphanAct(deps.pool, actNo);
      } catch (error) {
        // It keeps no order from being found; the next sweep tries it again.
        Context.current().log.warn('an act about a case of no order could not be performed', {
          actNo,
          error: String(error),
        });
      }
    }
  }

  return {
    async sweepOrders(input: { pastDueMs: number; lookBackMs: number }): Promise<SweepResult> {
      await performLeftActs(input.pastDueMs);
      const overdue = await overdueOrders(deps.pool, {
        pastDueMs: input.pastDueMs,
        limit: NUDGES_MAX,
      });
      const ended: OrderRef[] = [];
      // Counted after the check: those that have a new run by now keep no others away.
      await inParallel(await endedRuns(input.lookBackMs), async (ref) => {
        if (ended.length >= NUDGES_MAX) return;
        if ((await hasWork(ref)) && !(await hasOpenRun(ref))) ended.push(ref);
      });
      const { log } = Context.current();
      const nudged = await tellRuns(deps, [...overdue, ...ended], nudgeSignal, (ref, error) =>
        log.warn('the run of an overdue order could not be nudged', {
          orderId: ref.orderId,
          error: String(error),
        }),
      );
      return { overdue: overdue.length, ended: ended.length, nudged };
    },
  };
}
