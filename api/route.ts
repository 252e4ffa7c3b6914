import type { z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { Caller, Scope } from '../db/merchants';
import type { MadeThing } from '../db/idempotency-keys';
import type { ApiMetrics } from './metrics';
import type { OrderCalls } from './order-calls';
import type { ReconciliationCalls } from './reconciliation-calls';
import type { VersionWatch } from './version-watch';
import { authenticate, requireScope } from './auth';
import type { ApiDeps } from './deps';
import { fingerprintOf } from './fingerprint';
import { answerOnce, idempotencyKeyOf } from './idempotency';
import { InexactNumber, readJsonObject } from './json-body';
import { Problem } from './problems';

/** What handlers work with: the deps, and what the app made of them once. */
export interface RouteDeps extends ApiDeps {
  calls: OrderCalls;
  reconciliations: ReconciliationCalls;
  versions: VersionWatch;
  metrics: ApiMetrics;
}

export interface ApiRequest<Params, Query, Body> {
  caller: Caller;
  params: Params;
  query: Query;
  body: Body;
  idempotencyKey: string | undefined;
  /** The media types that the client would rather have. */
  accept: string;
  /** Aborted when the client went away. */
  signal: AbortSignal;
}

export interface ApiAnswer {
  status: 200 | 201 | 202;
  body: object;
  /** Sent instead of `body`: a document of another type. */
  document?: { contentType: string; text: string };
  headers?: Record<string, string>;
  /** What a write made, so that its repeat can be answered from it. */
  made?: MadeThing;
}

/** One route: who may call it, what it takes, what it answers. The OpenAPI document is made of it. */
export interface ApiRoute<P = unknown, Q = unknown, B = unknown> {
  method: 'get' | 'post';
  /** With `{name}` for the path's parameters, as OpenAPI writes it. */
  path: `/${string}`;
  scope: Scope;
  summary: string;
  params?: z.ZodType<P>;
  query?: z.ZodType<Q>;
  body?: z.ZodType<B>;
  /** Whether no body at all means `{}`. */
  bodyMayBeEmpty?: boolean;
  answers: Partial<
    Record<200 | 201 | 202, { description: string; schema: z.ZodType; alsoAs?: string }>
  >;
  /** Status codes of its refusals, beside those every route has. */
  refusals: number[];
  act(request: ApiRequest<P, Q, B>, deps: RouteDeps): Promise<ApiAnswer>;
  /** For writes: the answer to a repeat, from the thing the first one made, as it stands now. */
  replay?(made: MadeThing, request: ApiRequest<P, Q, B>, deps: RouteDeps): Promise<ApiAnswer>;
}

/** Keeps a route's types together; the table holds routes of every kind. */
export function route<P = object, Q = object, B = object>(definition: ApiRoute<P, Q, B>): ApiRoute {
  return definition as unknown as ApiRoute;
}

/** Authenticates, checks, and answers one request of a route. */
export async function handle(route: ApiRoute, c: Context, deps: RouteDeps): Promise<Response> {
  const raw = c.req.raw;
  const caller = await authenticate(raw, deps.pool);
  requireScope(caller, route.scope);
  const params = check(route.params, c.req.param(), 'path');
  const query = check(route.query, queryOf(c), 'query');
  const body = route.body
    ? check(
        route.body,
        await readJsonObject(raw, { mayBeEmpty: route.bodyMayBeEmpty ?? false }),
        'body',
      )
    : undefined;
  const idempotencyKey = route.method === 'post' ? idempotencyKeyOf(raw) : undefined;
  const accept = raw.headers.get('accept') ?? '';
  const request = { caller, params, query, body, idempotencyKey, accept, signal: raw.signal };

  const act = () => route.act(request, deps);
  const { replay } = route;
  const answer =
    idempotencyKey !== undefined && replay
      ? await answerOnce(
          deps,
          {
            merchantId: caller.merchantId,
            method: route.method.toUpperCase(),
            route: route.path,
            key: idempotencyKey,
          },
          fingerprintOf({ params, body }),
          act,
          (made) => replay(made, request, deps),
        )
      : await act();
  countDuplicate(route, answer, deps);
  const headers = { 'cache-control': 'no-store', ...answer.headers };
  const { document } = answer;
  if (!document) return c.json(answer.body, answer.status, headers);
  return c.body(document.text, answer.status, { ...headers, 'content-type': document.contentType });
}

/** A write that could have made something and did not: a repeat was stopped. */
function countDuplicate(route: ApiRoute, answer: ApiAnswer, { metrics }: RouteDeps): void {
  if (route.method !== 'post' || answer.status !== 200 || !route.answers[201]) return;
  const isReplay = answer.headers?.['Idempotency-Replayed'] !== undefined;
  metrics.duplicatesStopped.inc({ by: isReplay ? 'idempotency_key' : 'business_number' });
}

/** A parameter given twice is as bad as an unknown one: readers disagree on which one counts. */
function queryOf(c: Context): Record<string, string> {
  const entries = Object.entries(c.req.queries());
  const twice = entries.find(([, values]) => values.length > 1);
  if (twice) throw new Problem('invalid_request', `query: ${twice[0]} appears twice`);
  return Object.fromEntries(entries.map(([name, values]) => [name, values[0]!]));
}

/** @throws Problem invalid_request, or unacceptable_value when every fault is a value not allowed */
export function check<T>(
  schema: z.ZodType<T> | undefined,
  value: unknown,
  where: string,
): T | undefined {
  if (!schema) return undefined;
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { issues } = result.error;
  const errors = issues.slice(0, 20).map((issue) => ({
    path: [where, ...issue.path.map(String)].join('.'),
    detail: detailOf(issue, value),
  }));
  const isAllowable = issues.every(
    (issue) => 'params' in issue && issue.params?.['status'] === 422,
  );
  throw new Problem(
    isAllowable ? 'unacceptable_value' : 'invalid_request',
    errors.map(({ path, detail }) => `${path}: ${detail}`).join('; '),
    { extra: { errors } },
  );
}

function detailOf(issue: z.core.$ZodIssue, value: unknown): string {
  const given = issue.path.reduce<unknown>(
    (at, key) => (typeof at === 'object' && at !== null ? at[key as keyof typeof at] : undefined),
    value,
  );
  if (issue.code === 'unrecognized_keys') return `unknown: ${issue.keys.join(', ')}; leave it out`;
  if (given === undefined) return `is missing; ${issue.message}`;
  if (given instanceof InexactNumber) return `${issue.message}; got ${given.value.slice(0, 40)}`;
  return issue.message;
}
