import type { BrowserContextOptions, Page } from 'playwright-core';
import { payButton, shows } from './payer';
import type { Payers } from './payer';

/** Opens a page and brings it to one state. */
export type ReachState = (payers: Payers, options: BrowserContextOptions) => Promise<Page>;

const SUBJECT = { subject: 'Two oak chairs, oiled' };

async function held(payers: Payers, options: BrowserContextOptions, amountMinor: number) {
  const { saga } = payers;
  const orderId = await saga.createOrder(SUBJECT);
  await saga.pay(orderId);
  await saga.mock.capture({ outTradeNo: await saga.outTradeNo(orderId), amountMinor });
  await saga.untilOrder(orderId, 'review');
  return payers.at(orderId, options);
}

/** Every page that a payer sees, in each of its states; the page is there when it resolves. */
export const PAYER_STATES: Readonly<Record<string, ReachState>> = {
  choosing: async (payers, options) => payers.at(await payers.saga.createOrder(SUBJECT), options),
  going: async (payers, options) => {
    const orderId = await payers.saga.createOrder(SUBJECT);
    await payers.saga.pay(orderId);
    const page = await payers.at(orderId, options);
    await shows(page, 'going');
    return page;
  },
  code: async (payers, options) => {
    const orderId = await payers.saga.createOrder(SUBJECT);
    await payers.saga.pay(orderId, 'K1', { channel: 'mock-b' });
    const page = await payers.at(orderId, options);
    await page.locator('.qr svg').waitFor();
    return page;
  },
  waiting: async (payers, options) => {
    const orderId = await payers.saga.createOrder(SUBJECT);
    await payers.saga.pay(orderId);
    const outTradeNo = await payers.saga.outTradeNo(orderId);
    // The channel does not say what became of closing it.
    await payers.saga.mock.addFault({
      match: { operation: 'any', outTradeNo },
      times: 60,
      do: { answer: 'http', status: 500 },
    });
    await payers.saga.cancel(orderId);
    const page = await payers.at(orderId, options);
    await shows(page, 'waiting');
    return page;
  },
  again: async (payers, options) => {
    const page = await payers.at(await payers.saga.createOrder(SUBJECT), options);
    await payButton(page).click();
    await page.getByRole('button', { name: 'Decline' }).click();
    await shows(page, 'again');
    return page;
  },
  paid: async (payers, options) => {
    const { orderId } = await payers.saga.paidOrder(SUBJECT);
    return payers.at(orderId, options);
  },
  refunded: async (payers, options) => {
    const { orderId } = await payers.saga.paidOrder(SUBJECT);
    await payers.saga.refund(orderId, 'R1');
    await payers.saga.untilRefund(orderId, 'R1', 'succeeded');
    return payers.at(orderId, options);
  },
  closed: async (payers, options) => {
    const orderId = await payers.saga.createOrder(SUBJECT);
    await payers.saga.cancel(orderId);
    await payers.saga.untilOrder(orderId, 'closed');
    return payers.at(orderId, options);
  },
  expired: async (payers, options) => {
    const orderId = await payers.saga.createOrder({ ...SUBJECT, expires_in: 1 });
    await payers.saga.untilOrder(orderId, 'closed');
    return payers.at(orderId, options);
  },
  review: (payers, options) => held(payers, options, 9_000),
  unknown: async (payers, options) => {
    const page = await (await payers.context(options)).newPage();
    await page.goto(`${payers.saga.apis[0]!.url}/pay/${'0'.repeat(64)}`);
    return page;
  },
  channel: async (payers, options) => {
    const page = await payers.at(await payers.saga.createOrder(SUBJECT), options);
    await payButton(page).click();
    await page.getByRole('button', { name: 'Pay twice on purpose' }).waitFor();
    return page;
  },
};
