import { expectAlwaysTrue, figuresOf, money } from '../support/figures';
import { PAYER_STATES } from '../support/page-states';
import { overflowOf, violationsOn, words } from '../support/browser';
import { payButton, Payers, shows } from '../support/payer';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

const PHONE = { viewport: { width: 360, height: 640 } };
const SIZE_MAX_BYTES = 60_000;

let saga: Saga;
let payers: Payers;
beforeAll(async () => {
  saga = await Saga.start({
    policy: { pollLadderMs: [500, 1_000], unconfirmedCloseCaseAfterMs: 60_000 },
  });
  payers = await Payers.of(saga);
});
afterEach(async () => {
  await saga.mock.clearFaults();
  await payers.leave();
});
afterAll(async () => {
  await payers?.end();
  await saga?.stop();
});

describe('every state of the payer’s page', () => {
  it.each(Object.keys(PAYER_STATES))(
    '%s: nothing serious for axe, light and dark, and 360 px are enough',
    async (name) => {
      const page = await PAYER_STATES[name]!(payers, { ...PHONE, colorScheme: 'light' });
      expect(await violationsOn(page)).toEqual([]);
      expect(await overflowOf(page)).toBe(0);
      // Of all rules only that of contrast depends on the theme.
      await page.emulateMedia({ colorScheme: 'dark' });
      expect(await violationsOn(page, ['color-contrast'])).toEqual([]);
    },
  );
});

describe('the payer’s page', () => {
  it(`transfers at most ${SIZE_MAX_BYTES} bytes, and asks nobody else for anything`, async () => {
    const context = await payers.context(PHONE);
    const page = await context.newPage();
    const hosts = new Set<string>();
    const sizes: Promise<number>[] = [];
    page.on('request', (request) => {
      const url = new URL(request.url());
      if (url.protocol !== 'data:') hosts.add(url.host);
    });
    page.on('requestfinished', (request) => {
      const size = request.sizes().then((all) => all.responseBodySize + all.responseHeadersSize);
      sizes.push(size.catch(() => 0));
    });
    const link = await payers.link(await saga.createOrder());
    await page.goto(link);
    await shows(page, 'choosing');
    await page.waitForLoadState('load');
    expect(hosts).toEqual(new Set([new URL(link).host]));
    const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    expect(bytes).toBeGreaterThan(5_000);
    expect(bytes).toBeLessThanOrEqual(SIZE_MAX_BYTES);
  });

  it('is paid by keyboard alone, and says aloud what changed', async () => {
    const orderId = await saga.createOrder();
    const page = await payers.at(orderId);
    const at = () =>
      page.evaluate<string>('document.activeElement.type ?? document.activeElement.id');
    for (let tabs = 0; (await at()) !== 'radio' && tabs < 10; tabs++) {
      await page.keyboard.press('Tab');
    }
    // The second way is shown as a code, on the same page.
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.locator('.qr svg').waitFor();
    // The state is shown, then the heading gets the focus.
    await waitFor('the focus', async () => (await at()) === 'heading');
    expect(await page.title()).toBe('Waiting for your payment');
    // The same state, shown once more, leaves it where it is.
    const [row] = await saga.rows<{ version: number }>(
      `update orders set version = version + 1 where order_id = $1::text returning version`,
      orderId,
    );
    await waitFor('the newer version is shown', async () => {
      const shown = await page.locator('main').getAttribute('data-version');
      return Number(shown) >= (row?.version ?? Infinity);
    });
    expect(await at()).toBe('heading');
    await saga.mock.approve(await saga.outTradeNo(orderId));
    await shows(page, 'paid');
    await waitFor('the focus', async () => (await at()) === 'heading');
    expect(await page.title()).toBe('Paid');
    await expectAlwaysTrue(saga, orderId);
  });

  it('counts down by the server’s clock, however wrong the payer’s own is', async () => {
    const orderId = await saga.createOrder({ expires_in: 600 });
    const context = await payers.context();
    await context.addInitScript('const now = Date.now; Date.now = () => now() + 86_400_000;');
    const page = await payers.tab(context, orderId);
    await page
      .locator('#countdown')
      .getByText(/^0[89]:\d\d$/)
      .waitFor();
  });

  it('a second payment on purpose is given back, and the page stays "paid"', async () => {
    const orderId = await saga.createOrder();
    const page = await payers.at(orderId);
    await payButton(page).click();
    await page.getByRole('button', { name: 'Pay twice on purpose' }).click();
    await shows(page, 'paid');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      cap: money(2, 20_000),
      ref: money(1, 10_000),
      settling: 1,
      evt: 1,
    });
    await page.reload();
    await shows(page, 'paid');
  });

  it.each([
    ['markup', '"><img src=x onerror=alert(1)><script>alert(1)</script></main><h1>Paid</h1>'],
    ['right-to-left marks', '\u202e\u2066Paid 0.01 \u05e9\u05dc\u05d5\u05dd\u202c & \u200f'],
    ['one word of 256 letters', 'W'.repeat(256)],
    ['a template’s braces', '{{constructor.constructor("alert(1)")()}} ${alert(1)} %3Cscript%3E'],
  ])('%s in a subject breaks and scripts nothing', async (_, subject) => {
    const orderId = await saga.createOrder({
      subject,
      metadata: { note: subject, '</script><script>alert(1)</script>': subject },
    });
    const page = await payers.at(orderId, PHONE);
    const alarms: string[] = [];
    page.on('dialog', (dialog) => void (alarms.push('dialog'), dialog.dismiss()));
    page.on('pageerror', (error) => alarms.push(error.message));
    page.on('console', (line) => line.type() === 'error' && alarms.push(line.text()));
    await page.reload();
    expect(await page.locator('.subject').textContent()).toBe(subject);
    expect(await page.locator('h1').allTextContents()).toEqual(['Choose how to pay']);
    expect(await page.locator('img, main script').count()).toBe(0);
    expect(await words(page)).toContain('CN¥100.00');
    expect(await overflowOf(page)).toBe(0);
    expect(await payButton(page).isVisible()).toBe(true);
    await payButton(page).click();
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    expect(await page.locator('h1').textContent()).toBe(subject);
    expect(await overflowOf(page)).toBe(0);
    expect(alarms).toEqual([]);
  });
});
