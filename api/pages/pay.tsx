/**
 * The payer's page. Who has its address may pay the order and see how it stands; nothing else of the
 * API opens to them. It pays through the same function as POST /v1/orders/{order_id}/payments.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Hono } from 'hono';
import type { Context } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { compress } from 'hono/compress';
import { secureHeaders } from 'hono/secure-headers';
import { streamSSE } from 'hono/streaming';
import { readPayLink } from '../../db/pay-page';
import { readOrderState } from '../../db/rows';
import type { OrderState } from '../../db/rows';
import { isIdentifier } from '../../domain/orders';
import type { OrderRef } from '../../domain/orders';
import { isLinkOver, payPageView } from '../../domain/pay-page';
import type { PayPageView } from '../../domain/pay-page';
import { payUrl } from '../answers';
import { Problem } from '../problems';
import type { RouteDeps } from '../route';
import { pay } from '../routes/payments';
import type { Assets } from './assets';
import { document } from './layout';
import { PayMain, waysOf } from './pay-view';
import type { Offer } from './pay-view';
import { languageOf, LOCALES, WORDS } from './words';
import type { Language } from './words';

const TOKEN = /^[0-9a-f]{64}$/;
const BODY_MAX_BYTES = 4_096;
/** A browser without JavaScript looks again this often while something may change. */
const REFRESH_S = 5;
/** A stream ends after this; the browser opens the next one by itself. */
const STREAM_MS = 10 * 60_000;
const BEAT_MS = 15_000;
/** Streams per process; above it browsers poll. */
const STREAMS_MAX = 1_000;
/** A look that came back at once, with nothing new, is not repeated sooner than this. */
const PAUSE_MS = 1_000;

export const PAY_FILES = ['pages.css', 'pay.css', 'pay.js'];

/** What the page's script gets: the state as shown, and where to go if the payer has to. */
interface PayAnswer {
  state: string;
  version: number;
  isOver: boolean;
  html: string;
  /** The channel's page, right after the payer asked for it. */
  go: string | null;
  /** Nothing is known yet: repeat the same request after so long. */
  retryAfterMs: number | null;
  /** Why it was not done: repeat it (the first two), or never. */
  because: 'switching' | 'unknown' | 'refused' | null;
}

interface Link {
  ref: OrderRef;
  merchantName: string;
  state: OrderState;
}

/** Why a link names no order: there is none, or it has expired with its order. */
type NoLink = 404 | 410;

const isLink = (found: Link | NoLink): found is Link => typeof found === 'object';

/** Everything below `/pay`. */
export function createPayPages(deps: RouteDeps, assets: Assets): Hono {
  const app = new Hono();
  let streams = 0;
  const pages = secureHeaders({
    contentSecurityPolicy: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
      imgSrc: ["'self'", 'data:'],
      connectSrc: ["'self'"],
      formAction: ["'self'"],
      baseUri: ["'none'"],
      frameAncestors: ["'none'"],
    },
    xFrameOptions: 'DENY',
    // The address is the key to the page: of other sites only the channel is told where to come back to.
    referrerPolicy: 'same-origin',
  });
  app.use(pages, compress());
  app.onError((error, c) => {
    deps.log.warn({ err: error, method: c.req.method }, 'a payer’s page could not be answered');
    if (wantsJson(c)) return c.json({ code: 'unavailable' }, 503, NO_STORE);
    return plain(c, 503, WORDS[speaks(c)].problem);
  });

  app.get('/:token', async (c) => {
    const link = await find(c);
    return isLink(link) ? page(c, link) : nothing(c, link);
  });

  app.post(
    '/:token',
    bodyLimit({ maxSize: BODY_MAX_BYTES, onError: (c) => c.text('too large', 413) }),
    async (c) => {
      const link = await find(c);
      if (!isLink(link)) return nothing(c, link);
      const choice = await choiceOf(c);
      if (!choice) return c.text('choose a way to pay', 400);
      const problem = await attempt(link, choice);
      const now = (await readOrderState(deps.pool, link.ref)) ?? link.state;
      const fresh = { ...link, state: now };
      const view = payPageView(now, Date.now());
      const isSent = problem === undefined && view.state === 'going';
      // A code is shown, not followed: the payer's other device does that.
      const isCode = view.record?.payParameters?.type === 'qr_code';
      const go = isSent && !isCode ? waysOf(view, Date.now()).address : undefined;
      if (wantsJson(c)) return c.json(await answer(c, fresh, { view, go, problem }));
      // See other, so that a reload asks and does not send. A redirect to the channel would be refused by
      // the policy for forms, so the page itself leads there.
      return go ? leave(c, go) : c.redirect(ownAddress(c), 303);
    },
  );

  app.get('/:token/state', async (c) => {
    const link = await find(c);
    if (!isLink(link)) return nothing(c, link);
    return c.json(await answer(c, link), 200, NO_STORE);
  });

  app.get('/:token/events', async (c) => {
    const link = await find(c);
    // 204 tells a browser not to open the stream again. HEAD would read none of it.
    if (!isLink(link) || c.req.method === 'HEAD') return c.body(null, 204);
    if (streams >= STREAMS_MAX || deps.versions.isClosed) {
      return c.body(null, 503, { 'retry-after': '5' });
    }
    c.header('x-accel-buffering', 'no');
    return streamSSE(c, async (stream) => {
      streams += 1;
      const gone = new AbortController();
      stream.onAbort(() => gone.abort());
      const until = Date.now() + STREAM_MS;
      try {
        let shown = -1;
        let shownState = '';
        while (!gone.signal.aborted && !deps.versions.isClosed && Date.now() < until) {
          const state = await readOrderState(deps.pool, link.ref);
          if (!state) return;
          const view = payPageView(state, Date.now());
          const { version } = state.order;
          // The deadline changes what is shown without a new version.
          const isNew = version !== shown || view.state !== shownState;
          [shown, shownState] = [version, view.state];
          const written = stream.writeSSE(
            isNew
              ? {
                  event: 'state',
                  data: JSON.stringify(await answer(c, { ...link, state }, { view })),
                }
              : { event: 'beat', data: '' },
          );
          // Who does not read gives the place to another.
          const late = delay(BEAT_MS, undefined, { signal: gone.signal }).catch(() => undefined);
          const isRead = await Promise.race([written.then(() => true), late.then(() => false)]);
          if (!isRead) return;
          const askedAt = Date.now();
          await deps.versions.changed(link.ref, shown, BEAT_MS, gone.signal);
          if (Date.now() - askedAt < PAUSE_MS / 4) await stream.sleep(PAUSE_MS);
        }
      } finally {
        streams -= 1;
      }
    });
  });

  async function find(c: Context): Promise<Link | NoLink> {
    const token = c.req.param('token') ?? '';
    if (!TOKEN.test(token)) return 404;
    const found = await readPayLink(deps.pool, token);
    const state = found && (await readOrderState(deps.pool, found));
    if (!found || !state) return 404;
    if (isLinkOver(state.order, Date.now())) return 410;
    const { merchantId, orderId, merchantName } = found;
    return { ref: { merchantId, orderId }, merchantName, state };
  }

  /** Every way to pay that is open, by the name it has for payers. */
  async function offers(): Promise<Offer[]> {
    const channels = await deps.channels.all();
    return channels
      .filter(({ row }) => row.payEnabled)
      .map(({ row }) => ({ channel: row.channel, label: row.displayName ?? row.channel }));
  }

  async function attempt(
    { ref, state }: Link,
    choice: { requestNo: string; channel: string },
  ): Promise<Problem | undefined> {
    try {
      const { requestNo, channel } = choice;
      // Our own address is no part of what was asked for: it may be another one at the next try.
      const body = { channel, return_url: payUrl(state.order, deps.publicUrl()) };
      await pay(deps, ref, requestNo, body, { channel });
      return undefined;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return error;
    }
  }

  async function answer(
    c: Context,
    link: Link,
    more: { view?: PayPageView; go?: string | undefined; problem?: Problem | undefined } = {},
  ): Promise<PayAnswer> {
    const view = more.view ?? payPageView(link.state, Date.now());
    const code = more.problem?.code;
    const isSwitching = code === 'attempt_open' || code === 'attempt_closing';
    const isUnknown = code === 'outcome_unknown' || code === 'unavailable';
    return {
      state: view.state,
      version: link.state.order.version,
      isOver: view.isOver,
      html: (await main(c, link, view)).toString(),
      go: more.go ?? null,
      retryAfterMs:
        isSwitching || isUnknown ? (more.problem?.options.retryAfterMs ?? PAUSE_MS) : null,
      because: isSwitching ? 'switching' : isUnknown ? 'unknown' : code ? 'refused' : null,
    };
  }

  async function main(c: Context, { state, merchantName }: Link, view: PayPageView) {
    return (
      <PayMain
        {...{ state, view, merchantName }}
        offers={await offers()}
        language={speaks(c)}
        nowMs={Date.now()}
        action={ownAddress(c)}
      />
    );
  }

  async function page(c: Context, link: Link): Promise<Response> {
    const words = WORDS[speaks(c)];
    const view = payPageView(link.state, Date.now());
    const mayChange = view.state === 'going' || view.state === 'waiting';
    return c.html(
      document({
        ...frame(c),
        title: `${words.heading[view.state]} · ${words.title}`,
        scripts: ['pay.js'],
        refresh: mayChange ? { seconds: REFRESH_S } : undefined,
        children: (
          <>
            {await main(c, link, view)}
            {/* Outside of what is replaced, so that it is read aloud; fixed, so that nothing moves. */}
            <p id="said" class="said" role="status"></p>
            <div id="words" hidden data-words={JSON.stringify(words.script)}></div>
          </>
        ),
      }),
      200,
      NO_STORE,
    );
  }

  /** Leads a browser without JavaScript on to the channel. */
  function leave(c: Context, url: string): Response | Promise<Response> {
    const words = WORDS[speaks(c)];
    return c.html(
      document({
        ...frame(c),
        title: words.title,
        scripts: [],
        refresh: { seconds: 0, url, always: true },
        children: (
          <main>
            <h1>{words.goingOn}</h1>
            <p>
              <a class="button" id="continue" href={url}>
                {words.continueAt(new URL(url).host)}
              </a>
            </p>
          </main>
        ),
      }),
      200,
      NO_STORE,
    );
  }

  function plain(c: Context, status: 404 | 410 | 503, words: { heading: string; text: string }) {
    return c.html(
      document({
        ...frame(c),
        title: words.heading,
        scripts: [],
        children: (
          <main>
            <h1>{words.heading}</h1>
            <p>{words.text}</p>
          </main>
        ),
      }),
      status,
      NO_STORE,
    );
  }

  /** The same whatever was asked for: a link that names no order says nothing of one. */
  function nothing(c: Context, why: NoLink) {
    const words = WORDS[speaks(c)];
    return plain(c, why, why === 410 ? words.linkOver : words.linkUnknown);
  }

  function frame(c: Context) {
    return { assets, lang: LOCALES[speaks(c)], styles: ['pages.css', 'pay.css'] };
  }

  return app;
}

const NO_STORE = { 'cache-control': 'no-store' };

function speaks(c: Context): Language {
  return languageOf(c.req.query('lang'), c.req.header('accept-language'));
}

/** The page's address, with the language that the payer chose. */
function ownAddress(c: Context): string {
  const lang = c.req.query('lang');
  const path = `/pay/${c.req.param('token')}`;
  return lang === undefined ? path : `${path}?lang=${encodeURIComponent(lang)}`;
}

function wantsJson(c: Context): boolean {
  return (c.req.header('accept') ?? '').includes('application/json');
}

async function choiceOf(c: Context): Promise<{ requestNo: string; channel: string } | undefined> {
  const form = await c.req.parseBody().catch(() => ({}) as Record<string, unknown>);
  const { choice } = form as { choice?: unknown };
  if (typeof choice !== 'string') return undefined;
  const [requestNo, channel, ...rest] = choice.split(' ');
  const isWhole = rest.length === 0 && isIdentifier(requestNo) && isIdentifier(channel);
  return isWhole ? { requestNo: requestNo!, channel: channel! } : undefined;
}
