import { ageOrder } from '../support/age-order';
import {
  expectBooksAgree,
  refundRow,
  refundRows,
  refundStates,
  refundStatusMoves,
} from '../support/refund-books';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

describe('a refund shows what the channel did, no more and no less', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start();
  });
  afterAll(() => saga?.stop());

  it('B58: callbacks of an earlier refund, sent again days later, change nothing', async () => {
    const { orderId, outTradeNo } = await saga.paidOrder();
    await saga.refund(orderId, 'R1', 1_000);
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await saga.refund(orderId, 'R2', 2_000);
    await saga.untilRefund(orderId, 'R2', 'succeeded');
    await saga.untilSettled(orderId);
    await saga.mock.waitUntilIdle();
    await ageOrder(saga, orderId, '3 days');
    const { out_refund_no: firstNo } = await refundRow(saga, orderId, 'R1');
    const first = (await saga.mock.deliveries({ outTradeNo })).find(
      ({ kind, requestBodyBase64 }) =>
        kind === 'refund' && Buffer.from(requestBodyBase64, 'base64').toString().includes(firstNo),
    );
    const noticeId = first?.noticeId;
    const copies = [
      ...(await saga.mock.resendCallback({ noticeId })),
      ...(await saga.mock.resendCallback({ noticeId, newNotifyId: true })),
    ];
    expect(copies.map(({ httpStatus, acknowledged }) => [httpStatus, acknowledged])).toEqual([
      [200, true],
      [200, true],
    ]);

    await saga.untilSettled(orderId);
    expect(await refundRows(saga, orderId)).toMatchObject([
      { refund_no: 'R1', amount_minor: 1_000, status: 'succeeded' },
      { refund_no: 'R2', amount_minor: 2_000, status: 'succeeded' },
    ]);
    expect(await refundStates(saga, orderId, 'R1')).toHaveLength(
      (await refundStates(saga, orderId, 'R2')).length,
    );
    expect(await saga.order(orderId)).toMatchObject({ status: 'paid', refund_status: 'partial' });
    const books = await saga.books(orderId);
    expect(books.refunds).toEqual({ count: 2, sums: { CNY: 3_000 } });
    expect(books.calls.refund).toBe(2);
    expect(saga.merchant.effects(orderId, 'refund.succeeded')).toHaveLength(2);
    expect(await saga.openCases(orderId)).toEqual([]);
    await expectBooksAgree(saga, orderId);
  });

  it('B59: a refund pending for three days is processing throughout, then succeeds', async () => {
    const { orderId } = await saga.paidOrder({ subject: 'Order #b59' });
    await saga.mock.addFault({
      match: { operation: 'refund', tag: 'b59' },
      times: 1,
      do: { refund: 'hold' },
    });
    expect((await saga.refund(orderId, 'R1')).status).toBe(201);
    await saga.untilRefund(orderId, 'R1', 'processing');
    for (let day = 1; day <= 3; day++) {
      await ageOrder(saga, orderId, '1 day');
      const asked = (await saga.books(orderId)).calls.refund_query;
      await waitFor(
        `a query on day ${day}`,
        async () => (await saga.books(orderId)).calls.refund_query > asked,
      );
      const repeat = await saga.refund(orderId, 'R1');
      expect(repeat.status).toBe(200);
      expect(repeat.body).toMatchObject({ status: 'processing', amount: 10_000 });
      expect((await saga.refund(orderId, 'R2', 10_000)).status).toBe(422);
    }
    expect((await saga.order(orderId)).refund_status).toBe('pending');

    const { out_refund_no: outRefundNo } = await refundRow(saga, orderId, 'R1');
    await saga.mock.finishRefund({ outRefundNo, result: 'succeed' });
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await saga.untilSettled(orderId);
    expect(await refundStates(saga, orderId, 'R1')).toEqual([
      'created',
      'submitting',
      'processing',
      'succeeded',
    ]);
    const books = await saga.books(orderId);
    expect(books.refunds).toEqual({ count: 1, sums: { CNY: 10_000 } });
    expect(books.refundNumbers).toEqual([outRefundNo]);
    expect(await refundRows(saga, orderId)).toHaveLength(1);
    await expectBooksAgree(saga, orderId);
  });

  it('B61: not enough balance, twice, is sent again under the same number until it works', async () => {
    const { orderId } = await saga.paidOrder({ subject: 'Order #b61' });
    await saga.mock.addFault({
      match: { operation: 'refund', tag: 'b61' },
      times: 2,
      do: { refund: 'not_enough_balance' },
    });
    expect((await saga.refund(orderId, 'R1', 4_000)).status).toBe(201);
    await saga.untilRefund(orderId, 'R1', 'processing');
    expect((await saga.refund(orderId, 'R2', 6_001)).status).toBe(422);
    const refundable = new Set<number>();
    await waitFor('the refund', async () => {
      const { body } = await saga.status(orderId);
      refundable.add(body.refundable_minor);
      return body.refunds[0].status === 'succeeded';
    });
    expect([...refundable]).toEqual([6_000]);

    await saga.untilSettled(orderId);
    const { out_refund_no: outRefundNo } = await refundRow(saga, orderId, 'R1');
    const books = await saga.books(orderId);
    expect(books.refundNumbers).toEqual([outRefundNo]);
    expect(books.calls.refund).toBe(3);
    expect(books.refunds).toEqual({ count: 1, sums: { CNY: 4_000 } });
    expect(await refundStates(saga, orderId, 'R1')).not.toContain('failed');
    await expectBooksAgree(saga, orderId);
  });

  it('B62: a refund pending for two hours moves the order once each way and is told once', async () => {
    const { orderId, outTradeNo } = await saga.paidOrder({ subject: 'Order #b62' });
    await saga.mock.addFault({
      match: { operation: 'refund', tag: 'b62' },
      do: { refund: 'hold' },
    });
    expect((await saga.refund(orderId, 'R1')).status).toBe(201);
    await saga.untilRefund(orderId, 'R1', 'processing');
    await ageOrder(saga, orderId, '2 hours');
    const { out_refund_no: outRefundNo } = await refundRow(saga, orderId, 'R1');
    const between = [
      ...(await saga.mock.sendCallback({ outTradeNo, outRefundNo })),
      ...(await saga.mock.sendCallback({ outTradeNo, notifyId: 'new' })),
    ];
    expect(between.map(({ word, httpStatus }) => [word, httpStatus])).toEqual([
      ['REFUND_PROCESSING', 200],
      ['TRADE_SUCCESS', 200],
    ]);
    await saga.mock.finishRefund({ outRefundNo, result: 'succeed' });
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await saga.untilSettled(orderId);

    expect(await saga.moves(orderId)).toEqual([
      'null>created',
      'created>paying',
      'paying>paid',
      'refund:none>refund:pending',
      'refund:pending>refund:full',
    ]);
    expect(saga.merchant.effects(orderId, 'refund.succeeded')).toHaveLength(1);
    expect(saga.merchant.effects(orderId, 'order.paid')).toHaveLength(1);
    expect(saga.merchant.effects(orderId)).toHaveLength(2);
    expect((await saga.books(orderId)).refunds).toEqual({ count: 1, sums: { CNY: 10_000 } });
    await expectBooksAgree(saga, orderId);
  });

  it('B64: the last part of a refund fits exactly, and a cent more does not', async () => {
    const { orderId } = await saga.paidOrder();
    const shown: string[] = [];
    for (const [no, amount] of [
      ['R1', 3_333],
      ['R2', 3_333],
      ['R3', 3_334],
    ] as const) {
      expect((await saga.refund(orderId, no, amount)).status).toBe(201);
      await saga.untilRefund(orderId, no, 'succeeded');
      shown.push((await saga.status(orderId)).body.refund_status);
    }
    expect(shown).toEqual(['partial', 'partial', 'full']);
    const over = await saga.refund(orderId, 'R4', 1);
    expect(over.status).toBe(422);
    expect(over.body).toMatchObject({ code: 'over_the_rest', refundable_minor: 0 });

    await saga.untilSettled(orderId);
    expect((await saga.books(orderId)).refunds).toEqual({ count: 3, sums: { CNY: 10_000 } });
    expect(await refundStatusMoves(saga, orderId)).toEqual([
      'none>pending',
      'pending>partial',
      'partial>pending',
      'pending>partial',
      'partial>pending',
      'pending>full',
    ]);
    expect((await saga.order(orderId)).status).toBe('paid');
    await expectBooksAgree(saga, orderId);
  });
});
