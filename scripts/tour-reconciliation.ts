import assert from 'node:assert/strict';
import { addDays, dayAt } from '../domain/business-day';
import { waitFor } from './servers/wait';
import type { TourReport, TourShop, TourStep } from './tour-shop';

const CHANNEL = 'mock-b';
const DAY_MS = 86_400_000;

/** Yesterday, by the clocks of the demonstration's channels (scripts/seed.ts). */
const bill = { dialect: CHANNEL, day: addDays(dayAt(new Date(), 'UTC'), -1) } as const;
const injected = { lostOrderId: '' };

/** What the tour shows of reconciliation: yesterday's bill, spoilt on purpose, and what is made of it. */
export const RECONCILIATION: readonly TourStep[] = [
  {
    title:
      'Yesterday’s trade bill disagrees with our books in four places, and a dry run finds them',
    async run(shop) {
      await atYesterday(shop, () => disagree(shop));
      const found = await shop.reconcile(CHANNEL, bill.day, true);
      assert.equal(found.status, 'done');
      assert.deepEqual(standing(found), [
        'channel_only open',
        'channel_only open',
        'duplicate_row open',
        'fee open',
      ]);
      return `${found.bill?.rows} rows: a payment we lost, one of nobody’s, a row twice, a fee wrong by 0.01`;
    },
  },
  {
    title: 'The reconciliation repairs what the channel can answer, and shows the rest to a person',
    async run(shop) {
      const found = await shop.reconcile(CHANNEL, bill.day, false);
      assert.deepEqual(
        standing(found).filter((line) => !line.endsWith(' waiting')),
        ['channel_only case', 'duplicate_row case', 'fee case'],
      );
      await waitFor('the lost payment to be given back', 60_000, async () => {
        return (await shop.books(injected.lostOrderId)).refunds.count === 1;
      });
      await shop.untilDone(injected.lostOrderId);
      assert.equal(await shop.status(injected.lostOrderId), 'closed');
      return 'the lost payment of a cancelled order is found and given back by itself; 3 cases';
    },
  },
  {
    title: 'The channel corrects its bill, and the reconciliation finds nothing',
    async run(shop) {
      await shop.channel.resetBill(bill);
      const found = await shop.reconcile(CHANNEL, bill.day, false);
      assert.deepEqual(standing(found), []);
      return `${found.bill?.rows} rows, 0 differences; what was found before is marked resolved`;
    },
  },
];

/** Two payments of yesterday, one of which nobody told us, and a bill that is wrong about the other. */
async function disagree(shop: TourShop): Promise<void> {
  const { outTradeNo } = await paid(shop, 'billed');
  injected.lostOrderId = await shop.createOrder('unbilled');
  await shop.pay(injected.lostOrderId, 'click-1', CHANNEL);
  const lostNo = await shop.number(injected.lostOrderId);
  await shop.cancel(injected.lostOrderId);
  await shop.until(injected.lostOrderId, 'closed');
  await shop.channel.capture({ outTradeNo: lostNo, callback: false });
  await shop.channel.resetBill(bill);
  await shop.channel.changeBillRow(bill, { outTradeNo, kind: 'payment' }, { feeMinor: 61 });
  await shop.channel.addBillRow(bill, { kind: 'payment' });
  const { outTradeNo: twice } = await paid(shop, 'billed-twice');
  await shop.channel.duplicateBillRow(bill, { outTradeNo: twice, kind: 'payment' });
}

async function paid(shop: TourShop, name: string): Promise<{ outTradeNo: string }> {
  const orderId = await shop.createOrder(name);
  await shop.pay(orderId, 'click-1', CHANNEL);
  const outTradeNo = await shop.number(orderId);
  await shop.channel.approve(outTradeNo);
  await shop.until(orderId, 'paid');
  await shop.untilDone(orderId);
  return { outTradeNo };
}

/** The practice channel dates what happens meanwhile one day back. */
async function atYesterday(shop: TourShop, run: () => Promise<void>): Promise<void> {
  await shop.channel.configure({ businessClockOffsetMs: -DAY_MS });
  try {
    await run();
  } finally {
    await shop.channel.configure({ businessClockOffsetMs: 0 });
  }
}

function standing({ differences }: TourReport): string[] {
  return differences
    .filter(({ status }) => status !== 'resolved')
    .map(({ kind, status }) => `${kind} ${status}`)
    .sort();
}
