import type { Stack } from './servers/stack';
import { TourShop } from './tour-shop';

/** As long as an order may live: somebody opens the page after lunch. */
const OPEN_FOR_S = 7 * 24 * 60 * 60;
/** More than one operator may decide alone. Minor units. */
const DUE_MINOR = 200_000;
const CAME_MINOR = 150_000;

export interface DemoPages {
  /** The payer's page of an order that nobody has paid. */
  payUrl: string;
  /** At the desk: an order under review that two operators decide. */
  reviewUrl: string;
}

/** Leaves something to try on the pages: an order to pay, and one for which another amount came. */
export async function openDemoPages(stack: Stack): Promise<DemoPages> {
  const shop = await TourShop.open(stack);
  try {
    const open = await shop.post('/v1/orders', {
      order_id: `open-${shop.mark}`,
      amount: 10_000,
      currency: 'CNY',
      subject: 'Two cups, to be paid',
      expires_in: OPEN_FOR_S,
    });
    if (open.status !== 201) throw new Error(`POST /v1/orders answered ${open.status}`);
    const orderId = `review-${shop.mark}`;
    await shop.post('/v1/orders', {
      order_id: orderId,
      amount: DUE_MINOR,
      currency: 'CNY',
      subject: 'A table, of which only part was paid',
    });
    await shop.pay(orderId, 'click-1');
    await shop.channel.capture({ outTradeNo: await shop.number(orderId), amountMinor: CAME_MINOR });
    await shop.until(orderId, 'review');
    return {
      payUrl: String(open.body['pay_url']),
      reviewUrl: `${stack.api.url}/ops/ui/orders/${stack.demo.merchantId}/${orderId}`,
    };
  } finally {
    await shop.close();
  }
}
