/**
 * `npm run screens`: takes a picture of every page in each of its states, on a phone and a desktop,
 * light and dark, into docs/screens. Runs the whole saga on servers of its own, as the tests do.
 */
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { setDeskScene } from './desk-pictures';
import { PAYER_STATES } from '../test/support/page-states';
import type { ReachState } from '../test/support/page-states';
import { Payers } from '../test/support/payer';
import { Saga } from '../test/support/saga';
import startServers from '../test/support/servers-start';
import { takeRunning } from '../test/support/servers-running';

const FOLDER = path.join(__dirname, '..', 'docs', 'screens');
const DEVICES = {
  phone: { width: 360, height: 640 },
  desktop: { width: 1280, height: 800 },
};
const THEMES = ['light', 'dark'] as const;
/** Shown in Chinese, too. */
const CHINESE = ['choosing', 'code', 'waiting', 'paid'];

/** Chinese letters for the pictures; a payer's own device brings them. */
const FONT = path.dirname(require.resolve('@fontsource-variable/noto-sans-sc/package.json'));
const FONT_URL = 'http://font.invalid/';

async function main(): Promise<void> {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  await startServers();
  const saga = await Saga.start({
    policy: { pollLadderMs: [500, 1_000], unconfirmedCloseCaseAfterMs: 60_000 },
    merchant: { name: 'Corner Shop' },
    env: { ACTS_ALONE_UP_TO: '100000', NOTIFY_LADDER_MS: '50,50,50' },
  });
  try {
    await picturePayersPage(saga);
    await pictureDesk(saga);
  } finally {
    // What waits for a person in the pictures waits for ever: the books are no matter here.
    await saga.end().finally(() => takeRunning()?.stop());
  }
}

async function picturePayersPage(saga: Saga): Promise<void> {
  const payers = await Payers.of(saga);
  const picture = async (name: string, reach: ReachState, options: BrowserContextOptions) => {
    const page = await reach(payers, { ...options, bypassCSP: true });
    await bringFont(page);
    await take(page, name, true);
    await saga.mock.clearFaults();
    await payers.leave();
  };
  try {
    for (const [name, reach] of Object.entries(PAYER_STATES)) {
      await picture(`pay-${name}`, reach, {});
      if (CHINESE.includes(name)) await picture(`pay-${name}-zh`, reach, { locale: 'zh-CN' });
    }
  } finally {
    await payers.end();
  }
}

async function pictureDesk(saga: Saga): Promise<void> {
  const { desks, paths } = await setDeskScene(saga);
  try {
    const login = await desks.page();
    await login.goto(`${desks.url}/login`);
    await take(login, 'desk-login', true);
    // The second person: what waits for one may be confirmed by this one.
    const page = await desks.at('mo');
    for (const [name, path] of Object.entries(paths)) {
      await page.goto(desks.url + path);
      await take(page, `desk-${name}`, false);
    }
  } finally {
    await desks.end();
  }
}

/** @param isShort the whole page, however far down it goes; else what the window shows */
async function take(page: Page, name: string, isShort: boolean): Promise<void> {
  for (const [device, viewport] of Object.entries(DEVICES)) {
    await page.setViewportSize(viewport);
    for (const colorScheme of THEMES) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await page.screenshot({
        path: path.join(FOLDER, `${name}-${device}-${colorScheme}.png`),
        fullPage: device === 'phone' && isShort,
      });
    }
  }
  console.log(`${name}: ${Object.keys(DEVICES).length * THEMES.length} pictures`);
}

async function bringFont(page: Page): Promise<void> {
  await page.route(`${FONT_URL}**`, (route) => {
    const file = path.join(FONT, 'files', path.basename(new URL(route.request().url()).pathname));
    return route.fulfill({
      body: readFileSync(file),
      headers: { 'content-type': 'font/woff2', 'access-control-allow-origin': '*' },
    });
  });
  const faces = readFileSync(path.join(FONT, 'index.css'), 'utf8')
    .replaceAll('url(./files/', `url(${FONT_URL}files/`)
    .replaceAll("'Noto Sans SC Variable'", "'Noto Sans SC'");
  await page.addStyleTag({ content: faces });
  await page.evaluate(
    `Promise.all(['400', '600', '700'].map((weight) =>
      document.fonts.load(weight + ' 1rem "Noto Sans SC"', document.body.innerText)))`,
  );
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
