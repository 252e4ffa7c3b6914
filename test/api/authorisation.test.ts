import { randomUUID } from 'node:crypto';
import { DEFAULT_LIMITS } from '../../api/deps';
import type { ApiRoute } from '../../api/route';
import { createRouteTable } from '../../api/routes/table';
import { generateApiKey, insertApiKey, revokeApiKey } from '../../db/merchants';
import type { Scope } from '../../db/merchants';
import { insertNotification } from '../../db/notifications';
import { insertCapture, insertPayRecord, insertRefund, insertRow } from '../support/rows';
import type { ApiHarness } from './api-harness';
import { aNewOrder, countRows, startApiHarness } from './api-harness';

/**
 * Who may call what: every route of the app's own table × every kind of caller. A route that is new
 * fails the first test until it says below how it is called and what another merchant gets of it.
 */
interface Call {
  /** With the numbers of things that `merchantId` has. */
  path: string;
  body?: object;
  /**
   * What a caller with every scope gets that belongs to another merchant. `not found`: 404, as if there
   * were nothing. `its own`: an answer that holds nothing of ours. `everything`: operators see all.
   */
  other: 'not found' | 'its own' | 'everything';
}

interface Things {
  orderId: string;
  notificationId: number;
  /** An act that waits for a second person, and a case that belongs to no order. */
  actNo: string;
  orphanCaseId: number;
}

const CALLS: Record<string, (things: Things) => Call> = {
  'POST /v1/orders': () => ({ path: '/v1/orders', body: aNewOrder(), other: 'its own' }),
  'GET /v1/orders': () => ({ path: '/v1/orders', other: 'its own' }),
  'GET /v1/orders/{order_id}': ({ orderId }) => ({
    path: `/v1/orders/${orderId}`,
    other: 'not found',
  }),
  'POST /v1/orders/{order_id}/payments': ({ orderId }) => ({
    path: `/v1/orders/${orderId}/payments`,
    body: { channel: 'mock-a', request_no: 'K9' },
    other: 'not found',
  }),
  'POST /v1/orders/{order_id}/cancel': ({ orderId }) => ({
    path: `/v1/orders/${orderId}/cancel`,
    body: {},
    other: 'not found',
  }),
  'POST /v1/orders/{order_id}/refunds': ({ orderId }) => ({
    path: `/v1/orders/${orderId}/refunds`,
    body: { refund_no: 'R9', amount: 1 },
    other: 'not found',
  }),
  'GET /v1/orders/{order_id}/refunds/{refund_no}': ({ orderId }) => ({
    path: `/v1/orders/${orderId}/refunds/R1`,
    other: 'not found',
  }),
  'GET /v1/orders/{order_id}/timeline': ({ orderId }) => ({
    path: `/v1/orders/${orderId}/timeline`,
    other: 'not found',
  }),
  'GET /ops/cases': () => ({ path: '/ops/cases', other: 'everything' }),
  'GET /ops/cases/{case_id}': ({ orphanCaseId }) => ({
    path: `/ops/cases/${orphanCaseId}`,
    other: 'everything',
  }),
  'POST /ops/cases/{case_id}/acts': ({ orphanCaseId }) => ({
    path: `/ops/cases/${orphanCaseId}/acts`,
    body: { kind: 'note', name: 'Lin', reason: 'a test' },
    other: 'everything',
  }),
  'GET /ops/orders/{merchant_id}/{order_id}': ({ orderId }) => ({
    path: `/ops/orders/${api.merchantId}/${orderId}`,
    other: 'everything',
  }),
  'GET /ops/orders/{merchant_id}/{order_id}/timeline': ({ orderId }) => ({
    path: `/ops/orders/${api.merchantId}/${orderId}/timeline`,
    other: 'everything',
  }),
  'POST /ops/orders/{merchant_id}/{order_id}/acts': ({ orderId }) => ({
    path: `/ops/orders/${api.merchantId}/${orderId}/acts`,
    body: { kind: 'note', name: 'Lin', reason: 'a test' },
    other: 'everything',
  }),
  'GET /ops/acts': () => ({ path: '/ops/acts', other: 'everything' }),
  'GET /ops/acts/{act_no}': ({ actNo }) => ({ path: `/ops/acts/${actNo}`, other: 'everything' }),
  'POST /ops/acts/{act_no}/confirm': ({ actNo }) => ({
    path: `/ops/acts/${actNo}/confirm`,
    body: { name: 'Mo', reason: 'a test' },
    other: 'everything',
  }),
  // A date that has not ended: an answer, and no run.
  'POST /ops/reconciliations': () => ({
    path: '/ops/reconciliations',
    body: { channel: 'mock-a', day: '2999-01-01' },
    other: 'everything',
  }),
  'GET /ops/reconciliations': () => ({ path: '/ops/reconciliations', other: 'everything' }),
  'GET /ops/reconciliations/{day}': () => ({
    path: '/ops/reconciliations/2026-05-01',
    other: 'everything',
  }),
  'GET /ops/search': () => ({ path: '/ops/search?status=paid', other: 'everything' }),
  'GET /ops/stuck': () => ({ path: '/ops/stuck', other: 'everything' }),
  'GET /v1/events': () => ({ path: '/v1/events', other: 'its own' }),
  'GET /ops/notifications': () => ({
    path: '/ops/notifications?status=kept',
    other: 'everything',
  }),
  'GET /ops/notifications/{notification_id}': ({ notificationId }) => ({
    path: `/ops/notifications/${notificationId}`,
    other: 'everything',
  }),
  'POST /ops/notifications/{notification_id}/resend': ({ notificationId }) => ({
    path: `/ops/notifications/${notificationId}/resend`,
    body: { reason: 'a test' },
    other: 'everything',
  }),
};

/** Routes outside the table: whoever reaches the port may call them, channels sign what they send. */
const OPEN = [
  'POST /callbacks/:channel',
  'GET /healthz',
  'GET /readyz',
  'GET /metrics',
  'GET /openapi.json',
];

const ALL_SCOPES: Scope[] = ['pay', 'refund', 'read', 'operator'];
const nameOf = ({ method, path }: ApiRoute) => `${method.toUpperCase()} ${path}`;
const routes = createRouteTable(DEFAULT_LIMITS);

let api: ApiHarness;
let things: Things;
let otherMerchantId: string;
const keys: Record<'own' | 'other' | 'expired' | 'revoked', string> = {
  own: '',
  other: '',
  expired: '',
  revoked: '',
};

beforeAll(async () => {
  // No worker runs: what asks an order's run is answered "unknown" soon, and that is an answer.
  api = await startApiHarness({ limits: { askWithinMs: 200, startWithinMs: 200 } });
  const { rows } = await api.pool.query<{ merchant_id: string }>(
    `select merchant_id from merchants where merchant_id <> $1`,
    [api.merchantId],
  );
  otherMerchantId = rows[0]!.merchant_id;
  const aKey = async (merchantId: string, end?: 'expired' | 'revoked') => {
    const [keyId, apiKey] = [`key-${randomUUID()}`, generateApiKey()];
    await insertApiKey(api.pool, { keyId, merchantId, apiKey, scopes: ALL_SCOPES });
    if (end === 'revoked') await revokeApiKey(api.pool, keyId);
    if (end === 'expired') {
      await api.pool.query(`update api_keys set expires_at = now() where key_id = $1`, [keyId]);
    }
    return apiKey;
  };
  keys.own = await aKey(api.merchantId);
  keys.other = await aKey(otherMerchantId);
  keys.expired = await aKey(api.merchantId, 'expired');
  keys.revoked = await aKey(api.merchantId, 'revoked');
});
afterAll(() => api?.close());

/** An order of the merchant that is paid, with a refund and an event. */
beforeEach(async () => {
  const body = aNewOrder();
  await api.ask('POST', '/v1/orders', { body, key: keys.own });
  const ref = { merchantId: api.merchantId, orderId: body.order_id };
  const order = { merchant_id: ref.merchantId, order_id: ref.orderId };
  const record = await insertPayRecord(api.pool, order, { channel: 'mock-a', status: 'paid' });
  const capture = await insertCapture(api.pool, record);
  await insertRefund(api.pool, capture, { refund_no: 'R1', status: 'succeeded' });
  await insertNotification(api.pool, ref, 'order.closed', '');
  const { rows } = await api.pool.query<{ notification_id: number }>(
    `select notification_id from notifications where order_id = $1`,
    [ref.orderId],
  );
  const orphan = await insertRow(api.pool, 'cases', {
    channel: 'mock-a',
    subject_no: `N${ref.orderId}`,
    kind: 'unknown_number',
    summary: 'a number of nobody',
  });
  const act = await insertRow(api.pool, 'operator_acts', {
    act_no: `act-${ref.orderId}`,
    kind: 'note',
    case_id: orphan['case_id'],
    reason: 'a test',
    actor_key: 'key-of-the-first',
    actor_name: 'Lin',
    fingerprint: Buffer.from(ref.orderId),
    needs_second: true,
    status: 'waiting_second',
  });
  things = {
    orderId: ref.orderId,
    notificationId: rows[0]!.notification_id,
    actNo: String(act['act_no']),
    orphanCaseId: Number(orphan['case_id']),
  };
});

/**
 * Pages for people: the payer's opens to who has its link (pay-page.test.ts), the desk's to who is logged
 * in (desk.test.ts), and what they load holds nothing of anybody.
 */
const PAGES = /^\/(?:pay|assets|docs|ops\/ui)(?:\/|$)/;

test('every route has an entry here, and every entry a route', () => {
  expect(routes.map(nameOf).sort()).toEqual(Object.keys(CALLS).sort());
  const ofTable = api.api.routes.map((route) => nameOf(route).replace(/\{(\w+)\}/g, ':$1'));
  expect(api.api.routes.map(nameOf)).toEqual(routes.map(nameOf));
  const ofApp = api.api.app.routes
    .filter(({ path }) => !PAGES.test(path))
    .map(({ method, path }) => `${method} ${path}`);
  // Nothing is reachable beside the table and what is open on purpose.
  expect([...new Set(ofApp)].sort()).toEqual([...ofTable, ...OPEN].sort());
});

describe.each(routes.map((route) => [nameOf(route), route] as const))('%s', (name, route) => {
  /** The call as it would succeed, by the holder of the key. */
  function callBy(key: string | null) {
    const { path, body } = CALLS[name]!(things);
    return api.ask(route.method.toUpperCase(), path, {
      key,
      ...(body === undefined ? {} : { body }),
    });
  }

  async function expectRefusal(key: string | null, status: number, code: string): Promise<void> {
    const before = await countRows(api.pool);
    const answer = await callBy(key);
    expect([answer.status, answer.body.code]).toEqual([status, code]);
    expect(JSON.stringify(answer.body)).not.toContain(things.orderId);
    expect(await countRows(api.pool)).toEqual(before);
  }

  test.each([
    ['no key', () => null],
    ['a key that nobody has', () => generateApiKey()],
    ['a key past its end', () => keys.expired],
    ['a revoked key', () => keys.revoked],
  ])('%s: 401, and nothing happens', async (_kind, key: () => string | null) => {
    await expectRefusal(key(), 401, 'unauthenticated');
  });

  test(`every scope but "${route.scope}": 403, and nothing happens`, async () => {
    const key = await api.keyWith(ALL_SCOPES.filter((scope) => scope !== route.scope));
    await expectRefusal(key, 403, 'insufficient_scope');
  });

  test('another merchant gets nothing of ours', async () => {
    const { other } = CALLS[name]!(things);
    if (other === 'everything') {
      // Only operators' routes may say so.
      expect(route.scope).toBe('operator');
      const { status } = await callBy(keys.other);
      expect([401, 403, 404]).not.toContain(status);
      return;
    }
    if (other === 'not found') {
      const before = await countRows(api.pool);
      const answer = await callBy(keys.other);
      expect(answer.status).toBe(404);
      expect(await countRows(api.pool)).toEqual(before);
      return;
    }
    const ours = await ownOrders(api.merchantId);
    const answer = await callBy(keys.other);
    expect(answer.status).toBeLessThan(300);
    for (const orderId of ours) expect(JSON.stringify(answer.body)).not.toContain(`"${orderId}"`);
    expect(await ownOrders(api.merchantId)).toEqual(ours);
  });

  test(`the merchant’s own key with the scope "${route.scope}" is let in`, async () => {
    for (const key of [keys.own, await api.keyWith([route.scope])]) {
      const { status } = await callBy(key);
      expect([401, 403, 404, 405, 500]).not.toContain(status);
    }
  });
});

async function ownOrders(merchantId: string): Promise<string[]> {
  const { rows } = await api.pool.query<{ order_id: string }>(
    `select order_id from orders where merchant_id = $1 order by order_id`,
    [merchantId],
  );
  return rows.map(({ order_id }) => order_id);
}
