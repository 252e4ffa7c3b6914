import type { Delivery } from '../../mock-channel/control-types';
import type { Saga } from './saga';
import { waitFor } from './wait';

/** A word of the channel in each dialect's spelling. */
export const WORDS = {
  'mock-a': { paid: 'TRADE_SUCCESS', closed: 'TRADE_CLOSED' },
  'mock-b': { paid: 'SUCCESS', closed: 'CLOSED' },
} as const;

/** The deliveries of a trade, once at least `count` of them have been answered. */
export function untilDelivered(saga: Saga, outTradeNo: string, count = 1): Promise<Delivery[]> {
  return waitFor(`${count} callbacks of ${outTradeNo} answered`, async () => {
    const deliveries = await saga.mock.deliveries({ outTradeNo });
    return deliveries.length >= count && deliveries;
  });
}

/** What the inbox keeps of an order, oldest first. */
export function inbox(saga: Saga, orderId: string) {
  return saga.rows<{ status: string; verdict: string | null; copies: number }>(
    `select status, verdict, copies from channel_callbacks
     where merchant_id = $1::text and order_id = $2::text order by callback_id`,
    saga.merchantId,
    orderId,
  );
}
