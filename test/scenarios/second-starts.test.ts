import { expectAlwaysTrue, figuresOf, historiesOf, money, outTradeNoOf } from '../support/figures';
import { forgetRun, FORGET_BOUND_MS } from '../support/forget-run';
import { Saga } from '../support/saga';
import type { Answer } from '../support/saga';
import { waitFor } from '../support/wait';

const ONCE = money(1, 10_000);
const NONE = money(0, 0);

describe('second starts', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start({ apis: 2 });
  });
  afterAll(() => saga?.stop());

  const statusesOf = (answers: Answer[]) => answers.map(({ status }) => status).sort();
  const twentyTimes = (pay: (click: number) => Promise<Answer>) =>
    Promise.all(Array.from({ length: 20 }, (_, click) => pay(click)));
  /** The order has nothing left to do and its run is over. */
  async function untilRunEnds(orderId: string) {
    await saga.untilSettled(orderId);
    await waitFor(`the run of ${orderId} is over`, async () => {
      const { status } = await saga.handle(orderId).describe();
      return status.name !== 'RUNNING';
    });
  }
  /** Activities of the order's newest run, those of the database among them, in order. */
  async function stepsOfNewestRun(orderId: string): Promise<string[]> {
    const { events } = await saga.handle(orderId).fetchHistory();
    return (events ?? []).flatMap((event) => {
      const name = event.activityTaskScheduledEventAttributes?.activityType?.name;
      if (name != null) return [name];
      const marked = event.markerRecordedEventAttributes?.details?.['data']?.payloads?.[0]?.data;
      if (marked == null) return [];
      return [
        (JSON.parse(Buffer.from(marked).toString()) as { activity_type: string }).activity_type,
      ];
    });
  }

  it('B102: after a paid order has ended every request finds its payment', async () => {
    const { orderId, outTradeNo } = await saga.paidOrder();
    await untilRunEnds(orderId);
    const paid = { order_status: 'paid', status: 'paid', out_trade_no: outTradeNo };
    expect(await saga.pay(orderId, 'K1')).toMatchObject({ status: 200, body: paid });
    expect(await saga.pay(orderId, 'K2')).toMatchObject({ status: 200, body: paid });
    const answers = await twentyTimes((click) => saga.pay(orderId, click % 2 ? 'K1' : `N${click}`));
    expect(statusesOf(answers)).toEqual(Array(20).fill(200));
    for (const { body } of answers) expect(body).toMatchObject(paid);
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      trades: 1,
      cap: ONCE,
      calls: 1,
      numbers: [outTradeNo],
      rows: 1,
      settling: 1,
      evt: 1,
      runs: 1,
    });
  });

  it('B102: a failed attempt stays failed, and of 20 new requests exactly one opens another', async () => {
    const orderId = await saga.createOrder();
    const first = outTradeNoOf(saga, orderId, 'K1');
    await saga.pay(orderId, 'K1');
    await saga.mock.decline(first);
    await waitFor('the attempt failed', async () =>
      (await saga.records(orderId)).some((record) => record.status === 'failed'),
    );
    expect(await saga.pay(orderId, 'K1')).toMatchObject({
      status: 200,
      body: { out_trade_no: first, status: 'failed', order_status: 'paying' },
    });
    const answers = await twentyTimes((click) => saga.pay(orderId, `N${click}`));
    expect(statusesOf(answers)).toEqual([...Array<number>(19).fill(200), 201]);
    const second = [...new Set(answers.map(({ body }) => body.out_trade_no as string))];
    expect(second).toHaveLength(1);
    expect(second).not.toContain(first);
    await saga.mock.approve(second[0] as string);
    await saga.untilOrder(orderId, 'paid');
    await untilRunEnds(orderId);
    expect(statusesOf(await twentyTimes((n) => saga.pay(orderId, `N${n}`)))).toEqual(
      Array(20).fill(200),
    );
    await expectAlwaysTrue(saga, orderId);
    expect((await saga.records(orderId)).map(({ status }) => status)).toEqual(['failed', 'paid']);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      trades: 2,
      cap: ONCE,
      calls: 2,
      rows: 1,
      settling: 1,
      evt: 1,
    });
  });

  it('B102: a closed order answers the old request with its record and any new one 409', async () => {
    const orderId = await saga.createOrder();
    const outTradeNo = outTradeNoOf(saga, orderId);
    await saga.pay(orderId, 'K1');
    await saga.cancel(orderId);
    await saga.untilOrder(orderId, 'closed');
    await untilRunEnds(orderId);
    expect(await saga.pay(orderId, 'K1')).toMatchObject({
      status: 200,
      body: { out_trade_no: outTradeNo, status: 'closed', order_status: 'closed' },
    });
    expect(await saga.pay(orderId, 'K2')).toMatchObject({
      status: 409,
      body: { code: 'order_closed' },
    });
    const answers = await twentyTimes((click) => saga.pay(orderId, `N${click}`));
    expect(statusesOf(answers)).toEqual(Array(20).fill(409));
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'closed',
      trades: 1,
      cap: NONE,
      calls: 1,
      rows: 0,
      evt: 0,
    });
  });

  it('B102: a refunded order answers the old request with its record and any new one 409', async () => {
    const { orderId, outTradeNo } = await saga.paidOrder();
    await saga.refund(orderId, 'R1');
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await untilRunEnds(orderId);
    expect(await saga.pay(orderId, 'K1')).toMatchObject({
      status: 200,
      body: { out_trade_no: outTradeNo, status: 'paid', order_status: 'paid' },
    });
    expect(await saga.pay(orderId, 'K2')).toMatchObject({
      status: 409,
      body: { code: 'order_refunded' },
    });
    const answers = await twentyTimes((click) => saga.pay(orderId, `N${click}`));
    expect(statusesOf(answers)).toEqual(Array(20).fill(409));
    await expectAlwaysTrue(saga, orderId);
    expect((await saga.order(orderId)).refund_status).toBe('full');
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'paid',
      trades: 1,
      cap: ONCE,
      ref: ONCE,
      calls: 1,
      evt: 1,
    });
  });

  it('B102: after a terminated run the next one asks database and channel before anything else', async () => {
    const orderId = await saga.createOrder();
    const outTradeNo = outTradeNoOf(saga, orderId);
    await saga.mock.addFault({ match: { operation: 'callback', outTradeNo }, do: { drop: true } });
    await saga.pay(orderId, 'K1');
    await saga.handle(orderId).terminate('an operator ended it');
    await saga.mock.approve(outTradeNo);
    const answers = await twentyTimes((click) => saga.pay(orderId, click % 2 ? 'K1' : `N${click}`));
    expect(statusesOf(answers)).toEqual(Array(20).fill(200));
    for (const { body } of answers) expect(body.out_trade_no).toBe(outTradeNo);
    await saga.untilOrder(orderId, 'paid');
    await untilRunEnds(orderId);
    await expectAlwaysTrue(saga, orderId);
    const runs = await historiesOf(saga, orderId);
    expect(runs.length).toBeGreaterThanOrEqual(2);
    const steps = (await stepsOfNewestRun(orderId)).filter((step) => !step.startsWith('deliver'));
    expect(steps[0]).toBe('loadOrder');
    expect(steps).not.toContain('submitPayment');
    const settled = runs
      .flat()
      .filter(
        (event) =>
          event.activityTaskScheduledEventAttributes?.activityType?.name === 'submitPayment',
      );
    expect(settled).toHaveLength(1);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      trades: 1,
      cap: ONCE,
      calls: 1,
      rows: 1,
      settling: 1,
      evt: 1,
    });
  });

  it(
    'B103: with its run forgotten by the server an order is still paid once',
    async () => {
      const { orderId, outTradeNo } = await saga.paidOrder();
      await untilRunEnds(orderId);
      const forgotten = await forgetRun(saga, orderId);

      const paid = { order_status: 'paid', status: 'paid', out_trade_no: outTradeNo };
      expect(await saga.pay(orderId, 'K1')).toMatchObject({ status: 200, body: paid });
      expect(await saga.pay(orderId, 'K2')).toMatchObject({ status: 200, body: paid });
      const late = await saga.mock.resendCallback({ outTradeNo, newNotifyId: true });
      expect(late.map(({ httpStatus, acknowledged }) => [httpStatus, acknowledged])).toEqual([
        [200, true],
      ]);
      expect((await saga.refund(orderId, 'R1', 3_000)).status).toBe(201);
      await saga.untilRefund(orderId, 'R1', 'succeeded');
      await expectAlwaysTrue(saga, orderId);
      const runs = (await saga.runs(orderId)).map(({ runId }) => runId);
      expect(runs).not.toContain(forgotten);
      expect(await figuresOf(saga, orderId)).toMatchObject({
        status: 'paid',
        trades: 1,
        cap: ONCE,
        ref: money(1, 3_000),
        calls: 1,
        rows: 1,
        settling: 1,
        evt: 1,
        runs: 0,
      });
      expect((await saga.order(orderId)).refund_status).toBe('partial');
    },
    2 * FORGET_BOUND_MS,
  );
});
