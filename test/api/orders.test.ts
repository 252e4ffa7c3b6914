import type { ApiHarness } from './api-harness';
import { aNewOrder, countRows, startApiHarness } from './api-harness';

let api: ApiHarness;
beforeAll(async () => {
  api = await startApiHarness();
});
afterAll(() => api.close());

async function create(said: Record<string, unknown> = {}) {
  const body = aNewOrder(said);
  const answer = await api.ask('POST', '/v1/orders', { body });
  expect(answer.status).toBe(201);
  return body;
}

test('a new order is answered 201 with everything it holds, and its run is started', async () => {
  const body = aNewOrder({ metadata: { basket: ['a', { n: 1 }] }, expires_in: 60 });
  const answer = await api.ask('POST', '/v1/orders', { body });
  expect(answer.status).toBe(201);
  expect(answer.headers.get('location')).toBe(`/v1/orders/${body.order_id}`);
  expect(answer.body).toMatchObject({
    order_id: body.order_id,
    amount: 10_000,
    currency: 'CNY',
    subject: 'two cups',
    metadata: { basket: ['a', { n: 1 }] },
    status: 'created',
    refund_status: 'none',
    captured_minor: 0,
    refunded_minor: 0,
    attempts: [],
    refunds: [],
  });
  const lifetime = Date.parse(answer.body.expires_at) - Date.parse(answer.body.created_at);
  expect(lifetime).toBe(60_000);
  const run = await api.client.workflow
    .getHandle(`order:${api.merchantId}:${body.order_id}`)
    .describe();
  expect(run.status.name).toBe('RUNNING');
  expect(run.taskQueue).toBe(api.taskQueue);
});

test('the same order again is answered 200 from the row, other content 409', async () => {
  const body = await create({ metadata: { a: 1, b: 2 } });
  const again = await api.ask('POST', '/v1/orders', {
    body: { ...body, metadata: { b: 2, a: 1 } },
  });
  expect(again.status).toBe(200);
  for (const other of [
    { amount: 10_001 },
    { currency: 'USD' },
    { subject: 'three cups' },
    { expires_in: 61 },
    { metadata: {} },
  ]) {
    const answer = await api.ask('POST', '/v1/orders', { body: { ...body, ...other } });
    expect([answer.status, answer.body.code]).toEqual([409, 'order_exists']);
  }
  const { rows } = await api.pool.query('select amount_minor from orders where order_id = $1', [
    body.order_id,
  ]);
  expect(rows).toEqual([{ amount_minor: 10_000 }]);
});

test('twenty at once create one order: one 201, nineteen 200', async () => {
  const body = aNewOrder();
  const before = await countRows(api.pool);
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => api.ask('POST', '/v1/orders', { body })),
  );
  const statuses = answers.map(({ status }) => status).sort();
  expect(statuses).toEqual([...Array<number>(19).fill(200), 201]);
  const after = await countRows(api.pool);
  expect(after['orders']! - before['orders']!).toBe(1);
  expect(after['order_events']! - before['order_events']!).toBe(1);
});

test('B73: ids that differ in case are two orders', async () => {
  const ids = [`ORDER${process.pid}`, `order${process.pid}`];
  for (const order_id of ids) await create({ order_id });
  for (const order_id of ids) {
    const answer = await api.ask('GET', `/v1/orders/${order_id}`);
    expect([answer.status, answer.body.order_id]).toEqual([200, order_id]);
  }
});

test('B76: an order id of 19 digits stays text, leading zeros too', async () => {
  for (const order_id of ['9007199254740993123', '0000000000000000042']) {
    await create({ order_id });
    const answer = await api.ask('GET', `/v1/orders/${order_id}`);
    expect(answer.body.order_id).toBe(order_id);
  }
});

test('B46: amounts up to the largest exact integer come back as they were sent', async () => {
  for (const amount of [2147483647, 2147483648, 9999999999, 10000000000, 9007199254740991]) {
    const body = await create({ amount });
    const answer = await api.ask('GET', `/v1/orders/${body.order_id}`);
    expect(answer.body.amount).toBe(amount);
    const { rows } = await api.pool.query<{ text: string }>(
      'select amount_minor::text as text from orders where order_id = $1',
      [body.order_id],
    );
    expect(rows[0]!.text).toBe(String(amount));
  }
});

test("another merchant's order cannot be told from one that is not there", async () => {
  const { order_id } = await create();
  const other = await api.ask('GET', `/v1/orders/${order_id}`, { key: api.otherKey });
  const none = await api.ask('GET', '/v1/orders/none', { key: api.otherKey });
  expect([other.status, other.body.code]).toEqual([404, 'order_not_found']);
  expect([none.status, none.body.code]).toEqual([404, 'order_not_found']);
  // The same number is free for the other merchant.
  const body = aNewOrder({ order_id, amount: 1 });
  const mine = await api.ask('POST', '/v1/orders', { body, key: api.otherKey });
  expect(mine.status).toBe(201);
});

test('a list pages through every order once, newest first, by status or all of them', async () => {
  const lister = await startApiHarness();
  try {
    const ids: string[] = [];
    for (let i = 0; i < 7; i++) {
      const body = aNewOrder();
      await lister.ask('POST', '/v1/orders', { body });
      ids.unshift(body.order_id);
    }
    // All made in one instant: the order id decides then.
    await lister.pool.query('update orders set created_at = $1', ['2026-01-01T00:00:00.123456Z']);
    ids.sort().reverse();
    for (const filter of ['', 'status=created&']) {
      const seen: string[] = [];
      let cursor: string | null = '';
      while (cursor !== null) {
        const path: string = `/v1/orders?${filter}limit=3${cursor === '' ? '' : `&cursor=${cursor}`}`;
        const page = await lister.ask('GET', path);
        expect(page.status).toBe(200);
        seen.push(...page.body.orders.map((order: { order_id: string }) => order.order_id));
        cursor = page.body.next_cursor;
      }
      expect(seen).toEqual(ids);
    }
    const paid = await lister.ask('GET', '/v1/orders?status=paid');
    expect(paid.body).toEqual({ orders: [], next_cursor: null });
  } finally {
    await lister.close();
  }
});

describe('long poll', () => {
  test('answers as soon as the order changes', async () => {
    const { order_id } = await create();
    const startedAt = performance.now();
    const asked = api.ask('GET', `/v1/orders/${order_id}?wait=20s&version=1`);
    await api.pool.query(
      `update orders set status = 'paying', version = version + 1 where order_id = $1`,
      [order_id],
    );
    const answer = await asked;
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect(answer.body).toMatchObject({ status: 'paying', version: 2 });
  });

  test('answers at once when the version known is not the one now', async () => {
    const { order_id } = await create();
    const answer = await api.ask('GET', `/v1/orders/${order_id}?wait=20s&version=0`);
    expect(answer.body.version).toBe(1);
  });

  test('answers the same order when nothing changed for so long', async () => {
    const { order_id } = await create();
    const startedAt = performance.now();
    const answer = await api.ask('GET', `/v1/orders/${order_id}?wait=1s`);
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(990);
    expect([answer.status, answer.body.version]).toEqual([200, 1]);
  });
});

test('with Temporal away an order is still created, quickly, and the sweep sees its work', async () => {
  const alone = await startApiHarness({
    temporalAddress: '127.0.0.1:1',
    limits: { startWithinMs: 300 },
  });
  try {
    const body = aNewOrder();
    const startedAt = performance.now();
    const answer = await alone.ask('POST', '/v1/orders', { body });
    expect(answer.status).toBe(201);
    expect(performance.now() - startedAt).toBeLessThan(3_000);
    const { rows } = await alone.pool.query('select order_id, reason from orders_with_work');
    expect(rows).toEqual([{ order_id: body.order_id, reason: 'open' }]);
  } finally {
    await alone.close();
  }
});
