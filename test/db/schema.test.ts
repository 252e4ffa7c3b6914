import { readFileSync } from 'node:fs';
import pg from 'pg';
import { MOVES } from '../../domain/states';
import { SCHEMA_FILE, describeSchema } from '../../scripts/describe-schema';
import { createTestDatabase } from '../support/database';
import type { TestDatabase } from '../support/database';

let database: TestDatabase;
let client: pg.Client;

beforeAll(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});

afterAll(async () => {
  await client?.end();
  await database?.drop();
});

describe('the schema', () => {
  it('is the one described in db/schema.txt', async () => {
    const described = await describeSchema(client);
    const refresh =
      'The schema is not the one that db/schema.txt describes. If it was changed on purpose (by a new ' +
      'migration), refresh the file and commit it:\n' +
      '  DATABASE_URL=<a migrated database> npx tsx scripts/describe-schema.ts --write';
    if (described !== readFileSync(SCHEMA_FILE, 'utf8')) console.error(refresh);
    expect(described).toBe(readFileSync(SCHEMA_FILE, 'utf8'));
  });

  it('is described the same twice, and differently once anything of it changes', async () => {
    const before = await describeSchema(client);
    expect(await describeSchema(client)).toBe(before);
    const changes = [
      'alter table captures drop constraint captures_status_check',
      'drop index captures_one_settles',
      'alter table orders disable trigger orders_allowed_moves',
      'drop trigger order_events_append_only on order_events',
      `insert into allowed_moves values ('order', 'paid', 'closed')`,
      'alter table pay_records alter column sends drop not null',
      'alter table pay_records alter column sends set default 1',
      'alter domain amount_minor drop constraint amount_minor_check',
      'drop view orders_with_work',
      'alter table orders add column surprise text',
    ];
    for (const change of changes) {
      await client.query('begin');
      await client.query(change);
      expect([change, (await describeSchema(client)) === before]).toEqual([change, false]);
      await client.query('rollback');
    }
    expect(await describeSchema(client)).toBe(before);
  });

  it('allows exactly the moves of domain/states.ts', async () => {
    const { rows } = await client.query<{ move: string }>(
      `select subject || ': ' || from_status || ' -> ' || to_status as move from allowed_moves`,
    );
    const ofDomain = Object.entries(MOVES).flatMap(([subject, moves]) =>
      Object.entries(moves as Record<string, readonly string[]>).flatMap(([from, targets]) =>
        targets.map((to) => `${subject}: ${from} -> ${to}`),
      ),
    );
    expect(rows.map(({ move }) => move).sort()).toEqual(ofDomain.sort());
  });

  it('knows exactly the states of domain/states.ts', async () => {
    const tables: Record<string, keyof typeof MOVES> = {
      orders: 'order',
      pay_records: 'pay_record',
      captures: 'capture',
      refunds: 'refund',
      cases: 'case',
      channel_callbacks: 'callback',
      notifications: 'notification',
      trade_bills: 'trade_bill',
      reconciliation_runs: 'reconciliation_run',
      differences: 'difference',
      fulfilment_steps: 'fulfilment_step',
    };
    for (const [table, subject] of Object.entries(tables)) {
      const { rows } = await client.query<{ check: string }>(
        `select pg_get_constraintdef(oid) as check from pg_constraint
         where conrelid = $1::regclass and conname = $2::text`,
        [table, `${table}_status_check`],
      );
      const states = [...(rows[0]?.check ?? '').matchAll(/'([a-z_]+)'/g)].map((m) => m[1]);
      const expected = Object.keys(MOVES[subject]);
      expect([table, states.sort()]).toEqual([table, expected.sort()]);
    }
  });

  it('moves every subject under the trigger that asks the table', async () => {
    const { rows } = await client.query<{ definition: string }>(
      `select pg_get_triggerdef(oid) as definition from pg_trigger
       where tgfoid in ('refuse_move_outside_table'::regproc,
           'refuse_fulfilment_move_outside_table'::regproc) and tgenabled = 'O'`,
    );
    const subjects = rows.map(({ definition }) => /table\('(\w+)'\)/.exec(definition)?.[1]);
    expect(subjects.sort()).toEqual(Object.keys(MOVES).sort());
  });
});
