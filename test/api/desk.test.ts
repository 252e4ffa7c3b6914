import type { ApiHarness } from './api-harness';
import { aNewOrder, countRows, startApiHarness } from './api-harness';
import { actsOf, DeskClient, formOf, hiddenOf, OWN, pageOf } from './desk-client';
import { anOrderInReview } from './review-order';

/** The desk without a browser and without a worker: what a form may do, what is shown. */
let api: ApiHarness;
let lin: DeskClient;
let mo: DeskClient;
beforeAll(async () => {
  api = await startApiHarness({
    limits: {
      askWithinMs: 100,
      startWithinMs: 100,
      aloneUpTo: { otherwise: 5_000, byCurrency: {} },
    },
    temporalUiUrl: 'http://temporal.example:8233/',
  });
  lin = await DeskClient.loggedIn(api, await api.keyWith(['operator']));
  mo = await DeskClient.loggedIn(api, await api.keyWith(['operator', 'read']));
});
afterAll(() => api?.close());

describe('a form', () => {
  const NOTE = { kind: 'note', name: 'Lin', reason: 'a note' };

  test('without the session’s token, with another’s, or from another site changes nothing', async () => {
    const { orderId } = await anOrderInReview(api);
    const path = `${pageOf(api, orderId)}/acts`;
    await lin.get('');
    await mo.get('');
    const before = await countRows(api.pool);
    for (const [fields, headers] of [
      [{}, OWN],
      [{ csrf: '' }, OWN],
      [{ csrf: `${lin.csrf}x` }, OWN],
      [{ csrf: mo.csrf }, OWN],
      [{ csrf: lin.csrf }, { ...OWN, 'sec-fetch-site': 'cross-site' }],
      [{ csrf: lin.csrf }, { ...OWN, 'sec-fetch-site': 'same-site' }],
      [{ csrf: lin.csrf }, { ...OWN, 'sec-fetch-site': 'none' }],
      [{ csrf: lin.csrf }, { ...OWN, origin: 'http://evil.example' }],
      [{ csrf: lin.csrf }, { ...OWN, origin: 'null' }],
      [{ csrf: lin.csrf }, {}],
    ] as const) {
      const answer = await lin.send(path, { ...NOTE, ...fields }, headers);
      expect([fields, headers, answer.status]).toEqual([fields, headers, 403]);
      expect(answer.body).toContain('foreign_form');
    }
    expect(await countRows(api.pool)).toEqual(before);
    const taken = await lin.send(path, { ...NOTE, csrf: lin.csrf }, OWN);
    expect(taken.status).toBe(303);
    expect(await actsOf(api, orderId)).toMatchObject([{ kind: 'note' }]);
  });

  test('sent twice is one act, because its number was made with the form', async () => {
    const { orderId, captureId } = await anOrderInReview(api, { amountMinor: 4_000 });
    const page = await lin.get(pageOf(api, orderId));
    const form: Record<string, string> = {
      ...formOf(page.body, `refund_money-${captureId}`),
      ...{ amount: '12.50', name: 'Lin', reason: 'half of it' },
    };
    const twice = await Promise.all([
      lin.send(`${pageOf(api, orderId)}/acts`, form, OWN),
      lin.send(`${pageOf(api, orderId)}/acts`, form, OWN),
    ]);
    expect(twice.map(({ status }) => status)).toEqual([303, 303]);
    expect(await actsOf(api, orderId)).toEqual([
      { kind: 'refund_money', status: 'accepted', amount_minor: 1_250 },
    ]);
    const next = await lin.get(pageOf(api, orderId));
    expect(hiddenOf(next.body, `refund_money-${captureId}`, 'act_no')).not.toBe(form['act_no']);
  });

  test.each([
    ['more than is left', '100.00', 422, 'more than is left of the capture'],
    ['no amount', 'ten', 422, 'is no amount of CNY'],
    ['a part of a cent', '1.005', 422, 'is no amount of CNY'],
    ['nothing', '0', 422, 'is no amount of CNY'],
    ['less than nothing', '-1', 422, 'is no amount of CNY'],
  ])('of %s is refused in words and keeps what was typed', async (_name, amount, status, says) => {
    const { orderId, captureId, caseId } = await anOrderInReview(api);
    const id = `refund_money-${captureId}`;
    for (const path of [pageOf(api, orderId), `/cases/${caseId}`]) {
      const form = formOf((await lin.get(path)).body, id);
      const typed: Record<string, string> = {
        ...form,
        amount,
        name: 'Lin',
        reason: 'because of “this”',
      };
      const answer = await lin.send(`${pageOf(api, orderId)}/acts`, typed, OWN);
      expect(answer.status).toBe(status);
      expect(answer.body).toContain(says);
      expect(answer.body).toContain(path === pageOf(api, orderId) ? 'Order o-' : `Case ${caseId}`);
      const again = answer.body.slice(answer.body.indexOf(`id="${id}"`));
      expect(again).toContain('value="because of “this”"');
      expect(again).toContain(`value="${amount}"`);
      // Nothing was stored under the number: it stays, so that what did get through is not done twice.
      expect(hiddenOf(answer.body, id, 'act_no')).toBe(form['act_no']);
    }
    expect(await actsOf(api, orderId)).toEqual([]);
  });

  test('on an older picture of the case is refused, and shown again on the new one', async () => {
    const { orderId, captureId } = await anOrderInReview(api);
    const id = `accept_money-${captureId}`;
    const form = formOf((await lin.get(pageOf(api, orderId))).body, id);
    await api.pool.query('update cases set version = version + 1 where order_id = $1', [orderId]);
    const answer = await lin.send(
      `${pageOf(api, orderId)}/acts`,
      { ...form, name: 'Lin', reason: 'seen' },
      OWN,
    );
    expect(answer.status).toBe(409);
    expect(answer.body).toContain('the case has another version by now');
    expect(hiddenOf(answer.body, id, 'case_version')).toBe('2');
    expect(await actsOf(api, orderId)).toEqual([]);
  });

  test('for an amount of a capture that is not there never means all of it', async () => {
    const { orderId, captureId } = await anOrderInReview(api);
    const form = formOf((await lin.get(pageOf(api, orderId))).body, `refund_money-${captureId}`);
    const answer = await lin.send(
      `${pageOf(api, orderId)}/acts`,
      { ...form, capture_id: '999999', amount: '1.00', name: 'Lin', reason: 'r' },
      OWN,
    );
    expect([answer.status, await actsOf(api, orderId)]).toEqual([422, []]);
  });

  test('of 100 kB is refused', async () => {
    const answer = await lin.post('/logout', { reason: 'x'.repeat(100_000) });
    expect(answer.status).toBe(413);
  });
});

describe('two persons', () => {
  test('the first cannot confirm, in words; the second can, once', async () => {
    const { orderId, captureId } = await anOrderInReview(api);
    const form = formOf((await lin.get(pageOf(api, orderId))).body, `accept_money-${captureId}`);
    const asked = await lin.send(
      `${pageOf(api, orderId)}/acts`,
      { ...form, name: 'Lin', reason: 'the payer agreed' },
      OWN,
    );
    expect(asked.status).toBe(303);
    expect(await actsOf(api, orderId)).toMatchObject([{ status: 'waiting_second' }]);
    const path = `/acts/${form['act_no']}`;
    const own = await lin.get(path);
    expect(own.body).toContain('another operator, with another key, confirms it');
    expect(own.body).not.toContain('Confirm as the second person');
    const refused = await lin.post(`${path}/confirm`, { name: 'Lin', reason: 'me again' });
    expect(refused.status).toBe(409);
    expect(refused.body).toContain('another person confirms it, with another key');

    expect((await mo.get('/acts')).body).toContain(path);
    expect((await mo.get(path)).body).toContain('Confirm as the second person');
    const unsaid = await mo.post(`${path}/confirm`, { name: 'Mo' });
    expect([unsaid.status, unsaid.body.includes('value="Mo"')]).toEqual([400, true]);
    const confirmed = await mo.post(`${path}/confirm`, { name: 'Mo', reason: 'seen it too' });
    expect(confirmed.status).toBe(303);
    expect(await actsOf(api, orderId)).toMatchObject([{ status: 'accepted' }]);
    expect((await mo.get(path)).body).toContain('seen it too');
    expect((await mo.get('/acts')).body).not.toContain(path);
  });
});

describe('whatever others wrote', () => {
  const HOSTILE = '</title></script><script>alert(1)</script><img src=x onerror=alert(1)>"\'><b>';

  test('is text on every page, never markup', async () => {
    const body = aNewOrder({
      subject: `${HOSTILE}\u202egnp.exe`,
      metadata: { '</script><script>': HOSTILE, nested: { rtl: '\u202eabc' } },
    });
    await api.ask('POST', '/v1/orders', { body });
    await lin.post(`${pageOf(api, body.order_id)}/acts`, {
      ...{ kind: 'note', name: HOSTILE.slice(0, 64), reason: HOSTILE },
    });
    const pages = [
      pageOf(api, body.order_id),
      '/acts?status=',
      '/cases',
      '/stuck',
      '/dead-letters',
      `/search?q=${encodeURIComponent(HOSTILE)}`,
      `/search?status=created`,
      `/cases?kind=${encodeURIComponent(HOSTILE)}`,
      `/acts/${encodeURIComponent(HOSTILE)}`,
      `/reconciliation/${encodeURIComponent(HOSTILE)}`,
      `/${encodeURIComponent(HOSTILE)}`,
    ];
    for (const path of pages) {
      const { body: html, headers } = await lin.get(path);
      expect([path, /<script|<img|<b>|onerror=alert\(1\)>/.test(html)]).toEqual([path, false]);
      expect(headers.get('content-security-policy')).toBe(
        "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      );
      expect(headers.get('x-frame-options')).toBe('DENY');
      expect(headers.get('cache-control')).toBe('no-store');
    }
    const page = (await lin.get(pageOf(api, body.order_id))).body;
    expect(page).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
    expect(page).toContain('\\u202eabc');
  });

  test.each([
    ['/cases/999999', 404],
    ['/cases/x', 400],
    ['/acts/nobody', 404],
    ['/orders/nobody/o-1', 404],
    ['/dead-letters/999999', 404],
    ['/reconciliation/2026-02-31', 400],
    ['/reconciliation/2026-02-28?channel=nobody', 404],
    ['/reconciliation/2026-02-28/csv?channel=nobody', 404],
    ['/cases?cursor=x', 400],
    ['/search?amount=1.00', 400],
    ['/search?amount=1.00&currency=XXX&day=2026-05-12', 422],
    ['/search?q=1&day=2026-13-01&amount=1', 400],
    ['/nothing', 404],
  ])('%s is a page that says why: %i', async (path, status) => {
    const answer = await lin.get(path);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([
      status,
      'text/html; charset=UTF-8',
    ]);
    expect(answer.body).toContain('role="alert"');
    expect(answer.body).toContain('<nav aria-label="Pages">');
  });
});

describe('with the database away', () => {
  test('an act that may have got through is sent again under its number', async () => {
    const { orderId } = await anOrderInReview(api);
    const form = formOf((await lin.get(pageOf(api, orderId))).body, 'note-order');
    const said = { ...form, name: 'Lin', reason: 'not to be lost' };
    // Single statements still get through; the transaction that stores the act does not.
    const connect = api.pool.connect.bind(api.pool) as (...said: unknown[]) => unknown;
    const away = jest
      .spyOn(api.pool, 'connect')
      .mockImplementation(((told?: unknown) =>
        told === undefined
          ? Promise.reject(Object.assign(new Error('shutting down'), { code: '57P01' }))
          : connect(told)) as never);
    const answer = await lin.send(`${pageOf(api, orderId)}/acts`, said, OWN);
    away.mockRestore();
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '2']);
    expect(answer.body).toContain('Send the same again');
    for (const value of [form['act_no'], 'not to be lost', `${orderId}/acts`]) {
      expect(answer.body).toContain(value);
    }
    expect((await lin.send(`${pageOf(api, orderId)}/acts`, said, OWN)).status).toBe(303);
    expect(await actsOf(api, orderId)).toMatchObject([{ kind: 'note' }]);
  });
});
