import { createChannelRegistry } from '../../channels/registry';
import { storeCallback } from '../../db/callbacks';
import { readChannelRows } from '../../db/channels';
import { aPaymentFact } from '../support/builders';
import { historiesOf, outTradeNoOf } from '../support/figures';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

const ORDERS = 20;
const UNMATCHED_CASE_AFTER_MS = 1_000;
/** The relay looks after numbers nobody knows every ten seconds. */
const ORPHANS_WITHIN_MS = 25_000;

describe('the relay', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start({
      workers: 2,
      // What is settled here was settled because somebody rang, not because it was asked about.
      policy: { pollLadderMs: [1_800_000], unmatchedCaseAfterMs: UNMATCHED_CASE_AFTER_MS },
      env: { RELAY_EVERY_MS: '100' },
    });
  });
  afterAll(() => saga?.stop());

  async function rings(orderId: string): Promise<number> {
    return (await historiesOf(saga, orderId))
      .flat()
      .filter((e) => e.workflowExecutionSignaledEventAttributes?.signalName === 'channelNews')
      .length;
  }

  it('rings for stored callbacks that nobody rang for; two of them ring once', async () => {
    const orders = await Promise.all(
      Array.from({ length: ORDERS }, async () => {
        const orderId = await saga.createOrder();
        await saga.pay(orderId);
        return { orderId, outTradeNo: await saga.outTradeNo(orderId) };
      }),
    );
    for (const { outTradeNo } of orders) {
      await saga.mock.addFault({
        match: { operation: 'callback', outTradeNo },
        do: { drop: true },
      });
      await saga.mock.approve(outTradeNo);
    }
    // An API that commits each callback and dies before it rings.
    const ringing = await Promise.all(
      orders.map(async ({ outTradeNo }) => {
        const trade = await saga.mock.trade(outTradeNo);
        const fact = aPaymentFact({
          channel: 'mock-a',
          accountId: '2088000000000001',
          appId: 'app-a-1',
          outTradeNo,
          channelTradeNo: trade.channelTradeNo,
        });
        return (await storeCallback(saga.pool, fact, Buffer.from('{}'), () => false)).ring;
      }),
    );
    expect(ringing).toEqual(orders.map(() => true));
    for (const { orderId } of orders) expect((await saga.order(orderId)).status).toBe('paying');
    for (const { orderId } of orders) await saga.untilOrder(orderId, 'paid');
    for (const { orderId } of orders) await saga.untilSettled(orderId);
    const counts = await Promise.all(orders.map(({ orderId }) => rings(orderId)));
    expect(counts).toEqual(orders.map(() => 1));
    for (const { orderId } of orders) {
      expect(saga.merchant.effects(orderId, 'order.paid')).toHaveLength(1);
    }
  });

  it('makes a case of a number that nobody knows, after the bound, once, and starts no run', async () => {
    const outTradeNo = 'NOBODYKNOWSTHISNUMBER000000001';
    const [delivery] = await saga.mock.sendCallback({
      dialect: 'mock-a',
      outTradeNo,
      word: 'TRADE_SUCCESS',
      amountMinor: 100,
      currency: 'CNY',
      channelTradeNo: '2026000000000001',
    });
    expect(delivery).toMatchObject({ httpStatus: 200, acknowledged: true });
    const cases = () =>
      saga.rows<{ kind: string; order_id: string | null; aged: boolean }>(
        `select k.kind, k.order_id,
           k.opened_at >= b.received_at + make_interval(secs => $2::double precision / 1000) as aged
         from cases k join channel_callbacks b on b.our_no = k.subject_no
         where k.subject_no = $1::text`,
        outTradeNo,
        UNMATCHED_CASE_AFTER_MS,
      );
    await waitFor('a case', async () => (await cases()).length > 0, ORPHANS_WITHIN_MS);
    expect(await cases()).toEqual([{ kind: 'unknown_number', order_id: null, aged: true }]);
    const [row] = await saga.rows(
      `select status, merchant_id, order_id from channel_callbacks where our_no = $1::text`,
      outTradeNo,
    );
    expect(row).toEqual({ status: 'unmatched', merchant_id: null, order_id: null });
  });

  it('matches such a number when it appears, and the money reaches its order', async () => {
    // The channel knows a number that we do not: as after a database restored from a backup.
    const orderId = await saga.createOrder();
    const outTradeNo = outTradeNoOf(saga, orderId);
    const registry = createChannelRegistry({
      readRows: () => readChannelRows(saga.pool),
      env: saga.env,
      refreshAfterMs: 60_000,
    });
    const configured = await registry.get('mock-a');
    await configured!.channel.createPayment({
      outTradeNo,
      amountMinor: 10_000,
      currency: 'CNY',
      subject: `Order ${orderId}`,
      expiresAt: new Date(Date.now() + 600_000).toISOString(),
      method: null,
      returnUrl: null,
      clientIp: null,
      payer: null,
    });
    await saga.mock.approve({ outTradeNo, dialect: 'mock-a' });
    const inbox = () =>
      saga.rows<{ status: string; order_id: string | null }>(
        `select status, order_id from channel_callbacks where our_no = $1::text`,
        outTradeNo,
      );
    await waitFor('the callback is stored', async () => (await inbox()).length === 1);
    expect(await inbox()).toEqual([{ status: 'unmatched', order_id: null }]);
    expect((await saga.order(orderId)).status).toBe('created');
    const orphanCase = () =>
      saga.rows<{ status: string }>(
        `select status from cases where subject_no = $1::text and order_id is null`,
        outTradeNo,
      );
    await waitFor(
      'the orphan is a case',
      async () => (await orphanCase())[0]?.status === 'open',
      ORPHANS_WITHIN_MS,
    );

    // The number appears, and the channel keeps silent from now on: only the stored news can tell.
    await saga.mock.addFault({
      match: { operation: 'any', outTradeNo },
      do: { effect: 'none', answer: 'drop' },
    });
    // 202, or 200 when the relay was faster than the answer.
    expect([200, 202]).toContain((await saga.pay(orderId)).status);
    await saga.untilOrder(orderId, 'paid', ORPHANS_WITHIN_MS);
    expect(await inbox()).toEqual([{ status: 'applied', order_id: orderId }]);
    await saga.untilSettled(orderId);
    expect((await saga.books(orderId)).captures).toEqual({ count: 1, sums: { CNY: 10_000 } });
    expect(saga.merchant.effects(orderId, 'order.paid')).toHaveLength(1);
    await waitFor(
      'nobody needs to look at the number any more',
      async () => (await orphanCase())[0]?.status === 'closed',
      ORPHANS_WITHIN_MS,
    );
  });
});
