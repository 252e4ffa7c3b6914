import { WORDS } from '../support/callback-waits';
import { expectAlwaysTrue, figuresOf, historiesOf, money, taskFailures } from '../support/figures';
import { inParallel } from '../support/in-parallel';
import { traceOf } from '../support/order-trace';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

const CHANNELS = ['mock-a', 'mock-b'] as const;
const ONCE = money(1, 10_000);

describe('unknown and malformed input', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start({ apis: 2 });
  });
  afterAll(() => saga?.stop());

  describe('B85: a callback for an order we do not know', () => {
    const orphansOf = (ourNo: string) =>
      saga.rows<{ status: string; copies: number }>(
        `select status, copies from channel_callbacks where our_no = $1::text`,
        ourNo,
      );
    const casesOf = (ourNo: string) =>
      saga.rows<{ kind: string; order_id: string | null; status: string }>(
        `select kind, order_id, status from cases where subject_no = $1::text`,
        ourNo,
      );
    /** Workflow ids of this deployment, the sweep apart. */
    async function workflowIds(): Promise<string[]> {
      const ids = new Set<string>();
      const query = `TaskQueue = '${saga.taskQueue}'`;
      for await (const run of saga.client.workflow.list({ query })) ids.add(run.workflowId);
      return [...ids].filter((id) => !id.startsWith('sweep')).sort();
    }

    it('B85: is kept once and acknowledged while 20 live orders are paid', async () => {
      const numbers = new Map<string, string>();
      await inParallel(Array.from({ length: 20 }), 4, async () => {
        const orderId = await saga.createOrder();
        numbers.set(orderId, (await saga.pay(orderId)).body.out_trade_no as string);
      });
      const orderIds = [...numbers.keys()];
      const ids = await waitFor('20 runs are listed', async () => {
        const listed = await workflowIds();
        return listed.length === 20 && listed;
      });

      const orphans = Promise.all(
        CHANNELS.map((dialect) =>
          saga.mock.sendCallback({
            dialect,
            outTradeNo: `UNKNOWN85${dialect.slice(-1).toUpperCase()}`,
            channelTradeNo: '8500',
            word: WORDS[dialect].paid,
            amountMinor: 10_000,
            currency: 'CNY',
            copies: 50,
          }),
        ),
      );
      await Promise.all([...numbers.values()].map((no) => saga.mock.approve(no)));
      await Promise.all(orderIds.map((orderId) => saga.untilOrder(orderId, 'paid')));
      // From the money at the channel to "paid", by the two books: not how long the test took.
      const takenAt = new Map(
        (await saga.mock.books()).flatMap((record) =>
          record.type === 'captured' ? [[record.outTradeNo, Date.parse(record.at)]] : [],
        ),
      );
      for (const [orderId, outTradeNo] of numbers) {
        const [order] = await saga.rows<{ paid_at: string }>(
          `select paid_at from orders where order_id = $1::text`,
          orderId,
        );
        const waitedMs = Date.parse(order?.paid_at ?? '') - (takenAt.get(outTradeNo) ?? NaN);
        expect(waitedMs).toBeLessThan(5_000);
      }

      for (const deliveries of await orphans) {
        expect(deliveries.map(({ httpStatus }) => httpStatus)).toEqual(Array(50).fill(200));
        expect(deliveries.every(({ acknowledged }) => acknowledged)).toBe(true);
        const ourNo = deliveries[0]?.outTradeNo ?? '';
        expect(await orphansOf(ourNo)).toEqual([{ status: 'unmatched', copies: 50 }]);
        const cases = await waitFor('the orphan is before a person', async () => {
          const found = await casesOf(ourNo);
          return found.length > 0 && found;
        });
        expect(cases).toEqual([{ kind: 'unknown_number', order_id: null, status: 'open' }]);
      }
      await inParallel(orderIds, 4, async (orderId) => {
        await expectAlwaysTrue(saga, orderId);
        expect(await figuresOf(saga, orderId)).toMatchObject({ cap: ONCE, rows: 1, evt: 1 });
      });
      expect(await workflowIds()).toEqual(ids);
    });

    it('B85: at a channel we do not know is 404 and leaves nothing', async () => {
      const { orderId, outTradeNo } = await saga.paidOrder();
      await expectAlwaysTrue(saga, orderId);
      const before = await traceOf(saga, orderId);
      for (const channel of ['mock-z', 'mock-A', '..%2Fmock-a']) {
        const url = `${saga.apis[0]?.url}/callbacks/${channel}`;
        const [delivery] = await saga.mock.sendCallback({ outTradeNo, url });
        expect([channel, delivery?.httpStatus]).toEqual([channel, 404]);
      }
      expect(await traceOf(saga, orderId)).toEqual(before);
    });
  });

  it.each(CHANNELS)('B86: a word of %s that we do not know changes nothing', async (channel) => {
    const orderId = await saga.createOrder({ subject: `#frozen-${channel}` });
    const strange = async (operation: 'create' | 'query') =>
      saga.mock.addFault({
        match: { operation, tag: `frozen-${channel}` },
        do: { answer: 'word', word: 'FROZEN' },
      });
    const faults = [await strange('create'), await strange('query')];
    const answer = await saga.pay(orderId, 'K1', { channel });
    expect([200, 201, 202]).toContain(answer.status);
    const outTradeNo = answer.body.out_trade_no as string;
    const [delivery] = await saga.mock.sendCallback({ outTradeNo, word: 'FROZEN' });
    expect(delivery).toMatchObject({ httpStatus: 200, acknowledged: true });
    await waitFor('the callback was read', async () => {
      const [row] = await saga.rows<{ status: string }>(
        `select status from channel_callbacks where our_no = $1::text`,
        outTradeNo,
      );
      return row?.status === 'applied' || row?.status === 'no_effect';
    });
    const asked = async () => (await saga.books(orderId)).calls.query;
    const soFar = await asked();
    await waitFor('polling goes on', async () => (await asked()) >= soFar + 2);

    expect((await saga.order(orderId)).status).toBe('paying');
    expect((await saga.records(orderId)).map((record) => record.status)).toEqual([
      expect.stringMatching(/^(submitting|pending)$/),
    ]);
    expect(await saga.captures(orderId)).toEqual([]);
    const warnings = await saga.rows<{ evidence: unknown }>(
      `select evidence from order_events where order_id = $1::text and cause = 'unknown_state'`,
      orderId,
    );
    expect(warnings).toEqual([{ evidence: expect.objectContaining({ word: 'FROZEN' }) }]);
    expect((await saga.books(orderId)).calls.create).toBe(1);

    for (const id of faults) await saga.mock.removeFault(id);
    await saga.mock.approve(outTradeNo);
    await saga.untilOrder(orderId, 'paid');
    await expectAlwaysTrue(saga, orderId);
    expect(taskFailures((await historiesOf(saga, orderId)).flat())).toEqual([]);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      cap: ONCE,
      numbers: [outTradeNo],
      rows: 1,
      evt: 1,
      review: 0,
    });
  });

  describe('B88: a malformed body', () => {
    const problem = (answer: { headers: Headers; body: { status?: number } }) => [
      answer.headers.get('content-type'),
      answer.body.status,
    ];

    it('B88: is 400, another media type 415, and the order it names is left alone', async () => {
      const orderId = await saga.createOrder();
      const outTradeNo = (await saga.pay(orderId)).body.out_trade_no as string;
      await saga.mock.addFault({
        match: { operation: 'callback', outTradeNo },
        do: { drop: true },
      });
      const before = await traceOf(saga, orderId);
      const [rows] = await saga.rows(`select count(*) from orders`);
      const malformed: [string, number, Record<string, string>?][] = [
        ['{', 400],
        ['null', 400],
        ['[]', 400],
        ['"x"', 400],
        ['{"channel":"mock-a","channel":"mock-b","request_no":"K2"}', 400],
        ['{"amount":1,"amount":2}', 400],
        ['{"__proto__":{"amount":1}}', 400],
        ['{"amount":"1","refund_no":1,"reason":[],"channel":{},"order_id":true}', 400],
        ['\ufffe{}', 400],
        ['{}', 415, { 'content-type': 'text/plain' }],
        ['a=1', 415, { 'content-type': 'application/x-www-form-urlencoded' }],
      ];
      const paths = [
        '/v1/orders',
        `/v1/orders/${orderId}/payments`,
        `/v1/orders/${orderId}/refunds`,
        `/v1/orders/${orderId}/cancel`,
      ];
      for (const path of paths) {
        for (const [raw, status, headers] of malformed) {
          const answer = await saga.call('POST', path, undefined, { raw, headers });
          expect([path, raw, answer.status]).toEqual([path, raw, status]);
          expect(problem(answer)).toEqual(['application/problem+json', status]);
        }
        if (path.endsWith('cancel')) continue;
        for (const raw of ['', '{}']) {
          const answer = await saga.call('POST', path, undefined, { raw });
          expect([path, raw, answer.status]).toEqual([path, raw, 400]);
        }
      }
      expect(await traceOf(saga, orderId)).toEqual(before);
      expect(await saga.rows(`select count(*) from orders`)).toEqual([rows]);
      await saga.mock.approve(outTradeNo);
      await saga.untilOrder(orderId, 'paid');
      await expectAlwaysTrue(saga, orderId);
      expect(await figuresOf(saga, orderId)).toMatchObject({ cap: ONCE, calls: 1, evt: 1 });
    });

    it('B88: of a callback, rightly signed, is 400 and a poll settles', async () => {
      const orderId = await saga.createOrder();
      const answer = await saga.pay(orderId, 'K1', { channel: 'mock-b' });
      const outTradeNo = answer.body.out_trade_no as string;
      await saga.mock.addFault({
        match: { operation: 'callback', outTradeNo },
        do: { drop: true },
      });
      const before = await traceOf(saga, orderId);
      const twice = `{"mchid":"1900000001","appid":"app-b-1","out_trade_no":"${outTradeNo}",
        "transaction_id":"1","trade_state":"SUCCESS",
        "amount":{"total":1,"total":10000,"currency":"CNY"}}`;
      const texts = ['{', '', 'null', '[]', '"x"', '{}', '{"__proto__":{"total":1}}', twice];
      for (const resourceText of texts) {
        const [delivery] = await saga.mock.sendCallback({ outTradeNo, resourceText });
        expect([resourceText, delivery?.httpStatus]).toEqual([resourceText, 400]);
      }
      for (const bytes of [Buffer.from('{'), Buffer.from([0xff, 0xfe]), Buffer.alloc(0)]) {
        const bodyBase64 = bytes.toString('base64');
        const [delivery] = await saga.mock.sendCallback({ outTradeNo, bodyBase64 });
        expect([bodyBase64, delivery?.httpStatus]).toEqual([bodyBase64, 400]);
      }
      const [typed] = await saga.mock.sendCallback({ outTradeNo, contentType: 'text/xml' });
      expect(typed?.httpStatus).toBe(415);
      expect(await traceOf(saga, orderId)).toEqual(before);
      await saga.mock.approve(outTradeNo);
      await saga.untilOrder(orderId, 'paid');
      await expectAlwaysTrue(saga, orderId);
      expect(await figuresOf(saga, orderId)).toMatchObject({ cap: ONCE, rows: 1, evt: 1 });
    });
  });
});
