import { ageOrder } from '../support/age-order';
import { inbox, untilDelivered, WORDS } from '../support/callback-waits';
import { expectAlwaysTrue, figuresOf, money } from '../support/figures';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

const PAID_MOVES = ['null>created', 'created>paying', 'paying>paid'];

describe('news that comes late or in the wrong order', () => {
  let saga: Saga;
  beforeAll(async () => {
    // Long enough that a callback is always ahead of the next question.
    saga = await Saga.start({ policy: { pollLadderMs: [30_000] } });
  });
  afterAll(() => saga?.stop());

  /** An attempt at mock-a given up for a second one at mock-b, which waits for its payer. */
  async function secondAttempt() {
    const orderId = await saga.createOrder();
    expect((await saga.pay(orderId, 'K1')).status).toBe(201);
    const abandoned = await saga.outTradeNo(orderId);
    await waitFor('the second attempt is open', async () => {
      const { status } = await saga.pay(orderId, 'K2', { channel: 'mock-b' });
      return status === 201 || status === 200;
    });
    const current = await saga.outTradeNo(orderId);
    expect(await saga.records(orderId)).toMatchObject([
      { request_no: 'K1', channel: 'mock-a', status: 'closed', out_trade_no: abandoned },
      { request_no: 'K2', channel: 'mock-b', status: 'pending', out_trade_no: current },
    ]);
    return { orderId, abandoned, current };
  }

  it('B34: an old attempt that expires a month after the payment starts nothing', async () => {
    const { orderId, abandoned, current } = await secondAttempt();
    await saga.mock.approve(current);
    await saga.untilOrder(orderId, 'paid');
    await expectAlwaysTrue(saga, orderId);
    await saga.handle(orderId).result();
    await ageOrder(saga, orderId, '30 days');
    const runs = (await saga.runs(orderId)).length;
    const { runId } = await saga.handle(orderId).describe();

    const expired = await saga.mock.sendCallback({
      outTradeNo: abandoned,
      word: WORDS['mock-a'].closed,
      notifyId: 'new',
    });
    expect(expired).toMatchObject([{ httpStatus: 200, acknowledged: true }]);
    expect(await inbox(saga, orderId)).toContainEqual({
      status: 'no_effect',
      verdict: 'no_effect',
      copies: 1,
    });
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'paid',
      cap: money(1, 10_000),
      ref: money(0, 0),
      evt: 1,
      review: 0,
    });
    expect(await saga.moves(orderId)).toEqual(PAID_MOVES);
    const after = await saga.handle(orderId).describe();
    expect(after).toMatchObject({ runId, status: { name: 'COMPLETED' } });
    expect(await saga.runs(orderId)).toHaveLength(runs);
  });

  it('B35: the expiry of an old attempt leaves the order open for the newer one', async () => {
    const { orderId, abandoned, current } = await secondAttempt();
    const expired = await saga.mock.sendCallback({
      outTradeNo: abandoned,
      word: WORDS['mock-a'].closed,
      notifyId: 'new',
    });
    expect(expired).toMatchObject([{ httpStatus: 200, acknowledged: true }]);
    expect((await saga.order(orderId)).status).toBe('paying');
    expect((await saga.records(orderId))[1]).toMatchObject({ status: 'pending' });

    await saga.mock.approve(current);
    await saga.untilOrder(orderId, 'paid');
    await expectAlwaysTrue(saga, orderId);
    expect(await saga.moves(orderId)).toEqual(PAID_MOVES);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      cap: money(1, 10_000),
      ref: money(0, 0),
      settling: 1,
      evt: 1,
      review: 0,
    });
  });

  it.each([
    ['says so', { captureNow: true }],
    // The channel claims that it closed: only our own question afterwards finds the money.
    ['says closed all the same', { captureNow: true, effect: 'none', answer: 'ok' }],
  ] as const)('B37: a payment that lands during the close, and the close %s', async (_, fault) => {
    const orderId = await saga.createOrder();
    await saga.pay(orderId);
    const outTradeNo = await saga.outTradeNo(orderId);
    await saga.mock.addFault({ match: { operation: 'callback', outTradeNo }, do: { drop: true } });
    await saga.mock.addFault({ match: { operation: 'close', outTradeNo }, do: { ...fault } });

    const answer = await saga.cancel(orderId);
    expect(answer).toMatchObject({ status: 409, body: { code: 'order_paid' } });
    await expectAlwaysTrue(saga, orderId);
    expect((await saga.books(orderId)).calls.close).toBe(1);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'paid',
      cap: money(1, 10_000),
      ref: money(0, 0),
      evt: 1,
      review: 0,
    });
    expect(await saga.moves(orderId)).toEqual(PAID_MOVES);
    expect(await saga.records(orderId)).toMatchObject([{ status: 'paid' }]);
  });

  it('B38: too little, then the deadline, then too much is a case with both sums, never paid', async () => {
    const orderId = await saga.createOrder();
    await saga.pay(orderId);
    const outTradeNo = await saga.outTradeNo(orderId);
    await saga.mock.capture({ outTradeNo, amountMinor: 6_000 });
    await saga.untilOrder(orderId, 'review');
    await ageOrder(saga, orderId, '1 hour');
    await saga.mock.capture({ outTradeNo, amountMinor: 5_000 });
    await waitFor('the second receipt', async () => (await saga.captures(orderId)).length === 2);

    expect(await untilDelivered(saga, outTradeNo, 2)).toMatchObject([
      { httpStatus: 200, acknowledged: true },
      { httpStatus: 200, acknowledged: true },
    ]);
    await expectAlwaysTrue(saga, orderId);
    const captures = await saga.captures(orderId);
    expect(captures).toMatchObject([
      { amount_minor: 6_000, settles: false, kind: 'held', status: 'captured' },
      { amount_minor: 5_000, settles: false, kind: 'held', status: 'captured' },
    ]);
    const [shown, ...more] = await saga.openCases(orderId);
    expect(more).toEqual([]);
    expect(shown).toMatchObject({
      kind: 'amount_mismatch',
      summary: 'received 11000 CNY against 10000 CNY due (minor units)',
    });
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'review',
      cap: money(2, 11_000),
      ref: money(0, 0),
      settling: 0,
      evt: 0,
      review: 1,
    });
    expect(await saga.moves(orderId)).toEqual(['null>created', 'created>paying', 'paying>review']);
  });

  it('B40: a payment that its channel takes back is a case, told in either order', async () => {
    const inOrder = await reversedOrder('told as it happened', async (outTradeNo, orderId) => {
      await saga.mock.approve(outTradeNo);
      await saga.untilOrder(orderId, 'paid');
      await saga.mock.reverse({ outTradeNo });
    });
    const backwards = await reversedOrder('told backwards #b40', async (outTradeNo) => {
      await saga.mock.addFault({
        match: { operation: 'callback', tag: 'b40' },
        do: { hold: true },
      });
      await saga.mock.approve(outTradeNo);
      await saga.mock.reverse({ outTradeNo });
      await waitFor('both callbacks are held', async () => {
        const held = await saga.mock.heldCallbacks();
        return held.filter((one) => one.outTradeNo === outTradeNo).length === 2;
      });
      const told = await saga.mock.releaseCallbacks({ order: 'lifo', outTradeNo });
      expect(told.map(({ word }) => word)).toEqual(['TRADE_REVERSED', 'TRADE_SUCCESS']);
    });
    expect(backwards.end).toEqual(inOrder.end);
    // Paid for a moment and told so; the other way round it never was.
    expect(inOrder.evt).toBe(1);
    expect(backwards.evt).toBe(0);
  });

  async function reversedOrder(
    subject: string,
    happens: (outTradeNo: string, orderId: string) => Promise<void>,
  ) {
    const orderId = await saga.createOrder({ subject });
    await saga.pay(orderId);
    const outTradeNo = await saga.outTradeNo(orderId);
    await happens(outTradeNo, orderId);
    await saga.untilOrder(orderId, 'review');
    for (const delivery of await untilDelivered(saga, outTradeNo, 2)) {
      expect(delivery).toMatchObject({ httpStatus: 200, acknowledged: true });
    }
    await expectAlwaysTrue(saga, orderId);
    const books = await saga.books(orderId);
    expect(books.netMinor).toEqual({ CNY: 0 });
    expect(books.calls.refund).toBe(0);
    const figures = await figuresOf(saga, orderId);
    expect(figures).toMatchObject({ cap: money(1, 10_000), ref: money(0, 0), review: 1 });
    const [shown] = await saga.openCases(orderId);
    expect(shown?.kind).toBe('reversed');
    expect(shown?.summary).toContain('reversed by channel mock-a: 10000 CNY');
    const [capture, ...more] = await saga.rows(
      `select amount_minor, status, reserved_minor, refunded_minor, reversed_minor from captures
       where merchant_id = $1::text and order_id = $2::text`,
      saga.merchantId,
      orderId,
    );
    expect(more).toEqual([]);
    const { status, refund_status, status_reason } = await saga.order(orderId);
    const [record] = await saga.records(orderId);
    return {
      end: { status, refund_status, status_reason, record: record?.status, capture },
      evt: figures.evt,
    };
  }
});
