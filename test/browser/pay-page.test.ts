import { expectAlwaysTrue, figuresOf, money } from '../support/figures';
import { words } from '../support/browser';
import { approve, numbersSent, payButton, Payers, press, shows } from '../support/payer';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

const CHANNEL_PAGE = /\/pay\/(?![0-9a-f]{64})/;
const ONCE = { status: 'paid', cap: money(1, 10_000), ref: money(0, 0), settling: 1, review: 0 };

let saga: Saga;
let payers: Payers;
beforeAll(async () => {
  saga = await Saga.start({ policy: { pollLadderMs: [500, 1_000] } });
  payers = await Payers.of(saga);
});
afterEach(() => payers.leave());
afterAll(async () => {
  await payers?.end();
  await saga?.stop();
});

/** Exactly one capture in the channel's books, told to the shop once, whatever was pressed. */
async function expectPaidOnce(orderId: string, more: object = {}): Promise<void> {
  await saga.untilOrder(orderId, 'paid');
  await expectAlwaysTrue(saga, orderId);
  expect(await figuresOf(saga, orderId)).toMatchObject({ ...ONCE, evt: 1, ...more });
}

describe('the payer’s page', () => {
  it('leads to the channel, comes back and follows to "paid" by itself', async () => {
    const orderId = await saga.createOrder({ subject: 'Two chairs' });
    const page = await payers.at(orderId);
    await shows(page, 'choosing');
    expect(await words(page)).toMatch(/Pay Test shop.*Two chairs.*CN¥100\.00/);
    await payButton(page).click();
    await page.waitForURL(CHANNEL_PAGE);
    await approve(page);
    await page.waitForURL(/\/pay\/[0-9a-f]{64}/);
    await shows(page, 'paid');
    expect(await words(page)).toContain('Thank you. The payment has arrived.');
    await expectPaidOnce(orderId, { trades: 1, calls: 1 });
  });

  it('a double click sends one request', async () => {
    const orderId = await saga.createOrder();
    const page = await payers.at(orderId);
    const sent = numbersSent(page.context());
    const box = (await payButton(page).boundingBox())!;
    // Two real clicks, some milliseconds apart.
    await page.mouse.dblclick(box.x + 20, box.y + 20, { delay: 5 });
    await page.waitForURL(CHANNEL_PAGE);
    expect(sent).toEqual(['page-1-mock-a']);
    await approve(page);
    await shows(page, 'paid');
    await expectPaidOnce(orderId, { trades: 1, numbers: [expect.any(String)] });
  });

  it('Enter and a click together send one request', async () => {
    const orderId = await saga.createOrder();
    const page = await payers.at(orderId);
    const sent = numbersSent(page.context());
    const box = (await payButton(page).boundingBox())!;
    await payButton(page).focus();
    await Promise.all([page.keyboard.press('Enter'), page.mouse.click(box.x + 20, box.y + 20)]);
    await page.waitForURL(CHANNEL_PAGE);
    expect(sent).toEqual(['page-1-mock-a']);
    await approve(page);
    await expectPaidOnce(orderId, { trades: 1 });
  });

  it('two tabs of one browser send one number, and both end with "paid"', async () => {
    const orderId = await saga.createOrder();
    const context = await payers.context();
    const sent = numbersSent(context);
    const [one, two] = [await payers.tab(context, orderId), await payers.tab(context, orderId)];
    await Promise.all([press(one), press(two)]);
    const gone = await Promise.race(
      [one, two].map(async (tab) => {
        await tab.waitForURL(CHANNEL_PAGE);
        return tab;
      }),
    );
    const stayed = gone === one ? two : one;
    expect(new Set(sent)).toEqual(new Set(['page-1-mock-a']));
    await approve(gone);
    await shows(gone, 'paid');
    // Had both gone, the other is at the channel too: it comes back to the same outcome.
    if (CHANNEL_PAGE.test(stayed.url())) await stayed.goBack();
    await shows(stayed, 'paid');
    await expectPaidOnce(orderId, { trades: 1, numbers: [expect.any(String)] });
  });

  it('a tab that waits for another says so and does not send', async () => {
    const orderId = await saga.createOrder();
    const context = await payers.context();
    const [one, two] = [await payers.tab(context, orderId), await payers.tab(context, orderId)];
    const sent = numbersSent(context);
    let letGo: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (letGo = resolve));
    await one.route('**/pay/*', async (route) => {
      if (route.request().method() === 'POST') await held;
      await route.continue();
    });
    await payButton(one).click();
    await two.getByText('already being sent in another tab').waitFor();
    await press(two);
    letGo();
    await one.waitForURL(CHANNEL_PAGE);
    await shows(two, 'going');
    expect(sent).toEqual(['page-1-mock-a']);
    // What is over is not said any more.
    await two.getByText('already being sent in another tab').waitFor({ state: 'detached' });
    await approve(one);
    await shows(two, 'paid');
    expect(await two.locator('#said').textContent()).toBe('');
    await expectPaidOnce(orderId, { trades: 1 });
  });

  it('two devices send the same number and share the attempt', async () => {
    const orderId = await saga.createOrder();
    const [one, two] = [await payers.at(orderId), await payers.at(orderId)];
    await Promise.all([press(one), press(two)]);
    await Promise.all([one.waitForURL(CHANNEL_PAGE), two.waitForURL(CHANNEL_PAGE)]);
    expect(one.url()).toBe(two.url());
    await approve(one);
    await shows(one, 'paid');
    // The second device presses too late: the channel refuses, and its payer comes back to "paid".
    await two.getByRole('button', { name: 'Leave' }).click();
    await shows(two, 'paid');
    await expectPaidOnce(orderId, { trades: 1, numbers: [expect.any(String)] });
  });

  it('a reload during the call comes back to the order, not to a second payment', async () => {
    const orderId = await saga.createOrder();
    const number = 'page-1-mock-a';
    await saga.mock.addFault({
      match: { operation: 'create' },
      times: 1,
      do: { delayBeforeAnswerMs: 1_500 },
    });
    const page = await payers.at(orderId);
    const sent = numbersSent(page.context());
    await payButton(page).click();
    await waitFor('the attempt', async () => (await saga.records(orderId)).length === 1);
    await page.reload();
    await shows(page, 'waiting', 'going');
    expect(await words(page)).not.toMatch(/fail/i);
    await shows(page, 'going');
    await page.locator('#continue').click();
    await page.waitForURL(CHANNEL_PAGE);
    await approve(page);
    await shows(page, 'paid');
    expect(new Set(sent)).toEqual(new Set([number]));
    await expectPaidOnce(orderId, { trades: 1, numbers: [expect.any(String)] });
  });

  it('back after paying shows "paid" and offers nothing to press', async () => {
    const orderId = await saga.createOrder();
    const page = await payers.at(orderId);
    await payButton(page).click();
    await page.waitForURL(CHANNEL_PAGE);
    await saga.mock.approve(await saga.outTradeNo(orderId));
    await saga.untilOrder(orderId, 'paid');
    await page.goBack();
    await shows(page, 'paid');
    expect(await payButton(page).count()).toBe(0);
    await expectPaidOnce(orderId, { trades: 1 });
  });

  it('an answer that was lost on the way is asked for again under the same number', async () => {
    const orderId = await saga.createOrder();
    const page = await payers.at(orderId);
    const sent = numbersSent(page.context());
    let lost = 0;
    await page.route('**/pay/*', async (route) => {
      if (route.request().method() !== 'POST' || lost > 0) return route.continue();
      lost += 1;
      // The server has it; its answer never arrives.
      await route.fetch();
      await route.abort('connectionreset');
    });
    await payButton(page).click();
    await page.waitForURL(CHANNEL_PAGE);
    expect(lost).toBe(1);
    expect(sent).toEqual(['page-1-mock-a', 'page-1-mock-a']);
    await approve(page);
    await shows(page, 'paid');
    await expectPaidOnce(orderId, { trades: 1, numbers: [expect.any(String)] });
  });

  it('what was sent is kept: a new page after a lost answer sends the same number', async () => {
    const orderId = await saga.createOrder();
    const context = await payers.context();
    const page = await payers.tab(context, orderId);
    await page.route('**/pay/*', (route) =>
      route.request().method() === 'POST' ? route.abort('connectionreset') : route.continue(),
    );
    await payButton(page).click();
    await page.getByText('you cannot pay twice').waitFor();
    const kept = await page.evaluate<string[]>('Object.values({ ...localStorage })');
    expect(kept).toEqual(['page-1-mock-a mock-a']);
    await page.close();
    const next = await payers.tab(context, orderId);
    const sent = numbersSent(context);
    await payButton(next).click();
    await next.waitForURL(CHANNEL_PAGE);
    expect(sent).toEqual(['page-1-mock-a']);
    await approve(next);
    await expectPaidOnce(orderId, { trades: 1 });
  });

  it('an expired link takes nothing and says so', async () => {
    const orderId = await saga.createOrder({ expires_in: 2 });
    const page = await payers.at(orderId);
    await shows(page, 'closed');
    expect(await words(page)).toContain('The time to pay is over');
    expect(await payButton(page).count()).toBe(0);
    await page.reload();
    await shows(page, 'closed');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({ status: 'closed', cap: money(0, 0) });
  });

  it('an order that is paid elsewhere meanwhile shows it without being asked', async () => {
    const orderId = await saga.createOrder();
    const page = await payers.at(orderId);
    await shows(page, 'choosing');
    await saga.pay(orderId, 'K1');
    await shows(page, 'going');
    await saga.mock.approve(await saga.outTradeNo(orderId));
    await shows(page, 'paid');
    await expectPaidOnce(orderId, { trades: 1 });
  });

  it('a declined payment may be tried again: a new number, and one capture', async () => {
    const orderId = await saga.createOrder();
    const page = await payers.at(orderId);
    const sent = numbersSent(page.context());
    await payButton(page).click();
    await page.waitForURL(CHANNEL_PAGE);
    await page.getByRole('button', { name: 'Decline' }).click();
    await shows(page, 'again');
    expect(await words(page)).toContain('No money was taken.');
    await payButton(page).click();
    await page.waitForURL(CHANNEL_PAGE);
    await approve(page);
    await shows(page, 'paid');
    expect(sent).toEqual(['page-1-mock-a', 'page-2-mock-a']);
    await expectPaidOnce(orderId, { trades: 2 });
  });

  it('what was kept of an attempt that has ended meanwhile does not stand in the way', async () => {
    const orderId = await saga.createOrder();
    await saga.pay(orderId, 'page-1-mock-a');
    await saga.mock.decline(await saga.outTradeNo(orderId));
    await waitFor('declined', async () => (await saga.records(orderId))[0]?.status === 'failed');
    const context = await payers.context();
    await context.addInitScript(
      `localStorage.setItem('pay:' + location.pathname.split('/').pop(), 'page-1-mock-a mock-a')`,
    );
    const page = await payers.tab(context, orderId);
    await shows(page, 'again');
    await payButton(page).click();
    await page.waitForURL(CHANNEL_PAGE);
    await approve(page);
    await shows(page, 'paid');
    await expectPaidOnce(orderId, { trades: 2 });
  });

  it('a way to pay that closed meanwhile is said to, and is offered no more', async () => {
    const orderId = await saga.createOrder();
    const page = await payers.at(orderId);
    const setEnabled = async (enabled: boolean) => {
      await saga.rows(`update channels set pay_enabled = $1 where channel = 'mock-a'`, enabled);
      await waitFor('the API knows', async () => {
        const text = await (await fetch(await payers.link(orderId))).text();
        return text.includes('mock-a') === enabled;
      });
    };
    await setEnabled(false);
    try {
      await payButton(page).click();
      await page.getByText('This way to pay is not open now').waitFor();
      expect(await page.locator('.choice').allInnerTexts()).toEqual(['mock-b']);
    } finally {
      await setEnabled(true);
    }
    expect(await saga.records(orderId)).toEqual([]);
  });

  it('another way to pay closes the first one before it opens', async () => {
    const orderId = await saga.createOrder();
    const page = await payers.at(orderId);
    await payButton(page).click();
    await page.waitForURL(CHANNEL_PAGE);
    await page.goBack();
    await shows(page, 'going');
    await page.getByText('Pay another way').click();
    await payButton(page).click();
    await page.locator('.qr svg').waitFor();
    await page.getByText('Open the payment on this device').click();
    await page.waitForURL(CHANNEL_PAGE);
    await approve(page);
    await shows(page, 'paid');
    await expectPaidOnce(orderId, { trades: 2 });
    expect((await saga.records(orderId)).map(({ status }) => status)).toEqual(['closed', 'paid']);
  });

  it('closing races paying: one outcome, and the page tells it', async () => {
    for (const payFirst of [true, false]) {
      const orderId = await saga.createOrder();
      const page = await payers.at(orderId);
      await payButton(page).click();
      await page.waitForURL(CHANNEL_PAGE);
      const pressing = [() => approve(page), () => saga.cancel(orderId)];
      if (!payFirst) pressing.reverse();
      await Promise.all(pressing.map((press) => press()));
      await waitFor('an end', async () =>
        ['paid', 'closed'].includes((await saga.order(orderId)).status),
      );
      await expectAlwaysTrue(saga, orderId);
      await page.goto(await payers.link(orderId));
      const { status, cap, ref } = await figuresOf(saga, orderId);
      await shows(page, status === 'paid' ? 'paid' : 'closed');
      // Paid and kept, or closed with whatever had come given back.
      if (status === 'paid') expect([cap, ref]).toEqual([money(1, 10_000), money(0, 0)]);
      else expect(ref).toEqual(cap);
    }
  });

  it('while nobody knows the outcome it never says that it failed', async () => {
    const orderId = await saga.createOrder();
    await saga.mock.addFault({
      match: { operation: 'create' },
      times: 1,
      do: { answer: 'drop' },
    });
    const page = await payers.at(orderId);
    await payButton(page).click();
    await shows(page, 'waiting');
    expect(await words(page)).toContain('Please do not pay again.');
    expect(await words(page)).not.toMatch(/fail|declined|not made/i);
    await shows(page, 'going');
    await page.locator('#continue').click();
    await approve(page);
    await shows(page, 'paid');
    await expectPaidOnce(orderId, { trades: 1, numbers: [expect.any(String)] });
  });
});

describe('the payer’s page without JavaScript', () => {
  it('pays by plain forms, and twice pressed is paid once', async () => {
    const orderId = await saga.createOrder();
    const page = await payers.at(orderId, { javaScriptEnabled: false });
    await payButton(page).click();
    // The page that leads on; a browser without JavaScript follows it by itself.
    await page.waitForURL(CHANNEL_PAGE);
    await page.goBack();
    await shows(page, 'choosing', 'going');
    if (await payButton(page).first().isVisible()) await page.goto(await payers.link(orderId));
    await shows(page, 'going');
    await page.locator('#continue').click();
    await approve(page);
    await shows(page, 'going', 'paid');
    await saga.untilOrder(orderId, 'paid');
    await page.reload();
    await shows(page, 'paid');
    await expectPaidOnce(orderId, { trades: 1, numbers: [expect.any(String)] });
  });
});

describe('the payer’s page speaks', () => {
  it('Chinese to a browser that wants it, and to a payer who chooses it', async () => {
    const orderId = await saga.createOrder();
    const page = await payers.at(orderId, { locale: 'zh-CN' });
    expect(await words(page)).toMatch(/选择付款方式.*¥100\.00/);
    expect(await page.locator('html').getAttribute('lang')).toBe('zh-CN');
    await page.getByRole('link', { name: 'English' }).click();
    expect(await words(page)).toContain('Choose how to pay');
    await payButton(page).click();
    await page.waitForURL(CHANNEL_PAGE);
    await approve(page);
    await expectPaidOnce(orderId);
  });
});
