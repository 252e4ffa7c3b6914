import { historiesOf } from './figures';
import type { Saga } from './saga';

/** What a message from outside could have changed about an order; calls and polls leave it as it is. */
export async function traceOf(saga: Saga, orderId: string) {
  const { status, refund_status } = await saga.order(orderId);
  const [inbox] = await saga.rows<{ callbacks: number }>(
    `select count(*)::int as callbacks from channel_callbacks`,
  );
  return {
    status,
    refund_status,
    records: (await saga.records(orderId)).map((record) => record.status),
    captures: await saga.captures(orderId),
    moves: (await saga.moves(orderId)).concat(await saga.moves(orderId, 'pay_record')),
    review: await saga.openCases(orderId),
    told: saga.merchant.effects(orderId).length,
    /** Everybody's callbacks: none may be stored under another order either. */
    callbacks: inbox?.callbacks,
    signals: await signalsOf(saga, orderId),
  };
}

/** Signals in the histories of all runs of the order; with an identity only those of that sender. */
export async function signalsOf(saga: Saga, orderId: string, identity?: string): Promise<number> {
  const signals = (await historiesOf(saga, orderId))
    .flat()
    .flatMap((event) => event.workflowExecutionSignaledEventAttributes ?? []);
  return signals.filter((signal) => identity === undefined || signal.identity === identity).length;
}
