import { ageOrder } from '../support/age-order';
import { failInserts } from '../support/failing-writes';
import { expectAlwaysTrue, figuresOf, money, outTradeNoOf } from '../support/figures';
import { Saga } from '../support/saga';
import type { Answer } from '../support/saga';
import { waitFor } from '../support/wait';

const ONCE = money(1, 10_000);
const NONE = money(0, 0);

describe('paying twice', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start({ apis: 2 });
  });
  afterAll(() => saga?.stop());

  const counted = (answers: Answer[]) => ({
    statuses: answers.map((answer) => answer.status).sort(),
    numbers: [...new Set(answers.map((answer) => answer.body.out_trade_no))],
  });
  const told = async (outTradeNo: string) =>
    (await saga.mock.deliveries({ outTradeNo })).filter((delivery) => delivery.kind === 'payment');
  const dueMinor = async (orderId: string) =>
    (
      await saga.rows<{ amount_minor: number }>(
        `select amount_minor from orders where order_id = $1::text
         union all select amount_minor from pay_records where order_id = $1::text`,
        orderId,
      )
    ).map((row) => row.amount_minor);

  describe('B01: a double click', () => {
    const paidByOneOfTen = async (answers: Answer[], orderId: string) => {
      const outTradeNo = outTradeNoOf(saga, orderId, await firstRequestNo(orderId));
      expect(counted(answers)).toEqual({
        statuses: [...Array<number>(9).fill(200), 201],
        numbers: [outTradeNo],
      });
      await saga.mock.approve(outTradeNo);
      await saga.untilOrder(orderId, 'paid');
      await expectAlwaysTrue(saga, orderId);
      expect(await figuresOf(saga, orderId)).toMatchObject({
        trades: 1,
        cap: ONCE,
        ref: NONE,
        calls: 1,
        numbers: [outTradeNo],
        rows: 1,
        settling: 1,
        evt: 1,
        runs: 1,
        resend: 0,
        review: 0,
      });
    };
    const firstRequestNo = async (orderId: string) => {
      const records = await saga.records(orderId);
      expect(records).toHaveLength(1);
      return records[0]?.request_no;
    };
    const tenTimes = (pay: (click: number) => Promise<Answer>) =>
      Promise.all(Array.from({ length: 10 }, (_, click) => pay(click)));

    it('B01: ten parallel calls with one request number open one payment', async () => {
      const orderId = await saga.createOrder();
      await paidByOneOfTen(await tenTimes(() => saga.pay(orderId, 'K1')), orderId);
    });

    it('B01: ten parallel calls with one Idempotency-Key open one payment', async () => {
      const orderId = await saga.createOrder();
      const answers = await tenTimes(() =>
        saga.pay(orderId, 'K1', { request_no: undefined }, { key: 'K1' }),
      );
      await paidByOneOfTen(answers, orderId);
    });

    it('B01: ten parallel calls with ten request numbers open one payment', async () => {
      const orderId = await saga.createOrder();
      await paidByOneOfTen(await tenTimes((click) => saga.pay(orderId, `K${click}`)), orderId);
    });
  });

  it.each(['mock-a', 'mock-b'])(
    'B02: two tabs get one payment at %s, and the second completion is refused there',
    async (channel) => {
      const orderId = await saga.createOrder();
      const first = await saga.pay(orderId, 'K1', { channel });
      const second = await saga.pay(orderId, 'K2', { channel });
      expect([first.status, second.status]).toEqual([201, 200]);
      const { outTradeNo, channelTradeNo } = await saga.mock.trade(first.body.out_trade_no);
      for (const { body } of [first, second]) {
        expect(body).toMatchObject({
          out_trade_no: outTradeNo,
          channel_trade_no: channelTradeNo,
          next_action: first.body.next_action,
        });
      }
      expect(first.body.next_action).not.toBeNull();
      await saga.mock.approve(outTradeNo);
      await expect(saga.mock.approve(outTradeNo)).rejects.toMatchObject({ status: 409 });
      await saga.untilOrder(orderId, 'paid');
      await expectAlwaysTrue(saga, orderId);
      expect(await figuresOf(saga, orderId)).toMatchObject({
        trades: 1,
        cap: ONCE,
        calls: 1,
        rows: 1,
        settling: 1,
        evt: 1,
        runs: 1,
      });
    },
  );

  describe('B03: a second capture of one order', () => {
    const isRefundedOnce = async (orderId: string, outTradeNo: string) => {
      await saga.untilOrder(orderId, 'paid');
      const surplus = await waitFor('the surplus is stored', async () =>
        (await saga.captures(orderId)).find((capture) => !capture.settles),
      );
      expect(surplus).toMatchObject({ amount_minor: 10_000, kind: 'surplus_duplicate' });
      await saga.untilRefund(orderId, `auto:${surplus.capture_id}`, 'succeeded');
      await expectAlwaysTrue(saga, orderId);
      expect((await told(outTradeNo)).map((delivery) => delivery.httpStatus)).toEqual([200, 200]);
      const trade = await saga.mock.trade(outTradeNo);
      // Given back is the surplus itself, not the capture that pays the order.
      expect(trade.captures.map((capture) => capture.refundedMinor).sort()).toEqual([0, 10_000]);
      const settling = (await saga.captures(orderId)).find((capture) => capture.settles);
      expect(settling).toMatchObject({ amount_minor: 10_000, refunded_minor: 0 });
      expect(await figuresOf(saga, orderId)).toMatchObject({
        status: 'paid',
        trades: 1,
        cap: money(2, 20_000),
        ref: ONCE,
        settling: 1,
        evt: 1,
        resend: 0,
        review: 0,
      });
    };

    it.each(['mock-a', 'mock-b'])('B03: is stored and refunded once at %s', async (channel) => {
      const { orderId, outTradeNo } = await saga.paidOrder({}, channel);
      await saga.mock.capture({ outTradeNo });
      await isRefundedOnce(orderId, outTradeNo);
    });

    it('B03: is refunded once when both callbacks arrive together', async () => {
      const orderId = await saga.createOrder();
      const outTradeNo = outTradeNoOf(saga, orderId);
      await saga.mock.addFault({
        match: { operation: 'callback', outTradeNo, kind: 'payment' },
        do: { hold: true },
      });
      await saga.pay(orderId);
      await saga.mock.approve(outTradeNo);
      await saga.mock.capture({ outTradeNo });
      await waitFor('two callbacks are held', async () => {
        const held = await saga.mock.heldCallbacks();
        return held.filter((one) => one.outTradeNo === outTradeNo).length === 2;
      });
      await saga.mock.releaseCallbacks({ order: 'parallel', outTradeNo });
      await isRefundedOnce(orderId, outTradeNo);
    });
  });

  describe('B04: two channels for one order', () => {
    it('B04: the first attempt is closed before the second opens; captured anyway, one is refunded', async () => {
      const orderId = await saga.createOrder();
      const first = outTradeNoOf(saga, orderId, 'K1', 'mock-a');
      const second = outTradeNoOf(saga, orderId, 'K2', 'mock-b');
      for (const outTradeNo of [first, second]) {
        await saga.mock.addFault({
          match: { operation: 'callback', outTradeNo, kind: 'payment' },
          times: 1,
          do: { hold: true },
        });
      }
      // Until the callbacks arrive, asking mock-b must not tell: the order of the callbacks counts.
      const silence = await saga.mock.addFault({
        match: { operation: 'query', outTradeNo: second },
        do: { answer: 'word', word: 'NOTPAY' },
      });
      expect(await saga.pay(orderId, 'K1', { channel: 'mock-a' })).toMatchObject({ status: 201 });
      expect(await saga.pay(orderId, 'K2', { channel: 'mock-b' })).toMatchObject({ status: 201 });
      expect((await saga.mock.trade(first)).status).toBe('closed');
      expect((await saga.records(orderId)).map((r) => r.status)).toEqual(['closed', 'pending']);

      await saga.mock.capture({ outTradeNo: first });
      await saga.mock.approve(second);
      await waitFor('both callbacks are held', async () => {
        const held = (await saga.mock.heldCallbacks()).map((one) => one.outTradeNo);
        return held.includes(first) && held.includes(second);
      });
      await saga.mock.releaseCallbacks({ order: 'fifo', outTradeNo: first });
      await saga.untilOrder(orderId, 'paid');
      await saga.mock.releaseCallbacks({ order: 'fifo', outTradeNo: second });
      await saga.mock.removeFault(silence);
      const surplus = await waitFor('the surplus is stored', async () =>
        (await saga.captures(orderId)).find((capture) => !capture.settles),
      );
      await saga.untilRefund(orderId, `auto:${surplus.capture_id}`, 'succeeded');
      await expectAlwaysTrue(saga, orderId);
      for (const outTradeNo of [first, second]) {
        expect((await told(outTradeNo)).map((delivery) => delivery.httpStatus)).toEqual([200]);
      }
      const atSecond = await saga.mock.summary({ outTradeNos: [second] });
      expect(atSecond).toMatchObject({ captures: ONCE, refunds: ONCE });
      expect(await figuresOf(saga, orderId)).toMatchObject({
        status: 'paid',
        cap: money(2, 20_000),
        ref: ONCE,
        settling: 1,
        evt: 1,
        resend: 0,
        review: 0,
      });
    });

    it('B04: money that arrives while the first attempt is closed pays the order', async () => {
      const orderId = await saga.createOrder();
      const outTradeNo = outTradeNoOf(saga, orderId);
      await saga.mock.addFault({
        match: { operation: 'close', outTradeNo },
        do: { captureNow: true },
      });
      await saga.pay(orderId, 'K1', { channel: 'mock-a' });
      const second = await saga.pay(orderId, 'K2', { channel: 'mock-b' });
      expect(second).toMatchObject({ status: 200, body: { out_trade_no: outTradeNo } });
      expect(second.body).toMatchObject({ status: 'paid', order_status: 'paid' });
      await expectAlwaysTrue(saga, orderId);
      expect(await figuresOf(saga, orderId)).toMatchObject({
        trades: 1,
        cap: ONCE,
        ref: NONE,
        rows: 1,
        evt: 1,
        resend: 0,
      });
    });

    it('B04: an attempt that cannot be closed keeps the second channel out', async () => {
      const orderId = await saga.createOrder();
      const outTradeNo = outTradeNoOf(saga, orderId);
      await saga.mock.addFault({
        match: { operation: 'close', outTradeNo },
        do: { effect: 'none', answer: 'http', status: 500 },
      });
      await saga.pay(orderId, 'K1', { channel: 'mock-a' });
      const second = await saga.pay(orderId, 'K2', { channel: 'mock-b' });
      expect(second).toMatchObject({ status: 409, body: { code: 'attempt_closing' } });
      expect(Number(second.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
      expect(await saga.records(orderId)).toHaveLength(1);
      await saga.mock.approve(outTradeNo);
      await saga.untilOrder(orderId, 'paid');
      await expectAlwaysTrue(saga, orderId);
      expect(await figuresOf(saga, orderId)).toMatchObject({ trades: 1, cap: ONCE, evt: 1 });
    });
  });

  it('B05: a callback that failed inside and an answer that was cut lead to no second payment', async () => {
    const orderId = await saga.createOrder();
    const outTradeNo = outTradeNoOf(saga, orderId);
    const inbox = await failInserts(saga.pool, {
      table: 'channel_callbacks',
      orderId,
      times: 1,
      code: '57P03', // cannot_connect_now
    });
    await saga.mock.addFault({
      match: { operation: 'create', outTradeNo },
      do: { captureNow: true, delayBeforeAnswerMs: 400, answer: 'drop' },
    });
    // Nobody but the resent callback may tell of the money.
    await saga.mock.addFault({
      match: { operation: 'query', outTradeNo },
      do: { answer: 'word', word: 'WAIT_BUYER_PAY' },
    });
    await saga.mock.addFault({
      match: { operation: 'callback', outTradeNo },
      skip: 1,
      times: 1,
      do: { hold: true },
    });

    await expect(payAndHangUp(orderId, 200)).rejects.toThrow();
    await waitFor('the resent callback is held', async () =>
      (await saga.mock.heldCallbacks()).some((one) => one.outTradeNo === outTradeNo),
    );
    expect(await told(outTradeNo)).toMatchObject([{ httpStatus: 503, acknowledged: false }]);
    expect(await inbox.tries()).toBe(1);
    expect(await saga.mock.summary({ outTradeNos: [outTradeNo] })).toMatchObject({
      captures: ONCE,
    });
    await ageOrder(saga, orderId, '25 minutes');

    const repeats = [await saga.pay(orderId, 'K1'), await saga.pay(orderId, 'K2')];
    await saga.mock.releaseCallbacks({ order: 'fifo', outTradeNo });
    await saga.untilOrder(orderId, 'paid');
    repeats.push(await saga.pay(orderId, 'K1'), await saga.pay(orderId, 'K2'));
    for (const repeat of repeats) {
      expect([200, 202]).toContain(repeat.status);
      expect(repeat.body.out_trade_no).toBe(outTradeNo);
      expect(['submitting', 'pending', 'paid']).toContain(repeat.body.status);
    }
    expect(repeats.slice(2).map((repeat) => [repeat.status, repeat.body.status])).toEqual([
      [200, 'paid'],
      [200, 'paid'],
    ]);
    await expectAlwaysTrue(saga, orderId);
    expect(await saga.moves(orderId)).toEqual(['null>created', 'created>paying', 'paying>paid']);
    expect((await saga.moves(orderId, 'pay_record')).join()).not.toMatch(/failed|closed/);
    expect((await told(outTradeNo)).map((delivery) => delivery.httpStatus)).toEqual([503, 200]);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      trades: 1,
      cap: ONCE,
      numbers: [outTradeNo],
      rows: 1,
      settling: 1,
      evt: 1,
    });
  });

  /** The payer's client goes away before the answer. */
  async function payAndHangUp(orderId: string, afterMs: number): Promise<Response> {
    return fetch(`${saga.apis[0]?.url}/v1/orders/${orderId}/payments`, {
      method: 'POST',
      headers: { authorization: `Bearer ${saga.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ channel: 'mock-a', request_no: 'K1' }),
      signal: AbortSignal.timeout(afterMs),
    });
  }

  it('B07: another amount while an attempt is open is refused and changes nothing', async () => {
    const orderId = await saga.createOrder();
    const first = await saga.pay(orderId, 'K1', { amount: 10_000, currency: 'CNY' });
    expect(first.status).toBe(201);
    const other = await saga.pay(orderId, 'K2', { amount: 12_000, currency: 'CNY' });
    expect(other).toMatchObject({ status: 409, body: { code: 'order_amount_differs' } });
    const otherCurrency = await saga.pay(orderId, 'K3', { currency: 'USD' });
    expect(otherCurrency).toMatchObject({ status: 409, body: { code: 'order_amount_differs' } });
    const reused = await saga.pay(orderId, 'K1', { amount: 12_000 });
    expect(reused).toMatchObject({ status: 422, body: { code: 'request_no_reused' } });

    expect(await saga.mock.trade(first.body.out_trade_no)).toMatchObject({
      amountMinor: 10_000,
      currency: 'CNY',
      status: 'open',
    });
    expect(await dueMinor(orderId)).toEqual([10_000, 10_000]);
    await saga.mock.approve(first.body.out_trade_no);
    await saga.untilOrder(orderId, 'paid');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      trades: 1,
      cap: ONCE,
      calls: 1,
      evt: 1,
    });
  });

  it.each(['mock-a', 'mock-b'])(
    'B08: a payment under review at %s is not payable again',
    async (channel) => {
      const orderId = await saga.createOrder();
      const first = await saga.pay(orderId, 'K1', { channel });
      const outTradeNo = first.body.out_trade_no as string;
      await saga.mock.review(outTradeNo);
      await ageOrder(saga, orderId, '10 minutes');
      const seen = async () => (await saga.mock.summary({ outTradeNos: [outTradeNo] })).calls.query;
      const before = await seen();
      await waitFor('the channel was asked during the review', async () => (await seen()) > before);
      for (const requestNo of ['K1', 'K2']) {
        expect(await saga.pay(orderId, requestNo, { channel })).toMatchObject({
          status: 200,
          body: { out_trade_no: outTradeNo, status: 'pending', order_status: 'paying' },
        });
      }
      await saga.mock.approve(outTradeNo);
      await saga.untilOrder(orderId, 'paid');
      await expectAlwaysTrue(saga, orderId);
      expect(await figuresOf(saga, orderId)).toMatchObject({
        trades: 1,
        cap: ONCE,
        calls: 1,
        numbers: [outTradeNo],
        rows: 1,
        evt: 1,
      });
    },
  );
});
