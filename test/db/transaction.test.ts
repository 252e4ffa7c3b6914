import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { createPool, isDatabaseUnavailable, together, withTransaction } from '../../db/transaction';
import type { Pool } from '../../db/transaction';
import { createTestDatabase } from '../support/database';
import type { TestDatabase } from '../support/database';
import { waitFor } from '../support/wait';

describe('a pool whose statements are prepared', () => {
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

  it('parses a statement with parameters once per connection', async () => {
    const ofPool = 'select 1 + $1::int as of_pool';
    const inTransaction = 'select 1 + $1::int as in_transaction';
    for (let i = 1; i <= 3; i++) {
      const { rows } = await pool.query(ofPool, [i]);
      expect(rows).toEqual([{ of_pool: 1 + i }]);
    }
    const { rows } = await withTransaction(pool, async (client) => {
      await client.query(inTransaction, [1]);
      await client.query(inTransaction, [2]);
      return client.query(
        `select statement, (generic_plans + custom_plans)::int as plans
         from pg_prepared_statements where from_sql = false and statement like '% as %'
         order by prepare_time`,
      );
    });
    expect(rows).toEqual([
      { statement: ofPool, plans: 3 },
      { statement: inTransaction, plans: 2 },
    ]);
  });

  it('goes on when a table gets a column: a transaction unseen, a statement after "unavailable"', async () => {
    await pool.query('create table grown (id int)');
    await pool.query('insert into grown values (1)');
    const select = 'select * from grown where id = $1::int';
    const read = () => pool.query(select, [1]);
    const readInTransaction = () => withTransaction(pool, (client) => client.query(select, [1]));
    expect((await read()).rows).toEqual([{ id: 1 }]);
    await pool.query('alter table grown add column a int');
    expect((await readInTransaction()).rows).toEqual([{ id: 1, a: null }]);
    await pool.query('alter table grown add column b int');
    const failure: unknown = await read().catch((error: unknown) => error);
    expect(failure).toMatchObject({ message: 'cached plan must not change result type' });
    expect(isDatabaseUnavailable(failure)).toBe(true);
    expect((await read()).rows).toEqual([{ id: 1, a: null, b: null }]);
    expect(pool.waitingCount).toBe(0);
  });
});

describe('statements that leave together', () => {
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
    await pool.query('create table kept (id int primary key)');
    await pool.query('insert into kept values (1)');
  });
  afterAll(async () => {
    await pool.end();
    await database.drop();
  });

  it('fail by the error that the others follow from, however deep it lies', async () => {
    const failure: unknown = await withTransaction(pool, (client) => {
      const insert = async (id: number) => {
        await client.query('insert into kept values ($1::int)', [id]);
      };
      const deep = async (id: number) => {
        await together([insert(id), insert(id + 1)]);
      };
      const sent = together([deep(1), client.query('select 1'), client.query('select 2')]);
      // A process that is busy meanwhile reads all three answers at once.
      for (const until = Date.now() + 100; Date.now() < until;);
      return sent;
    }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: '23505', constraint: 'kept_pkey' });
    expect((await pool.query('select id from kept')).rows).toEqual([{ id: 1 }]);
    expect(pool.waitingCount).toBe(0);
  });

  it('are answered in their order, each with its own rows', async () => {
    const answers = await withTransaction(pool, (client) =>
      together([
        client.query('insert into kept values (2)'),
        client.query<{ n: number }>('select count(*)::int as n from kept where id > $1::int', [0]),
        client.query('delete from kept where id = 2'),
        client.query<{ n: number }>('select count(*)::int as n from kept where id > $1::int', [0]),
      ]),
    );
    expect([answers[1].rows, answers[3].rows]).toEqual([[{ n: 2 }], [{ n: 1 }]]);
  });
});

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

  it('in the very packet that ends its greeting fails as "unavailable" too', async () => {
    // A server that lets a client in and goes down at once, as PostgreSQL does when it is stopped.
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => {
        const fatal = 'SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0';
        const error = Buffer.alloc(5 + fatal.length);
        error.write('E', 0);
        error.writeInt32BE(4 + fatal.length, 1);
        error.write(fatal, 5);
        const authenticated = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0]);
        const ready = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);
        socket.end(Buffer.concat([authenticated, ready, error]));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const greeted = createPool({
      databaseUrl: `postgres://nobody@127.0.0.1:${port}/none`,
      max: 1,
      connectionTimeoutMs: 5_000,
      statementTimeoutMs: 5_000,
      applicationName: 'test',
      onIdleError: () => undefined,
    });
    try {
      const failure: unknown = await withTransaction(greeted, (client) =>
        client.query('select 1'),
      ).catch((error: unknown) => error);
      expect(isDatabaseUnavailable(failure)).toBe(true);
      expect(greeted.totalCount).toBe(0);
    } finally {
      await greeted.end();
      await new Promise((resolve) => server.close(resolve));
    }
  });
});
