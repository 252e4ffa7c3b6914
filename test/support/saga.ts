import { randomBytes } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { Runtime, DefaultLogger } from '@temporalio/worker';
import { readConfig as readApiConfig } from '../../api/config';
import { startApi } from '../../api/server';
import type { RunningApi } from '../../api/server';
import { upsertChannel } from '../../db/channels';
import { insertApiKey, upsertMerchant } from '../../db/merchants';
import type { NewMerchant } from '../../db/merchants';
import { createPool } from '../../db/transaction';
import type { Pool } from '../../db/transaction';
import type { ChannelPolicy } from '../../domain/channel-policy';
import type { MockChannelControl } from '../../mock-channel/control-client';
import type { SettingsChange } from '../../mock-channel/control-types';
import { startMockChannel } from '../../mock-channel/server';
import type { MockChannel } from '../../mock-channel/server';
import { readConfig as readWorkerConfig } from '../../worker/config';
import { MerchantSteps } from '../../scripts/merchant-steps';
import type { JournalLine } from '../../scripts/books/journal';
import { runWorker } from '../../worker/run';
import type { RunningWorker } from '../../worker/run';
import { orderWorkflowId, reconciliationScheduleId, sweepScheduleId } from '../../workflows/ids';
import { FinalCheck } from './final-check';
import { createTestDatabase } from './database';
import type { TestDatabase } from './database';
import { startMerchantServer } from './merchant-server';
import type { MerchantServer } from './merchant-server';
import { PatientControl } from './patient-control';
import { testServers } from './servers';
import { waitFor } from './wait';

/** Waits short enough that no test sleeps; every one is a policy value. */
export const FAST_POLICY: Partial<ChannelPolicy> = {
  callTimeoutMs: 2_000,
  pollLadderMs: [300, 500, 1_000],
  refundLadderMs: [200, 300, 500],
  notFoundGraceMs: 2_500,
  unconfirmedCloseCaseAfterMs: 5_000,
  unmatchedCaseAfterMs: 1_000,
  breakerResetMs: 300,
  tradeBillLadderMs: [300, 500],
  reconcileAskMs: 5_000,
};

export interface SagaOptions {
  /** Overrides of FAST_POLICY, for both channels. */
  policy?: Partial<ChannelPolicy>;
  apis?: number;
  workers?: number;
  mock?: SettingsChange;
  merchant?: Partial<NewMerchant>;
  /** Of the channels' business dates, here and there. */
  timeZone?: string;
  /** Names of steps that the merchant fulfils a paid order with (saga.merchant.steps). */
  steps?: readonly string[];
  env?: Record<string, string>;
  /** Another database than a copy of the run's own, with the schema in place; dropped at the end. */
  database?: TestDatabase;
}

export interface Answer {
  status: number;
  headers: Headers;
  // Answers are read by tests field by field; their shape is what the test is about.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  body: any;
}

interface Asking {
  key?: string;
  apiKey?: string | null;
  raw?: string;
  headers?: Record<string, string>;
}

/** The API waits for a connection to PostgreSQL for three seconds, for Temporal longer. */
const BUSY_MS = 2_500;
const TRIES_MAX = 5;

/**
 * The whole saga on real servers, in this process: PostgreSQL (a database of its own), Temporal (a
 * task queue and a merchant of its own), the mock channel, APIs, workers and the merchant's server.
 */
export class Saga {
  readonly merchantId = `shop-${randomBytes(5).toString('hex')}`;
  readonly apiKey = `psk_${randomBytes(32).toString('base64url')}`;
  readonly taskQueue = `payments-${randomBytes(5).toString('hex')}`;
  readonly journal: JournalLine[] = [];
  pool!: Pool;
  client!: Client;
  mock!: MockChannelControl;
  merchant!: MerchantServer;
  apis: RunningApi[] = [];
  workers: RunningWorker[] = [];
  env: Record<string, string> = {};
  timeZone = 'Asia/Shanghai';
  private mockServer!: MockChannel;
  /** Proves the invariants at the end; a test says there what it breaks on purpose. */
  readonly final = new FinalCheck(this);
  private isWhole = false;
  private outages = 0;
  private readonly ends: (() => Promise<unknown>)[] = [];
  private nextApi = 0;
  private orders = 0;

  static async start(options: SagaOptions = {}): Promise<Saga> {
    const saga = new Saga();
    try {
      await saga.startAll(options);
    } catch (error) {
      await saga.stop();
      throw error;
    }
    return saga;
  }

  private async startAll(options: SagaOptions): Promise<void> {
    quietRuntime();
    this.timeZone = options.timeZone ?? this.timeZone;
    const servers = testServers();
    const database = options.database ?? (await createTestDatabase());
    this.ends.push(() => database.drop());
    const secret = `whsec_${randomBytes(24).toString('base64')}`;
    const keys = { a: 'key-of-mock-a-in-tests-0001', b: 'key-of-mock-b-in-tests-0001' };
    const accounts = {
      a: { accountId: '2088000000000001', appId: 'app-a-1' },
      b: { accountId: '1900000001', appId: 'app-b-1' },
    };
    this.mockServer = await startMockChannel({
      a: { ...accounts.a, keys: { current: keys.a, previous: null } },
      b: { ...accounts.b, keys: { current: keys.b, previous: null } },
      settings: {
        callbackLadderMs: [200, 500, 1000, 1000, 1000],
        refundAfterMs: 20,
        timeZone: this.timeZone,
        ...options.mock,
      },
    });
    this.ends.push(() => this.mockServer.close());
    this.mock = new PatientControl(this.mockServer.control);
    this.merchant = await startMerchantServer(secret);
    this.ends.push(() => this.merchant.close());
    this.env = {
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: servers.temporalAddress,
      TEMPORAL_NAMESPACE: servers.temporalNamespace,
      TEMPORAL_TASK_QUEUE: this.taskQueue,
      WORKFLOW_BUNDLE: servers.workflowBundle,
      API_PORT: '0',
      WORKER_HEALTH_PORT: '0',
      MOCK_A_KEY: keys.a,
      MOCK_B_KEY: keys.b,
      NOTIFY_SECRET: secret,
      NUMBER_SECRET: 'a-secret-for-numbers-in-tests',
      NOTIFY_PRIVATE_ALLOWED: '127.0.0.1',
      NOTIFY_LADDER_MS: '100,200,400,800,1600,3200',
      FULFIL_LADDER_MS: '100,200,400,800',
      FULFIL_TIMEOUT_MS: '1000',
      FULFIL_CASE_AFTER_MS: '2000',
      FULFIL_UNDO_TRIES_MAX: '4',
      ORDER_EXPIRES_IN_MIN_S: '1',
      CHANNELS_REFRESH_MS: '200',
      RELAY_EVERY_MS: '300',
      SWEEP_EVERY_MS: '5000',
      SWEEP_PAST_DUE_MS: '3000',
      WORKER_SHUTDOWN_GRACE_MS: '2000',
      LOG_LEVEL: process.env['SAGA_LOG'] ?? 'silent',
      ...options.env,
    };
    this.pool = createPool({
      databaseUrl: database.url,
      max: 4,
      connectionTimeoutMs: 5_000,
      statementTimeoutMs: 10_000,
      applicationName: 'test',
      onIdleError: () => undefined,
    });
    this.ends.push(() => this.pool.end());
    const connection = await Connection.connect({ address: servers.temporalAddress });
    this.ends.push(() => connection.close());
    this.client = new Client({ connection, namespace: servers.temporalNamespace });
    await upsertMerchant(this.pool, {
      merchantId: this.merchantId,
      name: 'Test shop',
      notifyUrl: this.merchant.url,
      notifySecretRef: 'env:NOTIFY_SECRET',
      fulfilmentSteps: MerchantSteps.configured(this.merchant.base, options.steps ?? []),
      ...options.merchant,
    });
    await insertApiKey(this.pool, {
      keyId: `key-${this.merchantId}`,
      merchantId: this.merchantId,
      apiKey: this.apiKey,
      scopes: ['pay', 'refund', 'read', 'operator'],
    });
    await this.configureChannels(options.policy ?? {});
    if (options.env?.['RECONCILE_EVERY_MS'] === undefined) await this.holdReconciliations();
    for (let i = 0; i < (options.apis ?? 1); i++) await this.startApi();
    for (let i = 0; i < (options.workers ?? 1); i++) await this.startWorker();
    await this.pointCallbacks();
    this.isWhole = true;
  }

  /**
   * Rounds of reconciliation come at full quarters of an hour, whatever a test does then: only a test
   * that says how often has them. Workers find the schedule paused, as by a person, and leave it so.
   */
  private async holdReconciliations(): Promise<void> {
    const { taskQueue } = this;
    await this.client.schedule.create({
      scheduleId: reconciliationScheduleId(taskQueue),
      spec: {},
      action: { type: 'startWorkflow', workflowType: 'reconciliation', taskQueue },
      state: { paused: true },
    });
  }

  /** Writes both channels' rows, FAST_POLICY overridden by `policy`. */
  async configureChannels(policy: Partial<ChannelPolicy>): Promise<void> {
    const common = {
      timeZone: this.timeZone,
      payEnabled: true,
      refundEnabled: true,
      policy: { ...FAST_POLICY, ...policy },
    };
    await upsertChannel(this.pool, {
      ...common,
      channel: 'mock-a',
      adapter: 'mock-a',
      accountId: '2088000000000001',
      appId: 'app-a-1',
      gatewayUrl: this.mockServer.a,
      secretRefs: { current: 'env:MOCK_A_KEY' },
    });
    await upsertChannel(this.pool, {
      ...common,
      channel: 'mock-b',
      adapter: 'mock-b',
      accountId: '1900000001',
      appId: 'app-b-1',
      gatewayUrl: this.mockServer.b,
      secretRefs: { current: 'env:MOCK_B_KEY' },
    });
  }

  async startApi(): Promise<RunningApi> {
    const api = await startApi(readApiConfig(this.env), this.env);
    this.apis.push(api);
    return api;
  }

  async stopApi(): Promise<void> {
    await this.apis.pop()?.stop();
  }

  async startWorker(): Promise<RunningWorker> {
    const worker = await runWorker(readWorkerConfig(this.env), this.env);
    worker.ended.catch(() => undefined);
    this.workers.push(worker);
    return worker;
  }

  async stopWorkers(): Promise<void> {
    await Promise.all(this.workers.splice(0).map((worker) => worker.stop()));
  }

  /** Callbacks go to every API in turn. */
  async pointCallbacks(): Promise<void> {
    const to = (channel: string) => this.apis.map((api) => `${api.url}/callbacks/${channel}`);
    await this.mock.configure({ callbackUrls: { 'mock-a': to('mock-a'), 'mock-b': to('mock-b') } });
  }

  /** Compares database, channel and Temporal with the invariants, as they stand now. */
  checkBooks() {
    return this.final.look();
  }

  /** While `run` runs a server is away on purpose: a 503 is then what callers should get. */
  async outage<T>(run: () => Promise<T>): Promise<T> {
    this.outages++;
    try {
      return await run();
    } finally {
      this.outages--;
    }
  }

  /** Ends everything. @throws Error that names every invariant that does not hold at the end */
  async stop(): Promise<void> {
    const broken = this.isWhole ? await this.final.check() : undefined;
    await this.end();
    if (broken) throw broken;
  }

  /** Ends everything, whatever the books say. */
  async end(): Promise<void> {
    this.isWhole = false;
    await this.stopWorkers().catch((error: unknown) => console.error(error));
    await Promise.all(this.apis.splice(0).map((api) => api.stop()));
    for (const id of [sweepScheduleId(this.taskQueue), reconciliationScheduleId(this.taskQueue)]) {
      const schedule = this.client?.schedule.getHandle(id);
      await schedule?.delete().catch(() => undefined);
    }
    for (let end = this.ends.pop(); end; end = this.ends.pop()) {
      await end().catch((error: unknown) => console.error(error));
    }
  }

  // -------------------------------------------------------------------------------------------
  // What a shop does

  /**
   * One call to the API (to the APIs in turn), written into the journal. A 503 that took seconds says
   * that the machine is too slow for a time limit: it is repeated, as a shop would. A quick one stays.
   */
  async call(method: string, path: string, body?: unknown, options: Asking = {}): Promise<Answer> {
    for (let tries = 1; ; tries++) {
      const begunAt = performance.now();
      const answer = await this.ask(method, path, body, options);
      const isBusy = answer.status === 503 && performance.now() - begunAt >= BUSY_MS;
      if (!isBusy || this.outages > 0 || tries === TRIES_MAX) return answer;
    }
  }

  private async ask(method: string, path: string, body: unknown, options: Asking): Promise<Answer> {
    const api = this.apis[this.nextApi++ % this.apis.length];
    if (!api) throw new Error('no API runs');
    const line: JournalLine = {
      at: new Date().toISOString(),
      method,
      path,
      key: options.key ?? null,
      request: body ?? null,
      status: null,
      answer: null,
    };
    const noteOutage = () => {
      if (this.outages > 0) line.outage = true;
    };
    noteOutage();
    this.journal.push(line);
    const apiKey = options.apiKey === undefined ? this.apiKey : options.apiKey;
    const response = await fetch(api.url + path, {
      method,
      headers: {
        ...(apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }),
        ...(body === undefined && options.raw === undefined
          ? {}
          : { 'content-type': 'application/json' }),
        ...(options.key === undefined ? {} : { 'idempotency-key': options.key }),
        ...options.headers,
      },
      body: options.raw ?? (body === undefined ? undefined : JSON.stringify(body)),
    });
    const text = await response.text();
    const json = /json/.test(response.headers.get('content-type') ?? '');
    const answer = {
      status: response.status,
      headers: response.headers,
      body: json ? JSON.parse(text) : text,
    };
    noteOutage();
    line.status = answer.status;
    line.answer = answer.body;
    return answer;
  }

  /** Creates an order of its own number; returns the number. */
  async createOrder(
    fields: Partial<{
      order_id: string;
      amount: number;
      currency: string;
      subject: string;
      expires_in: number;
      metadata: object;
    }> = {},
  ): Promise<string> {
    const orderId = fields.order_id ?? `o${++this.orders}`;
    const create = () =>
      this.call('POST', '/v1/orders', {
        amount: 10_000,
        currency: 'CNY',
        subject: `Order ${orderId}`,
        ...fields,
        order_id: orderId,
      });
    let answer = await create();
    // 503 means "unknown, repeat under the same number": on a busy machine a shop does just that.
    for (let repeat = 0; answer.status === 503 && repeat < 5; repeat++) answer = await create();
    if (answer.status !== 201 && answer.status !== 200)
      throw new Error(`order: ${answer.status} ${JSON.stringify(answer.body)}`);
    return orderId;
  }

  pay(
    orderId: string,
    requestNo = 'K1',
    fields: Record<string, unknown> = {},
    options: { key?: string } = {},
  ): Promise<Answer> {
    return this.call(
      'POST',
      `/v1/orders/${encodeURIComponent(orderId)}/payments`,
      { channel: 'mock-a', request_no: requestNo, ...fields },
      options,
    );
  }

  refund(orderId: string, refundNo: string, amount?: unknown): Promise<Answer> {
    return this.call('POST', `/v1/orders/${encodeURIComponent(orderId)}/refunds`, {
      refund_no: refundNo,
      reason: 'test',
      ...(amount === undefined ? {} : { amount }),
    });
  }

  cancel(orderId: string): Promise<Answer> {
    return this.call('POST', `/v1/orders/${encodeURIComponent(orderId)}/cancel`, {});
  }

  status(orderId: string): Promise<Answer> {
    return this.call('GET', `/v1/orders/${encodeURIComponent(orderId)}`);
  }

  /** An order that is paid and told, by callback: returns its numbers. */
  async paidOrder(fields: Parameters<Saga['createOrder']>[0] = {}, channel = 'mock-a') {
    const orderId = await this.createOrder(fields);
    await this.pay(orderId, 'K1', { channel });
    const outTradeNo = await this.outTradeNo(orderId);
    await this.mock.approve(outTradeNo);
    await this.untilOrder(orderId, 'paid');
    return { orderId, outTradeNo };
  }

  // -------------------------------------------------------------------------------------------
  // What is true: the database and the channel's books

  async rows<T = Record<string, unknown>>(sql: string, ...values: unknown[]): Promise<T[]> {
    return (await this.pool.query(sql, values)).rows as T[];
  }

  async order(orderId: string) {
    const [row] = await this.rows<{
      status: string;
      status_reason: string | null;
      refund_status: string;
      doorbell_rung_at: string | null;
    }>(
      `select * from orders where merchant_id = $1::text and order_id = $2::text`,
      this.merchantId,
      orderId,
    );
    if (!row) throw new Error(`no order ${orderId}`);
    return row;
  }

  untilOrder(orderId: string, status: string, boundMs?: number) {
    return waitFor(
      `order ${orderId} ${status}`,
      async () => {
        const row = await this.order(orderId);
        if (row.status !== status) throw new Error(`order ${orderId} is ${row.status}`);
        return row;
      },
      boundMs,
    );
  }

  /** The order is final: the view of orders with work does not list it any more. */
  untilSettled(orderId: string, boundMs?: number) {
    return waitFor(
      `order ${orderId} has nothing left to do`,
      async () => {
        const work = await this.rows(
          `select reason from orders_with_work where merchant_id = $1::text and order_id = $2::text`,
          this.merchantId,
          orderId,
        );
        if (work.length > 0) throw new Error(`work: ${JSON.stringify(work)}`);
        return true;
      },
      boundMs,
    );
  }

  untilRefund(orderId: string, refundNo: string, status: string, boundMs?: number) {
    return waitFor(
      `refund ${refundNo} ${status}`,
      async () => {
        const [row] = await this.rows<{ status: string }>(
          `select * from refunds where merchant_id = $1::text and order_id = $2::text and refund_no = $3::text`,
          this.merchantId,
          orderId,
          refundNo,
        );
        if (row?.status !== status) throw new Error(`refund ${refundNo} is ${row?.status}`);
        return row;
      },
      boundMs,
    );
  }

  async records(orderId: string) {
    return this.rows<{
      pay_record_id: number;
      request_no: string;
      out_trade_no: string;
      channel: string;
      status: string;
      channel_trade_no: string | null;
    }>(
      `select * from pay_records where merchant_id = $1::text and order_id = $2::text order by pay_record_id`,
      this.merchantId,
      orderId,
    );
  }

  /** The number of the newest attempt; waits until there is one. */
  async outTradeNo(orderId: string): Promise<string> {
    return waitFor('a pay record', async () => (await this.records(orderId)).at(-1)?.out_trade_no);
  }

  async captures(orderId: string) {
    return this.rows<{
      amount_minor: number;
      settles: boolean;
      kind: string;
      status: string;
      capture_id: number;
    }>(
      `select * from captures where merchant_id = $1::text and order_id = $2::text order by capture_id`,
      this.merchantId,
      orderId,
    );
  }

  async openCases(orderId: string) {
    return this.rows<{ kind: string; summary: string; evidence: unknown[] }>(
      `select * from cases where merchant_id = $1::text and order_id = $2::text and status = 'open'`,
      this.merchantId,
      orderId,
    );
  }

  /** Moves of the order's own status, oldest first: `paying>paid`. */
  async moves(orderId: string, subject = 'order'): Promise<string[]> {
    const rows = await this.rows<{ from_status: string; to_status: string }>(
      `select from_status, to_status from order_events
       where merchant_id = $1::text and order_id = $2::text and subject = $3::text order by event_id`,
      this.merchantId,
      orderId,
      subject,
    );
    return rows.map((row) => `${row.from_status}>${row.to_status}`);
  }

  /** The channel's own figures for the order's numbers. */
  async books(orderId: string) {
    const numbers = (await this.records(orderId)).map((record) => record.out_trade_no);
    return this.mock.summary({ outTradeNos: numbers });
  }

  handle(orderId: string) {
    return this.client.workflow.getHandle(
      orderWorkflowId({ merchantId: this.merchantId, orderId }),
    );
  }

  /** Every run of the order's workflow id that the server still knows. */
  async runs(orderId: string) {
    const id = orderWorkflowId({ merchantId: this.merchantId, orderId });
    const runs = [];
    for await (const run of this.client.workflow.list({ query: `WorkflowId = '${id}'` }))
      runs.push(run);
    return runs;
  }
}

let isQuiet = false;
/** The SDK's own log belongs to no test's output; SAGA_LOG=info brings it back. */
function quietRuntime(): void {
  if (isQuiet) return;
  isQuiet = true;
  const level = process.env['SAGA_LOG'] ? 'INFO' : 'ERROR';
  Runtime.install({ logger: new DefaultLogger(level, () => undefined) });
}
