import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Hono } from 'hono';
import { html } from 'hono/html';
import { secureHeaders } from 'hono/secure-headers';
import { formatDecimal } from '../domain/money';
import type { Ledger, Trade } from './ledger';
import type { TradeDesk, TradeOutcome } from './trade-desk';

const CSS = readFileSync(join(__dirname, 'pay-page.css'), 'utf8');

/** What the payer may press, and what it does. */
const CHOICES = {
  approve: 'Approve',
  decline: 'Decline',
  // Two captures of one trade, as a channel's own defect would make them: to see the second one go back.
  twice: 'Pay twice on purpose',
  leave: 'Leave',
} as const;
type Choice = keyof typeof CHOICES;

/** What a refusal means to the payer. */
const REFUSALS: Record<string, string> = {
  TRADE_ALREADY_PAID: 'This payment has been made already. Nothing was taken again.',
  TRADE_CLOSED: 'This payment is closed. Nothing was taken.',
};

/** The pages the payer sees: one per trade, with approve, decline, pay twice on purpose and leave. */
export function payPages(ledger: Ledger, desk: TradeDesk): Hono {
  const pages = new Hono();
  pages.use(
    '/pay/*',
    secureHeaders({
      // No `form-action`: the answer to a form leads on to the shop, wherever that is.
      contentSecurityPolicy: {
        defaultSrc: ["'none'"],
        styleSrc: ["'self'"],
        imgSrc: ['data:'],
        baseUri: ["'none'"],
        frameAncestors: ["'none'"],
      },
    }),
  );

  pages.get('/pay/page.css', (c) => c.body(CSS, 200, { 'content-type': 'text/css' }));

  pages.get('/pay/:channelTradeNo', (c) => {
    const trade = find(ledger, c.req.param('channelTradeNo'));
    return trade ? c.html(page(trade, ledger), 200, NO_STORE) : c.notFound();
  });

  pages.post('/pay/:channelTradeNo/:choice{approve|decline|twice|leave}', (c) => {
    const trade = find(ledger, c.req.param('channelTradeNo'));
    if (!trade) return c.notFound();
    const outcome = choose(desk, trade, c.req.param('choice') as Choice);
    // A second completion, or one too late: the payer is told, no money moves.
    if (!outcome.ok) return c.html(page(trade, ledger, outcome.code), 409, NO_STORE);
    if (trade.returnUrl && /^https?:\/\//.test(trade.returnUrl)) {
      return c.redirect(trade.returnUrl, 303);
    }
    return c.html(page(trade, ledger), 200, NO_STORE);
  });

  return pages;
}

const NO_STORE = { 'cache-control': 'no-store' };

function choose(desk: TradeDesk, trade: Trade, choice: Choice): TradeOutcome {
  switch (choice) {
    case 'leave':
      return { ok: true, trade };
    case 'decline':
      return desk.decline(trade);
    case 'approve':
      return desk.approve(trade);
    case 'twice': {
      const outcome = desk.approve(trade);
      if (outcome.ok) desk.capture(trade, {});
      return outcome;
    }
  }
}

function find(ledger: Ledger, channelTradeNo: string): Trade | undefined {
  return ledger.byChannelNumber.get(channelTradeNo);
}

function amountOf({ amountMinor, currency }: Trade): string {
  const text = formatDecimal(amountMinor, currency) as `${number}`;
  return new Intl.NumberFormat('en', { style: 'currency', currency }).format(text as never);
}

function page(trade: Trade, ledger: Ledger, refusal?: string) {
  const state = trade.captures.length > 0 ? 'paid' : trade.status;
  const offered: Choice[] = ledger.payable.has(trade)
    ? ['approve', 'decline', 'twice', 'leave']
    : ['leave'];
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>Pay at ${trade.dialect}</title>
        <link rel="stylesheet" href="/pay/page.css" />
        <link rel="icon" href="data:," />
      </head>
      <body>
        <main>
          <p class="practice">Practice channel ${trade.dialect}: no real money</p>
          <h1><bdi>${trade.subject}</bdi></h1>
          <p class="amount">${amountOf(trade)}</p>
          <p class="number">Number ${trade.outTradeNo}: ${state}</p>
          ${refusal ? html`<p role="alert">${REFUSALS[refusal] ?? refusal}</p>` : ''}
          ${offered.map(
            (choice) =>
              html`<form method="post" action="/pay/${trade.channelTradeNo}/${choice}">
                <button class="${choice === 'approve' ? 'first' : 'other'}">
                  ${CHOICES[choice]}
                </button>
              </form>`,
          )}
        </main>
      </body>
    </html>`;
}
