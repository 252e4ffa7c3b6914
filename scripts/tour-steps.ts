import assert from 'node:assert/strict';
import { readChannelBooks } from './books/channel-books';
import { checkBooks } from './books/check';
import { lineOf } from './books/findings';
import { readJournal } from './books/journal';
import { waitFor } from './servers/wait';
import { RECONCILIATION } from './tour-reconciliation';
import type { TourShop, TourStep } from './tour-shop';

const CLICKS = 10;
const COPIES = 20;
/** The order that the first steps follow from its first click to its last. */
const plain = { orderId: '', outTradeNo: '' };

export const TOUR: readonly TourStep[] = [
  {
    title: 'The shop creates an order, and its retry creates it again',
    async run(shop) {
      plain.orderId = await shop.createOrder('plain');
      const again = await shop.postOrder(plain.orderId);
      assert.equal(again.status, 200);
      return '201, then 200: one order';
    },
  },
  {
    title: `A payer clicks ${CLICKS} times at once, each click with a number of its own`,
    async run(shop) {
      const clicks = Array.from({ length: CLICKS }, (_, i) =>
        shop.pay(plain.orderId, `click-${i + 1}`),
      );
      const numbers = new Set((await Promise.all(clicks)).map(({ body }) => body['out_trade_no']));
      plain.outTradeNo = await shop.number(plain.orderId);
      assert.deepEqual([...numbers], [plain.outTradeNo]);
      const books = await shop.books(plain.orderId);
      assert.equal((await shop.attempts(plain.orderId)).length, 1);
      assert.equal(books.trades, 1);
      assert.deepEqual(books.createNumbers, [plain.outTradeNo]);
      return `one attempt, one number, one trade at the channel: ${plain.outTradeNo}`;
    },
  },
  {
    title: 'The payer pays and the channel calls back',
    async run(shop) {
      await shop.channel.approve(plain.outTradeNo);
      await shop.until(plain.orderId, 'paid');
      const books = await shop.books(plain.orderId);
      assert.equal(books.captures.count, 1);
      assert.deepEqual(books.netMinor, { CNY: 10_000 });
      return 'paid: the channel holds one capture of 100.00 CNY';
    },
  },
  {
    title: `The channel sends the same callback ${COPIES} times more`,
    async run(shop) {
      const { orderId, outTradeNo } = plain;
      await shop.untilDone(orderId);
      // The run may still be writing its last lines.
      const before = await waitFor('the run to rest', 30_000, async () => {
        const first = await shop.transitions(orderId);
        return (await shop.transitions(orderId)) === first && first;
      });
      const sent = await shop.channel.sendCallback({ outTradeNo, copies: COPIES });
      assert.equal(sent.filter(({ acknowledged }) => acknowledged).length, COPIES);
      await shop.untilDone(orderId);
      assert.equal(await shop.transitions(orderId), before);
      return `${COPIES} acknowledged, and the workflow still has its ${before} state transitions`;
    },
  },
  {
    title: 'The shop is told that it was paid',
    async run(shop) {
      const told = shop.stack.merchant.acted(plain.orderId, 'order.paid');
      assert.equal(told.length, 1);
      assert.equal(shop.stack.merchant.refusedSignatures, 0);
      return `order.paid once, as ${told[0]?.id}, with a good signature`;
    },
  },
  {
    title: 'The same order, and a new payment of it, after it was paid',
    async run(shop) {
      const callsBefore = (await shop.books(plain.orderId)).calls;
      const order = await shop.postOrder(plain.orderId);
      const payment = await shop.pay(plain.orderId, 'much-later');
      assert.deepEqual([order.status, payment.status], [200, 200]);
      assert.equal(payment.body['out_trade_no'], plain.outTradeNo);
      assert.deepEqual((await shop.books(plain.orderId)).calls, callsBefore);
      return '200 with the payment that is there; the channel was not even asked';
    },
  },
  {
    title: 'A request is repeated under its Idempotency-Key, after the payer has paid',
    async run(shop) {
      const orderId = await shop.createOrder('key');
      const path = `/v1/orders/${orderId}/payments`;
      const key = `key-${shop.mark}`;
      const first = await shop.post(path, { channel: 'mock-b' }, key);
      await shop.channel.approve(await shop.number(orderId));
      await shop.until(orderId, 'paid');
      const again = await shop.post(path, { channel: 'mock-b' }, key);
      assert.deepEqual([again.status, again.replayed], [200, true]);
      assert.equal(again.body['out_trade_no'], first.body['out_trade_no']);
      assert.equal(again.body['status'], 'paid');
      return `${first.status}, then 200 replayed, and it says "paid" by now: a repeat hides nothing`;
    },
  },
  {
    title: 'The channel takes the money, and its answer is lost on the way',
    async run(shop) {
      const orderId = await shop.createOrder('lost-answer');
      await shop.channel.addFault({
        match: { operation: 'create', tag: orderId },
        times: 1,
        do: { captureNow: true, answer: 'drop' },
      });
      const { status } = await shop.pay(orderId, 'click-1');
      assert.ok([200, 201, 202].includes(status), `the answer was ${status}`);
      await shop.until(orderId, 'paid');
      const books = await shop.books(orderId);
      assert.deepEqual([books.captures.count, books.calls.create], [1, 1]);
      return 'unknown is not failed, and nothing was sent twice: one call, one capture';
    },
  },
  {
    title: 'The payer leaves one channel and pays at another',
    async run(shop) {
      const orderId = await shop.createOrder('two-channels');
      await shop.pay(orderId, 'at-a', 'mock-a');
      await waitFor('the second channel to be open', 60_000, async () => {
        const { status } = await shop.pay(orderId, 'at-b', 'mock-b');
        return status === 201 || status === 200;
      });
      const states = (await shop.attempts(orderId)).map((a) => `${a.channel} ${a.status}`);
      assert.deepEqual(states, ['mock-a closed', 'mock-b pending']);
      const [first] = await shop.attempts(orderId);
      const trade = await shop.channel.trade(first?.outTradeNo ?? '');
      assert.equal(trade.status, 'closed');
      await shop.channel.approve(await shop.number(orderId));
      await shop.until(orderId, 'paid');
      assert.equal((await shop.books(orderId)).captures.count, 1);
      return 'the first was closed at its channel before the second opened; one capture';
    },
  },
  {
    title: 'A refund is asked for twice under one number',
    async run(shop) {
      const { orderId } = await shop.paidOrder('refund');
      const answers = [
        await shop.refund(orderId, 'R1', 3_000),
        await shop.refund(orderId, 'R1', 3_000),
      ];
      await shop.untilDone(orderId);
      const books = await shop.books(orderId);
      assert.deepEqual(
        answers.map(({ status }) => status),
        [201, 200],
      );
      assert.deepEqual(books.refunds, { count: 1, sums: { CNY: 3_000 } });
      assert.deepEqual(await shop.refunds(orderId), [
        { refundNo: 'R1', status: 'succeeded', amountMinor: 3_000 },
      ]);
      return '201, then 200: the channel paid back 30.00 CNY once';
    },
  },
  {
    title: 'Two refunds at once that together exceed the payment',
    async run(shop) {
      const { orderId } = await shop.paidOrder('refunds');
      const answers = await Promise.all([
        shop.refund(orderId, 'RA', 6_000),
        shop.refund(orderId, 'RB', 6_000),
      ]);
      await shop.untilDone(orderId);
      assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 422]);
      assert.deepEqual((await shop.books(orderId)).refunds, { count: 1, sums: { CNY: 6_000 } });
      return 'one 201, one 422: 60.00 of 100.00 CNY went back';
    },
  },
  {
    title: 'The channel takes the money a second time',
    async run(shop) {
      const { orderId, outTradeNo } = await shop.paidOrder('second-capture');
      await shop.channel.capture({ outTradeNo });
      await refundedByItself(shop, orderId);
      const books = await shop.books(orderId);
      assert.deepEqual([books.captures.count, books.netMinor], [2, { CNY: 10_000 }]);
      assert.equal(await shop.status(orderId), 'paid');
      return 'refunded by itself: two captures, one refund, the shop keeps 100.00 CNY';
    },
  },
  {
    title: 'Money arrives for an order that was cancelled',
    async run(shop) {
      const orderId = await shop.createOrder('late');
      await shop.pay(orderId, 'click-1');
      const outTradeNo = await shop.number(orderId);
      await shop.cancel(orderId);
      await shop.until(orderId, 'closed');
      await shop.channel.capture({ outTradeNo });
      await refundedByItself(shop, orderId);
      assert.deepEqual((await shop.books(orderId)).netMinor, { CNY: 0 });
      assert.equal(await shop.status(orderId), 'closed');
      return 'refunded by itself: the order stays closed, nothing is kept';
    },
  },
  {
    title: 'Another amount arrives than was due',
    async run(shop) {
      const orderId = await shop.createOrder('amount');
      await shop.pay(orderId, 'click-1');
      await shop.channel.capture({ outTradeNo: await shop.number(orderId), amountMinor: 9_000 });
      await shop.until(orderId, 'review');
      const [held] = await shop.openCases(orderId);
      assert.match(held?.summary ?? '', /9000 CNY.*10000 CNY/);
      assert.deepEqual(shop.stack.merchant.acted(orderId, 'order.paid'), []);
      return 'not called paid: a case shows both figures to a person';
    },
  },
  {
    title: 'A paid order is fulfilled in three steps; of the next one the last step is refused',
    async run(shop) {
      const { steps, acted } = shop.stack.merchant;
      await shop.fulfilWith(['reserve', 'grant', 'ship']);
      try {
        const good = await shop.paidOrder('delivered');
        assert.equal(await shop.fulfilment(good.orderId), 'done');
        assert.deepEqual(steps.story(good.orderId), ['do reserve', 'do grant', 'do ship']);
        // An answer that comes too late is asked for again; a refusal undoes what was done.
        steps.behave = ({ call, step, copy }) => {
          if (call === 'do' && step === 'ship') return { status: 422 };
          return step === 'grant' && copy === 1 ? { holdMs: 20_000 } : {};
        };
        const { orderId } = await shop.paidOrder('refused');
        assert.equal(await shop.fulfilment(orderId), 'failed');
        assert.deepEqual(steps.standing(orderId), []);
        assert.equal(steps.badSignatures, 0);
        assert.equal(acted(orderId, 'order.fulfilment_failed').length, 1);
        const books = await shop.books(orderId);
        assert.deepEqual([books.refunds.count, books.netMinor], [1, { CNY: 0 }]);
        return `${steps.story(orderId).join(', ')}; then 100.00 CNY went back, once`;
      } finally {
        steps.behave = () => ({});
        await shop.fulfilWith([]);
      }
    },
  },
  {
    title: 'The worker is killed (kill -9) while the channel is being called',
    async run(shop) {
      const orderId = await shop.createOrder('crash');
      await shop.channel.addFault({
        match: { operation: 'create', tag: orderId },
        times: 1,
        do: { delayBeforeAnswerMs: 3_000 },
      });
      const paying = shop.pay(orderId, 'click-1').catch(() => undefined);
      await waitFor('the call to reach the channel', 30_000, async () => {
        return (
          (await shop.attempts(orderId)).length > 0 && (await shop.books(orderId)).trades === 1
        );
      });
      await shop.stack.worker.kill();
      await shop.channel.approve(await shop.number(orderId));
      await shop.stack.restartWorker();
      await paying;
      await shop.until(orderId, 'paid');
      await shop.untilDone(orderId);
      const books = await shop.books(orderId);
      assert.deepEqual([books.trades, books.captures.count], [1, 1]);
      assert.equal(shop.stack.merchant.acted(orderId, 'order.paid').length, 1);
      return 'a new worker went on where it stopped: one number, one capture, told once';
    },
  },
  ...RECONCILIATION,
  {
    title: 'Database, channel and Temporal are compared with everything that must always hold',
    async run(shop) {
      const { stack } = shop;
      let checked = 0;
      await waitFor('all invariants to hold', 30_000, async () => {
        const findings = await checkBooks({
          pool: shop.pool,
          client: shop.temporal,
          channelBooks: () => readChannelBooks(stack.mockChannel.controlUrl),
          merchantIds: [stack.demo.merchantId],
          journal: readJournal(stack.journalFile),
          received: stack.merchant.received,
          effects: stack.merchant.steps.effects,
        });
        checked = findings.checked;
        if (findings.violations.length === 0) return true;
        throw new Error(findings.violations.map(lineOf).join('\n'));
      });
      return `check:books: ${checked} checked, 0 violated`;
    },
  },
];

/** Until the system has given surplus money back, without being asked. */
async function refundedByItself(shop: TourShop, orderId: string): Promise<void> {
  await waitFor(`${orderId} to be refunded by itself`, 60_000, async () => {
    const refunds = await shop.refunds(orderId);
    return refunds.length === 1 && refunds[0]?.status === 'succeeded';
  });
  await shop.untilDone(orderId);
  const [refund] = await shop.refunds(orderId);
  assert.match(refund?.refundNo ?? '', /^auto:/);
}
