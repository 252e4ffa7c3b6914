import { refundWorkflowId } from '../../workflows/ids';
import {
  expectAlwaysTrue,
  figuresOf,
  historiesOf,
  money,
  outTradeNoOf,
  taskFailures,
} from '../support/figures';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

let saga: Saga;
beforeAll(async () => {
  saga = await Saga.start();
});
afterAll(() => saga?.stop());

const PAID_ONCE = {
  status: 'paid',
  cap: money(1, 10_000),
  ref: money(0, 0),
  rows: 1,
  settling: 1,
  evt: 1,
  review: 0,
};

function refundHandle(orderId: string, refundNo: string) {
  return saga.client.workflow.getHandle(
    refundWorkflowId({ merchantId: saga.merchantId, orderId }, refundNo),
  );
}

describe('a run that an operator cancels in Temporal Web', () => {
  /** Every run ended by itself or by the cancel; none failed, none hangs. */
  async function expectEndedRuns(orderId: string): Promise<string[]> {
    const statuses = await waitFor('every run has ended', async () => {
      const runs = (await saga.runs(orderId)).map((run) => run.status.name);
      return runs.length > 0 && !runs.includes('RUNNING') && runs;
    });
    for (const status of statuses) expect(['COMPLETED', 'CANCELLED']).toContain(status);
    return statuses;
  }

  const untilCancelled = (orderId: string, runId: string) =>
    waitFor('the run is cancelled', async () => {
      const run = await saga.client.workflow
        .getHandle((await saga.handle(orderId).describe()).workflowId, runId)
        .describe();
      return run.status.name === 'CANCELLED';
    });

  it('B113: before the charge: the payer pays in the next run', async () => {
    const orderId = await saga.createOrder();
    const { runId } = await saga.handle(orderId).describe();
    await saga.handle(orderId).cancel();
    await untilCancelled(orderId, runId);
    expect((await saga.pay(orderId)).status).toBe(201);
    await saga.mock.approve(await saga.outTradeNo(orderId));
    await saga.untilOrder(orderId, 'paid');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject(PAID_ONCE);
    expect((await expectEndedRuns(orderId)).sort()).toContain('CANCELLED');
  });

  it('B113: during the charge: the charge is finished and the order goes on', async () => {
    const orderId = await saga.createOrder();
    const outTradeNo = outTradeNoOf(saga, orderId);
    await saga.mock.addFault({
      match: { operation: 'create', outTradeNo },
      do: { delayBeforeAnswerMs: 1_000 },
    });
    const { runId } = await saga.handle(orderId).describe();
    const paying = saga.pay(orderId);
    await waitFor(
      'the charge is under way',
      async () => (await saga.mock.summary({ outTradeNos: [outTradeNo] })).calls.create === 1,
    );
    await saga.handle(orderId).cancel();
    expect((await paying).status).toBeLessThan(300);
    await untilCancelled(orderId, runId);
    // The safe step was finished in that very run: the charge, and the answer to who asked for it.
    const events = (await historiesOf(saga, orderId)).find((run) =>
      run.some((e) => e.workflowExecutionCanceledEventAttributes),
    )!;
    expect(events.filter((e) => e.activityTaskCancelRequestedEventAttributes)).toEqual([]);
    expect(events.filter((e) => e.workflowExecutionUpdateCompletedEventAttributes)).toHaveLength(1);
    await saga.mock.approve(outTradeNo);
    await saga.untilOrder(orderId, 'paid');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({ ...PAID_ONCE, calls: 1 });
    expect(await expectEndedRuns(orderId)).toContain('CANCELLED');
  });

  it('B113: after the capture, twice: the payment is kept, as the guide says', async () => {
    const orderId = await saga.createOrder();
    const outTradeNo = outTradeNoOf(saga, orderId);
    // What is captured is learnt by the next run only: no callback, and queries that take a while.
    await saga.mock.addFault({ match: { operation: 'callback', outTradeNo }, do: { drop: true } });
    await saga.mock.addFault({
      match: { operation: 'query', outTradeNo },
      times: 1,
      do: { delayBeforeAnswerMs: 1_000 },
    });
    expect((await saga.pay(orderId)).status).toBe(201);
    await saga.mock.approve(outTradeNo);
    const { runId } = await saga.handle(orderId).describe();
    await saga.handle(orderId).cancel();
    await saga.handle(orderId).cancel();
    await untilCancelled(orderId, runId);
    await saga.untilOrder(orderId, 'paid');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject(PAID_ONCE);
    expect(await expectEndedRuns(orderId)).toContain('CANCELLED');
  });

  it('B113: during the compensation: parent and child are cancelled, the money goes back once', async () => {
    const { orderId, outTradeNo } = await saga.paidOrder();
    await saga.mock.addFault({
      match: { operation: 'refund', outTradeNo },
      do: { refund: 'hold' },
    });
    expect((await saga.refund(orderId, 'R1')).status).toBe(201);
    await saga.untilRefund(orderId, 'R1', 'processing');
    await saga.handle(orderId).cancel();
    await refundHandle(orderId, 'R1').cancel();
    await refundHandle(orderId, 'R1').cancel();
    const [refund] = await saga.rows<{ out_refund_no: string }>(
      `select out_refund_no from refunds where merchant_id = $1::text and order_id = $2::text`,
      saga.merchantId,
      orderId,
    );
    await saga.mock.finishRefund({ outRefundNo: refund!.out_refund_no, result: 'succeed' });
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({ ...PAID_ONCE, ref: money(1, 10_000) });
    expect(await saga.order(orderId)).toMatchObject({ status: 'paid', refund_status: 'full' });
    expect((await saga.books(orderId)).refundNumbers).toEqual([refund!.out_refund_no]);
    await expectEndedRuns(orderId);
  });
});

describe('messages as a person could type them in Temporal Web', () => {
  const BAD: [string, unknown[]][] = [
    ['channelNews', [null]],
    ['channelNews', [{ outTradeNo: 7, state: [] }]],
    ['channelNews', []],
    ['channelNews', ['x'.repeat(100_000)]],
    ['nudge', [1e308, -0, Number.MAX_SAFE_INTEGER]],
    ['nudge', [{ toString: 'no function' }]],
    ['tellAgain', [{ notificationId: -1 }]],
    ['pay', [{ requestNo: 'K9' }]],
    ['nobodyKnowsThis', [null]],
    ['__proto__', [{}]],
    ['toString', []],
  ];

  it('B116: signals of any name and content are ignored, and the next good callback pays', async () => {
    const orderId = await saga.createOrder();
    await saga.pay(orderId);
    const handle = saga.handle(orderId);
    const { runId } = await handle.describe();
    for (const [name, args] of BAD) await handle.signal(name, ...args);
    await saga.mock.approve(await saga.outTradeNo(orderId));
    await saga.untilOrder(orderId, 'paid');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({ ...PAID_ONCE, runs: 1 });
    const { events } = await saga.client.workflow
      .getHandle(handle.workflowId, runId)
      .fetchHistory();
    const signals = (events ?? []).filter((e) => e.workflowExecutionSignaledEventAttributes);
    expect(signals.length).toBeGreaterThanOrEqual(BAD.length);
    expect(taskFailures(events)).toEqual([]);
  });

  /** Text that is not what its encoding says: a client may send it, the server takes it. */
  const UNREADABLE = [
    ['json/plain', '{"half":'],
    ['json/plain', ''],
    ['json/protobuf', '{}'],
    ['binary/unheard-of', 'x'],
  ] as const;

  it('B116: signals whose payload nobody can read do no harm either', async () => {
    const orderId = await saga.createOrder();
    await saga.pay(orderId);
    const { workflowId, runId } = await saga.handle(orderId).describe();
    for (const signalName of ['channelNews', 'nudge', 'nobodyKnowsThis']) {
      for (const [encoding, data] of UNREADABLE) {
        await saga.client.workflowService.signalWorkflowExecution({
          namespace: saga.client.options.namespace,
          workflowExecution: { workflowId, runId },
          signalName,
          input: {
            payloads: [{ metadata: { encoding: Buffer.from(encoding) }, data: Buffer.from(data) }],
          },
        });
      }
    }
    await saga.mock.approve(await saga.outTradeNo(orderId));
    await saga.untilOrder(orderId, 'paid');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({ ...PAID_ONCE, runs: 1 });
  });

  it('B116: updates with bad content are refused at the door, unknown ones too', async () => {
    const orderId = await saga.createOrder();
    const handle = saga.handle(orderId);
    const bad: [string, unknown[]][] = [
      ['pay', [null]],
      ['pay', []],
      ['pay', [{ requestNo: 5 }]],
      ['pay', [{ requestNo: 'x'.repeat(65) }]],
      ['cancel', [{ requestedBy: {} }]],
      ['requestRefund', [{ refundNo: '../etc' }]],
      ['operatorAction', [null]],
      ['operatorAction', [{ actNo: 'a b' }]],
      ['nobodyKnowsThis', [1]],
    ];
    for (const [name, args] of bad) {
      await expect(handle.executeUpdate(name, { args: args as never })).rejects.toThrow();
    }
    // Nothing of it is in the history, and nothing was done.
    expect(await saga.records(orderId)).toEqual([]);
    const [events] = await historiesOf(saga, orderId);
    expect(
      events!.filter((e) => e.workflowExecutionUpdateAcceptedEventAttributes !== null).length,
    ).toBe(0);
    expect(taskFailures(events)).toEqual([]);
    expect((await saga.pay(orderId)).status).toBe(201);
    expect((await saga.cancel(orderId)).status).toBe(200);
    await expectAlwaysTrue(saga, orderId);
  });
});

describe('a child whose id is in use', () => {
  async function runsOfRefund(orderId: string, refundNo: string) {
    const { workflowId } = refundHandle(orderId, refundNo);
    const runs = [];
    for await (const run of saga.client.workflow.list({ query: `WorkflowId = '${workflowId}'` })) {
      runs.push(run.status.name);
    }
    return runs;
  }

  it('B118: five at once ask for one refund: one child, one refund; asked again it is the same', async () => {
    const { orderId } = await saga.paidOrder();
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => saga.refund(orderId, 'R1', 4_000)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 201]);
    expect(new Set(answers.map(({ body }) => body.refund_no))).toEqual(new Set(['R1']));
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await expectAlwaysTrue(saga, orderId);
    const again = await saga.refund(orderId, 'R1', 4_000);
    expect(again).toMatchObject({ status: 200, body: { refund_no: 'R1', status: 'succeeded' } });
    await expectAlwaysTrue(saga, orderId);
    await waitFor('one child is listed', async () => {
      const runs = await runsOfRefund(orderId, 'R1');
      return runs.length === 1 && runs[0] === 'COMPLETED';
    });
    await waitFor(
      'the parent is not stuck: its last run ends by itself',
      async () => (await saga.handle(orderId).describe()).status.name === 'COMPLETED',
    );
    expect(await figuresOf(saga, orderId)).toMatchObject({ ...PAID_ONCE, ref: money(1, 4_000) });
    expect((await saga.books(orderId)).calls.refund).toBe(1);
  });

  it('B118: a child that still runs is taken as ours by the next run of its order', async () => {
    const { orderId, outTradeNo } = await saga.paidOrder();
    await saga.mock.addFault({
      match: { operation: 'refund', outTradeNo },
      do: { refund: 'hold' },
    });
    await saga.refund(orderId, 'R1', 4_000);
    await saga.untilRefund(orderId, 'R1', 'processing');
    const child = await refundHandle(orderId, 'R1').describe();
    await saga.handle(orderId).terminate('the next run meets a running child');
    expect((await saga.refund(orderId, 'R1', 4_000)).status).toBe(200);
    expect((await saga.refund(orderId, 'R2', 1_000)).status).toBe(201);
    await saga.untilRefund(orderId, 'R2', 'processing');
    expect(await refundHandle(orderId, 'R1').describe()).toMatchObject({ runId: child.runId });
    for (const row of await saga.rows<{ out_refund_no: string }>(
      `select out_refund_no from refunds where merchant_id = $1::text and order_id = $2::text`,
      saga.merchantId,
      orderId,
    )) {
      await saga.mock.finishRefund({ outRefundNo: row.out_refund_no, result: 'succeed' });
    }
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({ ...PAID_ONCE, ref: money(2, 5_000) });
  });
});
