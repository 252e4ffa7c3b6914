import type { OpenAPIHono, RouteConfig } from '@hono/zod-openapi';
import { z } from '@hono/zod-openapi';
import { problem } from './answer-schemas';
import { problemCodes } from './problems';
import type { ApiRoute } from './route';

/** Refusals any route may give, beside its own. */
const EVERYWHERE = [400, 401, 403, 503];
/** Those of a route that takes a body. */
const WITH_BODY = [413, 415, 422];

/** Enters a route into the document, from the same schemas that check its requests. */
export function describeRoute(app: OpenAPIHono, route: ApiRoute): void {
  const statuses = [...EVERYWHERE, ...(route.body ? WITH_BODY : []), ...route.refusals];
  const refusals = [...new Set(statuses)].sort().map((status) => [
    status,
    {
      description: problemCodes
        .filter((entry) => entry.status === status)
        .map(({ code, title }) => `\`${code}\`: ${title}`)
        .join('. '),
      content: { 'application/problem+json': { schema: problem } },
    },
  ]);
  const answers = Object.entries(route.answers).map(([status, { description, schema, alsoAs }]) => [
    status,
    {
      description,
      content: {
        'application/json': { schema },
        ...(alsoAs === undefined ? {} : { [alsoAs]: { schema: z.string() } }),
      },
    },
  ]);
  app.openAPIRegistry.registerPath({
    method: route.method,
    path: route.path,
    summary: route.summary,
    description: `Scope \`${route.scope}\`.`,
    security: [{ apiKey: [] }],
    request: {
      ...(route.params ? { params: route.params as z.ZodObject } : {}),
      ...(route.query ? { query: route.query as z.ZodObject } : {}),
      ...(route.replay ? { headers: z.object({ 'Idempotency-Key': idempotencyHeader }) } : {}),
      ...(route.body
        ? {
            body: {
              required: !route.bodyMayBeEmpty,
              content: { 'application/json': { schema: route.body } },
            },
          }
        : {}),
    },
    responses: Object.fromEntries([...answers, ...refusals]) as RouteConfig['responses'],
  });
}

const idempotencyHeader = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/)
  .optional()
  .openapi({
    description:
      'Kept for 7 days per caller, method and route. A repeat with the same content is answered 200 ' +
      'from the thing made, as it stands, with `Idempotency-Replayed: true`; other content: 422; ' +
      'still running: 409. Failures and 202 are not kept.',
  });

/** Entries that no JSON route stands behind, and the document's head. */
export function describeRest(app: OpenAPIHono): void {
  const registry = app.openAPIRegistry;
  registry.registerComponent('securitySchemes', 'apiKey', { type: 'http', scheme: 'bearer' });
  registry.registerPath({
    method: 'post',
    path: '/callbacks/{channel}',
    summary: 'News from a payment channel, signed by it',
    description: 'Acknowledged with exactly the words of the channel, once stored.',
    request: { params: z.object({ channel: z.string() }) },
    responses: Object.fromEntries(
      [200, 400, 401, 404, 413, 415, 503].map((status) => [
        status,
        {
          description: status === 200 ? 'Stored; the channel need not send it again.' : 'Refused.',
        },
      ]),
    ),
  });
  const plain: [`/${string}`, string][] = [
    ['/healthz', 'Whether the process answers'],
    ['/readyz', 'Whether database, Temporal and workers are there, each named'],
    ['/metrics', 'Figures in the Prometheus text format'],
  ];
  for (const [path, summary] of plain) {
    registry.registerPath({
      method: 'get',
      path,
      summary,
      responses: { 200: { description: summary } },
    });
  }
}

export const DOCUMENT_HEAD = {
  openapi: '3.1.0',
  info: {
    title: 'Payment saga',
    version: '1',
    description:
      'Amounts are integers of minor units. Refusals are RFC 9457 problems with a stable `code`. ' +
      '400: the shape is wrong. 422: readable, but not allowed. 409: clashes with the order’s state. ' +
      '503: the outcome is not known; repeat under the same number, every repeat is safe.',
  },
};
