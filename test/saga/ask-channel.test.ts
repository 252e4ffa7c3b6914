import { askChannelSignal } from '../../workflows/messages';
import type { AskChannel } from '../../workflows/messages';
import { orderStartOptions } from '../../workflows/start-options';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

/** No poll and no callback tells anything in this file: only what is asked for does. */
const HALF_AN_HOUR_MS = 1_800_000;

describe('a run that is asked to ask the channel', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start({
      policy: { pollLadderMs: [HALF_AN_HOUR_MS], refundLadderMs: [HALF_AN_HOUR_MS] },
    });
    await saga.mock.addFault({
      match: { operation: 'callback', tag: 'silent' },
      do: { drop: true },
    });
  });
  afterAll(() => saga?.stop());

  async function ask(orderId: string, asked: AskChannel): Promise<void> {
    const [order] = await saga.rows<{ amountMinor: number; currency: string; status: 'paid' }>(
      `select amount_minor as "amountMinor", currency, status from orders
       where merchant_id = $1::text and order_id = $2::text`,
      saga.merchantId,
      orderId,
    );
    await saga.client.workflow.signalWithStart('orderPayment', {
      ...orderStartOptions({ merchantId: saga.merchantId, orderId, ...order! }, saga.taskQueue),
      signal: askChannelSignal,
      signalArgs: [asked],
    });
  }

  async function recordIds(orderId: string): Promise<number[]> {
    return (await saga.records(orderId)).map((record) => record.pay_record_id);
  }

  it('asks at once about an attempt that waits, and settles the answer', async () => {
    const orderId = await saga.createOrder({ subject: 'one #silent' });
    await saga.pay(orderId);
    await saga.mock.approve(await saga.outTradeNo(orderId));
    expect((await saga.order(orderId)).status).toBe('paying');
    const asked = { payRecordIds: await recordIds(orderId), refundNos: [] };
    await Promise.all([ask(orderId, asked), ask(orderId, asked)]);
    await saga.untilOrder(orderId, 'paid');
    await saga.untilSettled(orderId);
    expect(saga.merchant.effects(orderId, 'order.paid')).toHaveLength(1);
  });

  it('starts a run for a closed order, and late money is given back by the usual rules', async () => {
    const orderId = await saga.createOrder({ subject: 'late #silent' });
    await saga.pay(orderId);
    const outTradeNo = await saga.outTradeNo(orderId);
    await saga.cancel(orderId);
    await saga.untilOrder(orderId, 'closed');
    await saga.handle(orderId).result();
    await saga.mock.capture({ outTradeNo });
    await ask(orderId, { payRecordIds: await recordIds(orderId), refundNos: [] });
    await waitFor('it is refunded', async () => {
      return (await saga.books(orderId)).refunds.count === 1;
    });
    const [refund] = await saga.rows<{ refund_no: string }>(
      `select refund_no from refunds where merchant_id = $1::text and order_id = $2::text`,
      saga.merchantId,
      orderId,
    );
    // Its callback is dropped too: asked about like everything else.
    await ask(orderId, { payRecordIds: [], refundNos: [refund!.refund_no] });
    await saga.untilRefund(orderId, refund!.refund_no, 'succeeded');
    await saga.untilSettled(orderId);
    expect((await saga.order(orderId)).status).toBe('closed');
  });

  it('settles what the channel says of a refund that was final', async () => {
    const { orderId } = await saga.paidOrder({ subject: 'returned #quiet' });
    await saga.refund(orderId, 'R1', 3_000);
    await waitFor('it is executed', async () => (await saga.books(orderId)).refunds.count === 1);
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await saga.untilSettled(orderId);
    const calls = (await saga.books(orderId)).calls.refund_query;
    await ask(orderId, { payRecordIds: [], refundNos: ['R1'] });
    await waitFor('it was asked', async () => {
      return (await saga.books(orderId)).calls.refund_query > calls;
    });
    await saga.handle(orderId).result();
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    expect((await saga.books(orderId)).refunds).toEqual({ count: 1, sums: { CNY: 3_000 } });
  });

  it.each([
    ['nothing', undefined],
    ['other words', { payRecordIds: 'all' }],
    ['numbers that are none', { payRecordIds: [1.5, -1], refundNos: [] }],
    ['too many', { payRecordIds: Array.from({ length: 101 }, (_, i) => i + 1), refundNos: [] }],
    ['what is not this order’s', { payRecordIds: [999_999], refundNos: ['no-such-refund'] }],
  ])('goes on undisturbed when it is sent %s', async (_what, asked) => {
    const orderId = await saga.createOrder({ subject: 'odd #silent' });
    await saga.pay(orderId);
    await ask(orderId, asked as AskChannel);
    await saga.mock.approve(await saga.outTradeNo(orderId));
    await ask(orderId, { payRecordIds: await recordIds(orderId), refundNos: [] });
    await saga.untilOrder(orderId, 'paid');
    await saga.untilSettled(orderId);
    expect((await saga.runs(orderId)).map(({ status }) => status.name)).not.toContain('FAILED');
  });
});
