import { ageOrder } from '../support/age-order';
import { expectAlwaysTrue, figuresOf, historiesOf, money, outTradeNoOf } from '../support/figures';
import { SagaProcesses } from '../support/processes-saga';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

let saga: Saga;
beforeAll(async () => {
  saga = await Saga.start();
});
afterAll(() => saga?.stop());

/** More tasks than a worker asks for at once. */
const FROZEN_POLLS_MAX = 10;

describe('an activity that timed out and runs on', () => {
  /** Everything about the order that a late write could spoil. */
  const picture = async (orderId: string) => ({
    order: await saga.order(orderId),
    records: (await saga.records(orderId)).map(({ pay_record_id, status, channel_trade_no }) => ({
      pay_record_id,
      status,
      channel_trade_no,
    })),
    captures: await saga.captures(orderId),
    moves: await saga.rows(
      `select subject, subject_id, from_status, to_status from order_events
       where merchant_id = $1::text and order_id = $2::text order by event_id`,
      saga.merchantId,
      orderId,
    ),
  });

  it('B110: the frozen first attempt wakes up after the order is paid and changes nothing', async () => {
    await saga.stopWorkers();
    const processes = new SagaProcesses(saga);
    const frozen = await processes.startWorker();
    try {
      const orderId = await saga.createOrder();
      const outTradeNo = outTradeNoOf(saga, orderId);
      // The charge captures; its answer takes longer than the worker stays awake.
      await saga.mock.addFault({
        match: { operation: 'create', outTradeNo },
        times: 1,
        do: { captureNow: true, delayBeforeAnswerMs: 1_500 },
      });
      const paying = saga.pay(orderId);
      await waitFor(
        'the charge is under way',
        async () => (await saga.mock.summary({ outTradeNos: [outTradeNo] })).captures.count === 1,
      );
      frozen.pause();
      await saga.startWorker();
      // Polls of the frozen worker stay open, and what answers one is lost for ten seconds: tasks of others,
      // all at once, instead of this order's, one after another.
      await Promise.all(Array.from({ length: FROZEN_POLLS_MAX }, () => saga.createOrder()));
      await saga.untilOrder(orderId, 'paid', 60_000);
      expect((await paying).status).toBeLessThan(300);
      await expectAlwaysTrue(saga, orderId);
      const timedOut = (await historiesOf(saga, orderId))
        .flat()
        .filter((event) => event.activityTaskTimedOutEventAttributes);
      expect(timedOut).toHaveLength(1);

      const before = await picture(orderId);
      frozen.resume();
      await frozen.stop();
      expect(await frozen.ended).toMatchObject({ code: 0 });
      expect(await picture(orderId)).toMatchObject({
        ...before,
        order: { status: 'paid', refund_status: 'none' },
      });
      const figures = await figuresOf(saga, orderId);
      expect(figures).toMatchObject({
        status: 'paid',
        cap: money(1, 10_000),
        ref: money(0, 0),
        numbers: [outTradeNo],
        rows: 1,
        settling: 1,
        evt: 1,
        review: 0,
      });
      expect(figures.calls).toBeGreaterThanOrEqual(1);
    } finally {
      await processes.end();
      if (saga.workers.length === 0) await saga.startWorker();
    }
  }, 120_000);
});

describe('time limits', () => {
  it('B115: no run of an order or a refund is given an execution or run timeout', async () => {
    const { orderId } = await saga.paidOrder();
    await saga.refund(orderId, 'R1', 100);
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    const kinds = new Set<string>();
    // Runs of every origin that this file has by now: API, child, sweep, nudge of a child.
    const query = `MerchantId = '${saga.merchantId}'`;
    await waitFor('both kinds are listed', async () => {
      for await (const run of saga.client.workflow.list({ query })) {
        kinds.add(run.type);
        const { events } = await saga.client.workflow
          .getHandle(run.workflowId, run.runId)
          .fetchHistory();
        const started = events?.[0]?.workflowExecutionStartedEventAttributes;
        for (const limit of [started?.workflowExecutionTimeout, started?.workflowRunTimeout]) {
          expect(Number(limit?.seconds ?? 0)).toBe(0);
        }
      }
      return kinds.size === 2;
    });
    expect([...kinds].sort()).toEqual(['orderPayment', 'refund']);
  });

  it('B115: an order whose channel never answers for 30 days is asked about, then a case, by our code', async () => {
    const orderId = await saga.createOrder({ expires_in: 600 });
    const outTradeNo = outTradeNoOf(saga, orderId);
    const silence = await saga.mock.addFault({
      match: { operation: 'any', outTradeNo },
      do: { effect: 'none', answer: 'drop' },
    });
    expect((await saga.pay(orderId)).status).toBe(202);
    await ageOrder(saga, orderId, '30 days');
    const [open] = await waitFor('a case', async () => {
      const cases = await saga.openCases(orderId);
      return cases.length > 0 && cases;
    });
    expect(open).toMatchObject({ kind: 'close_unconfirmed' });
    const silent = await figuresOf(saga, orderId);
    expect(silent).toMatchObject({ status: 'paying', cap: money(0, 0), trades: 0, review: 1 });
    expect(silent.queries).toBeGreaterThanOrEqual(1);
    // The channel was asked before anything was closed: it never said a word, so nothing is.
    expect(await saga.moves(orderId)).toEqual(['null>created', 'created>paying']);
    expect((await saga.handle(orderId).describe()).status.name).toBe('RUNNING');

    await saga.mock.removeFault(silence);
    await saga.untilOrder(orderId, 'closed');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({ cap: money(0, 0), rows: 0, evt: 0 });
  });
});
