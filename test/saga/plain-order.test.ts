import { Saga } from '../support/saga';

describe('a plain order on real servers, told by callback', () => {
  let saga: Saga;
  beforeAll(async () => {
    // No poll comes between a charge and its callback: what a plain order costs is counted here.
    saga = await Saga.start({ policy: { pollLadderMs: [60_000] } });
  });
  afterAll(() => saga?.stop());

  it.each(['mock-a', 'mock-b'])(
    'is paid once at %s, told once, within its budget',
    async (channel) => {
      const orderId = await saga.createOrder();
      expect(await saga.pay(orderId, 'K1', { channel })).toMatchObject({ status: 201 });
      await saga.mock.approve(await saga.outTradeNo(orderId));
      await saga.untilOrder(orderId, 'paid');
      await saga.untilSettled(orderId);
      expect(await saga.captures(orderId)).toMatchObject([{ amount_minor: 10_000, settles: true }]);
      expect(await saga.moves(orderId)).toEqual(['null>created', 'created>paying', 'paying>paid']);
      expect(saga.merchant.effects(orderId, 'order.paid')).toHaveLength(1);
      await saga.handle(orderId).result();
      const description = await saga.handle(orderId).describe();
      const transitions = Number(description.raw.workflowExecutionInfo?.stateTransitionCount);
      // The budget of a plainly paid order, its notification included.
      expect(transitions).toBeLessThanOrEqual(14);
      expect(description.historyLength).toBeLessThanOrEqual(38);
    },
  );
});

describe('an order on real servers', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start();
  });
  afterAll(() => saga?.stop());

  it('is paid by polling when no callback comes', async () => {
    await saga.mock.addFault({ match: { operation: 'callback' }, do: { drop: true } });
    const orderId = await saga.createOrder();
    await saga.pay(orderId);
    await saga.mock.approve(await saga.outTradeNo(orderId));
    await saga.untilOrder(orderId, 'paid');
    await saga.mock.clearFaults();
  });

  it('is refunded in two parts under two numbers', async () => {
    const { orderId } = await saga.paidOrder();
    expect((await saga.refund(orderId, 'R1', 3_000)).status).toBe(201);
    expect((await saga.refund(orderId, 'R1', 3_000)).status).toBe(200);
    expect((await saga.refund(orderId, 'R2')).status).toBe(201);
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await saga.untilRefund(orderId, 'R2', 'succeeded');
    await saga.untilSettled(orderId);
    expect((await saga.order(orderId)).refund_status).toBe('full');
  });

  it('is cancelled at the channel too', async () => {
    const orderId = await saga.createOrder();
    await saga.pay(orderId);
    expect((await saga.cancel(orderId)).status).toBe(200);
    expect((await saga.order(orderId)).status).toBe('closed');
  });

  it('closes by itself at its deadline', async () => {
    const orderId = await saga.createOrder({ expires_in: 2 });
    await saga.pay(orderId);
    await saga.untilOrder(orderId, 'closed');
    expect((await saga.order(orderId)).status_reason).toBe('expired');
  });
});
