import { createChannelRegistry } from '../../channels/registry';
import { readChannelRows } from '../../db/channels';
import { ageOrder } from '../support/age-order';
import {
  expectBooksAgree,
  refundCalls,
  refundRow,
  refundRows,
  refundStates,
  refundStatusMoves,
} from '../support/refund-books';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

const SPACING_MS = 900;
const HOUR_MS = 60 * 60 * 1000;

describe('the rules of giving money back', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start({
      policy: {
        refundSpacingMs: SPACING_MS,
        maxRefundsPerCapture: 3,
        refundMaxAgeMs: 24 * HOUR_MS,
        refundCaseAfterMs: HOUR_MS,
      },
    });
  });
  afterAll(() => saga?.stop());

  async function capture(orderId: string) {
    const [settling] = await saga.rows<{ reserved_minor: number; refunded_minor: number }>(
      `select * from captures where merchant_id = $1::text and order_id = $2::text and settles`,
      saga.merchantId,
      orderId,
    );
    return settling;
  }

  const caseOf = (orderId: string, kind: string) =>
    waitFor(`a case ${kind}`, async () => {
      const [open] = await saga.openCases(orderId);
      return open?.evidence.some((e) => (e as { kind: string }).kind === kind) && open;
    });

  it('holds an automatic refund, with a case, when the settling capture was reversed first', async () => {
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
    await waitFor('the refund held', async () => {
      const [row] = await refundRows(saga, orderId);
      return row?.status === 'abnormal' && row;
    });
    expect(await refundRows(saga, orderId)).toMatchObject([
      { origin: 'surplus', status_reason: 'refund_in_doubt', amount_minor: 10_000, sends: 0 },
    ]);
    await caseOf(orderId, 'refund_in_doubt');
    await caseOf(orderId, 'reversed');
    expect((await saga.order(orderId)).status).toBe('review');
    const books = await saga.books(orderId);
    expect(books.captures.count).toBe(2);
    expect(books.calls.refund).toBe(0);
    expect(books.refunds.count).toBe(0);
    await expectBooksAgree(saga, orderId);
  });

  it('frees the money of a refused refund only once a query confirms the refusal', async () => {
    const { orderId } = await saga.paidOrder({ subject: 'Order #refused' });
    await saga.mock.addFault({
      match: { operation: 'refund', tag: 'refused' },
      times: 1,
      do: { refund: 'refuse', code: 'ACCOUNT_FROZEN' },
    });
    const silence = await saga.mock.addFault({
      match: { operation: 'refund_query', tag: 'refused' },
      do: { answer: 'http', status: 500 },
    });
    expect((await saga.refund(orderId, 'R1')).status).toBe(201);
    await waitFor(
      'two unanswered queries',
      async () => (await saga.books(orderId)).calls.refund_query >= 2,
    );
    expect(await refundRow(saga, orderId, 'R1')).toMatchObject({ status: 'submitting', sends: 1 });
    expect(await capture(orderId)).toMatchObject({ reserved_minor: 10_000, refunded_minor: 0 });
    expect((await saga.refund(orderId, 'R2', 1)).status).toBe(422);

    await saga.mock.removeFault(silence);
    await saga.untilRefund(orderId, 'R1', 'failed');
    await saga.untilSettled(orderId);
    expect(await capture(orderId)).toMatchObject({ reserved_minor: 0, refunded_minor: 0 });
    expect((await saga.status(orderId)).body).toMatchObject({
      refund_status: 'none',
      refundable_minor: 10_000,
    });
    expect(saga.merchant.effects(orderId, 'refund.failed')).toMatchObject([{ subject: 'R1' }]);
    expect((await saga.books(orderId)).calls.refund).toBe(1);

    // What failed is not sent again; a new number is a new refund.
    expect((await saga.refund(orderId, 'R1')).body).toMatchObject({ status: 'failed' });
    expect((await saga.refund(orderId, 'R2')).status).toBe(201);
    await saga.untilRefund(orderId, 'R2', 'succeeded');
    await saga.untilSettled(orderId);
    expect((await saga.books(orderId)).refunds).toEqual({ count: 1, sums: { CNY: 10_000 } });
    await expectBooksAgree(saga, orderId);
  });

  it('accepts the success of a refund held as failed, with a case', async () => {
    const { orderId } = await saga.paidOrder({ subject: 'Order #revived' });
    // The channel takes the refund, says it refused, and does not know it at first.
    await saga.mock.addFault({
      match: { operation: 'refund', tag: 'revived' },
      times: 1,
      do: { refund: 'hold', effect: 'normal', answer: 'refuse' },
    });
    await saga.mock.addFault({
      match: { operation: 'refund_query', tag: 'revived' },
      times: 1,
      do: { answer: 'no_such_order' },
    });
    await saga.refund(orderId, 'R1', 4_000);
    await saga.untilRefund(orderId, 'R1', 'failed');
    await saga.untilSettled(orderId);
    const { out_refund_no: outRefundNo } = await refundRow(saga, orderId, 'R1');
    await saga.mock.finishRefund({ outRefundNo, result: 'succeed' });
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await saga.untilSettled(orderId);
    await caseOf(orderId, 'refund_revived');
    expect(await refundStates(saga, orderId, 'R1')).toEqual([
      'created',
      'submitting',
      'failed',
      'succeeded',
    ]);
    expect(await capture(orderId)).toMatchObject({ reserved_minor: 0, refunded_minor: 4_000 });
    expect((await saga.books(orderId)).refunds).toEqual({ count: 1, sums: { CNY: 4_000 } });
    expect(await saga.order(orderId)).toMatchObject({ status: 'paid', refund_status: 'partial' });
    expect(saga.merchant.effects(orderId, 'refund.succeeded')).toHaveLength(1);
    await expectBooksAgree(saga, orderId);
  });

  it('takes the money of a returned refund back into sight', async () => {
    const { orderId } = await saga.paidOrder();
    await saga.refund(orderId, 'R1');
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    const { out_refund_no: outRefundNo } = await refundRow(saga, orderId, 'R1');
    await saga.mock.finishRefund({ outRefundNo, result: 'return' });
    await saga.untilRefund(orderId, 'R1', 'returned');
    await saga.untilSettled(orderId);
    await caseOf(orderId, 'refund_returned');
    expect(await capture(orderId)).toMatchObject({ reserved_minor: 0, refunded_minor: 0 });
    expect(await refundStatusMoves(saga, orderId)).toEqual([
      'none>pending',
      'pending>full',
      'full>none',
    ]);
    expect(saga.merchant.effects(orderId, 'refund.returned')).toMatchObject([{ subject: 'R1' }]);
    const books = await saga.books(orderId);
    expect(books.returned).toEqual({ count: 1, sums: { CNY: 10_000 } });
    expect(books.netMinor).toEqual({ CNY: 10_000 });
    await expectBooksAgree(saga, orderId);
  });

  it('puts an abnormal refund before a person and keeps its money reserved', async () => {
    const { orderId } = await saga.paidOrder({ subject: 'Order #abnormal' });
    await saga.mock.addFault({
      match: { operation: 'refund', tag: 'abnormal' },
      times: 1,
      do: { refund: 'abnormal' },
    });
    await saga.refund(orderId, 'R1', 4_000);
    await saga.untilRefund(orderId, 'R1', 'abnormal');
    await saga.untilSettled(orderId);
    await caseOf(orderId, 'refund_abnormal');
    expect(await capture(orderId)).toMatchObject({ reserved_minor: 4_000, refunded_minor: 0 });
    expect((await saga.order(orderId)).refund_status).toBe('pending');
    expect((await saga.refund(orderId, 'R2', 6_001)).status).toBe(422);

    const { out_refund_no: outRefundNo } = await refundRow(saga, orderId, 'R1');
    await saga.mock.finishRefund({ outRefundNo, result: 'succeed' });
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await saga.untilSettled(orderId);
    expect(await capture(orderId)).toMatchObject({ reserved_minor: 0, refunded_minor: 4_000 });
    await expectBooksAgree(saga, orderId);
  });

  it('books a refund that the channel made under a number of somebody else, with a case', async () => {
    const { orderId, outTradeNo } = await saga.paidOrder();
    await saga.untilSettled(orderId);
    await paidBackElsewhere(orderId, outTradeNo, 'DESK20260001', 2_500);
    await caseOf(orderId, 'refund_external');
    await saga.untilSettled(orderId);
    expect(await refundRows(saga, orderId)).toMatchObject([
      { refund_no: 'external:DESK20260001', origin: 'external', status: 'succeeded', sends: 0 },
    ]);
    expect(await capture(orderId)).toMatchObject({ reserved_minor: 0, refunded_minor: 2_500 });
    expect((await saga.status(orderId)).body).toMatchObject({
      refund_status: 'partial',
      refundable_minor: 7_500,
    });
    expect((await saga.refund(orderId, 'R1', 7_501)).status).toBe(422);
    await expectBooksAgree(saga, orderId);
  });

  it('finds its own refund again that only the channel remembers', async () => {
    const { orderId, outTradeNo } = await saga.paidOrder();
    await saga.refund(orderId, 'R1', 2_500);
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await saga.untilSettled(orderId);
    const { out_refund_no: outRefundNo } = await refundRow(saga, orderId, 'R1');
    await saga.mock.waitUntilIdle();
    // What a database restored from a backup of the minute before looks like.
    for (const statement of [
      `delete from refunds where merchant_id = $1::text and order_id = $2::text`,
      `delete from merchant_requests where kind = 'refund' and merchant_id = $1::text
         and order_id = $2::text`,
      `delete from channel_callbacks where fact->>'kind' = 'refund' and merchant_id = $1::text
         and order_id = $2::text`,
      `update captures set refunded_minor = 0 where merchant_id = $1::text and order_id = $2::text`,
      `update orders set refund_status = 'none' where merchant_id = $1::text and order_id = $2::text`,
    ]) {
      await saga.rows(statement, saga.merchantId, orderId);
    }
    await saga.mock.sendCallback({ outTradeNo, outRefundNo });
    await caseOf(orderId, 'refund_external');
    const again = await saga.refund(orderId, 'R1', 2_500);
    expect(again.status).toBe(200);
    expect(again.body).toMatchObject({
      refund_no: 'R1',
      out_refund_no: outRefundNo,
      amount: 2_500,
    });
    await saga.untilSettled(orderId);
    expect(await refundRows(saga, orderId)).toMatchObject([
      { refund_no: 'R1', origin: 'merchant', status: 'succeeded', sends: 0 },
    ]);
    expect((await saga.books(orderId)).refunds).toEqual({ count: 1, sums: { CNY: 2_500 } });
    await expectBooksAgree(saga, orderId);
  });

  it('keeps the spacing a channel wants between two refunds of one payment', async () => {
    const { orderId } = await saga.paidOrder();
    const answers = await Promise.all([
      saga.refund(orderId, 'R1', 1_000),
      saga.refund(orderId, 'R2', 1_000),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await saga.untilRefund(orderId, 'R2', 'succeeded');
    await saga.untilSettled(orderId);
    const sentAt = (await refundRows(saga, orderId))
      .map(({ first_sent_at }) => Date.parse(first_sent_at ?? ''))
      .sort((a, b) => a - b);
    expect((sentAt[1] ?? 0) - (sentAt[0] ?? 0)).toBeGreaterThanOrEqual(SPACING_MS);
    // Held back means not sent: each was called once.
    expect((await saga.books(orderId)).calls.refund).toBe(2);
    await expectBooksAgree(saga, orderId);
  });

  it('refuses more refunds of one payment than its channel allows', async () => {
    const { orderId } = await saga.paidOrder();
    for (const no of ['R1', 'R2', 'R3']) {
      expect((await saga.refund(orderId, no, 100)).status).toBe(201);
    }
    const fourth = await saga.refund(orderId, 'R4', 100);
    expect(fourth.status).toBe(422);
    expect(fourth.body).toMatchObject({ code: 'too_many', refundable_minor: 9_700 });
    await saga.untilSettled(orderId);
    expect((await saga.books(orderId)).refunds).toEqual({ count: 3, sums: { CNY: 300 } });
    expect(await refundRows(saga, orderId)).toHaveLength(3);
    await expectBooksAgree(saga, orderId);
  });

  it('refuses the refund of a payment older than its channel refunds', async () => {
    const { orderId } = await saga.paidOrder();
    await saga.untilSettled(orderId);
    await ageOrder(saga, orderId, '25 hours');
    const late = await saga.refund(orderId, 'R1', 100);
    expect(late.status).toBe(422);
    expect(late.body.code).toBe('too_old');
    expect(await refundRows(saga, orderId)).toEqual([]);
    expect((await saga.books(orderId)).calls.refund).toBe(0);
    await expectBooksAgree(saga, orderId);
  });

  it('opens a case for a refund past its age and leaves its state alone', async () => {
    const { orderId } = await saga.paidOrder({ subject: 'Order #overdue' });
    await saga.mock.addFault({
      match: { operation: 'refund', tag: 'overdue' },
      times: 1,
      do: { refund: 'hold' },
    });
    await saga.refund(orderId, 'R1', 4_000);
    await saga.untilRefund(orderId, 'R1', 'processing');
    expect(await saga.openCases(orderId)).toEqual([]);
    await ageOrder(saga, orderId, '2 hours');
    await caseOf(orderId, 'refund_overdue');
    const { status, out_refund_no: outRefundNo } = await refundRow(saga, orderId, 'R1');
    expect(status).toBe('processing');
    expect(await capture(orderId)).toMatchObject({ reserved_minor: 4_000, refunded_minor: 0 });

    const asked = (await refundCalls(saga, outRefundNo)).length;
    await waitFor(
      'the asking to go on',
      async () => (await refundCalls(saga, outRefundNo)).length > asked,
    );
    await saga.mock.finishRefund({ outRefundNo, result: 'succeed' });
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await saga.untilSettled(orderId);
    // One case, however often the refund was found overdue.
    expect(await saga.openCases(orderId)).toMatchObject([{ kind: 'refund_overdue' }]);
    expect((await saga.openCases(orderId))[0]?.evidence).toHaveLength(1);
    await expectBooksAgree(saga, orderId);
  });

  /** Another system of the merchant's, with the same account at the channel, pays back. */
  async function paidBackElsewhere(
    orderId: string,
    outTradeNo: string,
    outRefundNo: string,
    amountMinor: number,
  ): Promise<void> {
    const registry = createChannelRegistry({
      readRows: () => readChannelRows(saga.pool),
      env: saga.env,
      refreshAfterMs: 60_000,
    });
    const elsewhere = await registry.get('mock-a');
    const [record] = await saga.records(orderId);
    const answer = await elsewhere?.channel.createRefund({
      outRefundNo,
      outTradeNo,
      channelTradeNo: record?.channel_trade_no ?? '',
      amountMinor,
      captureAmountMinor: 10_000,
      currency: 'CNY',
      reason: 'at the desk',
    });
    expect(answer).toMatchObject({ outcome: 'answered' });
  }
});
