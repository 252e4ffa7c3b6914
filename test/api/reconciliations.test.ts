import { addDays, dayAt } from '../../domain/business-day';
import type { ApiHarness } from './api-harness';
import { aNewOrder, startApiHarness } from './api-harness';

let api: ApiHarness;
let operator: string;
const PATH = '/ops/reconciliations';
const yesterday = addDays(dayAt(new Date(), 'UTC'), -1);

beforeAll(async () => {
  api = await startApiHarness();
  operator = await api.keyWith(['operator']);
  await api.pool.query(`update channels set time_zone = 'UTC'`);
});
afterAll(() => api.close());

const post = (body: unknown, key = operator) => api.ask('POST', PATH, { key, body });
const get = (path: string, headers = {}) => api.ask('GET', path, { key: operator, headers });

test('only operators start and read reconciliations', async () => {
  for (const [method, path] of [
    ['POST', PATH],
    ['GET', `${PATH}?from=${yesterday}&to=${yesterday}`],
    ['GET', `${PATH}/${yesterday}`],
  ] as const) {
    const body = method === 'POST' ? { channel: 'mock-a', day: yesterday } : undefined;
    expect(await api.ask(method, path, { body })).toMatchObject({
      status: 403,
      body: { code: 'insufficient_scope' },
    });
    expect((await api.ask(method, path, { body, key: null })).status).toBe(401);
  }
});

test.each([
  ['nothing', {}],
  ['a channel without a day', { channel: 'mock-a' }],
  ['both kinds', { channel: 'mock-a', day: '2026-05-01', merchant_id: 'm', order_id: 'o' }],
  ['an order dry', { merchant_id: 'm', order_id: 'o', dry_run: true }],
  ['a day that no calendar has', { channel: 'mock-a', day: '2026-02-30' }],
  ['a day in other words', { channel: 'mock-a', day: '1 May' }],
  ['a day as a number', { channel: 'mock-a', day: 20260501 }],
  ['a word for dry_run', { channel: 'mock-a', day: '2026-05-01', dry_run: 'yes' }],
  ['an unknown member', { channel: 'mock-a', day: '2026-05-01', force: true }],
])('%s is malformed', async (_what, body) => {
  expect(await post(body)).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
});

test('a channel that is not ours is not found, nor is an order', async () => {
  expect(await post({ channel: 'mock-z', day: yesterday })).toMatchObject({
    status: 404,
    body: { code: 'channel_not_found' },
  });
  expect(await post({ merchant_id: api.merchantId, order_id: 'none' })).toMatchObject({
    status: 404,
    body: { code: 'order_not_found' },
  });
  expect((await get(`${PATH}/${yesterday}?channel=mock-z`)).status).toBe(404);
});

test('a day that has not ended in the channel’s own zone, or is too far back, is refused', async () => {
  const today = dayAt(new Date(), 'UTC');
  for (const day of [today, addDays(today, 1)]) {
    expect(await post({ channel: 'mock-a', day })).toMatchObject({
      status: 422,
      body: { code: 'day_not_ended' },
    });
  }
  expect(await post({ channel: 'mock-a', day: addDays(today, -93) })).toMatchObject({
    status: 422,
    body: { code: 'day_too_far_back' },
  });
  // Half a day ahead or behind, the same instant has another date.
  const ahead = dayAt(new Date(), 'Pacific/Kiritimati');
  await api.pool.query(
    `update channels set time_zone = 'Pacific/Kiritimati' where channel = 'mock-b'`,
  );
  await new Promise((resolve) => setTimeout(resolve, 250));
  expect((await post({ channel: 'mock-b', day: ahead })).body.code).toBe('day_not_ended');
  expect((await post({ channel: 'mock-b', day: addDays(ahead, -1) })).status).toBe(202);
});

test('two that ask at once meet in one run', async () => {
  const day = addDays(yesterday, -1);
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => post({ channel: 'mock-a', day })),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([...Array(9).fill(200), 202]);
  for (const { body, headers } of answers) {
    expect(body).toEqual({
      channel: 'mock-a',
      day,
      dry_run: false,
      status: 'running',
      status_url: `${PATH}/${day}?channel=mock-a`,
    });
    expect(headers.get('location')).toBe(body.status_url);
  }
});

test('a date without a run has no report yet', async () => {
  expect(await get(`${PATH}/${yesterday}?channel=mock-a`)).toMatchObject({
    status: 200,
    body: { day: yesterday, reports: [] },
  });
  expect((await get(`${PATH}/yesterday`)).status).toBe(400);
});

test('the list wants a range that ends after it begins and is no longer than a year', async () => {
  expect(await get(`${PATH}?from=${yesterday}&to=${yesterday}`)).toMatchObject({
    status: 200,
    body: { reports: [] },
  });
  expect((await get(PATH)).status).toBe(400);
  expect((await get(`${PATH}?from=${yesterday}&to=${addDays(yesterday, -1)}`)).status).toBe(422);
  expect((await get(`${PATH}?from=${addDays(yesterday, -400)}&to=${yesterday}`)).status).toBe(422);
});

test('a report is CSV when the client says so, in its Accept header or in the query', async () => {
  const path = `${PATH}/${yesterday}`;
  for (const answer of [
    await get(`${path}?format=csv`),
    await get(path, { accept: 'text/csv' }),
    await get(path, { accept: 'text/csv;q=1, application/json;q=0.5' }),
    await get(`${path}?format=csv`, { accept: 'application/json' }),
  ]) {
    expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    expect(answer.body).toMatch(/^channel,business_date,kind,/);
  }
  for (const answer of [
    await get(path),
    await get(path, { accept: '*/*' }),
    await get(path, { accept: 'application/json, text/csv' }),
    await get(`${path}?format=json`, { accept: 'text/csv' }),
  ]) {
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
  }
  expect((await get(`${path}?format=xml`)).status).toBe(400);
});

test('an order that no channel has heard of asks nobody and has no differences', async () => {
  const body = aNewOrder();
  await api.ask('POST', '/v1/orders', { body });
  const ref = { merchant_id: api.merchantId, order_id: body.order_id };
  expect(await post(ref)).toMatchObject({
    status: 202,
    body: { ...ref, asked: 0, differences: [] },
  });
});

test('without Temporal nothing is started, and a repeat is safe', async () => {
  const away = await startApiHarness({
    temporalAddress: '127.0.0.1:1',
    limits: { askWithinMs: 500 },
  });
  try {
    const key = await away.keyWith(['operator']);
    const body = { channel: 'mock-a', day: addDays(yesterday, -1) };
    const answer = await away.ask('POST', PATH, { key, body });
    expect(answer).toMatchObject({ status: 503, body: { code: 'unavailable' } });
    expect(answer.headers.get('retry-after')).not.toBeNull();
  } finally {
    await away.close();
  }
});

test('/metrics tells which dates have no report and which differences stand', async () => {
  const { body } = await api.ask('GET', '/metrics', { key: null });
  expect(body).toContain('payment_days_without_report{channel="mock-a"}');
  expect(body).toContain('# TYPE payment_open_differences gauge');
  expect(body).toContain('payment_metrics_read_failures_total 0');
});
