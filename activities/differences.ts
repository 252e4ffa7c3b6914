import { Context } from '@temporalio/activity';
import { differencesToAsk } from '../db/reconciliation';
import { failpoint } from '../db/failpoint';
import { readOrder } from '../db/rows';
import { isDatabaseUnavailable } from '../db/transaction';
import type { OrderRef } from '../domain/orders';
import { askChannelSignal } from '../workflows/messages';
import type { AskChannel } from '../workflows/messages';
import { ORDER_WORKFLOW_TYPE, orderStartOptions } from '../workflows/start-options';
import type { ActivityDeps } from './deps';
import { whileBeating } from './heartbeats';
import { inParallel, isServerAway } from './order-runs';
import type { Day } from './reconciliation';

/** Differences read at a time; what was asked is remembered by heartbeat after each page. */
const PAGE = 500;

interface Asking {
  /** By the database's clock, before the first question. */
  askedAt: string;
  /** The last difference whose order was told. */
  after: number;
  asked: number;
}

/** How reconciliation repairs: it asks, and each order's own run settles the answer. */
export function createDifferenceSteps(deps: ActivityDeps) {
  return {
    /**
     * Tells the run of each order with an open difference to ask the channel; starts one where none is
     * open. Asked twice, an order asks twice, and the second answer has no effect.
     */
    async askAboutDifferences(input: Day): Promise<{ asked: number; askedAt: string }> {
      const asking = await beginAsking();
      return whileBeating(
        async () => {
          await failpoint('recon-ask:before', input.day);
          for (;;) {
            const page = await differencesToAsk(deps.pool, {
              ...input,
              after: asking.after,
              limit: PAGE,
            });
            await inParallel(questionsOf(page), ask);
            asking.asked += page.length;
            asking.after = page.at(-1)?.differenceId ?? asking.after;
            Context.current().heartbeat(asking);
            await failpoint('recon-ask:half', input.day);
            if (page.length < PAGE) break;
          }
          await failpoint('recon-ask:after', input.day);
          return { asked: asking.asked, askedAt: asking.askedAt };
        },
        () => asking,
      );
    },
  };

  /** From where an earlier try of this activity got to. */
  async function beginAsking(): Promise<Asking> {
    const earlier = Context.current().info.heartbeatDetails as Asking | undefined;
    if (earlier?.askedAt) return { ...earlier };
    const { rows } = await deps.pool.query<{ now: string }>(`select clock_timestamp() as now`);
    return { askedAt: rows[0]?.now ?? new Date().toISOString(), after: 0, asked: 0 };
  }

  async function ask({ ref, asked }: Question): Promise<void> {
    const order = await readOrder(deps.pool, ref);
    if (!order) return;
    try {
      await deps.client.workflow.signalWithStart(ORDER_WORKFLOW_TYPE, {
        ...orderStartOptions(order, deps.taskQueue),
        signal: askChannelSignal,
        signalArgs: [asked],
      });
    } catch (error) {
      if (isServerAway(error) || isDatabaseUnavailable(error)) throw error;
      // This order's difference stays, and becomes a case; it keeps no other from being asked about.
      Context.current().log.warn('the run of an order that differs could not be asked', {
        orderId: ref.orderId,
        error: String(error),
      });
    }
  }
}

interface Question {
  ref: OrderRef;
  asked: AskChannel;
}

/** One signal per order, whatever it differs in. */
function questionsOf(
  page: readonly (OrderRef & { payRecordId: number | null; refundNo: string | null })[],
): Question[] {
  const questions = new Map<string, Question>();
  for (const { merchantId, orderId, payRecordId, refundNo } of page) {
    const key = `${merchantId}:${orderId}`;
    const question = questions.get(key) ?? {
      ref: { merchantId, orderId },
      asked: { payRecordIds: [], refundNos: [] },
    };
    questions.set(key, question);
    const { payRecordIds, refundNos } = question.asked;
    if (payRecordIds.length + refundNos.length >= ASKS_PER_ORDER_MAX) continue;
    if (payRecordId !== null && !payRecordIds.includes(payRecordId)) payRecordIds.push(payRecordId);
    if (refundNo !== null && !refundNos.includes(refundNo)) refundNos.push(refundNo);
  }
  return [...questions.values()];
}

/** What an order's run takes in one signal (workflows/order-asks.ts), with one question more to spare. */
const ASKS_PER_ORDER_MAX = 99;
