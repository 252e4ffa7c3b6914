import { createChannelCalls } from './channel-calls';
import type { ActivityDeps } from './deps';
import { createDifferenceSteps } from './differences';
import { createFulfilmentSteps } from './fulfilment';
import { createNotificationSteps } from './notifications';
import { createOperatorSteps } from './operator-acts';
import { createOrderSteps } from './order-steps';
import { createReconciliationSteps } from './reconciliation';
import { createRefundSteps } from './refund-steps';
import { createSweepSteps } from './sweep';
import { createTradeBillSteps } from './trade-bills';

export type { ActivityDeps } from './deps';

/** Every verb that workflows call, bound to this worker's database, channels and client. */
export function createActivities(deps: ActivityDeps) {
  return {
    ...createOrderSteps(deps),
    ...createChannelCalls(deps),
    ...createRefundSteps(deps),
    ...createFulfilmentSteps(deps),
    ...createOperatorSteps(deps),
    ...createNotificationSteps(deps),
    ...createSweepSteps(deps),
    ...createReconciliationSteps(deps),
    ...createTradeBillSteps(deps),
    ...createDifferenceSteps(deps),
  };
}

export type Activities = ReturnType<typeof createActivities>;
