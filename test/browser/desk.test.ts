import { words } from '../support/browser';
import { actOn, Desks } from '../support/desk';
import { BILL_DEFECTS } from '../support/bill-defects';
import { expectAlwaysTrue, figuresOf, money } from '../support/figures';
import { Operators } from '../support/operators';
import { daysAgo, ended, paidOn, zoneAtHour } from '../support/reconciliations';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

let saga: Saga;
let ops: Operators;
let desks: Desks;
beforeAll(async () => {
  saga = await Saga.start({
    timeZone: zoneAtHour(6),
    policy: { pollLadderMs: [30_000] },
    env: {
      ACTS_ALONE_UP_TO: '5000',
      NOTIFY_LADDER_MS: '50,50',
      TEMPORAL_UI_URL: 'http://temporal.example:8233',
    },
  });
  ops = await Operators.of(saga);
  desks = await Desks.of(saga, ops);
});
afterEach(() => desks.leave());
afterAll(async () => {
  await desks?.end();
  await saga?.stop();
});

describe('an operator', () => {
  it('finds an order by the channel’s number, reads its story, and decides it with a second person', async () => {
    const { orderId, captureId } = await ops.mismatch();
    const [record] = await saga.records(orderId);
    const lin = await desks.at('lin');
    await lin.getByRole('link', { name: 'Search' }).click();
    await lin.getByLabel('A number').fill(record!.channel_trade_no!);
    await lin.getByRole('button', { name: 'Search' }).click();
    const row = lin.getByRole('row').filter({ hasText: orderId });
    expect(await row.innerText()).toMatch(/review.*CN¥100\.00.*channel trade no/s);
    await row.getByRole('link', { name: orderId }).click();

    await lin.getByRole('heading', { name: `Order ${orderId}` }).waitFor();
    const kinds = await lin
      .locator('ol.line > li')
      .evaluateAll((items) => items.map((item) => item.getAttribute('data-kind')));
    expect(kinds).toEqual(expect.arrayContaining(['attempt', 'callback', 'capture', 'case']));
    // As it happened: the order of the API's timeline.
    const { body } = await ops.call('GET', `${ops.pathOf(orderId)}/timeline`);
    expect(kinds).toEqual(body.entries.map(({ kind }: { kind: string }) => kind));
    expect(await words(lin)).toContain('mock-a took CN¥90.00, held');
    const run = lin.getByRole('link', { name: /Temporal Web.*the run of the order/ }).first();
    expect(await run.getAttribute('href')).toContain(`http://temporal.example:8233/namespaces/`);

    await lin.getByRole('link', { name: /^Case \d+/ }).click();
    expect(await words(lin)).toMatch(/Status open.*CN¥90\.00/);
    await actOn(lin, `accept_money-${captureId}`, { name: 'Lin', reason: 'the payer agreed' });
    await lin.getByText('another operator, with another key, must confirm it').waitFor();
    // One person decides nothing.
    expect((await saga.order(orderId)).status).toBe('review');
    expect(await words(lin)).toContain('It was asked for with your key');
    expect(await lin.getByRole('button', { name: 'Confirm as the second person' }).count()).toBe(0);

    const mo = await desks.at('mo');
    await mo.getByRole('link', { name: 'Acts', exact: true }).click();
    await mo.getByRole('row').filter({ hasText: orderId }).getByRole('link').first().click();
    await mo.getByLabel('Your name').fill('Mo');
    await mo.getByLabel('What you have seen').fill('seen the receipt');
    await mo.getByRole('button', { name: 'Confirm as the second person' }).click();
    await mo.getByText('order paid').waitFor();
    expect(await words(mo)).toMatch(/Status done.*Lin.*the payer agreed.*Mo.*seen the receipt/);

    await saga.untilOrder(orderId, 'paid');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      ...{ status: 'paid', cap: money(1, 9_000), ref: money(0, 0), settling: 1, evt: 1, review: 0 },
    });
    const acts = await saga.rows(
      `select status, actor_key, actor_name, second_key, second_name from operator_acts
       where order_id = $1::text`,
      orderId,
    );
    expect(acts).toEqual([
      {
        status: 'done',
        actor_key: `lin-${saga.merchantId}`,
        actor_name: 'Lin',
        second_key: `mo-${saga.merchantId}`,
        second_name: 'Mo',
      },
    ]);
    await lin.goto(desks.orderUrl(orderId));
    expect(await words(lin)).toMatch(/Status paid accepted.*review → paid/);
  });

  it('gives back part of a payment alone, once, however often the button is pressed', async () => {
    const { orderId, outTradeNo } = await saga.paidOrder();
    const [capture] = await saga.captures(orderId);
    const lin = await desks.at('lin');
    await lin.goto(desks.orderUrl(orderId));
    const form = lin.locator(`details#refund_money-${capture!.capture_id}`);
    await form.locator('summary').click();
    await form.getByLabel('Amount in CNY').fill('12.50');
    await form.getByLabel('Your name').fill('Lin');
    await form.getByLabel('Reason').fill('one cup was broken');
    await form.getByRole('button').dblclick();
    await lin.getByText('Give this money back: done.').waitFor();
    await waitFor('the refund', async () => {
      const [row] = await saga.rows<{ status: string }>(
        `select status from refunds where order_id = $1::text`,
        orderId,
      );
      return row?.status === 'succeeded';
    });
    expect((await saga.mock.summary({ outTradeNos: [outTradeNo] })).refunds).toEqual(
      money(1, 1_250),
    );
    // The name is remembered for the next form, nothing else.
    expect(await lin.locator('details#note-order [name="name"]').inputValue()).toBe('Lin');
    await expectAlwaysTrue(saga, orderId);
  });

  it('sees what is refused in words, with the form as it was filled in', async () => {
    const { orderId, captureId } = await ops.mismatch();
    const lin = await desks.at('lin');
    await lin.goto(desks.orderUrl(orderId));
    const said = { name: 'Lin', reason: 'too much', amount: '90.01' };
    await actOn(lin, `refund_money-${captureId}`, said);
    await lin.getByRole('alert').getByText('more than is left of the capture').waitFor();
    const form = lin.locator(`details#refund_money-${captureId}`);
    expect(await form.getAttribute('open')).not.toBeNull();
    for (const [field, value] of Object.entries(said)) {
      expect(await form.locator(`[name="${field}"]`).inputValue()).toBe(value);
    }
    await form.locator('[name="amount"]').fill('40.00');
    await form.getByRole('button').click();
    await lin.getByText('Give this money back: done.').waitFor();
    await waitFor('the refund', async () => (await saga.books(orderId)).refunds.count === 1);
    expect((await saga.books(orderId)).refunds).toEqual(money(1, 4_000));
  });

  it('sends a dead letter again, and the shop gets it once', async () => {
    saga.merchant.answer = () => 503;
    const { orderId } = await saga.paidOrder();
    const id = await waitFor('a dead letter', async () => {
      const [row] = await saga.rows<{ notification_id: number; status: string }>(
        `select notification_id, status from notifications where order_id = $1::text`,
        orderId,
      );
      return row?.status === 'dead' && row.notification_id;
    });
    saga.merchant.answer = () => 200;
    const lin = await desks.at('lin');
    await lin.getByRole('link', { name: 'Dead letters' }).click();
    const row = lin.getByRole('row').filter({ hasText: orderId });
    expect(await row.innerText()).toContain('the merchant answered 503');
    await row.getByRole('link', { name: /order\.paid/ }).click();
    await lin.getByLabel('Reason').fill('their server is back');
    await lin.getByRole('button', { name: 'Send it now' }).dblclick();
    await lin.waitForURL(/resent=yes/);
    await waitFor('the shop told', () => saga.merchant.effects(orderId, 'order.paid').length === 1);
    await saga.untilSettled(orderId);
    await lin.reload();
    expect(await words(lin)).toMatch(/The shop has it\..*their server is back/);
    const [log] = await saga.rows<{ resends: number; received: number }>(
      `select count(*)::int as resends from notification_resends where notification_id = $1::bigint`,
      id,
    );
    expect(log!.resends).toBe(1);
    expect(saga.merchant.received.filter((event) => event.orderId === orderId)).toHaveLength(1);
    await lin.getByRole('link', { name: 'Dead letters' }).click();
    expect(await words(lin)).not.toContain(orderId);
  });

  it('runs a reconciliation, dry and in earnest, and sees its differences', async () => {
    const day = daysAgo(saga, 25);
    const bill = { dialect: 'mock-a' as const, day };
    const { orderId, outTradeNo, tradeNo } = await paidOn(saga, 'mock-a', day);
    await paidOn(saga, 'mock-a', day);
    await BILL_DEFECTS.fee(saga.mock, bill, {
      ...{ outTradeNo, channelTradeNo: tradeNo, amountMinor: 10_000 },
    });
    const lin = await desks.at('lin');
    const start = async (isDry: boolean) => {
      await lin.goto(`${desks.url}/reconciliation?month=${day.slice(0, 7)}`);
      const form = lin.getByRole('region', { name: 'Start a run' });
      await form.getByLabel('Channel').selectOption('mock-a');
      await form.getByLabel('Business date').fill(day);
      await form.getByLabel(/Dry run/).setChecked(isDry);
      await form.getByRole('button', { name: 'Start' }).click();
      await lin.getByText('A run has begun.').waitFor();
      await ended(saga, 'mock-a', day);
      await lin.reload();
    };
    await start(true);
    expect(await words(lin)).toMatch(/mock-a: 1 diff\..*Dry run yes/);
    await start(false);
    expect(await words(lin)).toMatch(
      /mock-a: 1 diff\..*Dry run no.*fee 1.*another fee than agreed/,
    );
    const inDatabase = await saga.rows(
      `select kind, order_id from differences where business_date = $1::date`,
      day,
    );
    expect(inDatabase).toEqual([{ kind: 'fee', order_id: orderId }]);
    // Both payments of the channel's bill were compared.
    expect(await words(lin)).toContain('2 rows, 0 of them cannot be read');

    const download = lin.waitForEvent('download');
    await lin.getByRole('link', { name: 'Differences as CSV' }).click();
    expect((await download).suggestedFilename()).toBe(`reconciliation-${day}.csv`);
    const csv = await ops.call('GET', `/ops/reconciliations/${day}?channel=mock-a&format=csv`);
    const got = await lin.request.get(`${desks.url}/reconciliation/${day}/csv?channel=mock-a`);
    expect(await got.text()).toBe(csv.body);

    await lin.getByRole('link', { name: 'The month' }).click();
    const cell = lin.locator(`td[data-day="${day}"]`).first();
    expect(await cell.innerText()).toMatch(/1 diff\./);
    expect(await cell.getAttribute('class')).toBe('bad');
  });

  it('reads the same figures at a glance as the database and the channel have', async () => {
    const lin = await desks.at('lin');
    await lin.goto(`${desks.url}?zone=${encodeURIComponent(saga.timeZone)}&by=day`);
    const figureOf = async (name: string) =>
      (await lin.locator(`[data-figure="${name}"]`).innerText()).replace(/\s+/g, ' ');
    const [row] = await saga.rows<Record<'open' | 'review' | 'refunds', number>>(
      `select count(*) filter (where status in ('created', 'paying'))::int as open,
         count(*) filter (where status = 'review')::int as review,
         (select sum(amount_minor)::int from refunds where status = 'succeeded') as refunds
       from orders`,
    );
    expect(await figureOf('Open')).toMatch(new RegExp(`^Open ${row!.open} `));
    expect(await figureOf('In review')).toMatch(new RegExp(`^In review ${row!.review} `));
    const refunded = ((row!.refunds ?? 0) / 100).toFixed(2);
    expect(await figureOf('Refunded')).toContain(`CN¥${refunded}`);
    await lin.getByText('The figures').first().click();
    expect(await words(lin)).toMatch(/Success by day.*of \d+ orders created are paid/);
  });
});
