/** Every pair of states of everything that moves, by statements around all other gates. */
import pg from 'pg';
import { MOVES } from '../../domain/states';
import { createTestDatabase } from '../support/database';
import type { TestDatabase } from '../support/database';
import {
  insertCapture,
  insertMerchantAndChannels,
  insertOrder,
  insertPayRecord,
  insertRefund,
  insertRow,
} from '../support/rows';

type Row = Record<string, unknown>;

let database: TestDatabase;
let client: pg.Client;

beforeAll(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await insertMerchantAndChannels(client);
});

afterAll(async () => {
  await client?.end();
  await database?.drop();
});

beforeEach(() => client.query('begin'));
afterEach(() => client.query('rollback'));

const CHECK = '23514';

/** The code and the constraint a statement is refused with; the transaction goes on after it. */
async function refusal(statement: () => Promise<unknown>): Promise<[string, string | undefined]> {
  await client.query('savepoint before');
  try {
    await statement();
  } catch (error) {
    await client.query('rollback to before');
    if (error instanceof pg.DatabaseError) return [error.code ?? '', error.constraint];
    throw error;
  }
  return ['let through', undefined];
}

const set = (table: string, id: string, row: Row, assignments: string) =>
  client.query(`update ${table} set ${assignments} where ${id} = $1`, [row[id]]);

describe('which moves may be made, hand-typed ones too', () => {
  /** Rows that stand at a state from their birth. */
  const born: Record<
    string,
    { table: string; id: string; column?: string; make: (status: string) => Promise<Row> }
  > = {
    order: { table: 'orders', id: 'order_id', make: (status) => insertOrder(client, { status }) },
    pay_record: {
      table: 'pay_records',
      id: 'pay_record_id',
      make: async (status) => insertPayRecord(client, await insertOrder(client), { status }),
    },
    capture: {
      table: 'captures',
      id: 'capture_id',
      make: async (status) =>
        insertCapture(client, await insertPayRecord(client, await insertOrder(client)), { status }),
    },
    refund: {
      table: 'refunds',
      id: 'refund_id',
      make: async (status) =>
        insertRefund(
          client,
          await insertCapture(client, await insertPayRecord(client, await insertOrder(client))),
          { status },
        ),
    },
    case: {
      table: 'cases',
      id: 'case_id',
      make: (status) =>
        insertRow(client, 'cases', { subject_no: 's', kind: 'k', summary: 's', status }),
    },
    callback: {
      table: 'channel_callbacks',
      id: 'callback_id',
      make: (status) =>
        insertRow(client, 'channel_callbacks', {
          channel: 'ch-a',
          fact_sha256: Buffer.from('h'),
          fact: '{}',
          our_no: 'OUT',
          raw_body: Buffer.from('b'),
          status,
        }),
    },
    notification: {
      table: 'notifications',
      id: 'notification_id',
      make: async (status) =>
        insertRow(client, 'notifications', {
          merchant_id: 'shop',
          order_id: (await insertOrder(client))['order_id'],
          seq: 1,
          event_type: 'e',
          payload: '{}',
          status,
        }),
    },
    trade_bill: {
      table: 'trade_bills',
      id: 'bill_id',
      make: (status) =>
        insertRow(client, 'trade_bills', {
          channel: 'ch-a',
          business_date: '2026-05-01',
          file_name: 'bill.csv',
          status,
          fault: status === 'rejected' ? 'cut_off' : null,
        }),
    },
    reconciliation_run: {
      table: 'reconciliation_runs',
      id: 'channel',
      make: (status) =>
        insertRow(client, 'reconciliation_runs', {
          channel: 'ch-a',
          business_date: '2026-05-01',
          status,
        }),
    },
    difference: {
      table: 'differences',
      id: 'difference_id',
      make: (status) =>
        insertRow(client, 'differences', {
          channel: 'ch-a',
          business_date: '2026-05-01',
          kind: 'amount',
          subject: 'T1',
          status,
        }),
    },
    fulfilment: {
      table: 'orders',
      id: 'order_id',
      column: 'fulfilment_status',
      make: (status) => insertOrder(client, { fulfilment_status: status }),
    },
    fulfilment_step: {
      table: 'fulfilment_steps',
      id: 'order_id',
      make: async (status) =>
        insertRow(client, 'fulfilment_steps', {
          merchant_id: 'shop',
          order_id: (await insertOrder(client))['order_id'],
          step_no: 1,
          name: 's',
          url: 'https://shop.example/s',
          status,
        }),
    },
    operator_act: {
      table: 'operator_acts',
      id: 'act_id',
      make: async (status) =>
        insertRow(client, 'operator_acts', {
          act_no: 'a-1',
          kind: 'note',
          merchant_id: 'shop',
          order_id: (await insertOrder(client))['order_id'],
          reason: 'r',
          actor_key: 'k',
          actor_name: 'n',
          fingerprint: Buffer.from('f'),
          needs_second: false,
          status,
        }),
    },
  };
  const pairs = Object.entries(MOVES).flatMap(([subject, moves]) =>
    Object.keys(moves).flatMap((from) =>
      Object.keys(moves).map((to): [string, string, string, boolean] => [
        subject,
        from,
        to,
        from === to || (moves as Record<string, readonly string[]>)[from]?.includes(to) === true,
      ]),
    ),
  );

  it.each(pairs)('%s from %s to %s: %p', async (subject, from, to, allowed) => {
    const kind = born[subject];
    if (!kind) throw new Error(`no rows of ${subject}`);
    const row = await kind.make(from);
    const result = await refusal(() =>
      set(kind.table, kind.id, row, `${kind.column ?? 'status'} = '${to}'`),
    );
    expect(result).toEqual(
      allowed ? ['let through', undefined] : [CHECK, `${subject}_allowed_moves`],
    );
  });

  it.each(['created', 'submitting', 'pending'])(
    'no order closes while its attempt is %s',
    async (status) => {
      for (const from of ['created', 'paying']) {
        const order = await insertOrder(client, { status: from });
        const record = await insertPayRecord(client, order, { status });
        const close = () => set('orders', 'order_id', order, `status = 'closed'`);
        expect(await refusal(close)).toEqual([CHECK, 'orders_close_needs_no_live_attempt']);
        await set('pay_records', 'pay_record_id', record, `status = 'failed'`);
        expect(await refusal(close)).toEqual(['let through', undefined]);
      }
    },
  );

  it('the live attempt of another order, or of another merchant’s, keeps none open', async () => {
    await insertRow(client, 'merchants', { merchant_id: 'other', name: 'Another shop' });
    const order = await insertOrder(client);
    await insertPayRecord(client, await insertOrder(client));
    const namesake = { merchant_id: 'other', order_id: order['order_id'] };
    await insertPayRecord(client, await insertOrder(client, namesake));
    await client.query(
      `update orders set status = 'closed' where merchant_id = 'shop' and order_id = $1`,
      [order['order_id']],
    );
  });
});
