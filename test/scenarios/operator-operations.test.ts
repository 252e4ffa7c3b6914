import { randomUUID } from 'node:crypto';
import { expectAlwaysTrue, figuresOf, historiesOf, money } from '../support/figures';
import { Operators } from '../support/operators';
import { Saga } from '../support/saga';
import { refundWorkflowId } from '../../workflows/ids';
import { waitFor } from '../support/wait';

/** What an operator does by routes, and another one in Temporal Web at the same time. */
let saga: Saga;
let ops: Operators;
beforeAll(async () => {
  saga = await Saga.start({ policy: { pollLadderMs: [30_000] } });
  ops = await Operators.of(saga);
});
afterAll(() => saga?.stop());

async function mismatch() {
  const orderId = await saga.createOrder();
  await saga.pay(orderId);
  await saga.mock.capture({ outTradeNo: await saga.outTradeNo(orderId), amountMinor: 9_000 });
  await saga.untilOrder(orderId, 'review');
  const held = await ops.openCase(orderId);
  const named = { ...held.named, capture_id: held.captures[0].capture_id as string };
  return { orderId, accept: { act_no: ops.nextNo(), kind: 'accept_money', ...named } };
}

const ACCEPTED = {
  status: 'paid',
  cap: money(1, 9_000),
  ref: money(0, 0),
  settling: 1,
  evt: 1,
  review: 0,
};

describe('an act and an operation of the server', () => {
  it('B113: the run is cancelled while an act waits in it: performed once, by this run or the next', async () => {
    const { orderId, accept } = await mismatch();
    await saga.stopWorkers();
    const asked = ops.act(orderId, accept);
    await waitFor('the act is stored', async () => {
      const { status } = await ops.call('GET', `/ops/acts/${accept.act_no}`);
      return status === 200;
    });
    await waitFor('a run is open', async () => {
      return (await saga.handle(orderId).describe()).status.name === 'RUNNING';
    });
    await saga.handle(orderId).cancel();
    await saga.startWorker();
    expect([201, 202]).toContain((await asked).status);
    await saga.untilOrder(orderId, 'paid');
    expect(await ops.act(orderId, accept)).toMatchObject({ status: 200 });
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject(ACCEPTED);
  });

  it('B112: the run is terminated while an act waits in it: the next run performs it', async () => {
    const { orderId, accept } = await mismatch();
    await saga.stopWorkers();
    const asked = ops.act(orderId, accept);
    await waitFor('a run is open', async () => {
      return (await saga.handle(orderId).describe()).status.name === 'RUNNING';
    });
    await saga.handle(orderId).terminate('an operator’s slip');
    await saga.startWorker();
    expect([201, 202]).toContain((await asked).status);
    // Nobody repeats it: an accepted act is work, and the sweep finds it.
    await saga.untilOrder(orderId, 'paid', 30_000);
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject(ACCEPTED);
  });

  it('B119: a run reset to before its act performs nothing again', async () => {
    const { orderId, accept } = await mismatch();
    expect(await ops.act(orderId, accept)).toMatchObject({ status: 201 });
    await saga.untilSettled(orderId);
    await waitFor('the run ends', async () => {
      return (await saga.handle(orderId).describe()).status.name === 'COMPLETED';
    });
    const before = { moves: await saga.moves(orderId), cases: await saga.moves(orderId, 'case') };
    const { workflowId, runId } = await saga.handle(orderId).describe();
    const { events } = await saga.handle(orderId).fetchHistory();
    const first = events!.find((e) => e.workflowTaskCompletedEventAttributes);
    await saga.client.workflowService.resetWorkflowExecution({
      namespace: saga.client.options.namespace,
      workflowExecution: { workflowId, runId },
      reason: 'a test goes back to before the act',
      workflowTaskFinishEventId: first!.eventId as never,
      requestId: randomUUID(),
    });
    await waitFor('the run after the reset ends', async () => {
      const now = await saga.handle(orderId).describe();
      return now.runId !== runId && now.status.name === 'COMPLETED';
    });
    expect(await figuresOf(saga, orderId)).toMatchObject(ACCEPTED);
    expect(await saga.moves(orderId)).toEqual(before.moves);
    expect(await saga.moves(orderId, 'case')).toEqual(before.cases);
  });

  it('B116: an update typed by hand performs only what was stored and confirmed', async () => {
    const { orderId, accept } = await mismatch();
    const asked = (actNo: string) =>
      saga.client.workflow
        .getHandle(`order:${saga.merchantId}:${orderId}`)
        .executeUpdate('operatorAction', { args: [{ actNo }] as never });
    await ops.act(orderId, { kind: 'query_now' });
    // An order that waits for its payer has an open run; this one is kept open by its refund.
    const other = await saga.createOrder();
    const handle = saga.handle(other);
    expect(
      await handle.executeUpdate('operatorAction', { args: [{ actNo: 'nobody' }] as never }),
    ).toEqual({ outcome: 'act_unknown' });
    expect(
      await handle.executeUpdate('operatorAction', { args: [{ actNo: accept.act_no }] as never }),
    ).toEqual({ outcome: 'act_unknown' });
    await asked('nobody').catch(() => undefined);
    expect((await saga.order(orderId)).status).toBe('review');
    await saga.cancel(other);
  });
});

describe('a refund’s run that an operator terminates', () => {
  it('B112: is started again by its order; the number that was sent is asked about, not sent again', async () => {
    const { orderId, outTradeNo } = await saga.paidOrder();
    await saga.mock.addFault({
      match: { operation: 'refund', outTradeNo },
      do: { refund: 'hold' },
    });
    await saga.refund(orderId, 'R1', 4_000);
    await saga.untilRefund(orderId, 'R1', 'processing');
    const child = saga.client.workflow.getHandle(
      refundWorkflowId({ merchantId: saga.merchantId, orderId }, 'R1'),
    );
    const { runId } = await child.describe();
    await child.terminate('an operator’s slip');
    const [row] = await saga.rows<{ out_refund_no: string }>(
      `update refunds set next_due_at = now() - interval '2 minutes'
       where merchant_id = $1::text and order_id = $2::text returning out_refund_no`,
      saga.merchantId,
      orderId,
    );
    await waitFor(
      'another run of the refund',
      async () => (await child.describe()).runId !== runId,
    );
    await saga.mock.finishRefund({
      outRefundNo: row!.out_refund_no,
      result: 'succeed',
      callback: false,
    });
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await expectAlwaysTrue(saga, orderId);
    const books = await saga.books(orderId);
    expect(books.refunds).toEqual(money(1, 4_000));
    expect(books.calls.refund).toBe(1);
  });
});

describe('Temporal Web alone answers where the money is', () => {
  const detailsOf = async (orderId: string) => {
    const metadata = (await saga.handle(orderId).query('__temporal_workflow_metadata')) as {
      currentDetails?: string;
    };
    return metadata.currentDetails;
  };

  it('of an order under review', async () => {
    const { orderId } = await mismatch();
    await saga.untilSettled(orderId);
    await waitFor('the list of what waits for a person', async () => {
      const ids = [];
      const query = `MerchantId = '${saga.merchantId}' and NeedsReview = true`;
      for await (const run of saga.client.workflow.list({ query })) ids.push(run.workflowId);
      return ids.includes(`order:${saga.merchantId}:${orderId}`);
    });
    const run = await saga.handle(orderId).describe();
    expect(run.memo).toEqual({ amountMinor: 10_000, currency: 'CNY' });
    expect(await run.staticSummary()).toBe(`order ${orderId}: 10000 CNY`);
    expect(await detailsOf(orderId)).toContain('review (amount_mismatch); captured 9000 CNY');
    expect(await detailsOf(orderId)).toContain('a person must decide');
  });

  it('of an order that is paid and refunded in part; every step says what it is', async () => {
    const { orderId } = await saga.paidOrder();
    await saga.refund(orderId, 'R1', 4_000);
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await ops.act(orderId, { kind: 'query_now' });
    await saga.untilSettled(orderId);
    await waitFor('the line says so', async () =>
      (await detailsOf(orderId))?.includes('captured 10000 CNY, 4000 given back'),
    );
    for (const events of await historiesOf(saga, orderId)) {
      for (const event of events) {
        const isStep =
          event.activityTaskScheduledEventAttributes || event.timerStartedEventAttributes;
        if (isStep) expect(event.userMetadata?.summary?.data?.length).toBeGreaterThan(2);
      }
    }
  });
});
