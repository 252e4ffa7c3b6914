import { ageOrder } from '../support/age-order';
import { inbox, untilDelivered } from '../support/callback-waits';
import { watchCommits } from '../support/commit-watch';
import { failInserts } from '../support/failing-writes';
import { expectAlwaysTrue, figuresOf, historiesOf, money } from '../support/figures';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

/** One order of 100.00, paid by the first callback that was settled. */
const PAID_ONCE = {
  status: 'paid',
  cap: money(1, 10_000),
  ref: money(0, 0),
  settling: 1,
  rows: 1,
  evt: 1,
  review: 0,
};

/** A paid order without its capture, record, history row or event, or one of these without it. */
const HALF_PAID = `(o.status <> 'paid') = any (array[
  exists (select from captures c where c.merchant_id = o.merchant_id and c.order_id = o.order_id
    and c.settles),
  exists (select from pay_records r where r.merchant_id = o.merchant_id
    and r.order_id = o.order_id and r.status = 'paid'),
  exists (select from order_events e where e.merchant_id = o.merchant_id
    and e.order_id = o.order_id and e.subject = 'order' and e.to_status = 'paid'),
  exists (select from notifications n where n.merchant_id = o.merchant_id
    and n.order_id = o.order_id and n.event_type = 'order.paid')])`;

describe('callbacks whose handling is interrupted', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start({
      // Nothing is settled by asking: what ends paid here was paid by its callback.
      policy: { pollLadderMs: [60_000] },
      mock: { callbackTimeoutMs: 2_000 },
    });
  });
  afterAll(() => saga?.stop());

  async function pending() {
    const orderId = await saga.createOrder();
    expect((await saga.pay(orderId)).status).toBe(201);
    return { orderId, outTradeNo: await saga.outTradeNo(orderId) };
  }

  it('B25: a callback that comes while no worker runs is kept and settled at their start', async () => {
    const { orderId, outTradeNo } = await pending();
    await saga.stopWorkers();
    try {
      await saga.mock.approve(outTradeNo);
      expect(await untilDelivered(saga, outTradeNo)).toMatchObject([
        { httpStatus: 200, body: 'success', acknowledged: true },
      ]);
      expect(await inbox(saga, orderId)).toEqual([{ status: 'stored', verdict: null, copies: 1 }]);
      expect((await saga.order(orderId)).status).toBe('paying');
      await ageOrder(saga, orderId, '5 minutes');
    } finally {
      const startedAt = Date.now();
      await saga.startWorker();
      await saga.untilOrder(orderId, 'paid', startedAt + 10_000 - Date.now());
    }
    expect(await inbox(saga, orderId)).toMatchObject([
      { status: 'applied', verdict: 'first_success' },
    ]);
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({ ...PAID_ONCE, resend: 0 });
  });

  /** The API gets as far as the commit and no further: neither signal nor acknowledgement. */
  async function storedAndNoMore(orderId: string, outTradeNo: string): Promise<void> {
    const start = globalThis.setInterval;
    // The failpoint waits for a SIGKILL that never comes here; its timer must not keep jest alive.
    const unref = jest
      .spyOn(globalThis, 'setInterval')
      .mockImplementation(((act: () => void, ms: number) =>
        start(act, ms).unref()) as typeof start);
    process.env['FAILPOINT'] = 'api:callback-committed';
    try {
      await saga.mock.approve(outTradeNo);
      await waitFor(
        'the callback is stored',
        async () => (await inbox(saga, orderId)).length === 1,
      );
    } finally {
      delete process.env['FAILPOINT'];
      unref.mockRestore();
    }
    expect(await inbox(saga, orderId)).toEqual([{ status: 'stored', verdict: null, copies: 1 }]);
    expect(await newsSignals(orderId)).toBe(0);
  }

  async function newsSignals(orderId: string): Promise<number> {
    return (await historiesOf(saga, orderId))
      .flat()
      .filter((e) => e.workflowExecutionSignaledEventAttributes?.signalName === 'channelNews')
      .length;
  }

  it('B28: a callback stored by an API that died there is handled when it is sent again', async () => {
    const { orderId, outTradeNo } = await pending();
    await storedAndNoMore(orderId, outTradeNo);
    const [first, second] = await untilDelivered(saga, outTradeNo, 2);
    expect(first).toMatchObject({ httpStatus: null, acknowledged: false });
    expect(second).toMatchObject({ httpStatus: 200, acknowledged: true, attempt: 2 });
    expect(await inbox(saga, orderId)).toMatchObject([{ copies: 2 }]);
    await saga.untilOrder(orderId, 'paid');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({ ...PAID_ONCE, resend: 1 });
    expect(await saga.moves(orderId)).toEqual(['null>created', 'created>paying', 'paying>paid']);
  });

  it('B28: and handled just the same when the channel never sends it again', async () => {
    const { orderId, outTradeNo } = await pending();
    await saga.mock.addFault({
      match: { operation: 'callback', outTradeNo },
      skip: 1,
      do: { drop: true },
    });
    await storedAndNoMore(orderId, outTradeNo);
    await saga.untilOrder(orderId, 'paid');
    expect(await inbox(saga, orderId)).toEqual([
      { status: 'applied', verdict: 'first_success', copies: 1 },
    ]);
    // The relay rang, and rang once.
    expect(await newsSignals(orderId)).toBe(1);
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({ ...PAID_ONCE, resend: 0 });
  });

  // More deadlocks than one step survives by running its transaction again (five times).
  const DEADLOCKS = 7;
  it.each(['order_events', 'notifications'] as const)(
    'B29: a deadlock before the rows of %s leaves no half of a paid order',
    async (table) => {
      const { orderId, outTradeNo } = await pending();
      const halves = await watchCommits(saga, HALF_PAID);
      const write = await failInserts(saga.pool, {
        table,
        orderId,
        times: DEADLOCKS,
        code: '40P01',
      });
      await saga.mock.approve(outTradeNo);
      await untilDelivered(saga, outTradeNo);
      await waitFor('the deadlocks have begun', async () => (await write.tries()) >= 2);
      // Nothing of it shows, and a copy that arrives meanwhile repairs nothing twice.
      const during = await saga.status(orderId);
      expect(during.body).toMatchObject({ status: 'paying', captured_minor: 0, paid_at: null });
      const [copy] = await saga.mock.sendCallback({ outTradeNo });
      expect(copy).toMatchObject({ httpStatus: 200, acknowledged: true });

      await saga.untilOrder(orderId, 'paid');
      expect(await write.tries()).toBeGreaterThan(DEADLOCKS);
      await expectAlwaysTrue(saga, orderId);
      expect(await saga.moves(orderId)).toEqual(['null>created', 'created>paying', 'paying>paid']);
      expect(await saga.moves(orderId, 'capture')).toEqual(['null>captured']);
      expect(await saga.captures(orderId)).toMatchObject([
        { amount_minor: 10_000, kind: 'settling', settles: true, status: 'captured' },
      ]);
      expect(await figuresOf(saga, orderId)).toMatchObject(PAID_ONCE);
      const seen = await halves.seen(orderId);
      expect(seen.bad).toBe(0);
      expect(seen.commits).toBeGreaterThan(0);
    },
  );
});
