import type { ApiRoute } from '../route';
import { cancelOrder } from './cancel';
import { listEvents } from './events';
import { actOnOrder, confirmRoute, listActsRoute, readActRoute } from './ops-acts';
import { actOnCase, listCasesRoute, readCaseRoute } from './ops-cases';
import {
  listNotificationsRoute,
  readNotificationRoute,
  resendNotificationRoute,
} from './ops-notifications';
import { createOrder, listOrdersRoute, readOrderRoute } from './orders';
import { readOpsOrder, searchRoute, stuckRoute } from './ops-orders';
import { payOrder } from './payments';
import { listReconciliations, readReconciliation, startReconciliation } from './reconciliations';
import { readRefund, requestRefund } from './refunds';
import { opsTimelineRoute, timelineRoute } from './timeline';

/**
 * Every route under /v1 and /ops. A test is generated from this table: each write is sent twice, and twenty
 * times in parallel, and a write that the test does not know fails it.
 */
export function createRouteTable({ expiresInMinS }: { expiresInMinS: number }): ApiRoute[] {
  return [
    createOrder(expiresInMinS),
    listOrdersRoute,
    readOrderRoute,
    payOrder,
    cancelOrder,
    requestRefund,
    readRefund,
    startReconciliation,
    listReconciliations,
    readReconciliation,
    listEvents,
    timelineRoute,
    listCasesRoute,
    readCaseRoute,
    actOnCase,
    readOpsOrder,
    opsTimelineRoute,
    actOnOrder,
    listActsRoute,
    readActRoute,
    confirmRoute,
    searchRoute,
    stuckRoute,
    listNotificationsRoute,
    readNotificationRoute,
    resendNotificationRoute,
  ];
}
