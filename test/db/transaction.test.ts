import { createPool, isDatabaseUnavailable, withTransaction } from '../../db/transaction';
import type { Pool } from '../../db/transaction';
import { createTestDatabase } from '../support/database';
import type { TestDatabase } from '../support/database';
import { waitFor } from '../support/wait';

describe('a transaction whose connection breaks', () => {
  let database: TestDatabase;
  let pool: Pool;
  beforeAll(async () => {
    database = await createTestDatabase();
    pool = createPool({
      databaseUrl: database.url,
      max: 2,
      connectionTimeoutMs: 5_000,
      statementTimeoutMs: 5_000,
      applicationName: 'test',
      onIdleError: () => undefined,
    });
  });
  afterAll(async () => {
    await pool.end();
    await database.drop();
  });

  it('between two statements fails as "unavailable", harms nobody and gives its place back', async () => {
    let heard = 0;
    const failure: unknown = await withTransaction(pool, async (client) => {
      const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
      client.on('error', () => heard++);
      await pool.query('select pg_terminate_backend($1::int)', [rows[0]!.pid]);
      // Nothing is asked now: the break is told by an event, which would end the process unheard.
      await waitFor('the connection breaks', () => heard > 0);
      expect(client.listenerCount('error')).toBeGreaterThan(1);
      await client.query('select 1');
    }).catch((error: unknown) => error);
    expect(isDatabaseUnavailable(failure)).toBe(true);
    const { rows } = await pool.query<{ one: number }>('select 1 as one');
    expect(rows).toEqual([{ one: 1 }]);
    expect(pool.idleCount).toBe(pool.totalCount);
    expect(pool.waitingCount).toBe(0);
  });
});
