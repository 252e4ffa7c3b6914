import { failpoint } from '../db/failpoint';
import { performAct } from '../db/operator-acts';
import type { PerformedAct } from '../db/operator-acts';
import { readProgress } from '../db/progress';
import type { OrderRef } from '../domain/orders';
import type { OrderProgress } from '../domain/progress';
import { orderNotFound } from '../workflows/failures';
import type { ActivityDeps } from './deps';
import { settlementDeps } from './deps';

/** The database step of an operator's act. */
export function createOperatorSteps(deps: ActivityDeps) {
  return {
    /** Performs a stored act, or finds what became of it. */
    async performAct(
      input: OrderRef & { actNo: string },
    ): Promise<{ performed: PerformedAct; order: OrderProgress }> {
      const settlement = await settlementDeps(deps);
      await failpoint('act:before', input.orderId);
      const performed = await performAct(deps.pool, input, input.actNo, settlement);
      await failpoint('act:after', input.orderId);
      const order = await readProgress(deps.pool, input, settlement.policyOf);
      if (!order) throw orderNotFound(input);
      return { performed, order };
    },
  };
}
