import { readConfig } from '../../api/config';
import { startApi } from '../../api/server';
import type { ApiHarness } from './api-harness';
import { aNewOrder, startApiHarness } from './api-harness';

let api: ApiHarness;
beforeAll(async () => {
  api = await startApiHarness();
});
afterAll(() => api.close());

test('/healthz speaks of the process alone', async () => {
  expect(await api.ask('GET', '/healthz', { key: null })).toMatchObject({
    status: 200,
    body: { ok: true },
  });
});

test('/readyz names the part that is missing: here the workers', async () => {
  const answer = await api.ask('GET', '/readyz', { key: null });
  expect(answer.status).toBe(503);
  expect(answer.body).toMatchObject({
    ok: false,
    parts: { database: { ok: true }, temporal: { ok: true }, workers: { ok: false } },
  });
  expect(answer.body.parts.workers.detail).toContain(api.taskQueue);
});

test('/readyz answers within seconds when Temporal is away', async () => {
  const away = await startApiHarness({ temporalAddress: '127.0.0.1:1' });
  try {
    const startedAt = performance.now();
    const answer = await away.ask('GET', '/readyz', { key: null });
    expect(performance.now() - startedAt).toBeLessThan(4_000);
    expect(answer.body.parts).toMatchObject({ database: { ok: true }, temporal: { ok: false } });
  } finally {
    await away.close();
  }
});

test('/metrics holds what an operator asks first, in the Prometheus format', async () => {
  await api.ask('POST', '/v1/orders', { body: aNewOrder() });
  const answer = await api.ask('GET', '/metrics', { key: null });
  expect(answer.headers.get('content-type')).toMatch(/^text\/plain/);
  for (const line of [
    'payment_orders{status="created"} 1',
    'payment_oldest_unknown_outcome_seconds 0',
    'payment_oldest_pending_refund_seconds 0',
    'payment_callback_backlog{status="stored"} 0',
    'payment_callback_lag_seconds 0',
    'payment_callback_duplicates 0',
    '# TYPE payment_callback_verdicts gauge',
    '# TYPE payment_open_cases gauge',
    '# TYPE payment_duplicates_stopped_total counter',
    'payment_pool_connections{state="waiting"} 0',
    'payment_api_request_seconds_count{method="POST",route="/v1/orders",status="201"} 1',
  ]) {
    expect(answer.body).toContain(line);
  }
  expect(answer.body).toContain('payment_metrics_read_failures_total 0');
});

test('/openapi.json describes every route with its refusals, from the schemas that check', async () => {
  const answer = await api.ask('GET', '/openapi.json', { key: null });
  expect(answer.body.openapi).toBe('3.1.0');
  for (const route of api.api.routes) {
    const operation = answer.body.paths[route.path][route.method];
    expect(operation.security).toEqual([{ apiKey: [] }]);
    for (const status of [...Object.keys(route.answers), '400', '401', '503']) {
      expect(operation.responses).toHaveProperty(status);
    }
  }
  const { NewOrder } = answer.body.components.schemas;
  expect(NewOrder.additionalProperties).toBe(false);
  expect(NewOrder.properties.amount).toMatchObject({ type: 'integer', minimum: 1 });
  const docs = await api.ask('GET', '/docs', { key: null });
  expect([docs.status, docs.body]).toEqual([200, expect.not.stringMatching(/https?:/)]);
  for (const [name, holds] of [
    ['start.js', '/openapi.json'],
    ['swagger-ui-bundle.js', 'SwaggerUIBundle'],
    ['swagger-ui.css', '.swagger-ui'],
  ]) {
    const { status, body } = await api.ask('GET', `/docs/${name}`, { key: null });
    expect([name, status, String(body).includes(holds!)]).toEqual([name, 200, true]);
  }
  expect(docs.headers.get('content-security-policy')).toContain("script-src 'self'");
});

test('a configuration with faults names all of them at once', () => {
  expect(() =>
    readConfig({ DATABASE_URL: 'mysql://x', API_PORT: '70000', LOG_LEVEL: 'loud' }),
  ).toThrow(/DATABASE_URL[^]*API_PORT[^]*LOG_LEVEL/);
  expect(readConfig({ DATABASE_URL: 'postgres://x/y', TEMPORAL_NAMESPACE: 'n' })).toMatchObject({
    host: '127.0.0.1',
    taskQueue: 'payments',
    temporal: { namespace: 'n' },
  });
});

test('the server answers over HTTP and stops, long polls let go', async () => {
  const server = await startApi(
    readConfig({
      DATABASE_URL: api.databaseUrl,
      API_PORT: '0',
      LOG_LEVEL: 'silent',
      TEMPORAL_ADDRESS: '127.0.0.1:1',
    }),
    {},
  );
  const body = aNewOrder();
  await api.ask('POST', '/v1/orders', { body });
  const headers = { authorization: `Bearer ${api.key}` };
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  const polling = fetch(`${server.url}/v1/orders/${body.order_id}?wait=30s`, { headers });
  const listed = await fetch(`${server.url}/v1/orders`, { headers });
  expect(listed.status).toBe(200);
  const startedAt = performance.now();
  await server.stop();
  expect(performance.now() - startedAt).toBeLessThan(10_000);
  expect((await polling).status).toBe(200);
  await expect(fetch(`${server.url}/healthz`)).rejects.toThrow();
});
