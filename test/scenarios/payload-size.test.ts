import { expectAlwaysTrue, figuresOf, historiesOf, outTradeNoOf } from '../support/figures';
import { Saga } from '../support/saga';

/** The project's own bound; Temporal refuses a payload above 2 MB and warns above 256 KB. */
const PAYLOAD_MAX_BYTES = 4 * 1024;
const REFUNDS = 10;
const LONGEST = 64;

describe('what travels through Temporal', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start({ policy: { refundSpacingMs: 0, maxRefundsPerCapture: 50 } });
  });
  afterAll(() => saga?.stop());

  interface Payload {
    path: string;
    bytes: number;
    text: string;
  }

  /** Every payload anywhere in the value: an object with `data` and `metadata`, as in the API. */
  function payloadsIn(value: unknown, path = ''): Payload[] {
    if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return [];
    const { data, metadata } = value as { data?: unknown; metadata?: unknown };
    if (ArrayBuffer.isView(data) && typeof metadata === 'object') {
      const named = Object.values(metadata ?? {}) as Uint8Array[];
      const bytes = data.byteLength + named.reduce((sum, text) => sum + text.byteLength, 0);
      return [{ path, bytes, text: Buffer.from(data as Uint8Array).toString() }];
    }
    return Object.entries(value).flatMap(([key, inner]) => payloadsIn(inner, `${path}.${key}`));
  }

  it('B125: every payload of a busy order, its refunds included, stays below 4 KB', async () => {
    // As much as a merchant and a channel may say: longest numbers, metadata at its limit.
    const orderId = `o-${'x'.repeat(LONGEST - 2)}`;
    const requestNo = `k-${'y'.repeat(LONGEST - 2)}`;
    await saga.createOrder({
      order_id: orderId,
      subject: '订'.repeat(100),
      metadata: { note: 'm'.repeat(3_900) },
    });
    const outTradeNo = outTradeNoOf(saga, orderId, requestNo);
    // A charge whose outcome is unknown for a while, answers of many kinds, and copies of callbacks.
    await saga.mock.addFault({
      match: { operation: 'create', outTradeNo },
      times: 1,
      do: { answer: 'html', status: 502 },
    });
    await saga.mock.addFault({
      match: { operation: 'query', outTradeNo },
      times: 2,
      do: { answer: 'http', status: 500 },
    });
    await saga.mock.addFault({
      match: { operation: 'callback', outTradeNo },
      do: { copies: 5 },
    });
    const payer = { open_id: 'p'.repeat(60) };
    const paying = await Promise.all(
      Array.from({ length: 5 }, () =>
        saga.pay(orderId, requestNo, {
          return_url: `https://shop.example/${'r'.repeat(900)}`,
          payer,
        }),
      ),
    );
    for (const { status } of paying) expect(status).toBeLessThan(300);
    await saga.mock.approve(outTradeNo);
    await saga.untilOrder(orderId, 'paid');
    // Paid a second time: the surplus goes back by itself.
    await saga.mock.capture({ outTradeNo });
    for (let i = 0; i < REFUNDS; i++) {
      const refundNo = `r${i}-${'z'.repeat(LONGEST - 3)}`;
      const answer = await saga.refund(orderId, refundNo, 100);
      expect(answer.status).toBe(201);
    }
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'paid',
      cap: { count: 2 },
      ref: { count: 1 + REFUNDS, sums: { CNY: 10_000 + REFUNDS * 100 } },
      rows: 1,
      evt: 1,
    });

    const children = [];
    const query = `WorkflowType = 'refund' and OrderId = '${orderId}'`;
    for await (const run of saga.client.workflow.list({ query })) {
      const handle = saga.client.workflow.getHandle(run.workflowId, run.runId);
      children.push((await handle.fetchHistory()).events ?? []);
    }
    expect(children.length).toBeGreaterThanOrEqual(REFUNDS);
    const histories = [...(await historiesOf(saga, orderId)), ...children];
    const payloads = histories.flatMap((events) => payloadsIn(events));
    expect(payloads.length).toBeGreaterThan(50);
    const big = payloads.filter(({ bytes }) => bytes >= PAYLOAD_MAX_BYTES);
    expect(big.map(({ path, bytes }) => `${path}: ${bytes}`)).toEqual([]);
    // The numbers are in there; what the payer and the shop said besides is not.
    const all = payloads.map(({ text }) => text).join('\n');
    expect(all).toContain(requestNo);
    for (const said of ['mmmmmmmm', payer.open_id, 'shop.example', '订订']) {
      expect(all).not.toContain(said);
    }
  });

  it('B125: 200 KB of metadata are refused, with the order and with a payment', async () => {
    const metadata = { note: 'm'.repeat(200_000) };
    const refused = await saga.call('POST', '/v1/orders', {
      order_id: 'too-big',
      amount: 100,
      currency: 'CNY',
      subject: 'x',
      metadata,
    });
    expect([413, 422]).toContain(refused.status);
    expect((await saga.status('too-big')).status).toBe(404);
    const orderId = await saga.createOrder();
    expect([413, 422]).toContain((await saga.pay(orderId, 'K1', { metadata })).status);
    expect(await saga.records(orderId)).toEqual([]);
    expect((await saga.pay(orderId, 'K1')).status).toBe(201);
    await saga.cancel(orderId);
  });
});
