/**
 * The operators' desk. Who has a key with the scope `operator` logs in with it; every list and every act
 * is the API's own (routes of api/routes/ops-*.ts), shown to people instead of programs.
 */
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { readDeskSession } from '../../../db/desk-sessions';
import { Problem } from '../../problems';
import type { RouteDeps } from '../../route';
import type { Assets } from '../assets';
import { addActs } from './acts';
import { addCases } from './cases';
import { addDeadLetters } from './dead-letters';
import type { DeskEnv, Form } from './frame';
import { Desk } from './frame';
import { addGlance } from './glance';
import { DESK, deskHeaders, requireCsrfToken, requireOwnPage, tokenOf } from './guard';
import { addLogin, addLogout } from './login';
import { addOrders } from './orders';
import { addReconciliation } from './reconciliation';
import { SendAgain, Written } from './refused';
import { addSearch } from './search';
import { addStuck } from './stuck';

/** Longer than the longest evidence in the longest script, and no more. */
const BODY_MAX_BYTES = 64 * 1024;

export const DESK_FILES = ['desk.css'];

/** Not compressed: a page holds its session's token beside words that others wrote. */
export function createDesk(deps: RouteDeps, assets: Assets): Hono<DeskEnv> {
  const app = new Hono<DeskEnv>();
  const desk = new Desk(deps, assets);
  app.use(deskHeaders);
  app.onError((error, c) => {
    const problem = desk.problemOf(error, c);
    const form = c.get('form') as Form | undefined;
    // A key that was typed is never sent back.
    const isRepeatable = problem.status >= 500 && form !== undefined && !form['api_key'];
    return desk.showProblem(
      c,
      problem,
      isRepeatable ? <SendAgain action={c.req.path} form={form} /> : <Written form={form} />,
    );
  });

  app.post(
    '*',
    bodyLimit({
      maxSize: BODY_MAX_BYTES,
      onError: () => {
        throw new Problem('body_too_large', `a form may have at most ${BODY_MAX_BYTES} bytes`);
      },
    }),
    async (c, next) => {
      requireOwnPage(c, deps.publicUrl());
      c.set('form', await formOf(c.req));
      await next();
    },
  );
  addLogin(app, desk);

  // Below here somebody is logged in, and forms carry the session's token.
  app.use(async (c, next) => {
    const token = tokenOf(c);
    const session = token === undefined ? undefined : await readDeskSession(deps.pool, token);
    if (session) {
      c.set('session', session);
      if (c.req.method === 'POST') requireCsrfToken(c.get('form')['csrf'], session.csrfToken);
      return next();
    }
    if (c.req.method === 'POST') {
      throw new Problem('unauthenticated', 'your session has ended: log in again, then repeat');
    }
    const { pathname, search } = new URL(c.req.url);
    return c.redirect(`${DESK}/login?next=${encodeURIComponent(pathname + search)}`, 303);
  });
  addLogout(app, desk);
  addGlance(app, desk);
  addCases(app, desk);
  addActs(app, desk);
  addSearch(app, desk);
  addOrders(app, desk);
  addReconciliation(app, desk);
  addDeadLetters(app, desk);
  addStuck(app, desk);
  app.all('*', (c) => {
    const trimmed = c.req.path.replace(/\/+$/, '');
    if (c.req.method === 'GET' && trimmed !== c.req.path) return c.redirect(trimmed, 301);
    throw new Problem('not_found', 'the desk has no such page');
  });
  return app;
}

/** The fields of a form that hold text; a field sent twice counts once, a file not at all. */
async function formOf(request: { parseBody(): Promise<Record<string, unknown>> }): Promise<Form> {
  const sent = await request.parseBody().catch(() => ({}));
  return Object.fromEntries(
    Object.entries(sent).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1] !== '',
    ),
  );
}
