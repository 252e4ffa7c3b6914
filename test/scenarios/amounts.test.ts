import { untilDelivered } from '../support/callback-waits';
import { expectAlwaysTrue, figuresOf, money } from '../support/figures';
import { inParallel } from '../support/in-parallel';
import { Saga } from '../support/saga';

const CHANNELS = ['mock-a', 'mock-b'] as const;

describe('amounts from the shop to the channel and back', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start();
  });
  afterAll(() => saga?.stop());

  /** What an order of this amount came to, in every place that holds a figure of it. */
  async function figuresEverywhere(orderId: string) {
    const [order] = await saga.rows<{ amount_minor: number }>(
      `select amount_minor from orders where merchant_id = $1::text and order_id = $2::text`,
      saga.merchantId,
      orderId,
    );
    const [record] = await saga.records(orderId);
    const trade = await saga.mock.trade(record?.out_trade_no ?? '');
    return {
      order: order?.amount_minor,
      captures: (await saga.captures(orderId)).map(({ amount_minor }) => amount_minor),
      trade: trade.amountMinor,
      channel: trade.captures.map(({ amountMinor }) => amountMinor),
      told: saga.merchant.effects(orderId, 'order.paid').map(({ data }) => data['amount_minor']),
      shown: ((await saga.status(orderId)).body as { captured_minor: number }).captured_minor,
    };
  }

  function everywhere(amountMinor: number) {
    return {
      order: amountMinor,
      captures: [amountMinor],
      trade: amountMinor,
      channel: [amountMinor],
      told: [amountMinor],
      shown: amountMinor,
    };
  }

  it.each(
    CHANNELS.flatMap((channel) => [[channel, 'callback'] as const, [channel, 'poll'] as const]),
  )(
    'B41: 2000 yen are 2000 yen at %s when learnt by %s, and 500 of them go back',
    async (channel, learntBy) => {
      const orderId = await saga.createOrder({ amount: 2_000, currency: 'JPY' });
      await saga.pay(orderId, 'K1', { channel });
      const outTradeNo = await saga.outTradeNo(orderId);
      if (learntBy === 'poll') {
        await saga.mock.addFault({
          match: { operation: 'callback', outTradeNo },
          do: { drop: true },
        });
      }
      await saga.mock.approve(outTradeNo);
      await saga.untilOrder(orderId, 'paid');
      expect((await saga.refund(orderId, 'R1', 500)).status).toBe(201);
      await saga.untilRefund(orderId, 'R1', 'succeeded');

      await expectAlwaysTrue(saga, orderId);
      expect(await figuresEverywhere(orderId)).toEqual(everywhere(2_000));
      expect(await figuresOf(saga, orderId)).toMatchObject({
        status: 'paid',
        cap: money(1, 2_000, 'JPY'),
        ref: money(1, 500, 'JPY'),
        evt: 1,
        review: 0,
      });
      expect((await saga.order(orderId)).refund_status).toBe('partial');
    },
  );

  it('B41: 16.24 yen are refused before any channel hears of them', async () => {
    const calls = await createCalls();
    const order = await saga.call('POST', '/v1/orders', undefined, {
      raw: '{"order_id":"yen","amount":16.24,"currency":"JPY","subject":"A fraction of a yen"}',
    });
    expect(order).toMatchObject({ status: 422, body: { code: 'unacceptable_value' } });
    expect((await saga.status('yen')).status).toBe(404);

    const orderId = await saga.createOrder({ amount: 2_000, currency: 'JPY' });
    const payment = await saga.call('POST', `/v1/orders/${orderId}/payments`, undefined, {
      raw: '{"channel":"mock-a","request_no":"K1","amount":16.24,"currency":"JPY"}',
    });
    expect(payment.status).toBe(422);
    expect(await saga.records(orderId)).toEqual([]);
    expect(await createCalls()).toBe(calls);
    await saga.cancel(orderId);
  });

  async function createCalls(): Promise<number> {
    return (await saga.mock.summary()).calls.create;
  }

  // Where a float times 100, cut off, loses a cent; and the ends of the range.
  const CENT_LOSERS = [29, 57, 820, 1_999, 4_030, 8_185];
  const BY_HAND = [1, ...CENT_LOSERS, 10_000];
  /** A hundred in the full run, the last ones spread over the whole range. */
  const END_TO_END = process.env['FULL']
    ? [...BY_HAND, ...Array.from({ length: 100 - BY_HAND.length }, (_, index) => 107 * index + 111)]
    : BY_HAND;

  it(`B43: ${END_TO_END.length} amounts are paid end to end without losing a cent`, async () => {
    expect(CENT_LOSERS.map((minor) => Math.trunc((minor / 100) * 100))).toEqual(
      CENT_LOSERS.map((minor) => minor - 1),
    );
    const mismatches: unknown[] = [];
    await inParallel(END_TO_END, 5, async (amount) => {
      const channel = amount % 2 === 0 ? 'mock-a' : 'mock-b';
      const { orderId } = await saga.paidOrder({ order_id: `cents-${amount}`, amount }, channel);
      await expectAlwaysTrue(saga, orderId);
      const seen = await figuresEverywhere(orderId);
      if (JSON.stringify(seen) !== JSON.stringify(everywhere(amount))) mismatches.push(seen);
    });
    expect(mismatches).toEqual([]);
  });

  it('B44: 35.00 given back as 0.10, 0.20 and 34.70 leaves exactly nothing', async () => {
    const { orderId } = await saga.paidOrder({ amount: 3_500 });
    for (const [index, amount] of [10, 20, 3_470].entries()) {
      const refundNo = `R${index + 1}`;
      expect((await saga.refund(orderId, refundNo, amount)).status).toBe(201);
      await saga.untilRefund(orderId, refundNo, 'succeeded');
    }
    await expectAlwaysTrue(saga, orderId);
    const { body } = await saga.status(orderId);
    expect(body).toMatchObject({
      status: 'paid',
      refund_status: 'full',
      captured_minor: 3_500,
      refunded_minor: 3_500,
      refundable_minor: 0,
    });
    expect(await saga.refund(orderId, 'R4', 1)).toMatchObject({
      status: 422,
      body: { code: 'over_the_rest', refundable_minor: 0 },
    });
    expect(await figuresOf(saga, orderId)).toMatchObject({
      cap: money(1, 3_500),
      ref: money(3, 3_500),
      evt: 1,
    });
  });

  it.each([2_147_483_647, 2_147_483_648, 9_999_999_999, 10_000_000_000, 9_007_199_254_740_991])(
    'B46: %d minor units are exact end to end at both channels',
    async (amount) => {
      for (const channel of CHANNELS) {
        const { orderId, outTradeNo } = await saga.paidOrder({ amount }, channel);
        await untilDelivered(saga, outTradeNo);
        expect((await saga.refund(orderId, 'R1')).status).toBe(201);
        await saga.untilRefund(orderId, 'R1', 'succeeded');
        await expectAlwaysTrue(saga, orderId);
        expect(await figuresEverywhere(orderId)).toEqual(everywhere(amount));
        expect(await figuresOf(saga, orderId)).toMatchObject({
          status: 'paid',
          cap: money(1, amount),
          ref: money(1, amount),
          review: 0,
        });
      }
    },
  );

  it.each([
    ['9007199254740992', 422],
    ['9007199254740993', 422],
    ['1e3', 422],
    ['1,000.00', 400],
    ['"1,000.00"', 400],
    ['" 100"', 400],
  ])('B46: the amount %s is refused with %d and reaches no channel', async (amount, status) => {
    const calls = await createCalls();
    const order = await saga.call('POST', '/v1/orders', undefined, {
      raw: `{"order_id":"too-odd","amount":${amount},"currency":"CNY","subject":"s"}`,
    });
    expect(order.status).toBe(status);
    expect(order.headers.get('content-type')).toBe('application/problem+json');
    expect((await saga.status('too-odd')).status).toBe(404);
    expect((await saga.pay('too-odd')).status).toBe(404);
    expect(await createCalls()).toBe(calls);
  });
});
