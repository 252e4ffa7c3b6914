import { createApp } from '../../api/app';
import type { ApiDeps } from '../../api/deps';
import { DEFAULT_LIMITS } from '../../api/deps';
import { expectAlwaysTrue, figuresOf, money } from '../support/figures';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

let saga: Saga;
beforeAll(async () => {
  saga = await Saga.start({ apis: 2 });
});
afterAll(() => saga?.stop());

const CHOICE = 'page-1-mock-a mock-a';

async function linkOf(orderId: string): Promise<string> {
  return (await saga.status(orderId)).body.pay_url;
}

function send(link: string, choice: string | undefined, headers: Record<string, string> = {}) {
  return fetch(link, {
    method: 'POST',
    headers: { accept: 'application/json', ...headers },
    body: new URLSearchParams(choice === undefined ? {} : { choice }),
    redirect: 'manual',
  });
}

const attemptsOf = async (orderId: string) => (await saga.records(orderId)).length;

describe('the link to the payer’s page', () => {
  it('is made with the order, is the same for ever, and cannot be guessed', async () => {
    const [one, two] = [await saga.createOrder(), await saga.createOrder()];
    const link = await linkOf(one);
    expect(link).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/pay\/[0-9a-f]{64}$/);
    expect(await linkOf(two)).not.toBe(link);
    expect(new URL(await linkOf(one)).pathname).toBe(new URL(link).pathname);
  });

  it.each(['0'.repeat(64), 'x', '0'.repeat(63), `${'0'.repeat(64)}%00`, "'; drop table orders"])(
    'that names no order (%s) says so, and nothing else',
    async (token) => {
      const base = `${saga.apis[0]!.url}/pay/${encodeURIComponent(token)}`;
      const page = await fetch(base);
      expect(page.status).toBe(404);
      expect(await page.text()).toContain('This payment link is not known');
      expect((await send(base, CHOICE)).status).toBe(404);
      expect((await fetch(`${base}/state`)).status).toBe(404);
      expect((await fetch(`${base}/events`)).status).toBe(204);
    },
  );

  it('expires with its order: a day later it names it to nobody', async () => {
    const { orderId } = await saga.paidOrder({ subject: 'A secret present' });
    const link = await linkOf(orderId);
    expect(await (await fetch(link)).text()).toContain('A secret present');
    await saga.untilSettled(orderId);
    await saga.rows(
      `update orders set created_at = created_at - interval '3 days',
         expires_at = expires_at - interval '3 days'
       where merchant_id = $1::text and order_id = $2::text`,
      saga.merchantId,
      orderId,
    );
    const page = await fetch(link, { headers: { 'accept-language': 'zh-TW, en;q=0.5' } });
    const text = await page.text();
    expect(page.status).toBe(410);
    expect(text).toContain('付款链接已过期');
    expect(text).not.toContain('A secret present');
    expect(await (await send(link, CHOICE)).text()).not.toContain('A secret present');
    expect(await (await fetch(`${link}/state`)).text()).not.toContain('A secret present');
  });

  it('leads back to the shop, and only to an address of the web', async () => {
    const order = { order_id: 'back-1', amount: 100, currency: 'CNY', subject: 'Back' };
    const create = (return_url: string, order_id = 'back-1') =>
      saga.call('POST', '/v1/orders', { ...order, order_id, return_url });
    expect((await create('javascript:alert(1)')).status).toBe(400);
    expect(await saga.rows(`select from orders where order_id = 'back-1'`)).toEqual([]);
    const made = await create('https://shop.example/thanks?a=1&b="2"');
    expect(made).toMatchObject({ status: 201, body: { return_url: expect.any(String) } });
    expect((await create('https://shop.example/thanks?a=1&b="2"')).status).toBe(200);
    expect(await create('https://shop.example/other')).toMatchObject({
      status: 409,
      body: { code: 'order_exists' },
    });
    expect(await (await fetch(await linkOf('back-1'))).text()).toContain(
      'href="https://shop.example/thanks?a=1&amp;b=&quot;2&quot;"',
    );
  });
});

describe('a press on the payer’s page', () => {
  it.each([
    ['no choice', undefined, 400],
    ['an empty one', '', 400],
    ['no channel', 'page-1-mock-a', 400],
    ['more than a number and a channel', 'page-1-mock-a mock-a mock-b', 400],
    ['no number', ' mock-a', 400],
    ['a number of another form', '../1 mock-a', 400],
    ['more than fits', `${'x'.repeat(5_000)} mock-a`, 413],
  ])('with %s is refused and leaves nothing behind', async (_, choice, status) => {
    const orderId = await saga.createOrder();
    expect((await send(await linkOf(orderId), choice)).status).toBe(status);
    expect(await attemptsOf(orderId)).toBe(0);
  });

  it('for a channel that is not there opens nothing and shows the order as it stands', async () => {
    const orderId = await saga.createOrder();
    const answer = await send(await linkOf(orderId), 'page-1-x x');
    expect(await answer.json()).toMatchObject({ state: 'choosing', go: null, retryAfterMs: null });
    expect(await attemptsOf(orderId)).toBe(0);
  });

  it('twenty times in parallel, through two APIs, is one attempt and no 5xx', async () => {
    const orderId = await saga.createOrder();
    const link = new URL(await linkOf(orderId));
    const links = saga.apis.map(({ url }) => url + link.pathname);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => send(links[i % 2]!, CHOICE)),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    for (const answer of answers) {
      const { because } = (await answer.json()) as { because: string | null };
      expect(['unknown', 'switching', null]).toContain(because);
    }
    await saga.mock.approve(await saga.outTradeNo(orderId));
    await saga.untilOrder(orderId, 'paid');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      trades: 1,
      cap: money(1, 10_000),
      evt: 1,
    });
    expect(await attemptsOf(orderId)).toBe(1);
    const late = await send(links[0]!, 'page-2-mock-b mock-b');
    expect(await late.json()).toMatchObject({ state: 'paid', isOver: true, go: null });
    expect(await attemptsOf(orderId)).toBe(1);
  });

  it('without JavaScript is answered by a page that leads on, a repeat by the order’s', async () => {
    const orderId = await saga.createOrder();
    const link = await linkOf(orderId);
    const first = await send(link, CHOICE, { accept: 'text/html' });
    expect(await first.text()).toMatch(/<meta http-equiv="refresh" content="0;url=http/);
    await saga.mock.approve(await saga.outTradeNo(orderId));
    await saga.untilOrder(orderId, 'paid');
    const again = await send(link, CHOICE, { accept: 'text/html' });
    expect([again.status, again.headers.get('location')]).toEqual([303, new URL(link).pathname]);
  });
});

describe('the payer’s stream', () => {
  it('gives no place to a request that reads nothing of it', async () => {
    const link = await linkOf(await saga.createOrder());
    const head = await fetch(`${link}/events`, { method: 'HEAD' });
    expect(head.status).toBe(204);
  });
});

describe('the payer’s page', () => {
  it('is kept by nobody, framed by nobody, and runs no script but its own', async () => {
    const page = await fetch(await linkOf(await saga.createOrder()));
    expect(page.headers.get('cache-control')).toBe('no-store');
    expect(page.headers.get('x-frame-options')).toBe('DENY');
    expect(page.headers.get('referrer-policy')).toBe('same-origin');
    expect(page.headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    );
    const text = await page.text();
    expect(text).not.toMatch(/<script(?![^>]* src=)| style=| on[a-z]+=/);
  });

  it('tells by its stream what changes, and lets go when the API stops', async () => {
    const api = await saga.startApi();
    try {
      const orderId = await saga.createOrder();
      const stream = await fetch(api.url + new URL(await linkOf(orderId)).pathname + '/events');
      expect(stream.headers.get('content-type')).toContain('text/event-stream');
      let heard = '';
      const listening = (async () => {
        const decoder = new TextDecoder();
        for await (const chunk of stream.body!) heard += decoder.decode(chunk, { stream: true });
      })();
      await waitFor('the first state', () => heard.includes('"state":"choosing"'));
      await saga.pay(orderId);
      await waitFor('the attempt', () => heard.includes('"state":"going"'));
      await saga.mock.approve(await saga.outTradeNo(orderId));
      await waitFor('paid', () => heard.includes('"state":"paid"'));
      const stopping = Date.now();
      await saga.stopApi();
      await listening;
      expect(Date.now() - stopping).toBeLessThan(10_000);
    } finally {
      if (saga.apis.includes(api)) await saga.stopApi();
    }
  });

  it('says in words that it cannot tell while the database is away, and logs no link', async () => {
    const logged: unknown[] = [];
    const note = (...line: unknown[]) => void logged.push(line);
    const away = () => Promise.reject(new Error('connect ECONNREFUSED'));
    const { app, close } = createApp({
      pool: { query: away } as never,
      client: saga.client,
      taskQueue: saga.taskQueue,
      channels: { get: async () => undefined, all: async () => [] },
      log: { warn: note, error: note, info: note } as unknown as ApiDeps['log'],
      limits: DEFAULT_LIMITS,
      publicUrl: () => 'https://pay.example',
    });
    const token = 'f'.repeat(64);
    try {
      const page = await app.request(`/pay/${token}`);
      expect(page.status).toBe(503);
      expect(await page.text()).toContain('you cannot pay twice');
      const answer = await app.request(`/pay/${token}/state`, {
        headers: { accept: 'application/json' },
      });
      expect([answer.status, await answer.json()]).toEqual([503, { code: 'unavailable' }]);
      expect(logged.length).toBeGreaterThan(0);
      expect(JSON.stringify(logged)).not.toContain(token);
    } finally {
      close();
    }
  });
});
