import { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { ApiDeps } from './deps';
import { createMetrics } from './metrics';
import type { ApiMetrics } from './metrics';
import { describeRest, describeRoute, DOCUMENT_HEAD } from './openapi';
import { createOrderCalls } from './order-calls';
import { Outstanding } from './outstanding';
import { problemOf } from './problem-of';
import { Problem } from './problems';
import { readReadiness } from './readiness';
import { createReconciliationCalls } from './reconciliation-calls';
import { handle } from './route';
import type { ApiRoute, RouteDeps } from './route';
import { receiveCallback } from './routes/callbacks';
import { createRouteTable } from './routes/table';
import { Assets } from './pages/assets';
import { createDesk, DESK_FILES } from './pages/desk/desk';
import { createDocs } from './pages/docs';
import { createPayPages, PAY_FILES } from './pages/pay';
import { VersionWatch } from './version-watch';

export interface Api {
  app: OpenAPIHono;
  routes: readonly ApiRoute[];
  metrics: ApiMetrics;
  /** Lets long polls go, before the server stops. */
  close(): void;
  /** Calls to Temporal that go on though nobody waits for them any more. */
  outstanding: Outstanding;
}

/** The HTTP interface on the given parts; `app.request` answers without a server. */
export function createApp(deps: ApiDeps): Api {
  const app = new OpenAPIHono();
  const metrics = createMetrics(deps.pool);
  const versions = new VersionWatch(deps.pool);
  const outstanding = new Outstanding();
  const calls = createOrderCalls({
    outstanding,
    client: deps.client,
    taskQueue: deps.taskQueue,
    askWithinMs: deps.limits.askWithinMs,
  });
  const reconciliations = createReconciliationCalls({
    outstanding,
    client: deps.client,
    taskQueue: deps.taskQueue,
    withinMs: deps.limits.askWithinMs,
  });
  const routeDeps: RouteDeps = { ...deps, calls, reconciliations, versions, metrics };
  const routes = createRouteTable(deps.limits);

  app.onError((error, c) => problemOf(error, c.req, deps).toResponse());
  app.notFound((c) => nothingThere(c, routes).toResponse());

  for (const route of routes) {
    describeRoute(app, route);
    const path = route.path.replace(/\{(\w+)\}/g, ':$1');
    app.on(route.method.toUpperCase(), path, (c) =>
      measured(metrics, c, route.path, () => handle(route, c, routeDeps)),
    );
  }
  describeRest(app);
  app.post('/callbacks/:channel', (c) =>
    measured(metrics, c, '/callbacks/{channel}', () => receiveCallback(c, routeDeps)),
  );
  const assets = new Assets([...PAY_FILES, ...DESK_FILES]);
  app.route('/assets', assets.app());
  app.route('/pay', createPayPages(routeDeps, assets));
  app.route('/ops/ui', createDesk(routeDeps, assets));
  app.get('/healthz', (c) => c.json({ ok: true }));
  app.get('/readyz', async (c) => {
    const readiness = await readReadiness(deps.client, deps.pool, deps.taskQueue, outstanding);
    return c.json(readiness, readiness.ok ? 200 : 503);
  });
  app.get('/metrics', async (c) =>
    c.body(await metrics.registry.metrics(), 200, { 'content-type': metrics.registry.contentType }),
  );
  app.get('/openapi.json', (c) => c.json(app.getOpenAPI31Document(DOCUMENT_HEAD)));
  app.route('/docs', createDocs());
  return { app, routes, metrics, close: () => versions.close(), outstanding };
}

function nothingThere(c: Context, routes: readonly ApiRoute[]): Problem {
  const allowed = routes
    .filter(({ path }) => new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`).test(c.req.path))
    .map(({ method }) => method.toUpperCase());
  if (allowed.length > 0) {
    return new Problem('method_not_allowed', `use ${allowed.join(' or ')} here`, {
      headers: { allow: allowed.join(', ') },
    });
  }
  return new Problem('not_found', 'there is no such route: see /docs');
}

async function measured(
  metrics: ApiMetrics,
  c: Context,
  route: string,
  answer: () => Promise<Response>,
): Promise<Response> {
  const end = metrics.requests.startTimer({ method: c.req.method, route });
  try {
    const response = await answer();
    end({ status: response.status });
    return response;
  } catch (error) {
    end({ status: error instanceof Problem ? error.status : 500 });
    throw error;
  }
}
