import type { ApiRoute } from '../../api/route';
import type { ApiHarness, Asking } from './api-harness';
import { aNewOrder, countRows, startApiHarness } from './api-harness';

/**
 * Bad input never gives a 5xx, never leaves a row, a run or a channel call behind, and always gives a
 * problem that says what to change. The channels of this harness have an address where nobody
 * answers and no worker polls, so a call or a run could not go unnoticed.
 */
let api: ApiHarness;
let orderId: string;
let mayDoAll: string;
let writes: ApiRoute[];
beforeAll(async () => {
  api = await startApiHarness();
  const body = aNewOrder();
  await api.ask('POST', '/v1/orders', { body });
  orderId = body.order_id;
  mayDoAll = await api.keyWith(['pay', 'refund', 'read', 'operator']);
  writes = api.api.routes.filter(({ method }) => method === 'post');
});
afterAll(() => api.close());

async function runsOf(harness: ApiHarness): Promise<number> {
  let runs = 0;
  const query = `TaskQueue = "${harness.taskQueue}"`;
  for await (const _run of harness.client.workflow.list({ query })) runs += 1;
  return runs;
}

/** Sends it and checks what holds for every refusal. */
async function refused(method: string, path: string, asking: Asking, statuses: number[]) {
  const before = await countRows(api.pool);
  const answer = await api.ask(method, path, { key: mayDoAll, ...asking });
  expect(statuses).toContain(answer.status);
  expect(answer.headers.get('content-type')).toBe('application/problem+json');
  expect(answer.body).toMatchObject({ status: answer.status, code: expect.any(String) });
  expect(answer.body.detail.length).toBeGreaterThan(10);
  expect(await countRows(api.pool)).toEqual(before);
  return answer;
}

function pathOf(route: ApiRoute): string {
  return route.path
    .replace('{order_id}', orderId)
    .replace('{refund_no}', 'r-1')
    .replace('{merchant_id}', api.merchantId)
    .replace('{act_no}', 'act-1')
    .replace(/\{(case_id|notification_id)\}/, '1');
}

/** A body each write would accept. */
function goodBody(route: ApiRoute): Record<string, unknown> {
  switch (route.path) {
    case '/v1/orders':
      return aNewOrder();
    case '/v1/orders/{order_id}/payments':
      return { channel: 'mock-a', request_no: 'k-1' };
    case '/v1/orders/{order_id}/cancel':
      return {};
    case '/v1/orders/{order_id}/refunds':
      return { refund_no: 'r-1', amount: 1 };
    case '/ops/orders/{merchant_id}/{order_id}/acts':
      return {
        ...{ act_no: 'act-1', kind: 'refund_money', capture_id: '1', amount: 1 },
        ...{ name: 'Lin', reason: 'a test' },
      };
    case '/ops/cases/{case_id}/acts':
      return {
        ...{ act_no: 'act-1', kind: 'close_case', case_version: 1 },
        ...{ name: 'Lin', reason: 'a test' },
      };
    case '/ops/acts/{act_no}/confirm':
      return { name: 'Mo', reason: 'a test' };
    case '/ops/notifications/{notification_id}/resend':
      return { reason: 'a test' };
    case '/ops/reconciliations':
      return { channel: 'mock-a', day: '2026-05-01' };
    default:
      throw new Error(`say what ${route.path} accepts`);
  }
}

describe('B88: a malformed body', () => {
  const bodies: [string, Asking, number[]][] = [
    ['an open brace', { raw: '{' }, [400]],
    ['null', { raw: 'null' }, [400]],
    ['a list', { raw: '[]' }, [400]],
    ['a text', { raw: '"x"' }, [400]],
    ['a number', { raw: '7' }, [400]],
    ['two objects', { raw: '{}{}' }, [400]],
    ['single quotes', { raw: "{'a':1}" }, [400]],
    ['invalid UTF-8', { raw: Buffer.from([0x7b, 0xff, 0xfe, 0x7d]) }, [400]],
    ['a UTF-16 body', { raw: Buffer.from('{}', 'utf16le') }, [400]],
    ['a __proto__ key', { raw: '{"__proto__":{"amount":1}}' }, [400]],
    ['an escaped __proto__ key', { raw: '{"\\u005f_proto__":{"amount":1}}' }, [400]],
    ['a constructor key', { raw: '{"constructor":{"prototype":{}}}' }, [400]],
    ['nesting without end', { raw: '['.repeat(60_000) }, [400]],
    ['the character U+0000', { raw: '{"subject":"a\\u0000b"}' }, [400]],
    ['half a surrogate pair', { raw: '{"subject":"\\ud800"}' }, [400]],
    [
      'a form',
      { raw: 'a=1', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
      [415],
    ],
    ['plain text', { raw: '{}', headers: { 'content-type': 'text/plain' } }, [415]],
    ['no content type', { raw: '{}', headers: { 'content-type': '' } }, [415]],
    [
      'another charset',
      { raw: '{}', headers: { 'content-type': 'application/json; charset=gbk' } },
      [415],
    ],
    ['a compressed body', { raw: '{}', headers: { 'content-encoding': 'gzip' } }, [415]],
    ['70 KB', { raw: `{"subject":"${'x'.repeat(70_000)}"}` }, [413]],
    [
      '70 KB said to be few',
      { raw: `{"subject":"${'x'.repeat(70_000)}"}`, headers: { 'content-length': '2' } },
      [413],
    ],
    ['a field nobody knows', { raw: '{"amuont":1}' }, [400]],
  ];

  test.each(bodies)('%s is refused by every write', async (_name, asking, statuses) => {
    for (const route of writes) await refused('POST', pathOf(route), asking, statuses);
  });

  test('a key that appears twice is refused by every write, with equal values too', async () => {
    for (const route of writes) {
      const inside = JSON.stringify(goodBody(route)).slice(1, -1);
      const member = inside === '' ? '"a":1' : inside;
      await refused('POST', pathOf(route), { raw: `{${member},${member}}` }, [400]);
    }
    const raw = `{"order_id":"o","amount":1,"amount":2,"currency":"CNY","subject":"x"}`;
    const answer = await refused('POST', '/v1/orders', { raw }, [400]);
    expect(answer.body.code).toBe('invalid_json');
  });

  test('an empty body is refused where something is needed', async () => {
    for (const route of writes.filter(({ bodyMayBeEmpty }) => !bodyMayBeEmpty)) {
      await refused('POST', pathOf(route), { raw: '' }, [400]);
      await refused('POST', pathOf(route), { raw: '{}' }, [400]);
    }
  });

  test('every field of the wrong type is refused, and named', async () => {
    for (const route of writes) {
      const body = goodBody(route);
      for (const field of Object.keys(body)) {
        for (const wrong of [null, [], {}, true, typeof body[field] === 'number' ? '1' : 1]) {
          const answer = await refused(
            'POST',
            pathOf(route),
            { body: { ...body, [field]: wrong } },
            [400],
          );
          expect(answer.body.detail).toContain(`body.${field}`);
        }
      }
    }
  });
});

describe('amounts', () => {
  const notAmounts: [string, number[]][] = [
    ['0', [422]],
    ['-1', [422]],
    ['-1000', [422]],
    ['-0', [422]],
    ['16.24', [422]],
    ['100.0', [422]],
    ['1e3', [422]],
    ['9007199254740992', [422]],
    ['9007199254740993', [422]],
    ['90071992547409930000', [422]],
    ['1e999', [422]],
    ['"100"', [400]],
    ['"1,000.00"', [400]],
    ['" 100"', [400]],
    ['""', [400]],
    ['null', [400]],
    ['NaN', [400]],
    ['Infinity', [400]],
    ['0x10', [400]],
    ['01', [400]],
  ];

  test.each(notAmounts)('B46, B50: %s is no amount of an order', async (amount, statuses) => {
    const raw = `{"order_id":"bad-amount","amount":${amount},"currency":"CNY","subject":"x"}`;
    await refused('POST', '/v1/orders', { raw }, statuses);
  });

  test.each(notAmounts)('B49, B50: %s is no amount of a refund', async (amount, statuses) => {
    const raw = `{"refund_no":"r-1","amount":${amount}}`;
    await refused('POST', `/v1/orders/${orderId}/refunds`, { raw }, statuses);
  });

  test.each(notAmounts)('B50: %s is no amount of a payment', async (amount, statuses) => {
    const raw = `{"channel":"mock-a","request_no":"k-1","amount":${amount}}`;
    await refused('POST', `/v1/orders/${orderId}/payments`, { raw }, statuses);
  });

  test('B41: 16.24 JPY is refused and says what an amount is', async () => {
    const raw = '{"order_id":"yen","amount":16.24,"currency":"JPY","subject":"x"}';
    const answer = await refused('POST', '/v1/orders', { raw }, [422]);
    expect(answer.body.detail).toMatch(/integer of minor units.*got 16\.24/);
  });

  test.each(['cny', 'XXX', 'CN', 'CNYY', '元', ''])('%s is no currency', async (currency) => {
    await refused('POST', '/v1/orders', { body: aNewOrder({ currency }) }, [422]);
  });

  test('B07: another amount or currency than the order has is refused 409', async () => {
    for (const other of [
      { amount: 12_000 },
      { currency: 'USD' },
      { amount: 10_000, currency: 'JPY' },
    ]) {
      const answer = await refused(
        'POST',
        `/v1/orders/${orderId}/payments`,
        { body: { channel: 'mock-a', request_no: 'k-1', ...other } },
        [409],
      );
      expect(answer.body.code).toBe('order_amount_differs');
    }
  });
});

describe('B74: order ids that are none', () => {
  const ids = [
    '中文',
    'a b',
    'a/b',
    '..',
    '.hidden',
    '-dash',
    '%2F',
    'a?b',
    'a#b',
    'a\nb',
    '😀',
    "a'b",
    'a"b',
    'a:b',
    'a\u00e9',
    'x'.repeat(65),
    'x'.repeat(1000),
    ' a',
    'a ',
    '',
  ];

  test.each(ids)('%j is refused as an order id', async (order_id) => {
    const answer = await refused('POST', '/v1/orders', { body: aNewOrder({ order_id }) }, [400]);
    expect(answer.body.detail).toContain('body.order_id');
  });

  test.each(ids.filter((id) => !['', '..'].includes(id)))(
    '%j is refused in the path',
    async (id) => {
      const encoded = encodeURIComponent(id);
      await refused('GET', `/v1/orders/${encoded}`, {}, [400]);
      await refused('POST', `/v1/orders/${encoded}/cancel`, { body: {} }, [400]);
      await refused('GET', `/v1/orders/${orderId}/refunds/${encoded}`, {}, [400]);
    },
  );

  test('a path that is not valid percent-encoding is refused', async () => {
    await refused('GET', '/v1/orders/%zz', {}, [400]);
    await refused('GET', '/v1/orders/%ff', {}, [400]);
  });

  test('accepted ids at the edges of the rule can be read', async () => {
    for (const order_id of ['0', 'Z', '9._-', 'x'.repeat(33), `${'y'.repeat(63)}z`]) {
      expect((await api.ask('POST', '/v1/orders', { body: aNewOrder({ order_id }) })).status).toBe(
        201,
      );
      expect((await api.ask('GET', `/v1/orders/${order_id}`)).body.order_id).toBe(order_id);
    }
  });

  test('B76: a bare numeric order id is refused, never rounded', async () => {
    const raw = '{"order_id":9007199254740993,"amount":1,"currency":"CNY","subject":"x"}';
    const answer = await refused('POST', '/v1/orders', { raw }, [400]);
    expect(answer.body.detail).toMatch(/body\.order_id.*JSON string/);
  });
});

describe('the rest of an order', () => {
  test.each([59, 0, -1, 604_801, 1e9])('expires_in %s is not allowed', async (expires_in) => {
    await refused('POST', '/v1/orders', { body: aNewOrder({ expires_in }) }, [422]);
  });

  test('B125: metadata over 4 KB is refused, 4 KB is kept', async () => {
    for (const size of [4_100, 50_000]) {
      const metadata = { note: 'x'.repeat(size) };
      await refused('POST', '/v1/orders', { body: aNewOrder({ metadata }) }, [422]);
    }
    const metadata = { note: 'x'.repeat(200_000) };
    await refused('POST', '/v1/orders', { body: aNewOrder({ metadata }) }, [413]);
    const kept = aNewOrder({ metadata: { note: 'x'.repeat(4_000) } });
    expect((await api.ask('POST', '/v1/orders', { body: kept })).body.metadata).toEqual(
      kept['metadata'],
    );
  });

  test('a number in metadata that JSON readers would change is refused', async () => {
    for (const number of ['1.5', '9007199254740993', '1e400']) {
      const raw = `{"order_id":"m-1","amount":1,"currency":"CNY","subject":"x","metadata":{"n":[${number}]}}`;
      await refused('POST', '/v1/orders', { raw }, [422]);
    }
  });

  test.each([
    ['', 400],
    ['x'.repeat(257), 400],
  ])('a subject of odd length is refused', async (subject, status) => {
    await refused('POST', '/v1/orders', { body: aNewOrder({ subject }) }, [Number(status)]);
  });
});

describe('a payment', () => {
  test.each([
    ['return_url', 'javascript:alert(1)', 400],
    ['return_url', '/relative', 400],
    ['return_url', `https://x.example/${'y'.repeat(2048)}`, 400],
    ['client_ip', '1.2.3', 400],
    ['client_ip', 'localhost', 400],
    ['method', 'a b', 400],
    ['payer', { openid: 1 }, 400],
    ['payer', Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`k${i}`, 'v'])), 400],
    ['channel', 'mock-z', 422],
    ['channel', '../mock-a', 400],
  ])('with %s %j is refused', async (field, value, status) => {
    const body = { channel: 'mock-a', request_no: 'k-1', [field]: value };
    await refused('POST', `/v1/orders/${orderId}/payments`, { body }, [status]);
  });

  test('without any number of its own is refused', async () => {
    const answer = await refused(
      'POST',
      `/v1/orders/${orderId}/payments`,
      { body: { channel: 'mock-a' } },
      [400],
    );
    expect(answer.body.code).toBe('missing_request_no');
  });

  test('of an order nobody made, or of another merchant, is 404', async () => {
    const body = { channel: 'mock-a', request_no: 'k-1' };
    await refused('POST', '/v1/orders/none/payments', { body }, [404]);
    await refused('POST', `/v1/orders/${orderId}/payments`, { body, key: api.otherKey }, [404]);
    await refused('POST', `/v1/orders/${orderId}/cancel`, { body: {}, key: api.otherKey }, [404]);
    const refund = { refund_no: 'r-1' };
    await refused(
      'POST',
      `/v1/orders/${orderId}/refunds`,
      { body: refund, key: api.otherKey },
      [404],
    );
  });

  test('at a channel that takes no payments now is 409', async () => {
    await api.pool.query(`update channels set pay_enabled = false where channel = 'mock-b'`);
    const disabled = async () => {
      const body = { channel: 'mock-b', request_no: 'k-1', amount: 10_000 };
      return refused('POST', `/v1/orders/${orderId}/payments`, { body }, [409]);
    };
    // The registry reads its rows again within a fraction of a second.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect((await disabled()).body.code).toBe('channel_disabled');
  });
});

test('a refund of an order without a payment is 422 and says what is left', async () => {
  const answer = await refused(
    'POST',
    `/v1/orders/${orderId}/refunds`,
    { body: { refund_no: 'r-1' } },
    [422],
  );
  expect(answer.body).toMatchObject({ code: 'nothing_captured', refundable_minor: 0 });
});

describe('queries and routes', () => {
  test.each([
    ['/v1/orders?status=unpaid'],
    ['/v1/orders?limit=0'],
    ['/v1/orders?limit=101'],
    ['/v1/orders?limit=1e1'],
    ['/v1/orders?cursor=zzz'],
    [`/v1/orders?cursor=${Buffer.from('[1e300,"a"]').toString('base64url')}`],
    [`/v1/orders?cursor=${Buffer.from('[1,"a\\u0000"]').toString('base64url')}`],
    ['/v1/orders?order=asc'],
    ['/v1/orders?limit=1&limit=2'],
  ])('%s is refused', async (path) => {
    await refused('GET', path, {}, [400]);
  });

  test.each(['wait=1', 'wait=31s', 'wait=-1s', 'version=x', 'wiat=1s'])(
    '?%s is refused',
    async (query) => {
      await refused('GET', `/v1/orders/${orderId}?${query}`, {}, [400]);
    },
  );

  test('a route nobody made is 404, a method it does not know 405', async () => {
    await refused('GET', '/v1/nothing', {}, [404]);
    await refused('GET', '/', {}, [404]);
    const answer = await refused('DELETE', `/v1/orders/${orderId}`, {}, [405]);
    expect(answer.headers.get('allow')).toBe('GET');
    await refused('PUT', '/v1/orders', { body: {} }, [405]);
  });
});

describe('B68: an Idempotency-Key', () => {
  const refusedKeys: [string, string][] = [
    ['of 65 characters', 'k'.repeat(65)],
    ['of 255 characters', 'k'.repeat(255)],
    ['of 256 characters', 'k'.repeat(256)],
    ['of 255 Chinese characters', Buffer.from('汉'.repeat(255)).toString('latin1')],
    ['of 128 emoji', Buffer.from('😀'.repeat(128)).toString('latin1')],
    ['with a control character', 'a\u0001b'],
    ['with a space inside', 'a b'],
    ['that is empty', ''],
    ['given twice', 'a, a'],
  ];

  test.each(refusedKeys)('%s is refused by every write', async (_name, key) => {
    for (const route of writes) {
      const answer = await refused(
        'POST',
        pathOf(route),
        { body: goodBody(route), headers: { 'idempotency-key': key } },
        [400],
      );
      expect(answer.body.code).toBe('invalid_idempotency_key');
    }
  });

  test('a request_no with a space at its end is refused, not trimmed', async () => {
    const body = { channel: 'mock-a', request_no: 'k-1 ' };
    await refused('POST', `/v1/orders/${orderId}/payments`, { body }, [400]);
  });

  test('keys that differ in one character or in case are different keys', async () => {
    const keys = ['k', 'K', 'k'.repeat(63), 'k'.repeat(64)];
    for (const key of keys) {
      const answer = await api.ask('POST', '/v1/orders', {
        body: aNewOrder(),
        headers: { 'idempotency-key': key },
      });
      expect([key, answer.status]).toEqual([key, 201]);
    }
  });
});

test('none of it left a run behind', async () => {
  const { rows } = await api.pool.query<{ count: number }>('select count(*) from orders');
  // One run per order that was really created, and not one more. Visibility lags a little.
  const deadline = Date.now() + 10_000;
  let runs = await runsOf(api);
  while (runs < rows[0]!.count && Date.now() < deadline) runs = await runsOf(api);
  expect(runs).toBe(rows[0]!.count);
});
