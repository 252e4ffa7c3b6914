import { revokeApiKey } from '../../db/merchants';
import type { ApiHarness } from './api-harness';
import { aNewOrder, startApiHarness } from './api-harness';

let api: ApiHarness;
beforeAll(async () => {
  api = await startApiHarness();
});
afterAll(() => api.close());

test.each([
  ['no header', {}],
  ['an unknown key', { authorization: 'Bearer psk_nobody' }],
  ['another scheme', { authorization: 'Basic dTpw' }],
  ['an empty key', { authorization: 'Bearer ' }],
  ['a key of odd characters', { authorization: "Bearer ' or true --" }],
])('%s is answered 401 on every route', async (_name, headers: Record<string, string>) => {
  for (const route of api.api.routes) {
    const path = route.path.replace(/\{\w+\}/g, 'x-1');
    const answer = await api.ask(route.method.toUpperCase(), path, { key: null, headers });
    expect([answer.status, answer.body.code]).toEqual([401, 'unauthenticated']);
    expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/);
  }
});

test('a key opens only the routes of its scopes', async () => {
  for (const route of api.api.routes) {
    const others = (['pay', 'refund', 'read', 'operator'] as const).filter(
      (scope) => scope !== route.scope,
    );
    const key = await api.keyWith(others);
    const path = route.path.replace(/\{\w+\}/g, 'x-1');
    const answer = await api.ask(route.method.toUpperCase(), path, { key });
    expect([route.path, answer.status, answer.body.code]).toEqual([
      route.path,
      403,
      'insufficient_scope',
    ]);
  }
});

test('a key that was revoked or is past its end opens nothing from then on', async () => {
  const key = await api.keyWith(['pay', 'read']);
  expect((await api.ask('POST', '/v1/orders', { key, body: aNewOrder() })).status).toBe(201);
  const { rows } = await api.pool.query<{ key_id: string }>(
    'select key_id from api_keys order by created_at desc limit 1',
  );
  await revokeApiKey(api.pool, rows[0]!.key_id);
  expect((await api.ask('GET', '/v1/orders', { key })).status).toBe(401);

  const ending = await api.keyWith(['read']);
  await api.pool.query(
    `update api_keys set expires_at = now() where key_id =
       (select key_id from api_keys order by created_at desc limit 1)`,
  );
  expect((await api.ask('GET', '/v1/orders', { key: ending })).status).toBe(401);
});

test('only the hash of a key is stored', async () => {
  const { rows } = await api.pool.query<{ text: string }>(
    'select string_agg(api_keys::text, chr(10)) as text from api_keys',
  );
  expect(rows[0]!.text).not.toContain(api.key);
  expect(rows[0]!.text).not.toContain(Buffer.from(api.key).toString('hex'));
});
