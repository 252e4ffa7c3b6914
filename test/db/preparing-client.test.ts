import type { Pool } from '../../db/transaction';
import { createPool } from '../../db/transaction';
import { createTestDatabase } from '../support/database';
import type { TestDatabase } from '../support/database';

let database: TestDatabase;
let pool: Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({
    databaseUrl: database.url,
    max: 1,
    connectionTimeoutMs: 10_000,
    statementTimeoutMs: 10_000,
    applicationName: 'test',
    onIdleError: () => undefined,
    prepareStatements: true,
  });
});

afterAll(async () => {
  await pool.end();
  await database.drop();
});

async function prepared(): Promise<string[]> {
  const { rows } = await pool.query<{ statement: string }>(
    'select statement from pg_prepared_statements order by statement',
  );
  return rows.map(({ statement }) => statement);
}

test('a statement with parameters is prepared once per connection, one without is not', async () => {
  for (let n = 1; n <= 3; n++) {
    const { rows } = await pool.query<{ twice: number }>('select 2 * $1::int as twice', [n]);
    expect(rows).toEqual([{ twice: 2 * n }]);
  }
  await pool.query('select 1');
  expect(await prepared()).toEqual(['select 2 * $1::int as twice']);
});

test('a client inside a transaction prepares too, and a failing statement fails as ever', async () => {
  const client = await pool.connect();
  try {
    await client.query('begin');
    await expect(client.query('select 1 / $1::int', [0])).rejects.toMatchObject({ code: '22012' });
    await client.query('rollback');
    expect((await client.query('select 6 / $1::int as n', [3])).rows).toEqual([{ n: 2 }]);
  } finally {
    client.release();
  }
  expect(await prepared()).toContain('select 6 / $1::int as n');
});
