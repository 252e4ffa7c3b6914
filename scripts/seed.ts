import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { upsertChannel } from '../db/channels';
import { generateApiKey, insertApiKey, upsertMerchant } from '../db/merchants';
import { createPool } from '../db/transaction';

/** Names and secrets of the demonstration: one shop and two practice channels. */
export interface Demo {
  merchantId: string;
  /** API key with the scopes pay, refund and read. */
  apiKey: string;
  /** API key with every scope. */
  operatorKey: string;
  /** API key of another operator: the second person at the desk. */
  secondOperatorKey: string;
  /** Shared secrets of the practice channels. */
  mockAKey: string;
  mockBKey: string;
  /** Signs what the merchant is told (Standard Webhooks form). */
  notifySecret: string;
  /** Our numbers at the channels are derived with it: another secret, other numbers. */
  numberSecret: string;
}

/** Where the demonstration's channels are. */
export interface DemoUrls {
  mockA: string;
  mockB: string;
  /** Where the shop hears of its orders; null: it only reads them. */
  notify: string | null;
}

/** Our accounts at the practice channels: what the mock channel knows unless told otherwise. */
const MOCK_ACCOUNTS = {
  a: { accountId: '2088000000000001', appId: 'app-a-1' },
  b: { accountId: '1900000001', appId: 'app-b-1' },
};

/** The demonstration's secrets, made up once and kept in `file`, readable by its owner alone. */
export function readOrMakeDemo(file: string): Demo {
  if (existsSync(file)) return withSecondOperator(file);
  const secret = () => randomBytes(32).toString('base64url');
  const demo: Demo = {
    merchantId: 'demo-shop',
    apiKey: generateApiKey(),
    operatorKey: generateApiKey(),
    secondOperatorKey: generateApiKey(),
    mockAKey: secret(),
    mockBKey: secret(),
    notifySecret: `whsec_${randomBytes(24).toString('base64')}`,
    numberSecret: secret(),
  };
  mkdirSync(dirname(file), { recursive: true });
  return write(file, demo);
}

/** Demonstrations of earlier releases had one operator. */
function withSecondOperator(file: string): Demo {
  const demo = JSON.parse(readFileSync(file, 'utf8')) as Demo;
  if (demo.secondOperatorKey) return demo;
  return write(file, { ...demo, secondOperatorKey: generateApiKey() });
}

function write(file: string, demo: Demo): Demo {
  writeFileSync(file, `${JSON.stringify(demo, null, 2)}\n`, { mode: 0o600 });
  return demo;
}

/** The variables under which the processes find the demonstration's secrets. */
export function demoEnvironment(demo: Demo): Record<string, string> {
  return {
    MOCK_A_KEY: demo.mockAKey,
    MOCK_B_KEY: demo.mockBKey,
    DEMO_NOTIFY_SECRET: demo.notifySecret,
    NUMBER_SECRET: demo.numberSecret,
  };
}

/**
 * Stores the demonstration's shop, its API keys and the channels `mock-a` and `mock-b`. Runs any
 * number of times: addresses are brought up to date, everything else stays.
 */
export async function seedDemo(databaseUrl: string, demo: Demo, urls: DemoUrls): Promise<void> {
  const pool = createPool({
    databaseUrl,
    max: 1,
    connectionTimeoutMs: 10_000,
    statementTimeoutMs: 10_000,
    applicationName: 'seed',
    onIdleError: (error) => console.error(error.message),
  });
  try {
    await upsertMerchant(pool, {
      merchantId: demo.merchantId,
      name: 'Demo shop',
      notifyUrl: urls.notify,
      notifySecretRef: urls.notify === null ? null : 'env:DEMO_NOTIFY_SECRET',
    });
    await insertApiKey(pool, {
      keyId: 'demo-shop',
      merchantId: demo.merchantId,
      apiKey: demo.apiKey,
      scopes: ['pay', 'refund', 'read'],
    });
    await insertApiKey(pool, {
      keyId: 'demo-operator',
      merchantId: demo.merchantId,
      apiKey: demo.operatorKey,
      scopes: ['pay', 'refund', 'read', 'operator'],
    });
    await insertApiKey(pool, {
      keyId: 'demo-operator-2',
      merchantId: demo.merchantId,
      apiKey: demo.secondOperatorKey,
      scopes: ['operator'],
    });
    for (const { channel, accountId, appId, gatewayUrl, secretRef } of [
      {
        channel: 'mock-a',
        ...MOCK_ACCOUNTS.a,
        gatewayUrl: urls.mockA,
        secretRef: 'env:MOCK_A_KEY',
      },
      {
        channel: 'mock-b',
        ...MOCK_ACCOUNTS.b,
        gatewayUrl: urls.mockB,
        secretRef: 'env:MOCK_B_KEY',
      },
    ]) {
      await upsertChannel(pool, {
        channel,
        adapter: channel,
        accountId,
        appId,
        gatewayUrl,
        // As the practice channel dates its bills, unless its control interface says otherwise.
        timeZone: 'UTC',
        displayName: `Practice channel ${channel.slice(-1).toUpperCase()}`,
        payEnabled: true,
        refundEnabled: true,
        secretRefs: { current: secretRef },
        policy: {},
      });
    }
  } finally {
    await pool.end();
  }
}
