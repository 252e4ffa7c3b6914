import type { Context, Hono } from 'hono';
import type { Child } from 'hono/jsx';
import type { DeskSession } from '../../../db/desk-sessions';
import { requireScope } from '../../auth';
import { problemOf } from '../../problem-of';
import { Problem } from '../../problems';
import { check } from '../../route';
import type { ApiAnswer, ApiRoute, RouteDeps } from '../../route';
import type { Assets } from '../assets';
import { document } from '../layout';
import { DESK } from './guard';
import { ProblemNote } from './parts';

/** What a form sent: texts, those left empty are not there. */
export type Form = Record<string, string>;

export interface DeskEnv {
  Variables: { session: DeskSession; form: Form };
}
export type DeskApp = Hono<DeskEnv>;
export type DeskContext = Context<DeskEnv>;

/** A form that was refused: why, and what it held, so that nothing has to be typed twice. */
export interface Refused {
  problem: Problem;
  form: Form;
}

export interface Page {
  title: string;
  /** The navigation's entry that it belongs to. */
  at?: string;
  status?: number;
  children: Child;
}

const PLACES: readonly [string, string][] = [
  ['', 'Today'],
  ['/cases', 'Cases'],
  ['/acts', 'Acts'],
  ['/search', 'Search'],
  ['/reconciliation', 'Reconciliation'],
  ['/dead-letters', 'Dead letters'],
  ['/stuck', 'Stuck'],
];

/** What every page of the desk needs: the API's routes as the operator who is logged in, and a frame. */
export class Desk {
  constructor(
    readonly deps: RouteDeps,
    readonly assets: Assets,
  ) {}

  /**
   * Calls a route of the API as the operator: the same checks, rules and figures.
   * @throws Problem as the route does
   */
  async answer(
    c: DeskContext,
    route: ApiRoute,
    said: { params?: object; query?: object; body?: object; accept?: string } = {},
  ): Promise<ApiAnswer> {
    const { caller } = c.get('session');
    requireScope(caller, route.scope);
    return route.act(
      {
        caller,
        params: check(route.params, said.params ?? {}, 'path'),
        query: check(route.query, said.query ?? {}, 'query'),
        body: check(route.body, said.body ?? {}, 'body'),
        idempotencyKey: undefined,
        accept: said.accept ?? 'application/json',
        signal: c.req.raw.signal,
      },
      this.deps,
    );
  }

  /** The body of its answer. */
  async ask<T>(
    c: DeskContext,
    route: ApiRoute,
    said: { params?: object; query?: object; body?: object } = {},
  ): Promise<T> {
    return (await this.answer(c, route, said)).body as T;
  }

  /** Why something was refused; what only the machinery is to blame for is thrown on. */
  refusalOf(error: unknown): Problem {
    if (!(error instanceof Problem) || error.status >= 500) throw error;
    return error;
  }

  problemOf(error: unknown, c: Context): Problem {
    return problemOf(error, c.req, this.deps);
  }

  /** A page in the desk's frame; without a session only the page itself. */
  show(c: Context, page: Page): Response | Promise<Response> {
    const session = c.get('session') as DeskSession | undefined;
    return c.html(
      document({
        assets: this.assets,
        lang: 'en',
        title: `${page.title} · Operators’ desk`,
        styles: ['pages.css', 'desk.css'],
        scripts: [],
        children: (
          <>
            <a class="skip" href="#main">
              Skip to the page
            </a>
            <header class="bar">
              <p class="name">Operators’ desk</p>
              {session && <Navigation at={page.at} session={session} />}
            </header>
            <main id="main" tabindex={-1}>
              <h1>{page.title}</h1>
              {page.children}
            </main>
          </>
        ),
      }),
      (page.status ?? 200) as 200,
      { 'cache-control': 'no-store' },
    );
  }

  showProblem(c: Context, problem: Problem, more?: Child): Response | Promise<Response> {
    const { retryAfterMs } = problem.options;
    if (retryAfterMs !== undefined) {
      c.header('retry-after', String(Math.max(1, Math.ceil(retryAfterMs / 1_000))));
    }
    return this.show(c, {
      title: 'That did not work',
      status: problem.status,
      children: (
        <>
          <ProblemNote problem={problem} />
          {more}
        </>
      ),
    });
  }
}

function Navigation({ at, session }: { at: string | undefined; session: DeskSession }) {
  return (
    <>
      <nav aria-label="Pages">
        <ul>
          {PLACES.map(([path, name]) => (
            <li>
              <a href={DESK + path} aria-current={at === path ? 'page' : undefined}>
                {name}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <form method="post" action={`${DESK}/logout`} class="leave">
        <input type="hidden" name="csrf" value={session.csrfToken} />
        <span>
          Key <bdi>{session.caller.keyId}</bdi>
        </span>
        <button type="submit" class="plain">
          Log out
        </button>
      </form>
    </>
  );
}
