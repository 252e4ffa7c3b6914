import type { ApiRoute } from '../route';
import { cancelOrder } from './cancel';
import { listEvents } from './events';
import {
  listNotificationsRoute,
  readNotificationRoute,
  resendNotificationRoute,
} from './ops-notifications';
import { createOrder, listOrdersRoute, readOrderRoute } from './orders';
import { payOrder } from './payments';
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
    listEvents,
    listNotificationsRoute,
    readNotificationRoute,
    resendNotificationRoute,
  ];
}
