import { untilDelivered } from '../support/callback-waits';
import { expectAlwaysTrue, figuresOf, money } from '../support/figures';
import { Saga } from '../support/saga';

const DUE = 50_000;

describe('amounts that are not what is due', () => {
  let saga: Saga;
  beforeAll(async () => {
    // What is settled here is settled by a callback's figures.
    saga = await Saga.start({ policy: { pollLadderMs: [30_000] } });
  });
  afterAll(() => saga?.stop());

  async function orderOf500(channel: 'mock-a' | 'mock-b' = 'mock-a') {
    const orderId = await saga.createOrder({ amount: DUE });
    await saga.pay(orderId, 'K1', { channel });
    return { orderId, outTradeNo: await saga.outTradeNo(orderId) };
  }

  // A mismatch is acknowledged like every stored callback: it is ours to look at, not to be resent.
  it.each([
    [10, 'mock-a'],
    [49_999, 'mock-a'],
    [50_001, 'mock-a'],
    [10, 'mock-b'],
    [49_999, 'mock-b'],
    [50_001, 'mock-b'],
  ] as const)(
    'B47: %d received for 50000 due at %s is a case, not a payment',
    async (received, channel) => {
      const { orderId, outTradeNo } = await orderOf500(channel);
      await saga.mock.capture({ outTradeNo, amountMinor: received });
      await saga.untilOrder(orderId, 'review');
      expect(await untilDelivered(saga, outTradeNo)).toMatchObject([
        { httpStatus: 200, acknowledged: true },
      ]);
      await saga.mock.waitUntilIdle();
      await expectAlwaysTrue(saga, orderId);

      const [shown] = await saga.openCases(orderId);
      expect(shown).toMatchObject({
        kind: 'amount_mismatch',
        summary: `received ${received} CNY against 50000 CNY due (minor units)`,
      });
      expect(await figuresOf(saga, orderId)).toMatchObject({
        status: 'review',
        cap: money(1, received),
        ref: money(0, 0),
        settling: 0,
        evt: 0,
        review: 1,
        resend: 0,
      });
      expect(await saga.captures(orderId)).toMatchObject([
        { amount_minor: received, kind: 'held', settles: false },
      ]);
      expect(await saga.moves(orderId)).not.toContain('paying>paid');
    },
  );

  it('B47: a signed 0.10 for a payment of 500.00 pays nothing, and the channel is asked what is true', async () => {
    const { orderId, outTradeNo } = await orderOf500();
    await saga.mock.capture({ outTradeNo, callback: false });
    const [lie] = await saga.mock.sendCallback({ outTradeNo, amountText: '0.10' });
    expect(lie).toMatchObject({ httpStatus: 200, acknowledged: true });
    await saga.untilOrder(orderId, 'review');
    // The right figure, told by the next callback, is asked about and then counts.
    const [truth] = await saga.mock.sendCallback({ outTradeNo, notifyId: 'new' });
    expect(truth).toMatchObject({ httpStatus: 200, acknowledged: true });
    await expectAlwaysTrue(saga, orderId);
    expect(await saga.captures(orderId)).toMatchObject([{ amount_minor: DUE, settles: false }]);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'review',
      cap: money(1, DUE),
      evt: 0,
      review: 1,
    });
  });

  it.each(['500', '500.0', '500.00'])('B47: the right amount written %s pays', async (text) => {
    const { orderId, outTradeNo } = await orderOf500();
    await saga.mock.capture({ outTradeNo, callback: false });
    const [delivery] = await saga.mock.sendCallback({ outTradeNo, amountText: text });
    expect(delivery).toMatchObject({ httpStatus: 200, acknowledged: true });
    await saga.untilOrder(orderId, 'paid');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'paid',
      cap: money(1, DUE),
      settling: 1,
      evt: 1,
      review: 0,
    });
    expect(await saga.captures(orderId)).toMatchObject([{ amount_minor: DUE, settles: true }]);
  });

  function refundRaw(orderId: string, refundNo: string, amount: string) {
    return saga.call('POST', `/v1/orders/${orderId}/refunds`, undefined, {
      raw: `{"refund_no":"${refundNo}","amount":${amount},"reason":"test"}`,
    });
  }

  /** Nothing was promised, sent or changed. */
  async function expectNothingRefunded(orderId: string) {
    const { body } = await saga.status(orderId);
    expect(body).toMatchObject({
      status: 'paid',
      refund_status: 'none',
      refundable_minor: 10_000,
      refunded_minor: 0,
      refunds: [],
    });
    const books = await saga.books(orderId);
    expect(books.refunds).toEqual(money(0, 0));
    expect(books.calls.refund).toBe(0);
  }

  it('B49: a refund of nothing is refused, however it is written; "no amount" is the rest', async () => {
    const { orderId } = await saga.paidOrder();
    for (const [amount, status] of [
      ['0', 422],
      ['0.00', 422],
      ['""', 400],
      ['null', 400],
    ] as const) {
      const answer = await refundRaw(orderId, 'R-none', amount);
      expect({ amount, status: answer.status }).toEqual({ amount, status });
      expect(answer.headers.get('content-type')).toBe('application/problem+json');
    }
    await expectNothingRefunded(orderId);

    // A number that was refused is not used up.
    expect((await saga.refund(orderId, 'R1', 4_000)).status).toBe(201);
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    const rest = await saga.refund(orderId, 'R-none');
    expect(rest).toMatchObject({ status: 201, body: { amount: 6_000 } });
    await saga.untilRefund(orderId, 'R-none', 'succeeded');
    await expectAlwaysTrue(saga, orderId);
    expect((await saga.order(orderId)).refund_status).toBe('full');
    const { ref, evt } = await figuresOf(saga, orderId);
    expect({ ref, evt }).toEqual({ ref: money(2, 10_000), evt: 1 });
  });

  it('B50: negative amounts and what is no number are refused everywhere', async () => {
    const { orderId } = await saga.paidOrder();
    const unpaid = await saga.createOrder({ amount: DUE });
    const calls = (await saga.mock.summary()).calls;
    for (const [amount, status] of [
      ['-1000', 422],
      ['-1', 422],
      ['-0', 422],
      ['-10.00', 422],
      ['NaN', 400],
      ['"NaN"', 400],
      ['-Infinity', 400],
    ] as const) {
      const refund = await refundRaw(orderId, 'R-negative', amount);
      const order = await saga.call('POST', '/v1/orders', undefined, {
        raw: `{"order_id":"negative","amount":${amount},"currency":"CNY","subject":"s"}`,
      });
      const payment = await saga.call('POST', `/v1/orders/${unpaid}/payments`, undefined, {
        raw: `{"channel":"mock-a","request_no":"K1","amount":${amount}}`,
      });
      const seen = [refund.status, order.status, payment.status];
      expect({ amount, seen }).toEqual({ amount, seen: [status, status, status] });
    }
    for (const raw of ['0', '-0']) {
      const order = await saga.call('POST', '/v1/orders', undefined, {
        raw: `{"order_id":"nothing","amount":${raw},"currency":"CNY","subject":"s"}`,
      });
      expect(order.status).toBe(422);
    }
    expect((await saga.status('negative')).status).toBe(404);
    expect((await saga.status('nothing')).status).toBe(404);
    expect(await saga.records(unpaid)).toEqual([]);
    await expectNothingRefunded(orderId);
    const after = (await saga.mock.summary()).calls;
    expect({ create: after.create, refund: after.refund }).toEqual({
      create: calls.create,
      refund: calls.refund,
    });
    await saga.cancel(unpaid);
    await expectAlwaysTrue(saga, orderId);
  });
});
