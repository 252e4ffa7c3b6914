import { beginKey, deleteExpiredKeys, finishKey, releaseKey } from '../../db/idempotency-keys';
import type { KeyScope } from '../../db/idempotency-keys';
import { fingerprintOf } from '../../api/fingerprint';
import type { ApiHarness } from './api-harness';
import { aNewOrder, startApiHarness } from './api-harness';

let api: ApiHarness;
beforeAll(async () => {
  api = await startApiHarness({ limits: { idempotencyWaitMs: 200 } });
});
afterAll(() => api.close());

const TIMES = { leaseMs: 30_000, lifetimeMs: 60_000 };
let keys = 0;

function aScope(said: Partial<KeyScope> = {}): KeyScope {
  keys += 1;
  return {
    merchantId: api.merchantId,
    method: 'POST',
    route: '/v1/orders',
    key: `key-${keys}`,
    ...said,
  };
}

function create(key: string, body: unknown) {
  return api.ask('POST', '/v1/orders', { body, headers: { 'idempotency-key': key } });
}

describe('the store', () => {
  const content = fingerprintOf({ amount: 1 });
  const other = fingerprintOf({ amount: 2 });

  test('gives a free key to one of twenty at once, to the others a lease to wait for', async () => {
    const scope = aScope();
    const begun = await Promise.all(
      Array.from({ length: 20 }, () => beginKey(api.pool, scope, content, TIMES)),
    );
    expect(begun.filter(({ state }) => state === 'new')).toHaveLength(1);
    expect(begun.filter(({ state }) => state === 'running')).toHaveLength(19);
    for (const one of begun) {
      if (one.state === 'running') expect(one.retryAfterMs).toBeGreaterThan(25_000);
    }
  });

  test('keeps the thing made, and refuses other content before and after', async () => {
    const scope = aScope();
    const begun = await beginKey(api.pool, scope, content, TIMES);
    if (begun.state !== 'new') throw new Error(begun.state);
    expect((await beginKey(api.pool, scope, other, TIMES)).state).toBe('other_content');
    await finishKey(api.pool, begun.lease, { kind: 'order', orderId: 'o-1' });
    expect((await beginKey(api.pool, scope, other, TIMES)).state).toBe('other_content');
    expect(await beginKey(api.pool, scope, content, TIMES)).toEqual({
      state: 'done',
      made: { kind: 'order', orderId: 'o-1' },
    });
  });

  test('counts per caller, method and route', async () => {
    const scope = aScope();
    for (const said of [
      {},
      { method: 'PUT' },
      { route: '/v1/orders/{order_id}/payments' },
      { merchantId: 'somebody' },
    ]) {
      const begun = await beginKey(api.pool, { ...scope, ...said }, content, TIMES);
      expect(begun.state).toBe('new');
    }
  });

  test('lets a lease that ran out go to the same content only, and its old holder change nothing', async () => {
    const scope = aScope();
    const dead = await beginKey(api.pool, scope, content, { ...TIMES, leaseMs: 0 });
    if (dead.state !== 'new') throw new Error(dead.state);
    expect((await beginKey(api.pool, scope, other, TIMES)).state).toBe('other_content');
    const next = await beginKey(api.pool, scope, content, TIMES);
    expect(next.state).toBe('new');
    await releaseKey(api.pool, dead.lease);
    await finishKey(api.pool, dead.lease, { kind: 'order', orderId: 'dead' });
    expect((await beginKey(api.pool, scope, content, TIMES)).state).toBe('running');
  });

  test('forgets a key after its lifetime, and sweeps it away', async () => {
    const scope = aScope();
    const begun = await beginKey(api.pool, scope, content, { ...TIMES, lifetimeMs: 0 });
    if (begun.state !== 'new') throw new Error(begun.state);
    await finishKey(api.pool, begun.lease, { kind: 'order', orderId: 'o-1' });
    expect((await beginKey(api.pool, scope, other, { ...TIMES, lifetimeMs: 0 })).state).toBe('new');
    expect(await deleteExpiredKeys(api.pool, 10)).toBe(1);
  });
});

test('B65: the same key and content, fields in another order, is answered from the row as it stands', async () => {
  const body = aNewOrder();
  expect((await create('replayed', body)).status).toBe(201);
  await api.pool.query(`update orders set version = 7, status = 'paying' where order_id = $1`, [
    body.order_id,
  ]);
  const turned = Object.fromEntries(Object.entries(body).reverse());
  const again = await create('replayed', turned);
  expect(again.status).toBe(200);
  expect(again.headers.get('idempotency-replayed')).toBe('true');
  expect(again.body).toMatchObject({ order_id: body.order_id, version: 7, status: 'paying' });
});

test('B65: the same key with other content is refused 422 and does nothing', async () => {
  const body = aNewOrder();
  await create('reused', body);
  const answer = await create('reused', { ...aNewOrder(), amount: 1 });
  expect([answer.status, answer.body.code]).toEqual([422, 'idempotency_key_reused']);
});

test('a request that is still running is answered 409 with Retry-After, not run a second time', async () => {
  const body = { ...aNewOrder(), expires_in: 1800, metadata: {} };
  const scope = aScope({ key: 'busy' });
  await beginKey(api.pool, scope, fingerprintOf({ body }), TIMES);
  const answer = await create('busy', body);
  expect([answer.status, answer.body.code]).toEqual([409, 'request_in_progress']);
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  const { rowCount } = await api.pool.query('select from orders where order_id = $1', [
    body.order_id,
  ]);
  expect(rowCount).toBe(0);
});

test('a process that died with the key blocks it no longer than its lease', async () => {
  const body = { ...aNewOrder(), expires_in: 1800, metadata: {} };
  const scope = aScope({ key: 'died' });
  await beginKey(api.pool, scope, fingerprintOf({ body }), { ...TIMES, leaseMs: 0 });
  expect((await create('died', body)).status).toBe(201);
});

test('a failure is not remembered: the same key may be used again', async () => {
  const body = aNewOrder();
  await create('first', body);
  expect((await create('failing', { ...body, amount: 5 })).status).toBe(409);
  expect((await create('failing', aNewOrder())).status).toBe(201);
});

test('twenty repeats at once make one order, and all learn of it', async () => {
  const waiting = await startApiHarness();
  try {
    const body = aNewOrder();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        waiting.ask('POST', '/v1/orders', { body, headers: { 'idempotency-key': 'k' } }),
      ),
    );
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([...Array<number>(19).fill(200), 201]);
  } finally {
    await waiting.close();
  }
});
