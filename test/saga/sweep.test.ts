import { reconciliationScheduleId, sweepScheduleId } from '../../workflows/ids';
import { insertRow } from '../support/rows';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

const SWEEP_EVERY_MS = 1_000;
/** A sweep, the time that Temporal's list lags behind, and the new run's first steps. */
const PICKED_UP_WITHIN_MS = 8 * SWEEP_EVERY_MS;
const HALF_AN_HOUR_MS = 1_800_000;

describe('the sweep', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start({
      workers: 2,
      // No appointment of its own brings an order back in this file: only the sweep does.
      policy: { pollLadderMs: [HALF_AN_HOUR_MS] },
      env: { SWEEP_EVERY_MS: String(SWEEP_EVERY_MS) },
    });
  });
  afterAll(() => saga?.stop());

  const untilCarried = (orderId: string, beforeRunId: string) =>
    waitFor(
      `a new run carries ${orderId}`,
      async () => {
        const run = await saga.handle(orderId).describe();
        return run.runId !== beforeRunId && run.status.name === 'RUNNING' && run;
      },
      PICKED_UP_WITHIN_MS,
    );

  it('performs an act about a case of no order that its request left behind, once', async () => {
    const found = await insertRow(saga.pool, 'cases', {
      ...{ channel: 'mock-a', subject_no: 'whose-1', kind: 'reconciliation', summary: 'whose?' },
    });
    // The API died between storing it and performing it, an hour ago.
    await insertRow(saga.pool, 'operator_acts', {
      ...{ act_no: 'left-behind', kind: 'close_case', case_id: found['case_id'], case_version: 1 },
      ...{ reason: 'of our other shop', actor_key: 'lin', actor_name: 'Lin' },
      ...{ fingerprint: Buffer.from('x'), needs_second: false, status: 'accepted' },
      created_at: new Date(Date.now() - 3_600_000).toISOString(),
    });
    const status = () =>
      saga.pool
        .query<{ status: string }>(`select status from operator_acts where act_no = 'left-behind'`)
        .then(({ rows }) => rows[0]?.status);
    await waitFor('the act is done', async () => (await status()) === 'done', PICKED_UP_WITHIN_MS);
    const { rows } = await saga.pool.query(
      `select status, version, decision->>'act_no' as by from cases where case_id = $1::bigint`,
      [found['case_id']],
    );
    expect(rows).toEqual([{ status: 'closed', version: 2, by: 'left-behind' }]);
  });

  it('gives an order that waits for its payer a new run after an operator terminated it', async () => {
    const orderId = await saga.createOrder();
    expect((await saga.pay(orderId)).status).toBe(201);
    const before = await saga.handle(orderId).describe();
    await saga.handle(orderId).terminate('an operator was too quick');
    await untilCarried(orderId, before.runId);

    // The new run loads what the old one knew: nothing is sent again.
    expect((await saga.books(orderId)).calls.create).toBe(1);
    await saga.mock.approve(await saga.outTradeNo(orderId));
    await saga.untilOrder(orderId, 'paid');
    await saga.untilSettled(orderId);
    expect((await saga.books(orderId)).captures).toEqual({ count: 1, sums: { CNY: 10_000 } });
    expect(saga.merchant.effects(orderId, 'order.paid')).toHaveLength(1);
  });

  it('gives an order that nobody ever asked to pay its run back, so that it still expires', async () => {
    const orderId = await saga.createOrder({ expires_in: 12 });
    const before = await saga.handle(orderId).describe();
    await saga.handle(orderId).terminate('an operator was too quick');
    await untilCarried(orderId, before.runId);
    await saga.untilOrder(orderId, 'closed');
    expect((await saga.order(orderId)).status_reason).toBe('expired');
  });

  it('gives a refund whose child was terminated another child that sends nothing twice', async () => {
    const { orderId, outTradeNo } = await saga.paidOrder();
    await saga.mock.addFault({
      match: { operation: 'refund', outTradeNo },
      do: { refund: 'hold' },
    });
    await saga.refund(orderId, 'R1');
    await saga.untilRefund(orderId, 'R1', 'processing');
    const child = saga.client.workflow.getHandle(`refund:${saga.merchantId}:${orderId}:R1`);
    await saga.handle(orderId).terminate('both');
    await child.terminate('both');
    const [row] = await saga.rows<{ out_refund_no: string }>(
      `select out_refund_no from refunds where merchant_id = $1::text and order_id = $2::text`,
      saga.merchantId,
      orderId,
    );
    await waitFor(
      'a new child',
      async () => (await child.describe()).status.name === 'RUNNING',
      PICKED_UP_WITHIN_MS,
    );
    await saga.mock.finishRefund({ outRefundNo: row!.out_refund_no, result: 'succeed' });
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await saga.untilSettled(orderId);
    const books = await saga.books(orderId);
    expect(books.refunds).toEqual({ count: 1, sums: { CNY: 10_000 } });
    expect(books.calls.refund).toBe(1);
  });

  it('nudges the run of an order that is past its due time though the run is open', async () => {
    const orderId = await saga.createOrder();
    await saga.pay(orderId);
    await saga.rows(
      `update pay_records set next_due_at = now() - interval '1 hour'
       where merchant_id = $1::text and order_id = $2::text`,
      saga.merchantId,
      orderId,
    );
    await waitFor(
      'the channel was asked',
      async () => (await saga.books(orderId)).calls.query > 0,
      PICKED_UP_WITHIN_MS,
    );
    await saga.cancel(orderId);
    await saga.untilOrder(orderId, 'closed');
  });

  it('is one schedule however many workers start it', async () => {
    const ours = await waitFor('the schedules are listed', async () => {
      const found = [];
      for await (const schedule of saga.client.schedule.list()) {
        if (schedule.scheduleId.includes(saga.taskQueue)) found.push(schedule.scheduleId);
      }
      return found.length > 1 && found.sort();
    });
    expect(ours).toEqual([
      reconciliationScheduleId(saga.taskQueue),
      sweepScheduleId(saga.taskQueue),
    ]);
    const { spec, info } = await saga.client.schedule
      .getHandle(sweepScheduleId(saga.taskQueue))
      .describe();
    expect(spec.intervals).toMatchObject([{ every: SWEEP_EVERY_MS }]);
    // One action a tick: two workers do not sweep twice.
    const ticks = info.recentActions.map((action) => action.scheduledAt.getTime());
    expect(new Set(ticks).size).toBe(ticks.length);
    expect(ticks.length).toBeGreaterThan(1);
  });
});
