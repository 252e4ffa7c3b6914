import { MockActivityEnvironment } from '@temporalio/testing';
import { createActivities } from '../../activities';
import type { BillOutcome } from '../../activities/trade-bills';
import type { TradeBillAnswer, TradeBillRequest } from '../../channels/contract';
import { createPool } from '../../db/transaction';
import type { Pool } from '../../db/transaction';
import { TradeBillError } from '../../domain/trade-bill';
import { aLine } from '../support/bills';
import { aPolicy } from '../support/builders';
import { createTestDatabase } from '../support/database';
import type { TestDatabase } from '../support/database';
import { waitFor } from '../support/wait';

const DAY = { channel: 'ch-a', day: '2026-05-01' };
const STALL_MS = 150;

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({
    databaseUrl: database.url,
    max: 4,
    connectionTimeoutMs: 5_000,
    statementTimeoutMs: 10_000,
    applicationName: 'test',
    bulk: true,
    onIdleError: () => undefined,
  });
  await pool.query(
    `insert into channels (channel, adapter, account_id, app_id, gateway_url)
     values ('ch-a', 'mock-a', 'acc-a', 'app-a', 'http://127.0.0.1:1')`,
  );
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

/** The activity beside a channel that answers like this. */
function begin(answer: (request: TradeBillRequest) => Promise<TradeBillAnswer> | TradeBillAnswer) {
  const configured = {
    row: { channel: 'ch-a' },
    policy: aPolicy(),
    channel: { openTradeBill: async (request: TradeBillRequest) => answer(request) },
  };
  const { loadBill } = createActivities({
    pool,
    channels: { get: async () => configured, all: async () => [configured] } as never,
    client: undefined as never,
    taskQueue: 'unused',
    numberSecret: 'unused',
    notifications: undefined as never,
    fulfilment: undefined as never,
    postToMerchant: undefined as never,
    reconciliation: { pool, heartbeatMs: 30_000, stallMs: STALL_MS },
  });
  const environment = new MockActivityEnvironment();
  return { environment, outcome: environment.run(loadBill, DAY) as Promise<BillOutcome> };
}

/** A bill that gives one batch, then does as said. */
function aBillThat(goesOn: () => Promise<void>): TradeBillAnswer {
  return {
    outcome: 'ready',
    bill: {
      fileName: 'bill.csv',
      async *lines() {
        yield [aLine({ lineNo: 2, channelTradeNo: 'T1' })];
        await goesOn();
      },
      end: () => ({ sha256: 'a'.repeat(64), bytes: 100, totals: null }),
    },
  };
}

async function loaded(): Promise<number> {
  const { rows } = await pool.query(`select from trade_bills where status = 'loaded'`);
  return rows.length;
}

describe('fetching and loading a trade bill', () => {
  it.each<[string, TradeBillAnswer, BillOutcome]>([
    [
      'not there yet',
      { outcome: 'not_ready', reason: 'BILL_NOT_EXIST', retryAfterMs: 5_000 },
      { outcome: 'not_ready', reason: 'BILL_NOT_EXIST', retryAfterMs: 5_000 },
    ],
    [
      'refused',
      { outcome: 'refused', code: 'NO_AUTH', alreadyKnown: false },
      { outcome: 'unavailable', reason: 'refused: NO_AUTH', retryAfterMs: null },
    ],
    [
      'out of reach',
      { outcome: 'never_left', reason: 'connection_refused', retryAfterMs: null },
      { outcome: 'unavailable', reason: 'connection_refused', retryAfterMs: null },
    ],
    [
      'unknown',
      { outcome: 'unknown', reason: 'http_500', retryAfterMs: 1_000 },
      { outcome: 'unavailable', reason: 'http_500', retryAfterMs: 1_000 },
    ],
  ])('tells by a value that it is %s', async (_what, answer, outcome) => {
    expect(await begin(() => answer).outcome).toEqual(outcome);
  });

  it('fetches again what broke on its way, and leaves nothing behind', async () => {
    const { outcome } = begin(() => aBillThat(() => Promise.reject(new Error('socket hang up'))));
    expect(await outcome).toEqual({
      outcome: 'unavailable',
      reason: 'Error: socket hang up',
      retryAfterMs: null,
    });
    expect(await loaded()).toBe(0);
  });

  it('rejects a file that cannot be used as a whole', async () => {
    const { outcome } = begin(() =>
      aBillThat(() => Promise.reject(new TradeBillError('wrong_columns', 'no column 金额'))),
    );
    expect(await outcome).toEqual({
      outcome: 'rejected',
      fault: 'wrong_columns',
      message: 'no column 金额',
    });
    expect(await loaded()).toBe(0);
  });

  it('gives up a download from which nothing comes any more', async () => {
    const { outcome } = begin(({ signal }) =>
      aBillThat(
        () =>
          new Promise((_resolve, reject) => {
            signal?.addEventListener('abort', () => reject(signal.reason as Error));
          }),
      ),
    );
    expect(await outcome).toMatchObject({
      outcome: 'unavailable',
      reason: expect.stringContaining(`nothing came for ${STALL_MS} ms`),
    });
    expect(await loaded()).toBe(0);
  });

  it('ends the download when its run is cancelled', async () => {
    let isUnderWay = false;
    let isEnded = false;
    const { environment, outcome } = begin(({ signal }) => {
      isUnderWay = true;
      return new Promise((resolve) => {
        signal?.addEventListener('abort', () => {
          isEnded = true;
          resolve({ outcome: 'unknown', reason: 'aborted', retryAfterMs: null });
        });
      });
    });
    await waitFor('the question', () => isUnderWay);
    environment.cancel();
    expect(await outcome).toMatchObject({ outcome: 'unavailable' });
    expect(isEnded).toBe(true);
  });

  it('loads a whole file, and finds the same file again unchanged', async () => {
    const whole = () => aBillThat(() => Promise.resolve());
    expect(await begin(whole).outcome).toEqual({ outcome: 'loaded', rows: 1, rowErrors: 0 });
    expect(await begin(whole).outcome).toEqual({ outcome: 'unchanged', rows: 1, rowErrors: 0 });
    expect(await loaded()).toBe(1);
  });
});
