import { createServer } from 'node:http';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { startBrowser } from './browser';
import type { Operators } from './operators';
import type { Saga } from './saga';

/** Longer than any page takes to come, on a slow machine. */
const BOUND_MS = 20_000;

/** Operators with browsers of their own, at the desk of one saga. */
export class Desks {
  private readonly contexts: BrowserContext[] = [];

  private constructor(
    readonly saga: Saga,
    readonly operators: Operators,
    readonly browser: Browser,
  ) {}

  static async of(saga: Saga, operators: Operators): Promise<Desks> {
    return new Desks(saga, operators, await startBrowser());
  }

  async end(): Promise<void> {
    await this.browser.close();
  }

  /** Ends what one test opened. */
  async leave(): Promise<void> {
    await Promise.all(this.contexts.splice(0).map((context) => context.close()));
  }

  get url(): string {
    return `${this.saga.apis[0]!.url}/ops/ui`;
  }

  orderUrl(orderId: string): string {
    return `${this.url}/orders/${this.saga.merchantId}/${orderId}`;
  }

  /** A browser of its own, logged in with that operator's key as a person does it. */
  async at(who: 'lin' | 'mo', options: BrowserContextOptions = {}): Promise<Page> {
    const page = await this.page(options);
    await page.goto(`${this.url}/login`);
    await logIn(page, this.operators.keys[who]);
    await page.getByRole('heading', { name: 'Today at a glance' }).waitFor();
    return page;
  }

  /** A browser of its own, nowhere yet. */
  async page(options: BrowserContextOptions = {}): Promise<Page> {
    const context = await this.browser.newContext({ locale: 'en-GB', ...options });
    context.setDefaultTimeout(BOUND_MS);
    this.contexts.push(context);
    return context.newPage();
  }
}

export async function logIn(page: Page, key: string): Promise<void> {
  await page.getByLabel('Your API key').fill(key);
  await page.getByRole('button', { name: 'Log in' }).click();
}

/** Opens the form of an act, fills what it asks for, and sends it. */
export async function actOn(
  page: Page,
  form: string,
  said: { name: string; reason: string; amount?: string; evidence?: string },
): Promise<void> {
  const act = page.locator(`details#${form}`);
  await act.locator('summary').click();
  for (const [field, value] of Object.entries(said)) {
    await act.locator(`[name="${field}"]`).fill(value);
  }
  await act.getByRole('button').click();
}

/** Another site, on another loopback port: the same site to a browser's cookies, not the same origin. */
export async function startForeignSite(html: string): Promise<{ url: string; close(): void }> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end(html);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    url: `http://127.0.0.1:${address.port}/`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
