import { randomUUID } from 'node:crypto';
import { MockChannelControl } from '../../mock-channel/control-client';
import { startMockChannel } from '../../mock-channel/server';
import type { ApiLimits } from '../../api/deps';
import type { ChannelPolicy } from '../../domain/channel-policy';
import { readConfig } from '../../worker/config';
import { runWorker } from '../../worker/run';
import type { RunningWorker } from '../../worker/run';
import { testServers } from '../support/servers';
import type { Answer, ApiHarness, Asking } from './api-harness';
import { ACCOUNTS, aNewOrder, CHANNEL_ENV, startApiHarness } from './api-harness';

/** Short waits, so that what comes by timer comes soon. */
const QUICK: Partial<ChannelPolicy> = {
  pollLadderMs: [300, 500, 1_000],
  refundLadderMs: [300, 500, 1_000],
  maxCallsPerSecond: 500,
  maxConcurrentCalls: 100,
  refundSpacingMs: 0,
};

/** Signs what the merchant is told; at `env:NOTIFY_SECRET`. */
export const NOTIFY_SECRET = `whsec_${Buffer.from('of the harness of the API').toString('base64')}`;

export interface Saga extends ApiHarness {
  control: MockChannelControl;
  worker: RunningWorker;
  /** An order that exists, its run started. */
  anOrder(said?: Record<string, unknown>): Promise<string>;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** Pays as the payer would, and waits until the order says so. */
  payAndSettle(orderId: string): Promise<Answer>;
  /** Money the channel took, and gave back, for all attempts of the order. Minor units. */
  booksOf(orderId: string): Promise<{ captured: number; refunded: number; trades: number }>;
}

/** API, worker and mock channel on real servers, each of its own. */
export async function startSaga(
  said: { limits?: Partial<ApiLimits>; policy?: Partial<ChannelPolicy> } = {},
): Promise<Saga> {
  const servers = testServers();
  const mock = await startMockChannel({
    a: ACCOUNTS['mock-a'],
    b: ACCOUNTS['mock-b'],
    settings: { refundAfterMs: 20 },
  });
  const control = new MockChannelControl(mock.control);
  const taskQueue = `saga-${randomUUID()}`;
  const api = await startApiHarness({
    taskQueue,
    apps: 2,
    gatewayUrls: { 'mock-a': mock.a, 'mock-b': mock.b },
    policy: { ...QUICK, ...said.policy },
    limits: said.limits ?? {},
  });
  const env = {
    ...CHANNEL_ENV,
    DATABASE_URL: api.databaseUrl,
    NUMBER_SECRET: 'a secret of at least sixteen',
    NOTIFY_SECRET,
    NOTIFY_PRIVATE_ALLOWED: '127.0.0.1',
    TEMPORAL_ADDRESS: servers.temporalAddress,
    TEMPORAL_NAMESPACE: servers.temporalNamespace,
    TEMPORAL_TASK_QUEUE: taskQueue,
    WORKER_HEALTH_PORT: '0',
    CHANNELS_REFRESH_MS: '200',
    WORKER_SHUTDOWN_GRACE_MS: '2000',
    LOG_LEVEL: process.env['TEST_LOG_LEVEL'] ?? 'silent',
  };
  const worker = await runWorker(readConfig(env), env);
  worker.ended.catch(() => undefined);

  const post = (path: string, body: unknown, headers?: Record<string, string>) => {
    const asking: Asking = { body };
    if (headers) asking.headers = headers;
    return api.ask('POST', path, asking);
  };

  return {
    ...api,
    control,
    worker,
    post,
    async anOrder(order = {}) {
      const body = aNewOrder(order);
      const answer = await post('/v1/orders', body);
      if (answer.status !== 201) throw new Error(`no order: ${JSON.stringify(answer.body)}`);
      return body.order_id;
    },
    async payAndSettle(orderId) {
      const paying = await post(`/v1/orders/${orderId}/payments`, {
        channel: 'mock-a',
        request_no: 'k-paid',
      });
      if (paying.status >= 300) throw new Error(`not payable: ${JSON.stringify(paying.body)}`);
      await control.approve({ outTradeNo: paying.body.out_trade_no, dialect: 'mock-a' });
      for (let version = 0; ;) {
        const order = await api.ask('GET', `/v1/orders/${orderId}?wait=10s&version=${version}`);
        if (order.body.status === 'paid') return order;
        if (order.body.version === version) throw new Error('the order is not paid in 10 s');
        version = order.body.version;
      }
    },
    async booksOf(orderId) {
      const { rows } = await api.pool.query<{ out_trade_no: string }>(
        'select out_trade_no from pay_records where merchant_id = $1 and order_id = $2',
        [api.merchantId, orderId],
      );
      const numbers = new Set(rows.map((row) => row.out_trade_no));
      const books = { captured: 0, refunded: 0, trades: 0 };
      for (const entry of await control.books()) {
        if (!('outTradeNo' in entry) || !numbers.has(entry.outTradeNo ?? '')) continue;
        if (entry.type === 'captured') books.captured += entry.amountMinor;
        if (entry.type === 'refund_executed') books.refunded += entry.amountMinor;
        if (entry.type === 'trade_created') books.trades += 1;
      }
      return books;
    },
    async close() {
      await worker.stop();
      await api.close();
      await mock.close();
    },
  };
}
