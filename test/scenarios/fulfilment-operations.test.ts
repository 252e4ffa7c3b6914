/** What cancel, terminate, reset and a raw signal in Temporal Web do to a fulfilment and its money. */
import { fulfilmentWorkflowId } from '../../workflows/ids';
import type { Behaviour, SeenCall } from '../../scripts/merchant-steps';
import { taskFailures } from '../support/figures';
import { fulfilmentOf, untilFulfilment } from '../support/fulfilment';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

const STEPS = ['reserve', 'grant', 'ship'];
const ALL_DONE = ['do reserve', 'do grant', 'do ship'];

describe('a fulfilment under the server’s own operations', () => {
  let saga: Saga;
  const said = new Map<string, (call: SeenCall) => Behaviour>();
  beforeAll(async () => {
    saga = await Saga.start({ steps: STEPS, env: { FULFIL_UNDO_TRIES_MAX: '50' } });
    saga.merchant.steps.behave = (call) => said.get(call.orderId)?.(call) ?? {};
  });
  afterAll(() => saga?.stop());

  let last = 0;
  /** A paid order that is held at a step until `let go`. */
  async function heldAt(step: string, call: 'do' | 'undo' = 'do') {
    const orderId = `p${++last}`;
    let isHeld = true;
    said.set(orderId, (seen) => {
      if (seen.step === step && seen.call === call && isHeld) return { status: 503 };
      return call === 'undo' && seen.call === 'do' && seen.step === 'ship' ? { status: 422 } : {};
    });
    await saga.paidOrder({ order_id: orderId });
    await waitFor(`${call} ${step} to be tried`, () =>
      saga.merchant.steps.calls.some(
        (seen) => seen.orderId === orderId && seen.step === step && seen.call === call,
      ),
    );
    return { orderId, letGo: () => void (isHeld = false) };
  }
  const childOf = (orderId: string) =>
    saga.client.workflow.getHandle(fulfilmentWorkflowId({ merchantId: saga.merchantId, orderId }));
  const nudge = (orderId: string) => saga.handle(orderId).signal('nudge');
  const isOver = (orderId: string, runId?: string) =>
    waitFor('the child to be over', async () => {
      const run = saga.client.workflow.getHandle(childOf(orderId).workflowId, runId);
      const { status } = await run.describe();
      return status.name !== 'RUNNING' && status.name;
    });
  /** The child's own run is stopped; its order may have started the next one by then. */
  async function cancelChild(orderId: string) {
    const { runId } = await childOf(orderId).describe();
    await childOf(orderId).cancel();
    expect(await isOver(orderId, runId)).toBe('CANCELLED');
  }

  async function endsDone(orderId: string) {
    await untilFulfilment(saga, orderId, 'done', 40_000);
    await saga.untilSettled(orderId);
    expect(saga.merchant.steps.story(orderId)).toEqual(ALL_DONE);
    expect((await saga.books(orderId)).refunds.count).toBe(0);
    expect(saga.merchant.effects(orderId, 'order.fulfilled')).toHaveLength(1);
  }

  async function endsUndone(orderId: string) {
    await untilFulfilment(saga, orderId, 'failed', 40_000);
    await saga.untilSettled(orderId);
    expect(saga.merchant.steps.standing(orderId)).toEqual([]);
    const { captures, refunds, refundNumbers } = await saga.books(orderId);
    expect([captures.count, refunds, refundNumbers.length]).toEqual([
      1,
      { count: 1, sums: { CNY: 10_000 } },
      1,
    ]);
    expect(saga.merchant.effects(orderId, 'order.fulfilment_failed')).toHaveLength(1);
  }

  it('B113: cancelled between two steps, it goes on in a new run and loses nothing', async () => {
    const { orderId, letGo } = await heldAt('grant');
    await cancelChild(orderId);
    expect((await fulfilmentOf(saga, orderId)).status).toBe('running');
    letGo();
    await nudge(orderId);
    await endsDone(orderId);
  });

  it('B113: cancelled twice during the compensation, everything is undone and refunded once', async () => {
    const { orderId, letGo } = await heldAt('grant', 'undo');
    await cancelChild(orderId);
    await waitFor('a new run', async () => {
      await nudge(orderId);
      return (await childOf(orderId).describe()).status.name === 'RUNNING';
    });
    await cancelChild(orderId);
    letGo();
    await nudge(orderId);
    await endsUndone(orderId);
  });

  it('B113: the order’s run cancelled during the compensation changes nothing', async () => {
    const { orderId, letGo } = await heldAt('grant', 'undo');
    await saga.handle(orderId).cancel();
    letGo();
    await endsUndone(orderId);
  });

  it('B113: terminated during the compensation, the next run undoes the rest', async () => {
    const { orderId, letGo } = await heldAt('reserve', 'undo');
    await childOf(orderId).terminate('tried in a test');
    letGo();
    await nudge(orderId);
    await endsUndone(orderId);
  });

  it.each(['order', 'fulfilment'])(
    'B119: a reset of the %s’s run to its first task repeats no step',
    async (which) => {
      const { orderId, letGo } = await heldAt('grant');
      const handle = which === 'order' ? saga.handle(orderId) : childOf(orderId);
      const history = await handle.fetchHistory();
      const first = history.events?.find((e) => e.workflowTaskCompletedEventAttributes);
      const { runId } = await handle.describe();
      await saga.client.workflowService.resetWorkflowExecution({
        namespace: saga.client.options.namespace,
        workflowExecution: { workflowId: handle.workflowId, runId },
        reason: 'tried in a test',
        requestId: `reset-${orderId}`,
        workflowTaskFinishEventId: first?.eventId ?? null,
      });
      letGo();
      await nudge(orderId);
      await endsDone(orderId);
    },
  );

  it('B119: a reset of the whole fulfilment after its end repeats nothing', async () => {
    const orderId = `p${++last}`;
    await saga.paidOrder({ order_id: orderId });
    await endsDone(orderId);
    const callsOf = () =>
      saga.merchant.steps.calls.filter((call) => call.orderId === orderId).length;
    const calls = callsOf();
    const handle = childOf(orderId);
    const first = (await handle.fetchHistory()).events?.find(
      (e) => e.workflowTaskCompletedEventAttributes,
    );
    const { runId } = await handle.describe();
    await saga.client.workflowService.resetWorkflowExecution({
      namespace: saga.client.options.namespace,
      workflowExecution: { workflowId: handle.workflowId, runId },
      reason: 'tried in a test',
      requestId: `reset-${orderId}`,
      workflowTaskFinishEventId: first?.eventId ?? null,
    });
    await isOver(orderId);
    await endsDone(orderId);
    expect(callsOf()).toBe(calls);
  });

  it.each([[null], ['text'], [{ far: 1e300 }], [[1, 2, 3]]])(
    'B116: a raw signal %j is no harm',
    async (payload) => {
      const { orderId, letGo } = await heldAt('grant');
      await childOf(orderId).signal('nudge', payload);
      await childOf(orderId).signal('nobodyKnowsThis', payload);
      letGo();
      await endsDone(orderId);
      const { events = [] } = await childOf(orderId).fetchHistory();
      expect(taskFailures(events)).toEqual([]);
    },
  );

  it('B118: a second start of the child under its running id is ours', async () => {
    const { orderId, letGo } = await heldAt('grant');
    for (let i = 0; i < 3; i++) await nudge(orderId);
    letGo();
    await endsDone(orderId);
    const started = await saga.handle(orderId).fetchHistory();
    expect(taskFailures(started.events)).toEqual([]);
  });

  it('B119: deleted by retention while it waits, it is started again', async () => {
    const { orderId, letGo } = await heldAt('grant');
    await childOf(orderId).terminate('gone');
    await saga.client.workflowService.deleteWorkflowExecution({
      namespace: saga.client.options.namespace,
      workflowExecution: { workflowId: childOf(orderId).workflowId },
    });
    letGo();
    await nudge(orderId);
    await endsDone(orderId);
  });
});
