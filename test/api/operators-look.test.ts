import { insertNotification } from '../../db/notifications';
import type { ApiHarness } from './api-harness';
import { startApiHarness } from './api-harness';
import { anOrderInReview } from './review-order';

/** What is looked up needs no worker. */
let api: ApiHarness;
let lin: string;
beforeAll(async () => {
  api = await startApiHarness({
    limits: { askWithinMs: 200, startWithinMs: 200 },
    temporalUiUrl: 'http://temporal.example:8233/',
  });
  lin = await api.keyWith(['operator']);
});
afterAll(() => api?.close());

const get = (path: string, key = lin) => api.ask('GET', path, { key });
const post = (path: string, body: object, key = lin) => api.ask('POST', path, { key, body });
const actsOf = (orderId: string) => `/ops/orders/${api.merchantId}/${orderId}/acts`;
const PERSON = { name: 'Lin', reason: 'a test' };

describe('the timeline', () => {
  test('is the merchant’s own without acts and evidence, the operator’s with everything', async () => {
    const { orderId } = await anOrderInReview(api);
    await insertNotification(
      api.pool,
      { merchantId: api.merchantId, orderId },
      'order.review',
      'x',
    );
    await post(actsOf(orderId), { ...PERSON, kind: 'note' });
    const own = await api.ask('GET', `/v1/orders/${orderId}/timeline`);
    const kinds = (answer: { body: { entries: { kind: string }[] } }) =>
      new Set(answer.body.entries.map(({ kind }) => kind));
    expect(own.status).toBe(200);
    expect(kinds(own)).toEqual(new Set(['move', 'attempt', 'capture', 'case', 'notification']));
    expect(JSON.stringify(own.body)).not.toMatch(/for operators alone|a test/);
    const whole = await get(`/ops/orders/${api.merchantId}/${orderId}/timeline`);
    expect(kinds(whole)).toEqual(new Set([...kinds(own), 'act', 'case_evidence']));
    for (const { run_url: url } of whole.body.entries) {
      expect(url).toContain(`/workflows/order%3A${api.merchantId}%3A${orderId}`);
    }
    const pages = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const page = await get(
        `/ops/orders/${api.merchantId}/${orderId}/timeline?limit=2${cursor && `&cursor=${cursor}`}`,
      );
      pages.push(...page.body.entries);
      cursor = page.body.next_cursor;
    }
    expect(pages).toEqual(whole.body.entries);
  });

  test('of another merchant’s order is not there', async () => {
    const { orderId } = await anOrderInReview(api);
    const answer = await api.ask('GET', `/v1/orders/${orderId}/timeline`, { key: api.otherKey });
    expect([answer.status, answer.body.code]).toEqual([404, 'order_not_found']);
  });

  test.each(['x', 'W10', 'WzEsMiwzXQ', 'WyIxIiwiMiIsIngiXQ'])(
    'knows no cursor %s',
    async (cursor) => {
      const { orderId } = await anOrderInReview(api);
      const answer = await api.ask('GET', `/v1/orders/${orderId}/timeline?cursor=${cursor}`);
      expect(answer.status).toBe(400);
    },
  );
});

describe('the search', () => {
  const found = async (query: string) =>
    (await get(`/ops/search?${query}`)).body.orders.map(
      (order: { order_id: string; matched: string[] }) => [order.order_id, order.matched],
    );

  test('finds an order by any of its numbers, and by nothing like them', async () => {
    const { orderId, outTradeNo, tradeNo } = await anOrderInReview(api);
    expect(await found(`q=${orderId}`)).toEqual([[orderId, ['order_id']]]);
    expect(await found(`q=${outTradeNo}`)).toEqual([[orderId, ['out_trade_no']]]);
    expect(await found(`q=${tradeNo}`)).toEqual([[orderId, ['channel_trade_no']]]);
    expect(await found(`q=${orderId}%25`)).toEqual([]);
    expect(await found(`q=${encodeURIComponent("' or true --")}`)).toEqual([]);
  });

  test('finds orders by amount and day of a zone, and by status', async () => {
    const { orderId } = await anOrderInReview(api, { amountMinor: 7_777 });
    await api.pool.query(
      `update captures set learnt_at = '2026-05-12T17:30:00Z' where order_id = $1`,
      [orderId],
    );
    expect(await found('amount=7777&day=2026-05-12')).toEqual([[orderId, ['capture']]]);
    expect(await found('amount=7777&day=2026-05-13&zone=Asia/Shanghai')).toEqual([
      [orderId, ['capture']],
    ]);
    expect(await found('amount=7777&day=2026-05-12&zone=Asia/Shanghai')).toEqual([]);
    expect((await found('status=review')).map(([id]: [string]) => id)).toContain(orderId);
    expect(await found(`q=${orderId}&status=paid`)).toEqual([]);
  });

  test.each([
    '',
    'amount=1',
    'day=2026-05-12',
    'amount=0&day=2026-05-12',
    'amount=1&day=2026-02-30',
    'amount=1&day=2026-05-12&zone=Nowhere/Land',
    'status=lost',
    'q=',
    'q=a&q=b',
    'x=1',
  ])('refuses "%s"', async (query) => {
    expect((await get(`/ops/search?${query}`)).status).toBe(400);
  });
});
