import { WorkflowNotFoundError } from '@temporalio/client';
import { openRefund, applyRefundAnswer, readRefundProgress } from '../db/refunds';
import type { RefundProgress } from '../db/refunds';
import { readProgress } from '../db/progress';
import { failpoint } from '../db/failpoint';
import { readOrder } from '../db/rows';
import type { RefundAnswer } from '../domain/answers';
import type { OrderRef } from '../domain/orders';
import type { RefundOutcome } from '../domain/outcomes';
import type { OrderProgress } from '../domain/progress';
import { orderNotFound, refundNotFound } from '../workflows/failures';
import { orderWorkflowId } from '../workflows/ids';
import { nudgeSignal } from '../workflows/messages';
import { ORDER_WORKFLOW_TYPE, orderStartOptions } from '../workflows/start-options';
import type { ActivityDeps } from './deps';
import { settlementDeps } from './deps';

export type { RefundProgress } from '../db/refunds';

/** The database steps around a refund: promised by the order's run, carried out by its child. */
export function createRefundSteps(deps: ActivityDeps) {
  async function refundProgress(input: OrderRef & { refundNo: string }): Promise<RefundProgress> {
    const { policyOf } = await settlementDeps(deps);
    const progress = await readRefundProgress(deps.pool, input, input.refundNo, policyOf);
    if (!progress) throw refundNotFound(input, input.refundNo);
    return progress;
  }

  return {
    /** Decides a stored request for a refund: checks and reserves in one transaction. */
    async openRefund(
      input: OrderRef & { refundNo: string },
    ): Promise<{ answer: RefundOutcome; order: OrderProgress }> {
      const settlement = await settlementDeps(deps);
      await failpoint('refund-insert:before', input.orderId);
      const answer = await openRefund(deps.pool, input, input.refundNo, settlement);
      await failpoint('refund-insert:after', input.orderId);
      const order = await readProgress(deps.pool, input, settlement.policyOf);
      if (!order) throw orderNotFound(input);
      return { answer, order };
    },

    loadRefund: refundProgress,

    /** Settles what one call about the refund brought. */
    async settleRefundAnswer(
      input: OrderRef & { refundNo: string; call: 'submit' | 'query'; answer: RefundAnswer },
    ): Promise<RefundProgress> {
      await failpoint('refund-settle:before', input.orderId);
      await applyRefundAnswer(deps.pool, input, input, await settlementDeps(deps));
      await failpoint('refund-settle:after', input.orderId);
      return refundProgress(input);
    },

    /** Settles what the channel says of a refund that somebody asked about, also of a final one. */
    async settleAskedRefund(
      input: OrderRef & { refundNo: string; answer: RefundAnswer },
    ): Promise<{ order: OrderProgress }> {
      const settlement = await settlementDeps(deps);
      await failpoint('refund-settle:before', input.orderId);
      await applyRefundAnswer(deps.pool, input, { ...input, call: 'query' }, settlement);
      await failpoint('refund-settle:after', input.orderId);
      const order = await readProgress(deps.pool, input, settlement.policyOf);
      if (!order) throw orderNotFound(input);
      return { order };
    },

    /**
     * Tells the order that its refund or its fulfilment has ended. A run that is open looks again; a
     * new one is started only when the order has work left, so that the last word costs no run for nothing.
     */
    async nudgeOrder(ref: OrderRef): Promise<void> {
      await failpoint('nudge-order:before', ref.orderId);
      const { policyOf } = await settlementDeps(deps);
      const progress = await readProgress(deps.pool, ref, policyOf);
      const order = await readOrder(deps.pool, ref);
      if (!progress || !order) throw orderNotFound(ref);
      if (progress.hasWork) {
        await deps.client.workflow.signalWithStart(ORDER_WORKFLOW_TYPE, {
          ...orderStartOptions(order, deps.taskQueue),
          signal: nudgeSignal,
          signalArgs: [],
        });
        return;
      }
      try {
        await deps.client.workflow.getHandle(orderWorkflowId(ref)).signal(nudgeSignal);
      } catch (error) {
        // No run is open, and there is nothing that one would have to do.
        if (!(error instanceof WorkflowNotFoundError)) throw error;
      }
    },
  };
}
