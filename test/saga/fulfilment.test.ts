import type { Behaviour, SeenCall } from '../../scripts/merchant-steps';
import { fulfilmentWorkflowId } from '../../workflows/ids';
import { fulfilmentOf, untilFulfilment } from '../support/fulfilment';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

const STEPS = ['reserve', 'grant', 'ship'];

describe('the fulfilment of a paid order', () => {
  let saga: Saga;
  /** What the shop does with an order's calls; an order not named is served at once. */
  const said = new Map<string, (call: SeenCall) => Behaviour>();
  beforeAll(async () => {
    saga = await Saga.start({ steps: STEPS });
    saga.merchant.steps.behave = (call) => said.get(call.orderId)?.(call) ?? {};
  });
  afterAll(() => saga?.stop());

  let last = 0;
  /** An order whose steps behave as said, paid. */
  async function paid(behave?: (call: SeenCall) => Behaviour): Promise<string> {
    const orderId = `f${++last}`;
    if (behave) said.set(orderId, behave);
    await saga.paidOrder({ order_id: orderId, metadata: { size: 'M' } });
    return orderId;
  }
  const events = (orderId: string) =>
    saga.merchant
      .effects(orderId)
      .sort((a, b) => a.seq - b.seq)
      .map(({ type }) => type);
  const callsOf = (orderId: string) =>
    saga.merchant.steps.calls.filter((call) => call.orderId === orderId);

  it.concurrent(
    'does every step once, in order, and tells that the order is fulfilled',
    async () => {
      const orderId = await paid();
      await untilFulfilment(saga, orderId, 'done');
      await saga.untilSettled(orderId);
      expect(saga.merchant.steps.story(orderId)).toEqual(['do reserve', 'do grant', 'do ship']);
      expect(events(orderId)).toEqual(['order.paid', 'order.fulfilled']);
      expect(callsOf(orderId).map(({ key }) => key)).toEqual(
        STEPS.map((step) => `ful:${saga.merchantId}:${orderId}:${step}`),
      );
      expect(saga.merchant.steps.badSignatures).toBe(0);
      const { body } = await saga.status(orderId);
      expect(body).toMatchObject({
        status: 'paid',
        fulfilment_status: 'done',
        fulfilment_failure: null,
      });
      expect(body.fulfilment_steps).toMatchObject(
        STEPS.map((name, i) => ({ step_no: i + 1, name, status: 'done', tries: 1, undo_tries: 0 })),
      );
      expect((await saga.books(orderId)).refunds.count).toBe(0);
    },
  );

  it.concurrent(
    'undoes what was done in reverse when a step is refused, and gives the money back once',
    async () => {
      const orderId = await paid(({ call, step }) =>
        call === 'do' && step === 'ship' ? { status: 422 } : {},
      );
      await untilFulfilment(saga, orderId, 'failed');
      await saga.untilSettled(orderId);
      expect(saga.merchant.steps.story(orderId)).toEqual([
        'do reserve',
        'do grant',
        'undo grant',
        'undo reserve',
      ]);
      expect(events(orderId)).toEqual([
        'order.paid',
        'order.fulfilment_failed',
        'refund.succeeded',
      ]);
      const books = await saga.books(orderId);
      expect([books.refunds, books.refundNumbers.length]).toEqual([
        { count: 1, sums: { CNY: 10_000 } },
        1,
      ]);
      const { body } = await saga.status(orderId);
      expect(body).toMatchObject({
        status: 'paid',
        refund_status: 'full',
        fulfilment_status: 'failed',
        fulfilment_failure: 'step_refused',
      });
      expect(body.refunds).toMatchObject([
        { origin: 'fulfilment', amount: 10_000, status: 'succeeded' },
      ]);
      expect(body.refunds[0].refund_no).toMatch(/^auto:[0-9]+$/);
      expect((await fulfilmentOf(saga, orderId)).steps).toEqual([
        ['reserve', 'undone'],
        ['grant', 'undone'],
        ['ship', 'refused'],
      ]);
      expect(await saga.openCases(orderId)).toEqual([]);
    },
  );

  it.concurrent(
    'tries a step that gives no answer again under the same key, and it acts once',
    async () => {
      const orderId = await paid(({ step, copy }) =>
        step === 'grant' && copy < 3 ? { holdMs: 5_000 } : {},
      );
      await untilFulfilment(saga, orderId, 'done');
      const grants = callsOf(orderId).filter(({ step }) => step === 'grant');
      expect([grants.length, new Set(grants.map(({ key }) => key)).size]).toEqual([3, 1]);
      expect(saga.merchant.steps.story(orderId)).toEqual(['do reserve', 'do grant', 'do ship']);
      await saga.untilSettled(orderId);
    },
  );

  it.concurrent.each([408, 409, 425, 429, 500, 503, 302])(
    'takes a %i for no answer',
    async (status) => {
      const orderId = await paid(({ step, copy }) =>
        step === 'reserve' && copy === 1 ? { status, withoutEffect: true } : {},
      );
      await untilFulfilment(saga, orderId, 'done');
      expect(callsOf(orderId).filter(({ step }) => step === 'reserve')).toHaveLength(2);
      await saga.untilSettled(orderId);
    },
  );

  it.concurrent.each([400, 404, 410, 422])(
    'takes a %i for a refusal, and asks no second time',
    async (status) => {
      const orderId = await paid(({ step }) => (step === 'reserve' ? { status } : {}));
      await untilFulfilment(saga, orderId, 'failed');
      await saga.untilRefund(orderId, await autoRefund(orderId), 'succeeded');
      expect(callsOf(orderId).map(({ call, step }) => `${call} ${step}`)).toEqual(['do reserve']);
      expect((await fulfilmentOf(saga, orderId)).steps.map(([, state]) => state)).toEqual([
        'refused',
        'skipped',
        'skipped',
      ]);
      await saga.untilSettled(orderId);
    },
  );

  const autoRefund = async (orderId: string) => {
    const [row] = await saga.rows<{ refund_no: string }>(
      `select refund_no from refunds where order_id = $1::text and origin = 'fulfilment'`,
      orderId,
    );
    return row?.refund_no ?? '';
  };

  it.concurrent(
    'undoes a step that was refused after a try whose outcome nobody knows',
    async () => {
      // The first try works and its answer is lost; the shop has forgotten the key at the second.
      const orderId = await paid(({ call, step, copy }) => {
        if (call === 'undo' || step !== 'grant') return {};
        return copy === 1 ? { holdMs: 5_000, withoutEffect: true } : { status: 410 };
      });
      await untilFulfilment(saga, orderId, 'failed');
      const undone = callsOf(orderId).filter(({ call }) => call === 'undo');
      expect(undone.map(({ step }) => step)).toEqual(['grant', 'reserve']);
      expect(saga.merchant.steps.standing(orderId)).toEqual([]);
      await saga.untilSettled(orderId);
      expect((await saga.books(orderId)).refunds.count).toBe(1);
    },
  );

  it.concurrent(
    'makes an undo that is refused a case, and gives the money back all the same',
    async () => {
      const orderId = await paid(({ call, step }) => {
        if (call === 'do' && step === 'ship') return { status: 422 };
        return call === 'undo' && step === 'grant' ? { status: 403 } : {};
      });
      await untilFulfilment(saga, orderId, 'failed');
      await saga.untilSettled(orderId);
      expect((await saga.openCases(orderId)).map(({ kind }) => kind)).toEqual(['undo_failed']);
      expect(saga.merchant.steps.standing(orderId)).toEqual(['grant']);
      expect((await saga.books(orderId)).refunds).toEqual({ count: 1, sums: { CNY: 10_000 } });
      expect((await fulfilmentOf(saga, orderId)).steps.map(([, state]) => state)).toEqual([
        'undone',
        'undo_failed',
        'refused',
      ]);
    },
  );

  it.concurrent('gives an undo up that is never answered, after its tries', async () => {
    const orderId = await paid(({ call, step }) => {
      if (call === 'do' && step === 'grant') return { status: 422 };
      return call === 'undo' ? { status: 500 } : {};
    });
    await untilFulfilment(saga, orderId, 'failed');
    await saga.untilSettled(orderId);
    expect(callsOf(orderId).filter(({ call }) => call === 'undo')).toHaveLength(4);
    expect((await saga.openCases(orderId)).map(({ kind }) => kind)).toEqual(['undo_failed']);
    expect((await saga.books(orderId)).refunds.count).toBe(1);
  });

  it.concurrent(
    'makes a step that is not answered for long a case, goes on, and does it',
    async () => {
      let silent = true;
      const orderId = await paid(({ step }) => (step === 'grant' && silent ? { status: 503 } : {}));
      await waitFor('the case', async () => {
        const kinds = (await saga.openCases(orderId)).map(({ kind }) => kind);
        return kinds.length === 1 && kinds[0] === 'fulfilment_stuck';
      });
      expect((await fulfilmentOf(saga, orderId)).status).toBe('running');
      silent = false;
      await untilFulfilment(saga, orderId, 'done');
      await saga.untilSettled(orderId);
    },
  );

  it.concurrent(
    'starts no further step once the whole payment is asked back, and undoes the others',
    async () => {
      const orderId = await paid(({ step }) => (step === 'grant' ? { status: 503 } : {}));
      await waitFor('the second step', () =>
        callsOf(orderId).some(({ step }) => step === 'grant') ? true : undefined,
      );
      expect((await saga.refund(orderId, 'R1')).status).toBe(201);
      await untilFulfilment(saga, orderId, 'failed');
      await saga.untilSettled(orderId);
      expect(callsOf(orderId).filter(({ step }) => step === 'ship')).toEqual([]);
      expect(saga.merchant.steps.standing(orderId)).toEqual([]);
      expect((await saga.books(orderId)).refunds).toEqual({ count: 1, sums: { CNY: 10_000 } });
      expect((await fulfilmentOf(saga, orderId)).failure).toBe('refunded');
      expect(events(orderId).filter((type) => type === 'order.fulfilled')).toEqual([]);
    },
  );

  it.concurrent(
    'goes on when a part of the payment is asked back, and gives back the rest when refused',
    async () => {
      const orderId = await paid(({ step, copy }) => {
        if (step === 'grant') return copy < 4 ? { status: 503 } : {};
        return step === 'ship' ? { status: 422 } : {};
      });
      expect((await saga.refund(orderId, 'R1', 3_000)).status).toBe(201);
      await untilFulfilment(saga, orderId, 'failed');
      await saga.untilSettled(orderId);
      expect((await saga.books(orderId)).refunds).toEqual({ count: 2, sums: { CNY: 10_000 } });
    },
  );

  it.concurrent(
    'makes a part that was asked back and is refused after the rest was given back a case',
    async () => {
      const orderId = await paid(({ step, copy }) => {
        if (step === 'grant') return copy < 4 ? { status: 503 } : {};
        return step === 'ship' ? { status: 422 } : {};
      });
      await saga.mock.addFault({
        match: { operation: 'refund', outTradeNo: await saga.outTradeNo(orderId) },
        times: 1,
        do: { refund: 'hold' },
      });
      expect((await saga.refund(orderId, 'R1', 3_000)).status).toBe(201);
      await saga.untilRefund(orderId, 'R1', 'processing');
      await untilFulfilment(saga, orderId, 'failed');
      await waitFor('the rest is back', async () => {
        const { sums } = (await saga.books(orderId)).refunds;
        return sums['CNY'] === 7_000;
      });
      const told = async () => JSON.stringify(await saga.openCases(orderId));
      expect(await told()).not.toContain('refund_failed');
      const [refund] = await saga.rows<{ out_refund_no: string }>(
        `select out_refund_no from refunds where order_id = $1::text and refund_no = 'R1'`,
        orderId,
      );
      await saga.mock.finishRefund({ outRefundNo: refund?.out_refund_no ?? '', result: 'fail' });
      await saga.untilRefund(orderId, 'R1', 'failed');
      await saga.untilSettled(orderId);
      expect(await told()).toContain('refund R1: money of an order that was not delivered');
      expect((await saga.status(orderId)).body).toMatchObject({ refundable_minor: 3_000 });
    },
  );

  it.concurrent(
    'undoes the steps of an order whose money the channel takes back, and decides nothing about money',
    async () => {
      const orderId = await paid(({ step }) => (step === 'grant' ? { status: 503 } : {}));
      const outTradeNo = await saga.outTradeNo(orderId);
      await waitFor('the second step', () =>
        callsOf(orderId).some(({ step }) => step === 'grant') ? true : undefined,
      );
      await saga.mock.reverse({ outTradeNo });
      await saga.untilOrder(orderId, 'review');
      await untilFulfilment(saga, orderId, 'failed');
      expect(saga.merchant.steps.standing(orderId)).toEqual([]);
      expect((await fulfilmentOf(saga, orderId)).failure).toBe('review');
      const [open] = await saga.openCases(orderId);
      expect(JSON.stringify(open?.evidence)).toContain('fulfilment_stopped');
      expect((await saga.books(orderId)).refunds.count).toBe(0);
      await saga.untilSettled(orderId);
    },
  );

  it.concurrent('keeps what is delivered when the payment is given back later', async () => {
    const orderId = await paid();
    await untilFulfilment(saga, orderId, 'done');
    await saga.refund(orderId, 'R1');
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await saga.untilSettled(orderId);
    expect(saga.merchant.steps.standing(orderId)).toEqual(STEPS);
    expect((await fulfilmentOf(saga, orderId)).status).toBe('done');
  });

  it.concurrent('tells in Temporal Web where it is', async () => {
    const orderId = await paid(({ step }) => (step === 'grant' ? { status: 503 } : {}));
    const child = saga.client.workflow.getHandle(
      fulfilmentWorkflowId({ merchantId: saga.merchantId, orderId }),
    );
    await waitFor('the line', async () =>
      /^running: do grant \(step 2 of 3\), try [0-9]+/.test(await child.query<string>('progress')),
    );
    const query = `FulfilmentStatus = 'running' and OrderId = '${orderId}'`;
    await waitFor('it to be found', async () => {
      for await (const run of saga.client.workflow.list({ query })) return run.workflowId;
      return undefined;
    });
    expect(await saga.handle(orderId).query('progress')).toMatchObject({
      line: expect.stringContaining('fulfilment running'),
    });
    said.delete(orderId);
    await untilFulfilment(saga, orderId, 'done');
    await saga.untilSettled(orderId);
  });
});
