import { Hono } from 'hono';
import { html } from 'hono/html';
import { formatDecimal } from '../domain/money';
import type { Ledger, Trade } from './ledger';
import type { TradeDesk } from './trade-desk';

/** The pages the payer sees: one per trade, with approve, decline and leave. */
export function payPages(ledger: Ledger, desk: TradeDesk): Hono {
  const pages = new Hono();

  pages.get('/pay/:channelTradeNo', (c) => {
    const trade = find(ledger, c.req.param('channelTradeNo'));
    return trade ? c.html(page(trade, ledger)) : c.notFound();
  });

  pages.post('/pay/:channelTradeNo/:choice{approve|decline|leave}', (c) => {
    const trade = find(ledger, c.req.param('channelTradeNo'));
    if (!trade) return c.notFound();
    const choice = c.req.param('choice');
    if (choice !== 'leave') {
      const outcome = choice === 'approve' ? desk.approve(trade) : desk.decline(trade);
      // A second completion, or one too late: the payer is told, no money moves.
      if (!outcome.ok) return c.html(page(trade, ledger, outcome.code), 409);
    }
    if (trade.returnUrl && /^https?:\/\//.test(trade.returnUrl)) {
      return c.redirect(trade.returnUrl, 303);
    }
    return c.html(page(trade, ledger));
  });

  return pages;
}

function find(ledger: Ledger, channelTradeNo: string): Trade | undefined {
  return ledger.byChannelNumber.get(channelTradeNo);
}

function page(trade: Trade, ledger: Ledger, refusal?: string) {
  const paid = trade.captures.length > 0;
  const state = paid ? 'paid' : trade.status;
  const open = ledger.payable.has(trade);
  const button = (choice: string, label: string) =>
    html`<form method="post" action="/pay/${trade.channelTradeNo}/${choice}">
      <button>${label}</button>
    </form>`;
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <title>Pay ${trade.subject}</title>
      </head>
      <body>
        <h1>${trade.subject}</h1>
        <p>${formatDecimal(trade.amountMinor, trade.currency)} ${trade.currency}</p>
        <p>Number ${trade.outTradeNo} at ${trade.dialect}: ${state}</p>
        ${refusal ? html`<p role="alert">Refused: ${refusal}</p>` : ''}
        ${open ? html`${button('approve', 'Approve')} ${button('decline', 'Decline')}` : ''}
        ${button('leave', 'Leave')}
      </body>
    </html>`;
}
