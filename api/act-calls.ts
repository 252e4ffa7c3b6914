import { readAct } from '../db/act-rows';
import type { StoredAct } from '../db/act-rows';
import { performOrphanAct } from '../db/orphan-acts';
import { readOrder } from '../db/rows';
import type { RouteDeps } from './route';

/**
 * Has an accepted act performed, and gives it back as it stands afterwards. An act that waits for a
 * second person, or has ended, is left as it is. When the order's run does not answer in time the act
 * stays accepted: it is work of the order, and its run performs it later, whoever asks.
 */
export async function performStored(deps: RouteDeps, act: StoredAct): Promise<StoredAct> {
  if (act.status !== 'accepted') return act;
  const { merchantId, orderId } = act;
  if (merchantId === null || orderId === null) {
    await performOrphanAct(deps.pool, act.actNo);
  } else {
    const order = await readOrder(deps.pool, { merchantId, orderId });
    const asked = order && (await deps.calls.operatorAction(order, act.actNo));
    if (asked?.kind === 'unknown') {
      deps.log.warn(
        { orderId, actNo: act.actNo, reason: asked.reason },
        'outcome of an act unknown',
      );
    }
  }
  return (await readAct(deps.pool, act.actNo)) ?? act;
}
