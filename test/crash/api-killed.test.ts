import { inbox } from '../support/callback-waits';
import { expectAlwaysTrue, figuresOf, money, outTradeNoOf } from '../support/figures';
import { SagaProcesses } from '../support/processes-saga';
import { refundRows } from '../support/refund-books';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

describe('an API killed between the commit and what follows it', () => {
  let saga: Saga;
  let processes: SagaProcesses;
  beforeAll(async () => {
    saga = await Saga.start({ policy: { pollLadderMs: [60_000] } });
    processes = new SagaProcesses(saga);
  });
  afterAll(async () => {
    await saga?.stop().finally(() => processes?.end());
  });

  /** Calls go to an API that is killed at the point; afterwards to the one that lives. */
  async function killedAt(point: string, call: () => Promise<unknown>): Promise<void> {
    const living = saga.apis;
    saga.apis = [];
    const api = await processes.startApi([point]);
    const cut = call().then(
      () => 'answered',
      () => 'cut off',
    );
    await processes.untilAt(api, point);
    await api.kill();
    saga.apis = living;
    await saga.pointCallbacks();
    expect(await cut).toBe('cut off');
  }

  async function runsWithoutRow(): Promise<string[]> {
    const rows = await saga.rows<{ order_id: string }>('select order_id from orders');
    const known = new Set(rows.map((row) => `order:${saga.merchantId}:${row.order_id}`));
    const found: string[] = [];
    for await (const run of saga.client.workflow.list({
      query: `MerchantId = '${saga.merchantId}' and WorkflowType = 'orderPayment'`,
    }))
      if (!known.has(run.workflowId)) found.push(run.workflowId);
    return found;
  }

  it('B128: an order whose run was never started is found by the sweep', async () => {
    const orderId = 'row-without-run';
    await killedAt('api:order-committed', () => saga.createOrder({ order_id: orderId }));
    expect((await saga.order(orderId)).status).toBe('created');
    expect(await saga.runs(orderId)).toEqual([]);
    // The repeat of the shop gets the same order; the sweep needs no repeat.
    const run = await waitFor('the sweep starts its run', () =>
      saga
        .handle(orderId)
        .describe()
        .catch(() => undefined),
    );
    expect(run.status.name).toBe('RUNNING');
    const repeat = await saga.call('POST', '/v1/orders', {
      order_id: orderId,
      amount: 10_000,
      currency: 'CNY',
      subject: `Order ${orderId}`,
    });
    expect(repeat.status).toBe(200);
    await saga.pay(orderId);
    await saga.mock.approve(await saga.outTradeNo(orderId));
    await expectPaidOnce(orderId);
    expect(await runsWithoutRow()).toEqual([]);
  });

  it('B128: a stored pay request that reached nobody is taken up by its repeat', async () => {
    const orderId = await saga.createOrder();
    await killedAt('api:request-stored', () => saga.pay(orderId));
    expect(await saga.records(orderId)).toEqual([]);
    expect((await saga.mock.summary({ outTradeNos: [outTradeNoOf(saga, orderId)] })).trades).toBe(
      0,
    );
    expect((await saga.pay(orderId)).status).toBe(201);
    await saga.mock.approve(await saga.outTradeNo(orderId));
    await expectPaidOnce(orderId);
  });

  it('B128: a stored refund request that reached nobody is taken up by its repeat', async () => {
    const { orderId } = await saga.paidOrder();
    await killedAt('api:request-stored', () => saga.refund(orderId, 'R1', 3_000));
    expect(await refundRows(saga, orderId)).toEqual([]);
    expect((await saga.refund(orderId, 'R1', 3_000)).status).toBe(201);
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    expect((await saga.refund(orderId, 'R1', 3_000)).status).toBe(200);
    await saga.untilSettled(orderId);
    expect(await refundRows(saga, orderId)).toHaveLength(1);
    const books = await saga.books(orderId);
    expect(books.refunds).toEqual(money(1, 3_000));
    expect(books.calls.refund).toBe(1);
  });

  it('B28: a callback stored by an API that was killed is settled, though sent once', async () => {
    const orderId = await saga.createOrder();
    await saga.pay(orderId);
    const outTradeNo = await saga.outTradeNo(orderId);
    await saga.mock.addFault({
      match: { operation: 'callback', outTradeNo },
      skip: 1,
      do: { drop: true },
    });
    await killedAt('api:callback-committed', () => cutDelivery(outTradeNo));
    await expectPaidOnce(orderId);
    expect(await inbox(saga, orderId)).toEqual([
      { status: 'applied', verdict: 'first_success', copies: 1 },
    ]);
  });

  it('B28: and when it is sent again, the second delivery is handled, not skipped', async () => {
    const orderId = await saga.createOrder();
    await saga.pay(orderId);
    const outTradeNo = await saga.outTradeNo(orderId);
    await killedAt('api:callback-committed', () => cutDelivery(outTradeNo));
    await waitFor('a delivery is acknowledged', async () =>
      (await saga.mock.deliveries({ outTradeNo })).some((d) => d.acknowledged),
    );
    await expectPaidOnce(orderId);
    const [row] = await inbox(saga, orderId);
    expect(row).toMatchObject({ status: 'applied', verdict: 'first_success' });
    expect(row?.copies).toBeGreaterThanOrEqual(2);
  });

  /** The payer pays; fails once the channel's first delivery was cut off. */
  async function cutDelivery(outTradeNo: string): Promise<void> {
    await saga.mock.approve(outTradeNo);
    await waitFor('the first delivery ends', async () => {
      const [first] = await saga.mock.deliveries({ outTradeNo });
      return first !== undefined;
    });
    const [first] = await saga.mock.deliveries({ outTradeNo });
    if (!first?.acknowledged) throw new Error('cut off');
  }

  async function expectPaidOnce(orderId: string): Promise<void> {
    await saga.untilOrder(orderId, 'paid');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'paid',
      trades: 1,
      cap: money(1, 10_000),
      ref: money(0, 0),
      calls: 1,
      rows: 1,
      settling: 1,
      evt: 1,
      review: 0,
    });
  }
});
