import { refundRow } from '../support/refund-books';
import { Operators } from '../support/operators';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

/**
 * Every kind of event from a real happening: told once, in order, with the order as it stood then.
 * Those of fulfilment are in fulfilment.test.ts.
 */
describe('what a merchant is told', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start();
  });
  afterAll(() => saga?.stop());

  /** Types, subjects and the part of the payload that is looked at, in the order of their arrival. */
  async function told(orderId: string, ...fields: string[]) {
    await saga.mock.waitUntilIdle({ timeoutMs: 10_000 });
    await saga.untilSettled(orderId);
    const events = saga.merchant.effects(orderId);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1));
    return events.map(({ type, data }) => [type, ...fields.map((field) => data[field])]);
  }

  it('paid, then refunded: each event holds the state of its own moment', async () => {
    const { orderId } = await saga.paidOrder();
    await saga.refund(orderId, 'R1', 4_000);
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await saga.refund(orderId, 'R2');
    await saga.untilRefund(orderId, 'R2', 'succeeded');
    expect(
      await told(orderId, 'subject', 'status', 'refund_status', 'captured_minor', 'refunded_minor'),
    ).toEqual([
      ['order.paid', '', 'paid', 'none', 10_000, 0],
      ['refund.succeeded', 'R1', 'paid', 'partial', 10_000, 4_000],
      ['refund.succeeded', 'R2', 'paid', 'full', 10_000, 10_000],
    ]);
  });

  it('closed', async () => {
    const orderId = await saga.createOrder();
    expect((await saga.cancel(orderId)).status).toBe(200);
    expect(await told(orderId, 'status', 'status_reason')).toEqual([
      ['order.closed', 'closed', 'cancelled'],
    ]);
  });

  it('under review for another amount, and never told paid', async () => {
    const orderId = await saga.createOrder();
    await saga.pay(orderId);
    const outTradeNo = await saga.outTradeNo(orderId);
    await saga.mock.capture({ outTradeNo, amountMinor: 9_999 });
    await saga.untilOrder(orderId, 'review');
    expect(await told(orderId, 'subject', 'status')).toEqual([
      ['order.review', 'amount_mismatch', 'review'],
    ]);
  });

  it('reversed, and under review by that', async () => {
    const { orderId, outTradeNo } = await saga.paidOrder();
    await saga.mock.reverse({ outTradeNo });
    await saga.untilOrder(orderId, 'review');
    const events = await told(orderId, 'status', 'reversed_minor');
    expect(events).toEqual([
      ['order.paid', 'paid', 0],
      ['payment.reversed', 'review', 10_000],
      ['order.review', 'review', 10_000],
    ]);
  });

  it('reversed, given back and accepted: the review has ended, and paid is told once', async () => {
    const ops = await Operators.of(saga);
    const { orderId, outTradeNo } = await saga.paidOrder();
    await saga.mock.reverse({ outTradeNo });
    await saga.untilOrder(orderId, 'review');
    await saga.mock.reinstate({ outTradeNo });
    await saga.mock.waitUntilIdle({ timeoutMs: 10_000 });
    await saga.untilSettled(orderId);
    const [settling] = await saga.captures(orderId);
    const accept = { kind: 'accept_money', capture_id: String(settling!.capture_id) };
    const { case_id: caseId } = await ops.openCase(orderId);
    expect(await ops.decide(orderId, accept)).toMatchObject({ status: 201 });
    const events = await told(orderId, 'status', 'captured_minor', 'reversed_minor');
    expect(events).toEqual([
      ['order.paid', 'paid', 10_000, 0],
      ['payment.reversed', 'review', 10_000, 10_000],
      ['order.review', 'review', 10_000, 10_000],
      ['order.review_ended', 'paid', 10_000, 0],
    ]);
    expect(saga.merchant.effects(orderId, 'order.review_ended')).toMatchObject([
      { subject: `case:${caseId}` },
    ]);
  });

  it('a second payment that went back', async () => {
    const { orderId, outTradeNo } = await saga.paidOrder();
    await saga.mock.capture({ outTradeNo });
    const [refundNo] = await waitForSurplus(orderId);
    expect(await told(orderId, 'subject', 'status', 'refund_status')).toEqual([
      ['order.paid', '', 'paid', 'none'],
      ['payment.surplus_refunded', refundNo, 'paid', 'none'],
    ]);
  });

  it('a refund refused, and one whose money came back', async () => {
    const { orderId } = await saga.paidOrder({ subject: 'refused once #refuse-once' });
    const fault = await saga.mock.addFault({
      match: { operation: 'refund', tag: 'refuse-once' },
      times: 1,
      do: { refund: 'refuse', code: 'ACCOUNT_FROZEN' },
    });
    await saga.refund(orderId, 'R1', 1_000);
    await saga.untilRefund(orderId, 'R1', 'failed');
    await saga.mock.removeFault(fault).catch(() => undefined);
    await saga.refund(orderId, 'R2', 2_000);
    await saga.untilRefund(orderId, 'R2', 'succeeded');
    const { out_refund_no: outRefundNo } = await refundRow(saga, orderId, 'R2');
    await saga.mock.finishRefund({ outRefundNo, result: 'return' });
    await saga.untilRefund(orderId, 'R2', 'returned');
    expect(await told(orderId, 'subject', 'refund_status', 'refunded_minor')).toEqual([
      ['order.paid', '', 'none', 0],
      ['refund.failed', 'R1', 'none', 0],
      ['refund.succeeded', 'R2', 'partial', 2_000],
      ['refund.returned', 'R2', 'none', 0],
    ]);
  });

  function waitForSurplus(orderId: string): Promise<string[]> {
    return waitFor('the surplus went back', async () => {
      const rows = await saga.rows<{ refund_no: string }>(
        `select refund_no from refunds where order_id = $1::text and status = 'succeeded'`,
        orderId,
      );
      return rows.length > 0 && rows.map(({ refund_no }) => refund_no);
    });
  }
});
