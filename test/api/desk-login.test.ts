import { createHash } from 'node:crypto';
import { revokeApiKey } from '../../db/merchants';
import type { ApiHarness } from './api-harness';
import { countRows, startApiHarness } from './api-harness';
import { actsOf, DeskClient, pageOf } from './desk-client';
import { anOrderInReview } from './review-order';

/** Who is let in at the desk, for how long, and where to. */
let api: ApiHarness;
let lin: DeskClient;
beforeAll(async () => {
  api = await startApiHarness({
    limits: {
      askWithinMs: 100,
      startWithinMs: 100,
    },
    temporalUiUrl: 'http://temporal.example:8233/',
  });
  lin = await DeskClient.loggedIn(api, await api.keyWith(['operator']));
});
afterAll(() => api?.close());

const keyIdOf = async (apiKey: string) => {
  const hash = createHash('sha256').update(apiKey).digest();
  const { rows } = await api.pool.query<{ key_id: string }>(
    'select key_id from api_keys where key_sha256 = $1',
    [hash],
  );
  return rows[0]!.key_id;
};

test('an address with a slash too many leads to the page', async () => {
  for (const [path, place] of [
    ['/', '/ops/ui'],
    ['/cases/', '/ops/ui/cases'],
  ] as const) {
    const answer = await lin.get(path);
    expect([answer.status, answer.headers.get('location')]).toEqual([301, place]);
  }
});

test('every page and every form but the login’s is closed to who has no session', async () => {
  const nobody = new DeskClient(api);
  const found = api.api.app.routes.filter(
    ({ method, path }) =>
      path.startsWith('/ops/ui') && ['GET', 'POST'].includes(method) && !path.endsWith('*'),
  );
  const closed = found.filter(({ path }) => path !== '/ops/ui/login');
  expect([found.length - closed.length, closed.length >= 18]).toEqual([2, true]);
  const before = await countRows(api.pool);
  for (const { method, path } of closed) {
    const place = path.slice('/ops/ui'.length).replace(/:\w+/g, '1');
    const answer = await (method === 'GET' ? nobody.get(place) : nobody.post(place));
    expect([method, path, answer.status]).toEqual([method, path, method === 'GET' ? 303 : 401]);
  }
  expect(await countRows(api.pool)).toEqual(before);
});

describe('the login', () => {
  test('takes a key with the scope operator, and keeps only the hash of what it gives', async () => {
    const client = new DeskClient(api);
    const key = await api.keyWith(['operator']);
    const answer = await client.login(key);
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/ops/ui']);
    expect(answer.headers.get('set-cookie')).toMatch(
      /^desk_session=[A-Za-z0-9_-]{43}; Max-Age=28800; Path=\/ops\/ui; HttpOnly; Secure; SameSite=Strict$/,
    );
    const token = client.cookie!.split('=')[1]!;
    const { rows } = await api.pool.query(
      `select key_id, expires_at - created_at = interval '8 hours' as shift,
         token_sha256 = $1::bytea as hashed, strpos(csrf_token, $2) as shown
       from desk_sessions where key_id = $3`,
      [createHash('sha256').update(token).digest(), token, await keyIdOf(key)],
    );
    expect(rows).toEqual([{ key_id: await keyIdOf(key), shift: true, hashed: true, shown: 0 }]);
    expect((await client.get('')).body).toContain('Today at a glance');
  });

  test.each([
    ['a merchant’s key', ['pay', 'refund', 'read'] as const, 403, 'The API key may not do this'],
    ['a key that only reads', ['read'] as const, 403, 'this needs a key with the scope'],
  ])('refuses %s, in words', async (_name, scopes, status, says) => {
    const client = new DeskClient(api);
    const answer = await client.login(await api.keyWith([...scopes]));
    expect([answer.status, client.cookie]).toEqual([status, undefined]);
    expect(answer.body).toContain(says);
  });

  test.each([['psk_unknown'], [''], ['a b'], ['x'.repeat(300)], ["' or 1=1 --"]])(
    'refuses a key nobody has: %s',
    async (key) => {
      const client = new DeskClient(api);
      const answer = await client.login(key);
      expect([answer.status, client.cookie]).toEqual([401, undefined]);
      expect(answer.body).toContain('no such key is valid now');
      if (key) expect(answer.body).not.toContain(key);
    },
  );

  test.each([
    ['/ops/ui/cases?status=open', '/ops/ui/cases?status=open'],
    ['/ops/ui', '/ops/ui'],
    ['//evil.example', '/ops/ui'],
    ['https://evil.example/ops/ui', '/ops/ui'],
    ['/ops/ui@evil.example', '/ops/ui'],
    ['/ops/ui/../../docs', '/ops/ui'],
    ['/ops/ui/%2e%2e/%2e%2e/docs', '/ops/ui'],
    ['/ops/ui//evil.example', '/ops/ui'],
    ['/ops/ui\\evil.example', '/ops/ui'],
    ['/ops/uievil', '/ops/ui'],
    ['javascript:alert(1)', '/ops/ui'],
    ['/ops/ui\r\nset-cookie: a=b', '/ops/ui'],
  ])('leads from %j to %s', async (next, place) => {
    const client = new DeskClient(api);
    const answer = await client.login(await api.keyWith(['operator']), { next });
    expect([answer.status, answer.headers.get('location')]).toEqual([303, place]);
  });

  test('is refused when another site sends its form', async () => {
    const key = await api.keyWith(['operator']);
    for (const headers of [
      { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
      { 'sec-fetch-site': 'same-site', origin: 'https://other.pay.example' },
      { origin: 'https://evil.example' },
      { origin: 'null' },
      {},
    ]) {
      const client = new DeskClient(api);
      const answer = await client.login(key, {}, headers);
      expect([headers, answer.status, client.cookie]).toEqual([headers, 403, undefined]);
    }
  });

  test('ends the session that the browser had before', async () => {
    const key = await api.keyWith(['operator']);
    const client = await DeskClient.loggedIn(api, key);
    const before = client.cookie!;
    await client.login(key);
    expect(client.cookie).not.toBe(before);
    client.cookie = before;
    expect((await client.get('')).status).toBe(303);
  });
});

describe('a session', () => {
  const fresh = async () => {
    const key = await api.keyWith(['operator']);
    return { client: await DeskClient.loggedIn(api, key), keyId: await keyIdOf(key) };
  };

  test('is asked for on every page, and comes back to it', async () => {
    const nobody = new DeskClient(api);
    for (const path of ['', '/cases', '/acts', '/search?q=1', '/stuck', '/reconciliation']) {
      const answer = await nobody.get(path);
      expect([path, answer.status]).toEqual([path, 303]);
      expect(answer.headers.get('location')).toBe(
        `/ops/ui/login?next=${encodeURIComponent(`/ops/ui${path}`)}`,
      );
    }
  });

  test.each([
    ['its key is revoked', (keyId: string) => revokeApiKey(api.pool, keyId)],
    [
      'its key expires',
      (keyId: string) =>
        api.pool.query(
          `update api_keys set created_at = now() - interval '2 days',
             expires_at = now() - interval '1 second' where key_id = $1`,
          [keyId],
        ),
    ],
    [
      'its key loses the scope',
      (keyId: string) =>
        api.pool.query(`update api_keys set scopes = '{read}' where key_id = $1`, [keyId]),
    ],
    [
      'its eight hours are over',
      (keyId: string) =>
        api.pool.query(`update desk_sessions set expires_at = now() where key_id = $1`, [keyId]),
    ],
  ])('ends at once when %s', async (_name, end) => {
    const { client, keyId } = await fresh();
    const { orderId } = await anOrderInReview(api);
    expect((await client.get('/cases')).status).toBe(200);
    await end(keyId);
    expect((await client.get('/cases')).status).toBe(303);
    const answer = await client.post(`${pageOf(api, orderId)}/acts`, {
      ...{ kind: 'note', name: 'Lin', reason: 'what I wrote' },
    });
    expect(answer.status).toBe(401);
    // What was written is not lost with the session.
    expect(answer.body).toContain('what I wrote');
    expect(await actsOf(api, orderId)).toEqual([]);
  });

  test('ends by logging out, of this browser alone', async () => {
    const key = await api.keyWith(['operator']);
    const [one, two] = [await DeskClient.loggedIn(api, key), await DeskClient.loggedIn(api, key)];
    const answer = await one.post('/logout');
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/ops/ui/login']);
    expect([(await one.get('')).status, (await two.get('')).status]).toEqual([303, 200]);
  });

  test.each(['', 'x', 'a'.repeat(43), 'a'.repeat(5_000)])('is not %j', async (token) => {
    const client = new DeskClient(api);
    client.cookie = `desk_session=${token}`;
    expect((await client.get('')).status).toBe(303);
  });
});
