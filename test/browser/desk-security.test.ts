import { revokeApiKey } from '../../db/merchants';
import { words } from '../support/browser';
import { Desks, logIn, startForeignSite } from '../support/desk';
import { Operators } from '../support/operators';
import { Saga } from '../support/saga';

/** What others may try with an operator's browser, and what a browser does for us against it. */
let saga: Saga;
let ops: Operators;
let desks: Desks;
beforeAll(async () => {
  saga = await Saga.start({ policy: { pollLadderMs: [30_000] } });
  ops = await Operators.of(saga);
  desks = await Desks.of(saga, ops);
});
afterEach(() => desks.leave());
afterAll(async () => {
  await desks?.end();
  await saga?.stop();
});

const actsOf = (orderId: string) =>
  saga.rows('select kind from operator_acts where order_id = $1::text', orderId);

describe('who logs in', () => {
  it('a merchant’s key is refused in words, and opens nothing', async () => {
    const page = await desks.page();
    await page.goto(`${desks.url}/login`);
    const key = `psk_${'m'.repeat(43)}`;
    await saga.rows(
      `insert into api_keys (key_id, merchant_id, key_sha256, scopes)
       values ('shop-key', $1::text, sha256($2::bytea), '{pay,refund,read}')`,
      saga.merchantId,
      key,
    );
    await logIn(page, key);
    await page.getByRole('alert').getByText('The API key may not do this').waitFor();
    expect(await page.context().cookies()).toEqual([]);
    await page.goto(`${desks.url}/cases`);
    expect(new URL(page.url()).pathname).toBe('/ops/ui/login');
  });

  it('gets a cookie that no script reads, no other site sends and no other path sees', async () => {
    const page = await desks.at('lin');
    const cookies = await page.context().cookies();
    expect(cookies).toMatchObject([
      { name: 'desk_session', httpOnly: true, sameSite: 'Strict', path: '/ops/ui', secure: false },
    ]);
    expect(cookies[0]!.expires - Date.now() / 1_000).toBeLessThanOrEqual(8 * 60 * 60);
    expect(await page.evaluate('document.cookie')).toBe('');
    // A session opens pages, and no route of the API.
    const api = saga.apis[0]!.url;
    expect((await page.request.get(`${api}/ops/cases`)).status()).toBe(401);
  });

  it('is out at once when the key is revoked, on whatever page', async () => {
    const orderId = await saga.createOrder();
    const page = await desks.page();
    await page.goto(`${desks.url}/login`);
    const key = `psk_${'r'.repeat(43)}`;
    await saga.rows(
      `insert into api_keys (key_id, merchant_id, key_sha256, scopes)
       values ('to-be-revoked', $1::text, sha256($2::bytea), '{operator}')`,
      saga.merchantId,
      key,
    );
    await logIn(page, key);
    await page.goto(desks.orderUrl(orderId));
    await page.locator('#note-order summary').click();
    await page.locator('#note-order [name="name"]').fill('Ex');
    await page.locator('#note-order [name="reason"]').fill('a last word');
    await revokeApiKey(saga.pool, 'to-be-revoked');
    await page.locator('#note-order').getByRole('button').click();
    await page.getByRole('alert').getByText('your session has ended').waitFor();
    expect(await words(page)).toContain('a last word');
    expect(await actsOf(orderId)).toEqual([]);
    await page.goto(`${desks.url}/cases`);
    expect(new URL(page.url()).pathname).toBe('/ops/ui/login');
  });

  it.each([
    '//evil.example/',
    'https://evil.example/',
    '/ops/ui/..//evil.example',
    '/\\evil.example',
  ])('is led to the desk and nowhere else: next=%s', async (next) => {
    const page = await desks.page();
    await page.goto(`${desks.url}/login?next=${encodeURIComponent(next)}`);
    await logIn(page, ops.keys.lin);
    await page.getByRole('heading', { name: 'Today at a glance' }).waitFor();
    expect(page.url()).toBe(desks.url);
  });

  it('comes back to the page that was asked for', async () => {
    const page = await desks.page();
    await page.goto(`${desks.url}/cases?status=closed`);
    await logIn(page, ops.keys.lin);
    await page.getByRole('heading', { name: 'Cases', exact: true }).waitFor();
    expect(page.url()).toBe(`${desks.url}/cases?status=closed`);
  });
});

describe('another site', () => {
  /** A page that sends a form as soon as it is open, with whatever it found out. */
  const sending = (action: string, fields: Record<string, string>) => `<!doctype html>
    <form method="post" action="${action}">${Object.entries(fields)
      .map(([name, value]) => `<input name="${name}" value="${value}">`)
      .join('')}</form><script>document.forms[0].submit()</script>`;

  it('sends a form in the operator’s name: refused, even with the right token, and nothing changes', async () => {
    const orderId = await saga.createOrder();
    const page = await desks.at('lin');
    const csrf = await page.locator('.leave [name="csrf"]').inputValue();
    const note = { kind: 'note', name: 'Lin', reason: 'not hers' };
    for (const fields of [note, { ...note, csrf: 'guessed' }, { ...note, csrf }]) {
      const site = await startForeignSite(sending(`${desks.orderUrl(orderId)}/acts`, fields));
      // Another port of the same host: for cookies the same site, so the browser may well send them.
      const answered = page.waitForResponse(
        (response) => response.url() === `${desks.orderUrl(orderId)}/acts`,
      );
      await page.goto(site.url);
      expect((await answered).status()).toBe(403);
      await page.getByRole('alert').getByText('does not come from a page of the desk').waitFor();
      site.close();
    }
    expect(await actsOf(orderId)).toEqual([]);
    await page.goto(desks.orderUrl(orderId));
    expect(await words(page)).toContain(`Order ${orderId}`);
  });

  it('logs nobody in as somebody else, and nobody out', async () => {
    const page = await desks.page();
    const login = sending(`${desks.url}/login`, { api_key: ops.keys.mo });
    const site = await startForeignSite(login);
    await page.goto(site.url);
    await page.getByRole('alert').waitFor();
    expect(await page.context().cookies()).toEqual([]);
    site.close();

    const lin = await desks.at('lin');
    const out = await startForeignSite(sending(`${desks.url}/logout`, {}));
    await lin.goto(out.url);
    await lin.getByRole('alert').waitFor();
    await lin.goto(`${desks.url}/cases`);
    expect(new URL(lin.url()).pathname).toBe('/ops/ui/cases');
    out.close();
  });

  it('shows nothing of the desk in a frame, so nobody clicks there unaware', async () => {
    const page = await desks.at('lin');
    const site = await startForeignSite(
      `<!doctype html><iframe id="desk" src="${desks.url}/cases"></iframe>
       <iframe id="login" src="${desks.url}/login"></iframe>`,
    );
    const refused: string[] = [];
    page.on('console', (message) => refused.push(message.text()));
    await page.goto(site.url);
    const frames = page.frames().filter((frame) => frame !== page.mainFrame());
    expect(frames).toHaveLength(2);
    for (const frame of frames) {
      await frame.waitForLoadState();
      expect(frame.url()).toMatch(/^chrome-error:/);
      expect(await frame.getByText('Operators’ desk').count()).toBe(0);
    }
    expect(refused.join('\n')).toMatch(/frame-ancestors 'none'|X-Frame-Options/);
    site.close();
  });

  it('reads nothing of the desk by a request', async () => {
    const page = await desks.at('lin');
    const site = await startForeignSite('<!doctype html><p>another site</p>');
    await page.goto(site.url);
    const read = await page.evaluate<string>(
      `fetch(${JSON.stringify(`${desks.url}/cases`)}, { credentials: 'include' })
        .then((answer) => answer.text(), () => 'refused')`,
    );
    expect(read).toBe('refused');
    site.close();
  });
});

describe('the desk’s own pages', () => {
  it('run no script, not even one that got into them', async () => {
    const page = await desks.at('lin');
    const violated: string[] = [];
    page.on('console', (message) => violated.push(message.text()));
    await page.evaluate(`
      const script = document.createElement('script');
      script.textContent = 'window.ran = true';
      document.body.append(script);
      document.body.insertAdjacentHTML('beforeend', '<img src="x" onerror="window.ran = true">')`);
    expect(await page.evaluate('window.ran === true')).toBe(false);
    expect(violated.join('\n')).toMatch(/Content Security Policy/);
  });

  it('are not kept: after logging out the back button shows nothing of them', async () => {
    const page = await desks.at('lin');
    await page.getByRole('link', { name: 'Cases', exact: true }).click();
    await page.getByRole('heading', { name: 'Cases', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Your API key').waitFor();
    await page.goBack();
    await page.getByLabel('Your API key').waitFor();
    expect(await words(page)).not.toContain('Merchant');
  });
});
