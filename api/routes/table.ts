import type { ApiRoute } from '../route';
import { cancelOrder } from './cancel';
import { createOrder, listOrdersRoute, readOrderRoute } from './orders';
import { payOrder } from './payments';
import { listReconciliations, readReconciliation, startReconciliation } from './reconciliations';
import { readRefund, requestRefund } from './refunds';

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
  ];
}
