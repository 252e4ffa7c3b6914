/** Acts of operators in an order's run: performed by one database step, then followed up. */
import type { ActOutcome } from '../domain/outcomes';
import { step } from './activities';
import { take } from './order-run';
import type { OrderRun } from './order-run';
import { tellRefund } from './refund-child';

/** Performs one act; what it asks of channels and refunds is done by the rest of the loop. */
export async function performAct(run: OrderRun, actNo: string): Promise<ActOutcome> {
  const { performed, order } = await step(
    'performAct',
    { ...run.ref, actNo },
    `act ${actNo} of an operator`,
  );
  take(run, order);
  // A callback that is to be settled again waits in the inbox.
  if (order.news) run.rang = true;
  for (const id of performed.ask) if (!run.asks.includes(id)) run.asks.push(id);
  for (const refundNo of performed.start) run.startedRefunds.delete(refundNo);
  for (const refundNo of performed.tell) await tellRefund(run.ref, refundNo);
  return performed.outcome;
}

/** Acts that were stored and accepted while nobody asked this run: whoever stored them died. */
export async function performStoredActs(run: OrderRun): Promise<void> {
  for (const actNo of run.order?.acts ?? []) await performAct(run, actNo);
}
