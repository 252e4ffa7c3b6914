import { expectAlwaysTrue, figuresOf, money } from '../support/figures';
import { Operators } from '../support/operators';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

let saga: Saga;
let ops: Operators;
beforeAll(async () => {
  saga = await Saga.start({
    // What is settled here is told by callbacks; what is refunded is asked about soon.
    policy: { pollLadderMs: [30_000] },
    env: { ACTS_ALONE_UP_TO: '20000,USD:5' },
  });
  ops = await Operators.of(saga);
});
afterEach(() => delete process.env['FAILPOINT']);
afterAll(() => saga?.stop());

describe('an order under review', () => {
  it('is paid by accepting what came, once, and the shop is told', async () => {
    const { orderId, held, captureId } = await ops.mismatch();
    expect(held.captures).toMatchObject([{ amount: 9_000, rest: 9_000, held: 9_000 }]);
    const body = {
      act_no: ops.nextNo(),
      kind: 'accept_money',
      ...held.named,
      capture_id: captureId,
    };
    expect(await ops.act(orderId, body)).toMatchObject({
      status: 201,
      body: { status: 'done', result: { order_status: 'paid', case_status: null } },
    });
    // The same act again, and again by another person: the same result, no second effect.
    expect(await ops.act(orderId, body)).toMatchObject({ status: 200, body: { status: 'done' } });
    expect(await ops.act(orderId, body, 'mo')).toMatchObject({
      status: 200,
      body: { by: { name: 'lin' } },
    });
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'paid',
      cap: money(1, 9_000),
      ref: money(0, 0),
      settling: 1,
      evt: 1,
      review: 0,
    });
    expect(await saga.moves(orderId)).toEqual(
      expect.arrayContaining(['paying>review', 'review>paid']),
    );
    expect(await ops.caseStatus(orderId)).toEqual(['closed']);
    // Paid by an act is paid: the shop may refund it.
    expect((await saga.refund(orderId, 'R1')).status).toBe(201);
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    expect((await saga.order(orderId)).refund_status).toBe('full');
  });

  it('is closed by giving the money back, and only when it has arrived', async () => {
    const { orderId, outTradeNo, held, captureId } = await ops.mismatch();
    await saga.mock.addFault({
      match: { operation: 'refund', outTradeNo },
      do: { refund: 'hold' },
    });
    const refunding = { kind: 'refund_money', ...held.named, capture_id: captureId };
    const given = await ops.act(orderId, refunding);
    expect(given).toMatchObject({ status: 201, body: { amount: 9_000, status: 'done' } });
    const [refundNo] = given.body.result.refund_nos;
    await saga.untilRefund(orderId, refundNo, 'processing');
    // On its way is not given back: the case is open, and closes by nobody's word alone.
    expect(await ops.caseStatus(orderId)).toEqual(['open']);
    const again = await ops.openCase(orderId);
    expect(again.captures).toMatchObject([{ rest: 0, reserved: 9_000, held: 9_000 }]);
    expect(await ops.act(orderId, { kind: 'close_case', ...again.named })).toMatchObject({
      status: 422,
      body: { code: 'evidence_missing' },
    });
    const [row] = await saga.rows<{ out_refund_no: string }>(
      `select out_refund_no from refunds where order_id = $1::text and merchant_id = $2::text`,
      orderId,
      saga.merchantId,
    );
    await saga.mock.finishRefund({ outRefundNo: row!.out_refund_no, result: 'succeed' });
    await saga.untilOrder(orderId, 'closed');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'closed',
      cap: money(1, 9_000),
      ref: money(1, 9_000),
      settling: 0,
      evt: 0,
      review: 0,
    });
    expect((await saga.order(orderId)).status_reason).toBe('refunded');
    expect(await ops.caseStatus(orderId)).toEqual(['closed']);
    expect(saga.merchant.effects(orderId, 'order.closed')).toHaveLength(1);
    expect(saga.merchant.effects(orderId, 'payment.surplus_refunded')).toHaveLength(1);
  });

  it('settles exactly one of two captures and gives the other back', async () => {
    const { orderId, outTradeNo, captureId } = await ops.mismatch();
    await saga.mock.capture({ outTradeNo, amountMinor: 10_000 });
    const held = await waitFor('both captures in the case', async () => {
      const now = await ops.openCase(orderId);
      return now.captures.length === 2 && now;
    });
    const right = held.captures.find((c: { amount: number }) => c.amount === 10_000);
    const accept = { kind: 'accept_money', ...held.named };
    // What was read before the second capture came is too old to decide on.
    expect(
      await ops.act(orderId, {
        ...accept,
        case_version: held.version - 1,
        capture_id: captureId,
      }),
    ).toMatchObject({ status: 409, body: { code: 'case_version_outdated' } });
    expect(await ops.act(orderId, { ...accept, capture_id: right.capture_id })).toMatchObject({
      status: 201,
      body: { result: { order_status: 'paid' } },
    });
    await saga.untilRefund(
      orderId,
      `act:${saga.merchantId}-act-${lastNo()}:${captureId}`,
      'succeeded',
    );
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'paid',
      cap: money(2, 19_000),
      ref: money(1, 9_000),
      settling: 1,
      evt: 1,
      review: 0,
    });
  });

  it('whose money went another way is closed by two persons’ evidence', async () => {
    const { orderId, held } = await ops.mismatch();
    const closing = {
      act_no: ops.nextNo(),
      kind: 'close_case',
      ...held.named,
      evidence: 'paid back by bank transfer 4711 on 12 May',
    };
    expect(await ops.act(orderId, closing)).toMatchObject({
      status: 202,
      body: { status: 'waiting_second', needs_second: true },
    });
    expect((await saga.order(orderId)).status).toBe('review');
    // The first person's own key, also under another name, is no second person.
    expect(await ops.confirm(closing.act_no, 'lin')).toMatchObject({
      status: 409,
      body: { code: 'second_person_needed' },
    });
    expect(await ops.confirm(closing.act_no)).toMatchObject({
      status: 201,
      body: { status: 'done', second: { name: 'mo' } },
    });
    expect(await ops.confirm(closing.act_no)).toMatchObject({ status: 200 });
    expect(await ops.act(orderId, closing)).toMatchObject({ status: 200 });
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'closed',
      cap: money(1, 9_000),
      ref: money(0, 0),
      evt: 0,
      review: 0,
    });
  });
});

const lastNo = () => Number(/\d+$/.exec(ops.nextNo())![0]) - 1;

describe('money above what one may decide', () => {
  it('is not given back by one person in parts: nine of 50.00 stop at the limit of 200.00', async () => {
    const { orderId, captureId } = await ops.mismatch(45_000, { amount: 50_000 });
    const part = { kind: 'refund_money', capture_id: captureId, amount: 5_000 };
    const answers = [];
    for (let n = 1; n <= 9; n++) answers.push(await ops.decide(orderId, part));
    expect(answers.map(({ status }) => status)).toEqual([
      201, 201, 201, 201, 202, 202, 202, 202, 202,
    ]);
    await waitFor(
      'what one person decided has gone back',
      async () => (await saga.books(orderId)).refunds.count === 4,
    );
    // What a second person confirmed is nothing that one decided alone, and allows nothing more.
    expect(await ops.confirm((await ops.decide(orderId, part)).body.act_no)).toMatchObject({
      status: 201,
    });
    expect(await ops.decide(orderId, part)).toMatchObject({ status: 202 });
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'review',
      ref: money(5, 25_000),
    });
  });

  it('waits for a second person, and is refused when the case has moved on', async () => {
    const { orderId, outTradeNo, held, captureId } = await ops.mismatch(20_001, { amount: 30_000 });
    const accept = { kind: 'accept_money', ...held.named, capture_id: captureId };
    const first = await ops.act(orderId, accept);
    expect(first).toMatchObject({ status: 202, body: { status: 'waiting_second' } });
    // Meanwhile other money comes: the decision was made on an older picture.
    await saga.mock.capture({ outTradeNo, amountMinor: 5 });
    await waitFor('the second capture', async () => (await saga.captures(orderId)).length === 2);
    expect(await ops.confirm(first.body.act_no)).toMatchObject({
      status: 409,
      body: { code: 'case_version_outdated', act: { status: 'refused' } },
    });
    expect((await saga.order(orderId)).status).toBe('review');
    const now = await ops.openCase(orderId);
    const second = await ops.act(orderId, { ...accept, ...now.named });
    expect(second.status).toBe(202);
    expect(await ops.confirm(second.body.act_no)).toMatchObject({ status: 201 });
    await saga.untilSettled(orderId);
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'paid',
      cap: money(2, 20_006),
      ref: money(1, 5),
      settling: 1,
      evt: 1,
    });
  });
});

describe('surplus money', () => {
  it('whose automatic refund was refused goes back by hand; the order stays paid', async () => {
    const { orderId, outTradeNo } = await saga.paidOrder();
    await saga.mock.addFault({
      match: { operation: 'refund', outTradeNo },
      times: 1,
      do: { refund: 'refuse' },
    });
    await saga.mock.capture({ outTradeNo });
    const held = await ops.openCase(orderId);
    expect(held.kind).toBe('refund_failed');
    const surplus = held.captures.find((c: { held: number }) => c.held > 0);
    expect(surplus).toMatchObject({ amount: 10_000, settles: false, rest: 10_000 });
    // A paid order has its capture; the second cannot be accepted as well.
    const named = { ...held.named, capture_id: surplus.capture_id };
    expect(await ops.act(orderId, { kind: 'accept_money', ...named })).toMatchObject({
      status: 409,
      body: { code: 'order_not_in_review' },
    });
    expect(await ops.act(orderId, { kind: 'refund_money', ...named })).toMatchObject({
      status: 201,
    });
    await waitFor('the case closes with the refund', async () =>
      (await ops.caseStatus(orderId)).every((status) => status === 'closed'),
    );
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'paid',
      cap: money(2, 20_000),
      ref: money(1, 10_000),
      settling: 1,
      evt: 1,
      review: 0,
    });
    expect(saga.merchant.effects(orderId, 'payment.surplus_refunded')).toHaveLength(1);
  });

  it('takes the place of a payment that was reversed, its held refund given up', async () => {
    const { orderId, outTradeNo } = await saga.paidOrder();
    await saga.untilSettled(orderId);
    await saga.mock.waitUntilIdle();
    await saga.stopWorkers();
    try {
      await saga.mock.capture({ outTradeNo });
      await saga.mock.waitUntilIdle();
      await saga.mock.reverse({ outTradeNo });
      await saga.mock.waitUntilIdle();
    } finally {
      await saga.startWorker();
    }
    await saga.untilOrder(orderId, 'review');
    const held = await waitFor('the promised refund is held', async () => {
      const now = await ops.openCase(orderId);
      return now.summary.includes('is held') && now;
    });
    const good = held.captures.find((c: { status: string }) => c.status === 'captured');
    expect(
      await ops.act(orderId, {
        kind: 'accept_money',
        ...held.named,
        capture_id: good.capture_id,
      }),
    ).toMatchObject({ status: 201, body: { result: { order_status: 'paid' } } });
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'paid',
      ref: money(0, 0),
      settling: 1,
      evt: 1,
      review: 0,
    });
    const settled = (await saga.captures(orderId)).filter((c) => c.settles);
    expect(settled).toMatchObject([{ status: 'captured', capture_id: Number(good.capture_id) }]);
  });

  it.each([
    ['', 0],
    [', also while the run that found it so is still ending', 2_000],
  ])('of an abnormal refund is sent again under the same number%s', async (_, holdMs) => {
    const { orderId, outTradeNo } = await saga.paidOrder();
    await saga.mock.addFault({
      match: { operation: 'refund', outTradeNo },
      times: 1,
      do: { refund: 'abnormal' },
    });
    process.env['FAILPOINT'] = `nudge-order:before#${orderId}~${holdMs}`;
    await saga.refund(orderId, 'R1', 4_000);
    await saga.untilRefund(orderId, 'R1', 'abnormal');
    expect(await ops.decide(orderId, { kind: 'resend_refund', refund_no: 'R1' })).toMatchObject({
      status: 201,
    });
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await waitFor('the case closes', async () => (await ops.caseStatus(orderId))[0] === 'closed');
    await expectAlwaysTrue(saga, orderId);
    const books = await saga.books(orderId);
    expect(books.refundNumbers).toHaveLength(1);
    expect(books.refunds).toEqual(money(1, 4_000));
    expect((await saga.order(orderId)).refund_status).toBe('partial');
  });
});
