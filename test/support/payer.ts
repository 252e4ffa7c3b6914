import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import type { PayPageState } from '../../domain/pay-page';
import { startBrowser } from './browser';
import type { Saga } from './saga';

/** Longer than any state takes to come, on a slow machine. */
const BOUND_MS = 20_000;

/** Payers with browsers of their own, at the pages of one saga's orders. */
export class Payers {
  private readonly contexts: BrowserContext[] = [];

  private constructor(
    readonly saga: Saga,
    readonly browser: Browser,
  ) {}

  static async of(saga: Saga): Promise<Payers> {
    return new Payers(saga, await startBrowser());
  }

  async end(): Promise<void> {
    await this.browser.close();
  }

  /** Ends what one test opened. */
  async leave(): Promise<void> {
    await Promise.all(this.contexts.splice(0).map((context) => context.close()));
  }

  async context(options: BrowserContextOptions = {}): Promise<BrowserContext> {
    const context = await this.browser.newContext({ locale: 'en-GB', ...options });
    context.setDefaultTimeout(BOUND_MS);
    this.contexts.push(context);
    return context;
  }

  /** A new browser of its own, at the order's page. */
  async at(orderId: string, options: BrowserContextOptions = {}): Promise<Page> {
    return this.tab(await this.context(options), orderId);
  }

  /** One more tab of a browser, at the order's page. */
  async tab(context: BrowserContext, orderId: string): Promise<Page> {
    const page = await context.newPage();
    await page.goto(await this.link(orderId));
    return page;
  }

  async link(orderId: string): Promise<string> {
    const { body } = await this.saga.status(orderId);
    return body.pay_url as string;
  }
}

/** Waits until the page shows this state. */
export async function shows(page: Page, ...states: PayPageState[]): Promise<void> {
  await page.waitForSelector(states.map((state) => `main[data-state="${state}"]`).join(', '));
}

export const payButton = (page: Page) => page.locator('[data-pay] button');

/** A press that waits for nothing, as the button stands at this moment. */
export async function press(page: Page): Promise<void> {
  await page.evaluate("document.querySelector('[data-pay] button').click()");
}

/** The request numbers that a browser sends from here on. */
export function numbersSent(context: BrowserContext): string[] {
  const sent: string[] = [];
  context.on('request', (request) => {
    if (request.method() !== 'POST' || !request.url().includes('/pay/')) return;
    const choice = new URLSearchParams(request.postData() ?? '').get('choice');
    if (choice) sent.push(choice.split(' ')[0]!);
  });
  return sent;
}

/** At the channel's own page. */
export async function approve(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Approve' }).click();
}
