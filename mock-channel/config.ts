import { z } from 'zod';
import type { MockChannelOptions } from './server';

const port = z.coerce.number().int().min(0).max(65_535);
const key = z.string().min(8, 'at least 8 characters');
const previousKey = z
  .string()
  .optional()
  .transform((text) => (text ? text : null));
const urls = z
  .string()
  .default('')
  .transform((text) => text.split(',').flatMap((part) => (part.trim() ? [part.trim()] : [])))
  .pipe(z.array(z.url()));

const environmentSchema = z.object({
  MOCK_CHANNEL_HOST: z.string().default('127.0.0.1'),
  // Whoever reaches the control port can move the channel's money: loopback unless asked for.
  MOCK_CHANNEL_CONTROL_HOST: z.string().default('127.0.0.1'),
  MOCK_CHANNEL_CONTROL_PORT: port.default(4010),
  MOCK_CHANNEL_A_PORT: port.default(4011),
  MOCK_CHANNEL_B_PORT: port.default(4012),
  MOCK_CHANNEL_BOOKS: z.string().min(1).default('mock-channel-books.jsonl'),
  MOCK_CHANNEL_PUBLIC_URL: z.url().optional(),
  MOCK_CHANNEL_LATENCY_MS: z.coerce.number().int().min(0).max(60_000).default(0),
  MOCK_CHANNEL_AUTO_APPROVE_MS: z.coerce.number().int().min(0).max(86_400_000).optional(),
  MOCK_A_KEY: key,
  MOCK_A_PREVIOUS_KEY: previousKey,
  MOCK_A_ACCOUNT_ID: z.string().min(1).default('2088000000000001'),
  MOCK_A_APP_ID: z.string().min(1).default('app-a-1'),
  MOCK_A_CALLBACK_URLS: urls,
  MOCK_B_KEY: key,
  MOCK_B_PREVIOUS_KEY: previousKey,
  MOCK_B_ACCOUNT_ID: z.string().min(1).default('1900000001'),
  MOCK_B_APP_ID: z.string().min(1).default('app-b-1'),
  MOCK_B_CALLBACK_URLS: urls,
});

/**
 * Reads the process's configuration.
 * @throws Error that names every fault at once
 */
export function readConfig(environment: NodeJS.ProcessEnv): MockChannelOptions {
  const result = environmentSchema.safeParse(environment);
  if (!result.success) {
    const faults = result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
    throw new Error(`mock channel configuration:\n  ${faults.join('\n  ')}`);
  }
  const read = result.data;
  return {
    host: read.MOCK_CHANNEL_HOST,
    controlHost: read.MOCK_CHANNEL_CONTROL_HOST,
    controlPort: read.MOCK_CHANNEL_CONTROL_PORT,
    aPort: read.MOCK_CHANNEL_A_PORT,
    bPort: read.MOCK_CHANNEL_B_PORT,
    booksPath: read.MOCK_CHANNEL_BOOKS,
    publicUrl: read.MOCK_CHANNEL_PUBLIC_URL,
    a: {
      accountId: read.MOCK_A_ACCOUNT_ID,
      appId: read.MOCK_A_APP_ID,
      keys: { current: read.MOCK_A_KEY, previous: read.MOCK_A_PREVIOUS_KEY },
    },
    b: {
      accountId: read.MOCK_B_ACCOUNT_ID,
      appId: read.MOCK_B_APP_ID,
      keys: { current: read.MOCK_B_KEY, previous: read.MOCK_B_PREVIOUS_KEY },
    },
    settings: {
      latencyMs: read.MOCK_CHANNEL_LATENCY_MS,
      callbackUrls: { 'mock-a': read.MOCK_A_CALLBACK_URLS, 'mock-b': read.MOCK_B_CALLBACK_URLS },
      autoApprove:
        read.MOCK_CHANNEL_AUTO_APPROVE_MS === undefined
          ? null
          : { afterMs: read.MOCK_CHANNEL_AUTO_APPROVE_MS },
    },
  };
}
