import { setTimeout as delay } from 'node:timers/promises';
import { Client } from '@temporalio/client';
import { channelNewsSignal, nudgeSignal } from '../../workflows/messages';
import { ORDER_WORKFLOW_TYPE, orderStartOptions } from '../../workflows/start-options';
import { expectAlwaysTrue, figuresOf, historiesOf, money, outTradeNoOf } from '../support/figures';
import { inParallel } from '../support/in-parallel';
import { signalsOf } from '../support/order-trace';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

const FULL = process.env['FULL'] !== undefined;
const ONCE = money(1, 10_000);
/** Who sends the stream, as the histories name it. */
const STREAM = 'the stream of B106';

describe('signals', () => {
  let saga: Saga;
  beforeAll(async () => {
    // Nothing but a signal wakes an order: no poll, no relay and no sweep within the test's time.
    saga = await Saga.start({
      policy: { pollLadderMs: [120_000] },
      env: { RELAY_EVERY_MS: '60000', SWEEP_EVERY_MS: '600000' },
    });
  });
  afterAll(() => saga?.stop());

  const rounds = FULL ? 200 : 16;
  it(
    `B104: what is acknowledged in the moment of completion takes effect, ${rounds} times`,
    async () => {
      const promised: number[] = [];
      await inParallel([...Array(rounds).keys()], 8, async (round) => {
        promised.push(await completeWithCompany(round));
      });
      expect(promised).toHaveLength(rounds);
      // Every second round asks once the order is paid: those refunds cannot be refused.
      const total = promised.reduce((sum, count) => sum + count, 0);
      expect(total).toBeGreaterThanOrEqual(rounds / 2);
    },
    FULL ? 600_000 : 240_000,
  );

  /**
   * Success, and within 5 ms a refund, a cancel and a second callback: before the success is settled
   * in even rounds, right after it (while the run tells the merchant and ends) in odd ones.
   *
   * @returns how many refunds were promised
   */
  async function completeWithCompany(round: number): Promise<number> {
    const orderId = await saga.createOrder();
    const outTradeNo = outTradeNoOf(saga, orderId);
    await saga.mock.addFault({
      match: { operation: 'callback', outTradeNo, kind: 'payment' },
      times: 1,
      do: { hold: true },
    });
    await saga.pay(orderId);
    await saga.mock.approve(outTradeNo);
    await waitFor('the success is held', async () =>
      (await saga.mock.heldCallbacks()).some((held) => held.outTradeNo === outTradeNo),
    );
    const success = saga.mock.releaseCallbacks({ order: 'fifo', outTradeNo });
    if (round % 2 === 1) await saga.untilOrder(orderId, 'paid');
    else await delay(round % 6);
    const [refund, cancel, second, first] = await Promise.all([
      saga.refund(orderId, 'R1', 3_000),
      saga.cancel(orderId),
      saga.mock.resendCallback({ outTradeNo, newNotifyId: true }),
      success,
    ]);

    for (const delivery of [...first, ...second]) expect(delivery.httpStatus).toBe(200);
    // 422: the order was not paid yet, so nothing was promised.
    expect([201, 409, 422, 503]).toContain(refund.status);
    if (round % 2 === 1) expect(refund.status).toBe(201);
    expect([202, 409, 503]).toContain(cancel.status);
    await saga.untilOrder(orderId, 'paid');
    const isPromised = refund.status === 201;
    if (isPromised) await saga.untilRefund(orderId, 'R1', 'succeeded');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'paid',
      cap: ONCE,
      ref: isPromised ? money(1, 3_000) : money(0, 0),
      rows: 1,
      settling: 1,
      evt: 1,
      review: 0,
    });
    const unread = await saga.rows(
      `select status from channel_callbacks where order_id = $1::text and status = 'stored'`,
      orderId,
    );
    expect(unread).toEqual([]);
    return isPromised ? 1 : 0;
  }

  const seconds = FULL ? [60, 60] : [3, 5];
  it(
    'B106: a stream of 5, then 50 signals a second neither stops nor loses anything',
    async () => {
      const orderId = await saga.createOrder();
      const answer = await saga.pay(orderId);
      const outTradeNo = answer.body.out_trade_no as string;
      const { connection, options } = saga.client;
      const sender = new Client({ connection, namespace: options.namespace, identity: STREAM });
      const start = orderStartOptions(
        {
          merchantId: saga.merchantId,
          orderId,
          amountMinor: 10_000,
          currency: 'CNY',
          status: 'paying',
        },
        saga.taskQueue,
      );
      let sent = 0;
      const sending: Promise<unknown>[] = [];
      /** One signal every 1000 / perSecond ms, whether or not the ones before have arrived. */
      async function stream(perSecond: number, forSeconds: number, until?: () => Promise<boolean>) {
        const begun = Date.now();
        for (let i = 0; i < perSecond * forSeconds; i++) {
          const signal = sent++ % 2 === 0 ? nudgeSignal : channelNewsSignal;
          sending.push(
            sender.workflow.signalWithStart(ORDER_WORKFLOW_TYPE, {
              ...start,
              signal,
              signalArgs: [],
            }),
          );
          // The pace is what the scenario is about.
          await delay(Math.max(0, begun + ((i + 1) * 1_000) / perSecond - Date.now()));
          if (i % perSecond === 0 && (await until?.())) return;
        }
      }

      const [slow = 0, fast = 0] = seconds;
      const told = saga.mock.sendCallback({ outTradeNo, word: 'ODD_ONE' });
      await stream(5, slow);
      const oddTwo = saga.mock.sendCallback({ outTradeNo, word: 'ODD_TWO' });
      await stream(50, fast);
      // The money arrives while the stream goes on, and the stream ends with the order paid.
      await saga.mock.approve(outTradeNo);
      await stream(50, 20, async () => (await saga.order(orderId)).status === 'paid');
      await Promise.all(sending);
      for (const [delivery] of [await told, await oddTwo]) expect(delivery?.httpStatus).toBe(200);

      await saga.untilOrder(orderId, 'paid');
      await expectAlwaysTrue(saga, orderId);
      await waitFor('the last run is over', async () => {
        const { status } = await saga.handle(orderId).describe();
        return status.name !== 'RUNNING';
      });
      expect(await signalsOf(saga, orderId, STREAM)).toBe(sent);
      expect(sent).toBeGreaterThanOrEqual(5 * slow + 50 * fast);
      const histories = await historiesOf(saga, orderId);
      const continued = histories.filter((events) =>
        events.some((event) => event.workflowExecutionContinuedAsNewEventAttributes),
      );
      expect(continued.length).toBeGreaterThanOrEqual(1);
      for (const events of histories) expect(events.length).toBeLessThan(1_000);
      const callbacks = await saga.rows<{ status: string }>(
        `select status from channel_callbacks where our_no = $1::text`,
        outTradeNo,
      );
      expect(callbacks.map(({ status }) => status)).toEqual(['applied', 'applied', 'applied']);
      expect(await figuresOf(saga, orderId)).toMatchObject({
        status: 'paid',
        trades: 1,
        cap: ONCE,
        calls: 1,
        rows: 1,
        settling: 1,
        evt: 1,
      });
    },
    FULL ? 300_000 : 180_000,
  );
});
