import { openAttempt, requestOrderClose } from '../db/attempts';
import { readProgress } from '../db/progress';
import { applyPaymentAnswer, settleNews } from '../db/settlement';
import { holdLooseSurplus, noteRunStarted } from '../db/work';
import type { PaymentAnswer } from '../domain/answers';
import type { ChannelCall, OrderRef } from '../domain/orders';
import type { PayOutcome } from '../domain/outcomes';
import type { OrderProgress } from '../domain/progress';
import type { CloseReason } from '../domain/states';
import { failpoint } from '../db/failpoint';
import { orderNotFound } from '../workflows/failures';
import type { ActivityDeps } from './deps';
import { settlementDeps } from './deps';

/**
 * The database steps of an order's run. Each is one short idempotent transaction and returns the
 * order as it stands afterwards; the run decides from that and from nothing older.
 */
export function createOrderSteps(deps: ActivityDeps) {
  const { pool } = deps;

  async function progressOf(ref: OrderRef): Promise<OrderProgress> {
    const { policyOf } = await settlementDeps(deps);
    const progress = await readProgress(pool, ref, policyOf);
    if (!progress) throw orderNotFound(ref);
    return progress;
  }

  return {
    /** The order as PostgreSQL knows it: the first thing every run asks. */
    async loadOrder(ref: OrderRef): Promise<OrderProgress> {
      await noteRunStarted(pool, ref);
      return progressOf(ref);
    },

    /** Answers a stored request to pay, or opens an attempt for it. */
    async openAttempt(input: OrderRef & { requestNo: string }): Promise<{
      answer: PayOutcome | { outcome: 'wait'; payRecordId: number };
      order: OrderProgress;
    }> {
      await failpoint('insert:before', input.orderId);
      const answer = await openAttempt(pool, input, input.requestNo, deps);
      await failpoint('insert:after', input.orderId);
      return { answer, order: await progressOf(input) };
    },

    /** Settles what one call to the channel brought. */
    async settleAnswer(
      input: OrderRef & {
        payRecordId: number;
        call: ChannelCall;
        answer: PaymentAnswer;
      },
    ): Promise<{ ask: number[]; order: OrderProgress }> {
      await failpoint('settle:before', input.orderId);
      const { ask } = await applyPaymentAnswer(pool, input, input, await settlementDeps(deps));
      await failpoint('settle:after', input.orderId);
      return { ask, order: await progressOf(input) };
    },

    /** Settles every stored callback; `ask` are records to query before their callbacks count. */
    async settleNews(
      ref: OrderRef,
    ): Promise<{ ask: number[]; nudgeRefunds: string[]; order: OrderProgress }> {
      await failpoint('settle-news:before', ref.orderId);
      const { ask, nudgeRefunds } = await settleNews(pool, ref, await settlementDeps(deps));
      await failpoint('settle-news:after', ref.orderId);
      return { ask, nudgeRefunds, order: await progressOf(ref) };
    },

    /** Deadline or cancel: closes now, or asks the live attempt to be closed first. */
    async requestClose(
      input: OrderRef & { reason: CloseReason; actor: string },
    ): Promise<{ order: OrderProgress }> {
      await requestOrderClose(pool, input, { ...input, numberSecret: deps.numberSecret });
      return { order: await progressOf(input) };
    },

    /** Surplus money that nothing takes care of becomes a case. */
    async holdSurplus(ref: OrderRef): Promise<{ order: OrderProgress }> {
      await holdLooseSurplus(pool, ref);
      return { order: await progressOf(ref) };
    },
  };
}
