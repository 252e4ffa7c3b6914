import { randomUUID } from 'node:crypto';
import { orderWorkflowId, refundWorkflowId } from '../../workflows/ids';
import { figuresOf, money, taskFailures } from '../support/figures';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

/** What B119 allows a run after a reset. */
const BOUND_MS = 60_000;

const PAID_AND_PARTLY_REFUNDED = {
  status: 'paid',
  cap: money(1, 10_000),
  ref: money(1, 3_000),
  calls: 1,
  rows: 1,
  settling: 1,
  evt: 1,
  review: 0,
};

describe('a run that an operator resets', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start();
  });
  afterAll(() => saga?.stop());

  type Events = Awaited<ReturnType<typeof eventsOf>>;
  async function eventsOf(workflowId: string, runId?: string) {
    return (await saga.client.workflow.getHandle(workflowId, runId).fetchHistory()).events ?? [];
  }

  /** Where the operator puts the cursor, as an event id of the run. */
  const POINTS = {
    'its first task': (events: Events) =>
      find(events, (e) => !!e.workflowTaskCompletedEventAttributes),
    'just before the charge': (events: Events) => {
      const charge = events.find(
        (e) => e.activityTaskScheduledEventAttributes?.activityType?.name === 'submitPayment',
      );
      return Number(
        charge?.activityTaskScheduledEventAttributes?.workflowTaskCompletedEventId ?? 0,
      );
    },
    "just after the child's start": (events: Events) => {
      const start = find(events, (e) => !!e.childWorkflowExecutionStartedEventAttributes);
      return find(
        events,
        (e) => Number(e.eventId) > start && !!e.workflowTaskCompletedEventAttributes,
      );
    },
  };

  function find(events: Events, wanted: (event: Events[number]) => boolean): number {
    return Number(events.find(wanted)?.eventId ?? 0);
  }

  /** Resets the first run of the workflow that has such a point; returns the new run. */
  async function reset(workflowId: string, point: keyof typeof POINTS): Promise<string> {
    const found = await waitFor(`a run with a point: ${point}`, async () => {
      for await (const run of saga.client.workflow.list({
        query: `WorkflowId = '${workflowId}'`,
      })) {
        const eventId = POINTS[point](await eventsOf(workflowId, run.runId));
        if (eventId > 0) return { runId: run.runId, eventId };
      }
      return undefined;
    });
    const { runId } = await saga.client.workflowService.resetWorkflowExecution({
      namespace: saga.client.options.namespace,
      workflowExecution: { workflowId, runId: found.runId },
      reason: `a test goes back to ${point}`,
      workflowTaskFinishEventId: found.eventId as never,
      requestId: randomUUID(),
    });
    expect(runId).not.toBe(found.runId);
    return runId ?? '';
  }

  async function expectCompleted(workflowId: string, runId: string): Promise<void> {
    await waitFor(
      'the run after the reset ends',
      async () => {
        const run = await saga.client.workflow.getHandle(workflowId, runId).describe();
        if (run.status.name !== 'RUNNING') return run.status.name === 'COMPLETED';
        throw new Error(`${run.status.name}, ${run.historyLength} events`);
      },
      BOUND_MS,
    );
    // The server writes the reason of the reset into the event that it makes.
    const failures = taskFailures(await eventsOf(workflowId, runId));
    expect(failures.filter((failure) => !failure.includes('a test goes back'))).toEqual([]);
  }

  const orderOf = (orderId: string) => orderWorkflowId({ merchantId: saga.merchantId, orderId });
  const childOf = (orderId: string, refundNo: string) =>
    refundWorkflowId({ merchantId: saga.merchantId, orderId }, refundNo);

  async function paidAndRefunded() {
    const { orderId } = await saga.paidOrder();
    expect((await saga.refund(orderId, 'R1', 3_000)).status).toBe(201);
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await saga.untilSettled(orderId);
    await waitFor(
      'the order has no open run',
      async () => (await saga.handle(orderId).describe()).status.name === 'COMPLETED',
    );
    return orderId;
  }

  it.each(Object.keys(POINTS) as (keyof typeof POINTS)[])(
    'B119: a paid and refunded order, reset to %s, ends as it was',
    async (point) => {
      const orderId = await paidAndRefunded();
      const before = { moves: await saga.moves(orderId), books: await saga.books(orderId) };
      const runId = await reset(orderOf(orderId), point);
      await expectCompleted(orderOf(orderId), runId);
      await saga.untilSettled(orderId);
      expect(await figuresOf(saga, orderId)).toMatchObject(PAID_AND_PARTLY_REFUNDED);
      expect(await saga.order(orderId)).toMatchObject({ status: 'paid', refund_status: 'partial' });
      const { calls } = await saga.books(orderId);
      expect(calls).toMatchObject({ create: 1, refund: 1, close: 0 });
      expect(await saga.moves(orderId)).toEqual(before.moves);
      expect(saga.merchant.effects(orderId)).toHaveLength(
        new Set(saga.merchant.effects(orderId).map(({ type, subject }) => `${type} ${subject}`))
          .size,
      );
    },
  );

  it('B119: an order reset while it waits for the payer is paid all the same, charged once', async () => {
    const orderId = await saga.createOrder();
    expect((await saga.pay(orderId)).status).toBe(201);
    const runId = await reset(orderOf(orderId), 'just before the charge');
    await saga.mock.approve(await saga.outTradeNo(orderId));
    await saga.untilOrder(orderId, 'paid');
    await saga.untilSettled(orderId);
    await expectCompleted(orderOf(orderId), runId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      ...PAID_AND_PARTLY_REFUNDED,
      ref: money(0, 0),
    });
  });

  it('B119: a refund child reset while it runs refunds once, and its order is not left waiting', async () => {
    const { orderId, outTradeNo } = await saga.paidOrder();
    await saga.mock.addFault({
      match: { operation: 'refund', outTradeNo },
      do: { refund: 'hold' },
    });
    expect((await saga.refund(orderId, 'R1', 3_000)).status).toBe(201);
    await saga.untilRefund(orderId, 'R1', 'processing');
    const runId = await reset(childOf(orderId, 'R1'), 'its first task');
    const [row] = await saga.rows<{ out_refund_no: string }>(
      `select out_refund_no from refunds where merchant_id = $1::text and order_id = $2::text`,
      saga.merchantId,
      orderId,
    );
    await waitFor('the new run of the child has asked the channel', async () => {
      const events = await eventsOf(childOf(orderId, 'R1'), runId);
      return events.some((e) => e.activityTaskCompletedEventAttributes);
    });
    await saga.mock.finishRefund({ outRefundNo: row!.out_refund_no, result: 'succeed' });
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await expectCompleted(childOf(orderId, 'R1'), runId);
    await saga.untilSettled(orderId);
    await waitFor(
      'the order has no open run',
      async () => (await saga.handle(orderId).describe()).status.name === 'COMPLETED',
    );
    expect(await figuresOf(saga, orderId)).toMatchObject(PAID_AND_PARTLY_REFUNDED);
    const books = await saga.books(orderId);
    expect(books.calls.refund).toBe(1);
    expect(books.refundNumbers).toEqual([row!.out_refund_no]);
    expect((await saga.order(orderId)).refund_status).toBe('partial');
  });

  it('B119: an order reset while its refund is under way takes the running child for its own', async () => {
    const { orderId, outTradeNo } = await saga.paidOrder();
    await saga.mock.addFault({
      match: { operation: 'refund', outTradeNo },
      do: { refund: 'hold' },
    });
    expect((await saga.refund(orderId, 'R1', 3_000)).status).toBe(201);
    await saga.untilRefund(orderId, 'R1', 'processing');
    const runId = await reset(orderOf(orderId), "just after the child's start");
    const [row] = await saga.rows<{ out_refund_no: string }>(
      `select out_refund_no from refunds where merchant_id = $1::text and order_id = $2::text`,
      saga.merchantId,
      orderId,
    );
    await saga.mock.finishRefund({ outRefundNo: row!.out_refund_no, result: 'succeed' });
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await expectCompleted(orderOf(orderId), runId);
    await saga.untilSettled(orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject(PAID_AND_PARTLY_REFUNDED);
    expect((await saga.books(orderId)).calls.refund).toBe(1);
  });
});
