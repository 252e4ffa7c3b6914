import { overflowOf, violationsOn, words } from '../support/browser';
import { Desks } from '../support/desk';
import { DESK_PAGES, makeDeskPages } from '../support/desk-pages';
import type { DeskPage } from '../support/desk-pages';
import { Operators } from '../support/operators';
import { zoneAtHour } from '../support/reconciliations';
import { Saga } from '../support/saga';

/** Every page of the desk, with the worst that others may write on it. */
let saga: Saga;
let desks: Desks;
beforeAll(async () => {
  saga = await Saga.start({
    timeZone: zoneAtHour(6),
    policy: { pollLadderMs: [30_000] },
    env: { NOTIFY_LADDER_MS: '50,50', TEMPORAL_UI_URL: 'http://temporal.example:8233' },
  });
  desks = await Desks.of(saga, await Operators.of(saga));
});
afterEach(() => desks.leave());
afterAll(async () => {
  await desks?.end();
  await saga?.stop();
});

const HOSTILE =
  '</title></script><script>document.title="owned"</script><img src=x onerror="document.title=1">';

describe('every page', () => {
  let pages: Record<DeskPage, string>;
  beforeAll(async () => {
    await saga.rows('update merchants set name = $1::text', `${HOSTILE}\u202e`);
    pages = await makeDeskPages(desks, {
      subject: `${HOSTILE}\u202e${'W'.repeat(256)}`.slice(0, 256),
      metadata: { '</script>': HOSTILE, long: 'x'.repeat(2_000), rtl: '\u202e\u2067abc' },
      name: HOSTILE.slice(0, 64),
      reason: HOSTILE,
      longReason: 'y'.repeat(1_000),
      evidence: 'z'.repeat(2_000),
    });
  });

  it.each(DESK_PAGES)(
    '%s: no serious violation in light and dark, and no wider than 360 px',
    async (name) => {
      const page = await desks.at('mo', { viewport: { width: 360, height: 740 } });
      await page.goto(pages[name]);
      // Folded parts are part of the page.
      await page.evaluate('document.querySelectorAll("details").forEach((d) => (d.open = true))');
      expect(await overflowOf(page)).toBe(0);
      expect(await violationsOn(page)).toEqual([]);
      // Of all rules only that of contrast depends on the theme.
      await page.emulateMedia({ colorScheme: 'dark' });
      expect(await violationsOn(page, ['color-contrast'])).toEqual([]);
    },
  );

  it('shows what others wrote as text, and runs nothing of it', async () => {
    const page = await desks.at('mo');
    const ran: string[] = [];
    page.on('dialog', (dialog) => void dialog.dismiss());
    page.on('console', (message) => {
      if (message.type() === 'error' && !/404|status of 4/.test(message.text())) {
        ran.push(message.text());
      }
    });
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(path);
      expect([name, await page.title()]).toEqual([
        name,
        expect.stringContaining('Operators’ desk'),
      ]);
      expect([name, await page.locator('script, img').count()]).toEqual([name, 0]);
    }
    expect(ran).toEqual([]);
    await page.goto(pages.order);
    expect(await words(page)).toContain('<script>document.title="owned"</script>');
  });

  it('works by keyboard: the skip link comes first, and leads to the page', async () => {
    const page = await desks.at('lin');
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent.trim()')).toBe(
      'Skip to the page',
    );
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement.id')).toBe('main');
  });
});
