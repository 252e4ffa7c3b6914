import { existsSync } from 'node:fs';
import AxeBuilder from '@axe-core/playwright';
import chromium from '@sparticuz/chromium';
import { chromium as playwright } from 'playwright-core';
import type { Browser, Page } from 'playwright-core';

/** Where people have a Chrome of their own, by platform. */
const INSTALLED: Partial<Record<NodeJS.Platform, readonly string[]>> = {
  darwin: ['/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'],
  linux: ['/usr/bin/google-chrome', '/usr/bin/chromium', '/usr/bin/chromium-browser'],
  win32: ['C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe'],
};

/**
 * A real browser: the one that CHROME_PATH names, the one that an npm package ships for Linux on
 * x64, or an installed Chrome.
 * @throws Error that says what to set when there is none
 */
export async function startBrowser(): Promise<Browser> {
  return playwright.launch({
    executablePath: await chromePath(),
    headless: true,
    // As root there is no sandbox to be had; the pages are our own, on loopback. Of the package's own
    // arguments none is taken: they switch off the very rules that are tested here.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  });
}

async function chromePath(): Promise<string> {
  const named = process.env['CHROME_PATH'];
  if (named) return named;
  if (process.platform === 'linux' && process.arch === 'x64') return chromium.executablePath();
  const found = (INSTALLED[process.platform] ?? []).find((file) => existsSync(file));
  if (!found) throw new Error('no Chrome was found: set CHROME_PATH to the file of one');
  return found;
}

/** What the page says to a person, in one piece. */
export async function words(page: Page): Promise<string> {
  return (await page.locator('main').innerText()).replace(/\s+/g, ' ');
}

/** Serious and critical violations of the rules (of all of them unless said), each in one line. */
export async function violationsOn(page: Page, rules?: string[]): Promise<string[]> {
  const axe = new AxeBuilder({ page });
  const { violations } = await (rules ? axe.withRules(rules) : axe).analyze();
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`);
}

/** How much wider the page is than its window; wide tables scroll in boxes of their own. */
export function overflowOf(page: Page): Promise<number> {
  return page.evaluate<number>(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  );
}
