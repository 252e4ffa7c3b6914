import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { migrate } from '../../db/migrate';
import { TASK_QUEUE } from '../../workflows/ids';
import type { ExampleMerchant } from '../example-merchant';
import { startExampleMerchant } from '../example-merchant';
import type { Demo } from '../seed';
import { demoEnvironment, readOrMakeDemo, seedDemo } from '../seed';
import { claimFolder } from './leftover';
import type { PostgresServer } from './postgres';
import { startPostgres } from './postgres';
import type {
  ApiProcess,
  MockChannelProcess,
  ProcessSurroundings,
  WorkerProcess,
} from './processes';
import { startApi, startMockChannel, startWorker } from './processes';
import { writeRunningStack } from './running-stack';
import type { TemporalServer } from './temporal';
import { PROJECT_FOLDER, startTemporal } from './temporal';
import { freePort } from './wait';

/** Everything that runs, and what is needed to talk to it. */
export interface Stack {
  databaseUrl: string;
  /** Undefined when DATABASE_URL named a server that runs already. */
  postgres: PostgresServer | undefined;
  temporal: TemporalServer;
  taskQueue: string;
  api: ApiProcess;
  worker: WorkerProcess;
  mockChannel: MockChannelProcess;
  /** The shop that is told of its orders. */
  merchant: ExampleMerchant;
  demo: Demo;
  /** Every request of the tour and its answer, for the books checker. */
  journalFile: string;
  logFolder: string;
  surroundings: ProcessSurroundings;
  /** Starts a worker where the last one ended. */
  restartWorker(): Promise<void>;
  /** Ends everything that was started, in order. May be called any number of times. */
  end(): Promise<void>;
}

export interface StackOptions {
  /** `.data` of the project unless told. */
  dataFolder?: string;
  /** Told what is being done, one line at a time. */
  log?: (line: string) => void;
}

const DATABASE = 'payment_saga';

/** Taken when they are free, so that addresses stay the same from one start to the next. */
const PREFERRED_PORTS = {
  postgres: 15432,
  temporal: 17233,
  temporalUi: 8233,
  api: 8080,
  mock: 8090,
  merchant: 8095,
};

/**
 * Starts PostgreSQL, Temporal, the mock channel, the API and the worker, with migrations, search
 * attributes and the demonstration's data in place. Whatever cannot start ends what did.
 */
export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const dataFolder = options.dataFolder ?? join(PROJECT_FOLDER, '.data');
  const log = options.log ?? (() => undefined);
  const logFolder = join(dataFolder, 'logs');
  mkdirSync(logFolder, { recursive: true });
  const claim = claimFolder(dataFolder);
  const ends: (() => Promise<void>)[] = [];
  const end = async () => {
    for (let last = ends.pop(); last !== undefined; last = ends.pop()) {
      await last().catch((error: unknown) => console.error(error));
    }
    claim.release();
  };

  try {
    const demo = readOrMakeDemo(join(dataFolder, 'demo.json'));

    // The two servers need nothing of each other.
    const [database, temporal] = await together(
      async () => {
        const started = await startDatabase(dataFolder);
        const { postgres } = started;
        if (postgres !== undefined) ends.unshift(() => postgres.end());
        log(
          `PostgreSQL  ${postgres === undefined ? 'as DATABASE_URL says' : `port ${postgres.port}`}`,
        );
        return started;
      },
      async () => {
        const started = await startTemporal({
          dataFolder: join(dataFolder, 'temporal'),
          preferredPort: PREFERRED_PORTS.temporal,
          preferredUiPort: PREFERRED_PORTS.temporalUi,
        });
        ends.unshift(() => started.end());
        log(`Temporal    ${started.address} (found by: ${started.from})`);
        return started;
      },
    );

    await migrate(database.databaseUrl);
    log('the schema is up to date');

    const surroundings: ProcessSurroundings = {
      databaseUrl: database.databaseUrl,
      temporalAddress: temporal.address,
      temporalNamespace: temporal.namespace,
      taskQueue: process.env['TEMPORAL_TASK_QUEUE'] ?? TASK_QUEUE,
      logFolder,
      // A shop on this machine may be told of its orders; anywhere else it would be an inside address.
      env: {
        ...demoEnvironment(demo),
        NOTIFY_PRIVATE_ALLOWED: '127.0.0.1',
        ...(temporal.uiUrl === undefined ? {} : { TEMPORAL_UI_URL: temporal.uiUrl }),
      },
    };
    const apiPort = await freePort(PREFERRED_PORTS.api);
    const callbackUrl = (channel: string) => `http://127.0.0.1:${apiPort}/callbacks/${channel}`;
    const mockChannel = await startMockChannel({
      booksFile: join(dataFolder, 'mock-channel-books.jsonl'),
      logFolder,
      aKey: demo.mockAKey,
      bKey: demo.mockBKey,
      aCallbackUrls: [callbackUrl('mock-a')],
      bCallbackUrls: [callbackUrl('mock-b')],
      preferredControlPort: PREFERRED_PORTS.mock,
    });
    ends.push(() => mockChannel.stop());
    log(`mock channel ready`);
    const eventsFile = join(dataFolder, 'merchant-events.jsonl');
    const effectsFile = join(dataFolder, 'merchant-effects.jsonl');
    const merchant = await startExampleMerchant({
      secret: demo.notifySecret,
      port: await freePort(PREFERRED_PORTS.merchant),
      eventsFile,
      effectsFile,
    });
    ends.push(() => merchant.close());
    await seedDemo(database.databaseUrl, demo, {
      mockA: mockChannel.aUrl,
      mockB: mockChannel.bUrl,
      notify: merchant.url,
    });

    const [worker, api] = await together(
      async () => {
        const started = await startWorker(surroundings);
        ends.push(() => started.stop());
        log('worker ready');
        return started;
      },
      async () => {
        const started = await startApi(surroundings, apiPort);
        ends.push(() => started.stop());
        log('API ready');
        return started;
      },
    );

    const journalFile = join(dataFolder, 'client-journal.jsonl');
    writeRunningStack(dataFolder, {
      databaseUrl: database.databaseUrl,
      temporalAddress: temporal.address,
      temporalNamespace: temporal.namespace,
      booksFile: mockChannel.booksFile,
      controlUrl: mockChannel.controlUrl,
      journalFile,
      eventsFile,
      effectsFile,
    });
    const stack: Stack = {
      databaseUrl: database.databaseUrl,
      postgres: database.postgres,
      temporal,
      taskQueue: surroundings.taskQueue,
      api,
      worker,
      mockChannel,
      merchant,
      demo,
      journalFile,
      logFolder,
      surroundings,
      async restartWorker() {
        stack.worker = await startWorker(surroundings);
        ends.push(() => stack.worker.stop());
      },
      end,
    };
    return stack;
  } catch (error) {
    await end();
    throw error;
  }
}

/** Both results, or the first failure, but only once both have come to an end. */
async function together<A, B>(a: () => Promise<A>, b: () => Promise<B>): Promise<[A, B]> {
  const both = await Promise.allSettled([a(), b()]);
  for (const one of both) if (one.status === 'rejected') throw one.reason;
  const [first, second] = both as [PromiseFulfilledResult<A>, PromiseFulfilledResult<B>];
  return [first.value, second.value];
}

/** The database named by DATABASE_URL, or one on an embedded server of ours. */
async function startDatabase(
  dataFolder: string,
): Promise<{ databaseUrl: string; postgres: PostgresServer | undefined }> {
  const given = process.env['DATABASE_URL'];
  if (given) return { databaseUrl: given, postgres: undefined };
  const postgres = await startPostgres({ dataFolder, preferredPort: PREFERRED_PORTS.postgres });
  await createDatabase(postgres.databaseUrl(), DATABASE);
  return { databaseUrl: postgres.databaseUrl(DATABASE), postgres };
}

/** Makes a database unless it is there. */
export async function createDatabase(serverUrl: string, name: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    const { rowCount } = await client.query('select from pg_database where datname = $1::text', [
      name,
    ]);
    if (rowCount === 0) await client.query(`create database ${pg.escapeIdentifier(name)}`);
  } finally {
    await client.end();
  }
}
