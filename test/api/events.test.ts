import { insertNotification, webhookIdOf } from '../../db/notifications';
import type { ApiHarness } from './api-harness';
import { aNewOrder, startApiHarness } from './api-harness';

let api: ApiHarness;
beforeAll(async () => {
  api = await startApiHarness();
});
afterAll(() => api.close());

/** Orders of the merchant with an `order.closed` each, in the order of the answer. */
async function events(count: number): Promise<string[]> {
  const orderIds: string[] = [];
  for (let i = 0; i < count; i++) {
    const body = aNewOrder();
    await api.ask('POST', '/v1/orders', { body });
    const ref = { merchantId: api.merchantId, orderId: body.order_id };
    await insertNotification(api.pool, ref, 'order.closed', '');
    orderIds.push(body.order_id);
  }
  return orderIds;
}

const read = (query = '', key?: string) =>
  api.ask('GET', `/v1/events${query}`, key === undefined ? {} : { key });

test('a merchant that was down reads what it missed, page by page, in order', async () => {
  const orderIds = await events(5);
  const [first] = orderIds;
  const seen: { id: string; data: { order_id: string } }[] = [];
  let answer = await read('?limit=2');
  for (;;) {
    expect(answer.status).toBe(200);
    seen.push(...answer.body.events);
    if (!answer.body.has_more) break;
    answer = await read(`?limit=2&after=${answer.body.next_after}`);
  }
  expect(seen.map(({ data }) => data.order_id)).toEqual(orderIds);
  expect(seen[0]).toMatchObject({
    id: webhookIdOf({
      merchantId: api.merchantId,
      orderId: first!,
      eventType: 'order.closed',
      subjectNo: '',
    }),
    type: 'order.closed',
    data: { order_id: first, seq: 1, amount_minor: 10_000, status: 'created' },
    delivery: 'kept',
  });
  // Nothing new: the cursor stays; something new: only that.
  const end = answer.body.next_after;
  const nothing = await read(`?after=${end}`);
  expect(nothing.body).toEqual({ events: [], next_after: end, has_more: false });
  const [late] = await events(1);
  const more = await read(`?after=${end}`);
  expect(more.body.events.map((e: (typeof seen)[0]) => e.data.order_id)).toEqual([late]);
});

test('another merchant reads its own events only, and no cursor of ours', async () => {
  await events(1);
  const ours = await read('?limit=1');
  expect((await read('', api.otherKey)).body).toEqual({
    events: [],
    next_after: null,
    has_more: false,
  });
  const foreign = await read(`?after=${ours.body.next_after}`, api.otherKey);
  expect([foreign.status, foreign.body.code]).toEqual([410, 'cursor_unknown']);
});

test('a cursor from before the database was restored is told so, not silently wrong', async () => {
  await events(3);
  const { next_after: cursor } = (await read()).body;
  // As an old backup leaves it: the last event is not there, and another one gets its number.
  await api.pool.query(
    `delete from notifications where merchant_id = $1 and event_no =
       (select max(event_no) from notifications where merchant_id = $1)`,
    [api.merchantId],
  );
  await api.pool.query(
    `update event_feeds set last_event_no = last_event_no - 1 where merchant_id = $1`,
    [api.merchantId],
  );
  for (const more of [0, 1]) {
    await events(more);
    await read();
    const answer = await read(`?after=${cursor}`);
    expect([answer.status, answer.body.code]).toEqual([410, 'cursor_unknown']);
  }
});

test.each(['?after=nonsense', '?after=', '?limit=0', '?limit=1001', '?limit=x', '?since=1'])(
  '%s is 400',
  async (query) => {
    expect((await read(query)).status).toBe(400);
  },
);
