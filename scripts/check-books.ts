import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Client } from '@temporalio/client';
import { createPool } from '../db/transaction';
import { readChannelBooks, readJsonLines } from './books/channel-books';
import { checkBooks } from './books/check';
import type { ReceivedEvent } from './books/effects';
import { lineOf } from './books/findings';
import { readJournal } from './books/journal';
import type { MerchantEffect } from './merchant-steps';
import type { RunningStack } from './servers/running-stack';
import { RUNNING_STACK_FILE } from './servers/running-stack';
import { connectTemporal, PROJECT_FOLDER } from './servers/temporal';

const USAGE = `npm run check:books -- [options]
  --database-url URL    the saga's database
  --books FILE|URL      the mock channel's books, or its control address
  --journal FILE        the client journal, one JSON object per line
  --events FILE         what the merchant was told, one JSON object per line
  --effects FILE        what it did for its orders, one JSON object per line
  --temporal ADDRESS    host:port
  --namespace NAME
  --merchant ID         only this merchant's orders (may be repeated)
  --pick-up-ms MS       how far past its due time an order without a run may be
  --grace-ms MS         how long news of the channel may be on its way
Whatever is not named is that of the stack that \`npm start\` runs.`;

/** News of the channel younger than this may be on its way while everything runs. */
const GRACE_MS = 30_000;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      'database-url': { type: 'string' },
      books: { type: 'string' },
      journal: { type: 'string' },
      events: { type: 'string' },
      effects: { type: 'string' },
      temporal: { type: 'string' },
      namespace: { type: 'string' },
      merchant: { type: 'string', multiple: true },
      'pick-up-ms': { type: 'string' },
      'grace-ms': { type: 'string' },
      help: { type: 'boolean' },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const file = join(PROJECT_FOLDER, '.data', RUNNING_STACK_FILE);
  const demo = existsSync(file)
    ? (JSON.parse(readFileSync(file, 'utf8')) as RunningStack)
    : undefined;
  const named = (option: string, value: string | undefined): string => {
    if (value === undefined) throw new Error(`name ${option}, or run \`npm start\`\n\n${USAGE}`);
    return value;
  };
  const databaseUrl = named('--database-url', values['database-url'] ?? demo?.databaseUrl);
  const books = named('--books', values.books ?? demo?.booksFile);
  const address = named('--temporal', values.temporal ?? demo?.temporalAddress);
  // Another database's requests and events would be missing here: they go with it.
  const own = values['database-url'] === undefined ? demo : undefined;
  const journal = values.journal ?? own?.journalFile;
  const events = values.events ?? own?.eventsFile;
  const effects = values.effects ?? own?.effectsFile;

  const pool = createPool({
    databaseUrl,
    max: 1,
    connectionTimeoutMs: 10_000,
    statementTimeoutMs: 60_000,
    applicationName: 'check-books',
    onIdleError: (error) => console.error(error.message),
  });
  const connection = await connectTemporal(address).catch((error: unknown) => {
    throw new Error(`no Temporal server answers at ${address}: does the stack run (npm start)?`, {
      cause: error,
    });
  });
  try {
    const { checked, violations } = await checkBooks({
      pool,
      channelBooks: () => readChannelBooks(books),
      client: new Client({
        connection,
        namespace: values.namespace ?? demo?.temporalNamespace ?? 'default',
      }),
      merchantIds: values.merchant,
      journal: journal === undefined ? [] : readJournal(journal),
      received:
        events !== undefined && existsSync(events) ? readJsonLines<ReceivedEvent>(events) : [],
      effects:
        effects !== undefined && existsSync(effects)
          ? readJsonLines<MerchantEffect>(effects)
          : undefined,
      pickUpMs: wholeNumber('--pick-up-ms', values['pick-up-ms']),
      graceMs: wholeNumber('--grace-ms', values['grace-ms']) ?? GRACE_MS,
    });
    for (const violation of violations) console.log(lineOf(violation));
    console.log(`${checked} checked, ${violations.length} violated`);
    return violations.length === 0 ? 0 : 1;
  } finally {
    await connection.close();
    await pool.end();
  }
}

function wholeNumber(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,9}$/.test(text)) throw new Error(`${option} must be a whole number of milliseconds`);
  return Number(text);
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  },
);
