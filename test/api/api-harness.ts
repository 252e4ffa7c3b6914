import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { pino } from 'pino';
import { createApp } from '../../api/app';
import type { Api } from '../../api/app';
import { DEFAULT_LIMITS } from '../../api/deps';
import type { ApiLimits } from '../../api/deps';
import { createChannelRegistry } from '../../channels/registry';
import { readChannelRows, upsertChannel } from '../../db/channels';
import { generateApiKey, insertApiKey, upsertMerchant } from '../../db/merchants';
import type { Scope } from '../../db/merchants';
import { createPool } from '../../db/transaction';
import type { Pool } from '../../db/transaction';
import type { ChannelPolicy } from '../../domain/channel-policy';
import { anAccount, aRow } from '../channels/mock-callback-writer';
import { createTestDatabase } from '../support/database';
import { testServers } from '../support/servers';

export const ACCOUNTS = { 'mock-a': anAccount('mock-a'), 'mock-b': anAccount('mock-b') };

/** Where the channels' secrets are, in this process's stead for an environment. */
export const CHANNEL_ENV = {
  A_CURRENT: ACCOUNTS['mock-a'].keys.current,
  B_CURRENT: ACCOUNTS['mock-b'].keys.current,
};

export interface Answer {
  status: number;
  // Answers are looked into by tests of every shape.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  body: any;
  headers: Headers;
}

export interface Asking {
  key?: string | null;
  body?: unknown;
  /** Sent as it is, instead of body. */
  raw?: string | Uint8Array<ArrayBuffer>;
  headers?: Record<string, string>;
}

export interface ApiHarness {
  api: Api;
  pool: Pool;
  databaseUrl: string;
  client: Client;
  taskQueue: string;
  merchantId: string;
  key: string;
  otherKey: string;
  keyWith(scopes: Scope[]): Promise<string>;
  ask(method: string, path: string, asking?: Asking): Promise<Answer>;
  close(): Promise<void>;
}

/** The API on a database and a task queue of its own, with two merchants and both mock channels. */
export async function startApiHarness(
  said: {
    limits?: Partial<ApiLimits>;
    /** Default: an address where nothing answers. */
    gatewayUrls?: Partial<Record<'mock-a' | 'mock-b', string>>;
    policy?: Partial<ChannelPolicy>;
    temporalUiUrl?: string;
    temporalAddress?: string;
    taskQueue?: string;
    /** Apps that share the work, as processes behind a load balancer would. */
    apps?: number;
  } = {},
): Promise<ApiHarness> {
  const servers = testServers();
  const database = await createTestDatabase();
  const log = pino({ level: process.env['TEST_LOG_LEVEL'] ?? 'silent' });
  const pool = createPool({
    databaseUrl: database.url,
    max: 10,
    connectionTimeoutMs: 5_000,
    statementTimeoutMs: 5_000,
    applicationName: 'api-test',
    onIdleError: () => undefined,
  });
  const connection = Connection.lazy({ address: said.temporalAddress ?? servers.temporalAddress });
  const client = new Client({ connection, namespace: servers.temporalNamespace });
  const taskQueue = said.taskQueue ?? `api-${randomUUID()}`;
  // Of its own per harness: all of them share one Temporal namespace.
  const merchantId = `shop-${randomUUID()}`;
  const otherMerchantId = `other-${randomUUID()}`;
  const [key, otherKey] = [generateApiKey(), generateApiKey()];
  for (const [id, apiKey] of [
    [merchantId, key],
    [otherMerchantId, otherKey],
  ] as const) {
    await upsertMerchant(pool, { merchantId: id, name: id });
    await insertApiKey(pool, {
      keyId: `key-${id}`.slice(0, 60),
      merchantId: id,
      apiKey,
      scopes: ['pay', 'refund', 'read'],
    });
  }
  for (const [channel, secret] of [
    ['mock-a', 'env:A_CURRENT'],
    ['mock-b', 'env:B_CURRENT'],
  ] as const) {
    await upsertChannel(
      pool,
      aRow(ACCOUNTS[channel], {
        gatewayUrl: said.gatewayUrls?.[channel] ?? 'http://127.0.0.1:1',
        secretRefs: { current: secret },
        policy: said.policy ?? {},
      }),
    );
  }
  const channels = createChannelRegistry({
    readRows: () => readChannelRows(pool),
    env: CHANNEL_ENV,
    refreshAfterMs: 200,
  });
  const apps = Array.from({ length: said.apps ?? 1 }, () =>
    createApp({
      pool,
      client,
      taskQueue,
      channels,
      log,
      limits: { ...DEFAULT_LIMITS, ...said.limits },
      publicUrl: () => 'https://pay.example',
      temporalUiUrl: said.temporalUiUrl,
    }),
  );
  const api = apps[0]!;
  let asked = 0;

  return {
    api,
    pool,
    databaseUrl: database.url,
    client,
    taskQueue,
    merchantId,
    key,
    otherKey,
    async keyWith(scopes) {
      const apiKey = generateApiKey();
      await insertApiKey(pool, { keyId: `key-${randomUUID()}`, merchantId, apiKey, scopes });
      return apiKey;
    },
    async ask(method, path, { key: asKey = key, body, raw, headers } = {}) {
      const content = raw ?? (body === undefined ? undefined : JSON.stringify(body));
      const { app } = apps[asked++ % apps.length]!;
      const response = await app.request(path, {
        method,
        ...(content === undefined ? {} : { body: content }),
        headers: {
          ...(asKey === null ? {} : { authorization: `Bearer ${asKey}` }),
          ...(content === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
      });
      const text = await response.text();
      const isJson = /json/.test(response.headers.get('content-type') ?? '');
      return {
        status: response.status,
        body: isJson ? JSON.parse(text) : text,
        headers: response.headers,
      };
    },
    async close() {
      for (const one of apps) {
        one.close();
        await one.outstanding.settled();
      }
      await pool.end();
      await connection.close();
      await database.drop();
    },
  };
}

let orders = 0;

/** A body for POST /v1/orders with a number not used before. */
export function aNewOrder(said: Record<string, unknown> = {}): Record<string, unknown> & {
  order_id: string;
} {
  orders += 1;
  return {
    order_id: `o-${process.pid}-${orders}`,
    amount: 10_000,
    currency: 'CNY',
    subject: 'two cups',
    ...said,
  };
}

/** How many rows every table holds: what a refused request must leave as it was. */
export async function countRows(pool: Pool): Promise<Record<string, number>> {
  const { rows } = await pool.query<{ counts: Record<string, number> }>(
    `select jsonb_build_object(
       'orders', (select count(*) from orders),
       'merchant_requests', (select count(*) from merchant_requests),
       'pay_records', (select count(*) from pay_records),
       'captures', (select count(*) from captures),
       'refunds', (select count(*) from refunds),
       'channel_callbacks', (select count(*) from channel_callbacks),
       'order_events', (select count(*) from order_events),
       'cases', (select count(*) from cases),
       'notifications', (select count(*) from notifications),
       'operator_acts', (select count(*) from operator_acts),
       'idempotency_keys', (select count(*) from idempotency_keys)) as counts`,
  );
  return rows[0]!.counts;
}
