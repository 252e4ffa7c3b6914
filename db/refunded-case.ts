import type { OrderRef } from '../domain/orders';
import { decideAfterRefund } from '../domain/operator-acts';
import { readActState } from './act-state';
import { closeCase, readOpenCase } from './cases';
import { applyChanges } from './changes';
import type { Queryable } from './transaction';

/**
 * After a refund succeeded, in its transaction: closes the case that an operator decided to close by
 * giving the money back, once all of it has arrived. A case that has learnt more since stays open.
 */
export async function closeRefundedCase(
  client: Queryable,
  ref: OrderRef,
  numberSecret: string,
): Promise<void> {
  const open = await readOpenCase(client, ref);
  if (!open || open.awaitsVersion !== open.version) return;
  const state = await readActState(client, ref, null);
  const changes = state && decideAfterRefund(state, open.awaitsVersion);
  if (!changes) return;
  await closeCase(client, ref, {
    caseId: open.caseId,
    version: open.version,
    decision: { closed_by: 'refund_succeeded', settled_captures: [] },
    cause: 'refund_succeeded',
    actor: 'system',
  });
  await applyChanges(
    client,
    ref,
    { changes },
    { verdict: 'refund_succeeded', fact: null, channel: '', actor: 'system', numberSecret },
  );
}
