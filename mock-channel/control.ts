import { randomUUID } from 'node:crypto';
import { Hono, type Context } from 'hono';
import type { z } from 'zod';
import { billRoutes } from './bill-control';
import type { Bills } from './bills';
import type { Books, Dialect } from './books';
import type { Callbacks } from './callbacks';
import {
  captureSchema,
  faultRuleSchema,
  finishRefundSchema,
  refuseConnectionsSchema,
  releaseCallbacksSchema,
  replayCallbackSchema,
  resendCallbackSchema,
  reversalSchema,
  sendCallbackSchema,
  settingsChangeSchema,
  summaryRequestSchema,
  tradeTargetSchema,
  type Settings,
} from './control-types';
import type { Account, DialectFormat, Notice } from './dialect';
import { hasTag, type Faults } from './faults';
import type { Ledger, Trade } from './ledger';
import { imaginedCapture, noticeFor, strangerNotice } from './notices';
import { captureOf, type TradeDesk, type TradeOutcome } from './trade-desk';

export interface ControlParts {
  books: Books;
  ledger: Ledger;
  desk: TradeDesk;
  faults: Faults;
  callbacks: Callbacks;
  bills: Bills;
  settings: Settings;
  formats: Record<Dialect, DialectFormat>;
  accounts: Record<Dialect, Account>;
  /** Really closes or opens a dialect's port. */
  setListening(dialect: Dialect, listening: boolean): Promise<void>;
  addresses(): { control: string; a: string; b: string };
  isBusy(): boolean;
}

/** A request that cannot be served as asked; the status and a sentence for the caller. */
class ControlError extends Error {
  constructor(
    readonly status: 400 | 404 | 409,
    message: string,
  ) {
    super(message);
  }
}

/** The control interface: a test or a person acts as payer, channel or fault (PROTOCOL.md 3). */
export function controlRoutes(parts: ControlParts): Hono {
  const { books, ledger, desk, faults, callbacks, settings } = parts;
  const app = new Hono().basePath('/control');
  const started = Date.now();

  app.onError((error, c) => {
    if (error instanceof ControlError) return c.json({ error: error.message }, error.status);
    if (error instanceof RangeError) return c.json({ error: error.message }, 409);
    return c.json({ error: error.stack ?? error.message }, 500);
  });

  app.get('/health', (c) =>
    c.json({ ...parts.addresses(), upSeconds: Math.floor((Date.now() - started) / 1000) }),
  );

  app.get('/settings', (c) => c.json(settings));
  app.patch('/settings', async (c) => {
    const { callbackUrls, ...change } = await read(c, settingsChangeSchema);
    Object.assign(settings, change);
    Object.assign(settings.callbackUrls, callbackUrls ?? {});
    return c.json(settings);
  });

  app.post('/faults', async (c) => c.json({ id: faults.add(await read(c, faultRuleSchema)) }, 201));
  app.get('/faults', (c) => c.json(faults.list()));
  app.delete('/faults', (c) => {
    faults.clear();
    return c.body(null, 204);
  });
  app.delete('/faults/:id', (c) => {
    if (!faults.remove(c.req.param('id'))) throw new ControlError(404, 'no such fault');
    return c.body(null, 204);
  });

  const trade = (target: { outTradeNo: string; dialect?: Dialect }): Trade => {
    const found = ledger.trade(target.outTradeNo, target.dialect);
    if (!found) throw new ControlError(404, `no trade ${target.outTradeNo}`);
    return found;
  };
  const done = (c: Context, outcome: TradeOutcome) => {
    if (!outcome.ok) throw new ControlError(409, outcome.code);
    return c.json(outcome.trade);
  };

  app.post('/payer/approve', async (c) =>
    done(c, desk.approve(trade(await read(c, tradeTargetSchema)))),
  );
  app.post('/payer/decline', async (c) =>
    done(c, desk.decline(trade(await read(c, tradeTargetSchema)))),
  );
  app.post('/payer/review', async (c) =>
    done(c, desk.review(trade(await read(c, tradeTargetSchema)))),
  );
  app.post('/payer/capture', async (c) => {
    const order = await read(c, captureSchema);
    return c.json(desk.capture(trade(order), order));
  });
  for (const [path, type] of [
    ['/reverse', 'reversed'],
    ['/reinstate', 'reinstated'],
  ] as const) {
    app.post(path, async (c) => {
      const order = await read(c, reversalSchema);
      return done(c, desk.reverse(trade(order), order, type));
    });
  }
  app.post('/refunds/finish', async (c) => {
    const order = await read(c, finishRefundSchema);
    const refund = ledger.refund(order.outRefundNo, order.dialect);
    if (!refund) throw new ControlError(404, `no refund ${order.outRefundNo}`);
    if (!desk.finishRefund(refund, order)) {
      throw new ControlError(409, `the refund is ${refund.status}`);
    }
    return c.json(refund);
  });

  app.post('/callbacks/send', async (c) => {
    const { dialect, ...overrides } = await read(c, sendCallbackSchema);
    const notice = noticeOf(parts, overrides.outTradeNo, overrides.outRefundNo, dialect, overrides);
    return c.json(await callbacks.send(notice, overrides));
  });
  app.post('/callbacks/replay', async (c) => {
    const order = await read(c, replayCallbackSchema);
    const recorded = callbacks.deliveries.find((one) => one.deliveryId === order.deliveryId);
    if (!recorded) throw new ControlError(404, 'no such delivery');
    return c.json(await callbacks.replay(recorded, order.url, order.copies ?? 1));
  });
  app.post('/callbacks/resend', async (c) => {
    const order = await read(c, resendCallbackSchema);
    const chosen = [...callbacks.notices.values()].filter(
      (one) => one.noticeId === order.noticeId || one.outTradeNo === order.outTradeNo,
    );
    if (chosen.length === 0) throw new ControlError(404, 'no such notice');
    const deliveries = [];
    for (const notice of chosen) {
      const overrides = order.newNotifyId ? { notifyId: 'new' } : {};
      deliveries.push(...(await callbacks.send(notice, overrides)));
    }
    return c.json(deliveries);
  });
  app.get('/callbacks/held', (c) => c.json(callbacks.listHeld()));
  app.post('/callbacks/release', async (c) => {
    const { order, outTradeNo } = await read(c, releaseCallbacksSchema);
    return c.json(await callbacks.release(order, outTradeNo));
  });
  app.get('/deliveries', (c) => {
    const outTradeNo = c.req.query('outTradeNo');
    const wanted = callbacks.deliveries.filter(
      (one) => outTradeNo === undefined || one.outTradeNo === outTradeNo,
    );
    return c.json(wanted);
  });

  app.route('/bills', billRoutes(parts.bills, read));

  const reopenings = new Map<Dialect, NodeJS.Timeout>();
  app.post('/connections/refuse', async (c) => {
    const { dialect, forMs } = await read(c, refuseConnectionsSchema);
    clearTimeout(reopenings.get(dialect));
    await parts.setListening(dialect, false);
    if (forMs !== undefined) {
      const open = (): void => void parts.setListening(dialect, true).catch(() => undefined);
      reopenings.set(dialect, setTimeout(open, forMs).unref());
    }
    return c.body(null, 204);
  });
  app.post('/connections/accept', async (c) => {
    const { dialect } = await read(c, refuseConnectionsSchema);
    clearTimeout(reopenings.get(dialect));
    await parts.setListening(dialect, true);
    return c.body(null, 204);
  });

  app.post('/summary', async (c) => {
    const { outTradeNos, tag, dialect } = await read(c, summaryRequestSchema);
    const tagged = tag && [...ledger.trades.values()].filter((one) => hasTag(one.subject, tag));
    const wanted = tagged ? tagged.map((one) => one.outTradeNo) : outTradeNos;
    return c.json(ledger.figures.summary(wanted, dialect));
  });
  app.get('/trades', (c) => {
    const { tag, dialect } = c.req.query();
    const wanted = [...ledger.trades.values()].filter(
      (one) => (!tag || hasTag(one.subject, tag)) && (!dialect || one.dialect === dialect),
    );
    return c.json(wanted);
  });
  app.get('/trades/:outTradeNo', (c) => {
    const dialect = c.req.query('dialect') as Dialect | undefined;
    return c.json(trade({ outTradeNo: c.req.param('outTradeNo'), dialect }));
  });
  app.get('/books', (c) => c.json(books.records.slice(Number(c.req.query('after') ?? 0))));

  app.post('/idle', async (c) => {
    const { timeoutMs = 5000 } = (await c.req.json()) as { timeoutMs?: number };
    const until = Date.now() + timeoutMs;
    while (parts.isBusy()) {
      if (Date.now() > until) throw new ControlError(409, `still busy after ${timeoutMs} ms`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return c.body(null, 204);
  });

  return app;
}

async function read<Schema extends z.ZodType>(
  c: Context,
  schema: Schema,
): Promise<z.output<Schema>> {
  let value: unknown;
  try {
    value = await c.req.json();
  } catch {
    throw new ControlError(400, 'the body is not JSON');
  }
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const faults = result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  throw new ControlError(400, faults.join('; '));
}

/** The notice a control callback starts from: the trade or refund as it stands, or a stranger. */
function noticeOf(
  parts: ControlParts,
  outTradeNo: string,
  outRefundNo: string | undefined,
  wanted: Dialect | undefined,
  overrides: { channelTradeNo?: string; currency?: string; word?: string },
): Notice {
  const trade = parts.ledger.trade(outTradeNo, wanted);
  const dialect = trade?.dialect ?? wanted;
  if (!dialect) throw new ControlError(400, 'an unknown trade needs a dialect');
  const format = parts.formats[dialect];
  const account = parts.accounts[dialect];
  const refund = outRefundNo && parts.ledger.refund(outRefundNo, dialect);
  const noticeId = randomUUID();
  if (trade && refund)
    return noticeFor(format, account, { kind: 'refund', trade, refund }, noticeId);
  if (trade && !outRefundNo) {
    const { channelTradeNo, amountMinor, currency } = trade;
    const booked = captureOf(trade, overrides.channelTradeNo) ?? captureOf(trade);
    const claimed = overrides.word === format.paidWord;
    const capture =
      booked ?? (claimed ? imaginedCapture(channelTradeNo, amountMinor, currency) : null);
    return noticeFor(format, account, { kind: 'payment', trade, capture }, noticeId);
  }
  return strangerNotice(format, account, {
    noticeId,
    outTradeNo,
    outRefundNo: outRefundNo ?? null,
    currency: overrides.currency ?? trade?.currency ?? 'CNY',
  });
}
