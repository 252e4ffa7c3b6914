/**
 * What PostgreSQL itself refuses, and what it must let through: the statements go straight to the
 * tables, around every other gate.
 */
import pg from 'pg';
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
const RESTRICT = '23001';

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

describe('what a value may be', () => {
  it.each(['1', '9007199254740991'])('B46: an amount of %s minor units', async (amount_minor) => {
    const order = await insertOrder(client, { amount_minor });
    expect(String(order['amount_minor'])).toBe(amount_minor);
  });

  it.each(['0', '-1', '9007199254740992', '9223372036854775807'])(
    'B46, B50: but no amount of %s, in any table',
    async (amount_minor) => {
      const order = await insertOrder(client);
      const record = await insertPayRecord(client, order);
      const capture = await insertCapture(client, record);
      const wrong = { amount_minor };
      for (const statement of [
        () => insertOrder(client, wrong),
        () => insertPayRecord(client, order, { ...wrong, status: 'failed' }),
        () => insertCapture(client, record, { ...wrong, settles: false }),
        () => insertRefund(client, capture, wrong),
      ])
        expect((await refusal(statement))[0]).toBe(CHECK);
    },
  );

  it.each(['reserved_minor', 'refunded_minor', 'reversed_minor'])(
    'no %s below nothing or beyond what every reader holds exactly',
    async (sum) => {
      const capture = await insertCapture(
        client,
        await insertPayRecord(client, await insertOrder(client)),
      );
      for (const minor of ['-1', '9007199254740992'])
        expect(
          (await refusal(() => set('captures', 'capture_id', capture, `${sum} = ${minor}`)))[0],
        ).toBe(CHECK);
    },
  );

  it.each(['cny', 'CN', 'CNYY', 'CNY\n', ''])('no currency %p', async (currency) => {
    expect((await refusal(() => insertOrder(client, { currency })))[0]).toBe(CHECK);
  });

  it.each(['007', 'a.b_c-d', 'x'.repeat(64)])(
    'B74: an identifier %p, as it is',
    async (order_id) => {
      expect((await insertOrder(client, { order_id }))['order_id']).toBe(order_id);
    },
  );

  it.each(['', '.', '..', '-a', 'a b', 'a\n', 'a:b', 'auto:1', 'a/b', '中文', 'é', 'x'.repeat(65)])(
    'B74: no identifier %p',
    async (text) => {
      const order = await insertOrder(client);
      expect((await refusal(() => insertOrder(client, { order_id: text })))[0]).toBe(CHECK);
      expect((await refusal(() => insertPayRecord(client, order, { request_no: text })))[0]).toBe(
        CHECK,
      );
    },
  );

  it('a refund number of a merchant or of the system’s own form', async () => {
    const capture = await insertCapture(
      client,
      await insertPayRecord(client, await insertOrder(client)),
    );
    for (const refund_no of ['R-1', 'auto:17', 'external:ABC'])
      await insertRefund(client, capture, { refund_no });
    for (const refund_no of ['', 'other:1', 'auto:', 'auto:a:b', ' R', '中'])
      expect(await refusal(() => insertRefund(client, capture, { refund_no }))).toEqual([
        CHECK,
        'refunds_refund_no_check',
      ]);
  });

  it.each(['', 'a-b', 'a b', 'x'.repeat(33), '中'])(
    'no number %p at a channel',
    async (out_trade_no) => {
      const order = await insertOrder(client);
      expect(await refusal(() => insertPayRecord(client, order, { out_trade_no }))).toEqual([
        CHECK,
        'pay_records_out_trade_no_check',
      ]);
    },
  );

  it.each(['orders', 'pay_records', 'captures', 'refunds'])(
    'no state that %s do not know',
    async (table) => {
      const order = await insertOrder(client);
      const record = () => insertPayRecord(client, order);
      const wrong = { status: 'lost' };
      const insert: Record<string, () => Promise<unknown>> = {
        orders: () => insertOrder(client, wrong),
        pay_records: () => insertPayRecord(client, order, wrong),
        captures: async () => insertCapture(client, await record(), wrong),
        refunds: async () =>
          insertRefund(client, await insertCapture(client, await record()), wrong),
      };
      expect(await refusal(insert[table] ?? (() => Promise.resolve()))).toEqual([
        CHECK,
        `${table}_status_check`,
      ]);
    },
  );

  it('nothing that belongs to no order', async () => {
    const nowhere = {
      merchant_id: 'shop',
      order_id: 'nowhere',
      channel: 'ch-a',
      pay_record_id: 1,
      capture_id: 1,
    };
    for (const insert of [insertPayRecord, insertCapture, insertRefund])
      expect((await refusal(() => insert(client, nowhere)))[0]).toBe('23503');
  });
});

describe('promises are checked, facts are never refused', () => {
  let capture: Row;
  beforeEach(async () => {
    capture = await insertCapture(client, await insertPayRecord(client, await insertOrder(client)));
  });
  const update = (assignments: string) => set('captures', 'capture_id', capture, assignments);
  const OVER = [CHECK, 'captures_reservation_within_rest'];

  it('B51: a reservation fills the capture and goes no cent further', async () => {
    await update('reserved_minor = reserved_minor + 6000');
    expect(await refusal(() => update('reserved_minor = reserved_minor + 4001'))).toEqual(OVER);
    await update('reserved_minor = reserved_minor + 4000');
    expect(await refusal(() => update('reserved_minor = reserved_minor + 1'))).toEqual(OVER);
  });

  it.each(['refunded_minor', 'reversed_minor'])(
    'what is %s is no longer free to reserve',
    async (sum) => {
      await update(`${sum} = 9000`);
      expect(await refusal(() => update('reserved_minor = 1001'))).toEqual(OVER);
      await update('reserved_minor = 1000');
    },
  );

  it.each(['refunded_minor', 'reversed_minor'])(
    '%s may pass the capture: it is what the channel says',
    async (sum) => {
      await update('reserved_minor = 10000');
      await update(`${sum} = 25000`);
      // And what was promised before may still end, and shrink.
      await update('reserved_minor = 5000');
      await update('reserved_minor = 0, refunded_minor = refunded_minor + 5000');
    },
  );

  it('a capture may be corrected below what was given back of it', async () => {
    await update('refunded_minor = 9000');
    await update('amount_minor = 100');
  });

  it('money may arrive on any attempt and any order', async () => {
    for (const status of ['created', 'submitting', 'pending', 'failed', 'closed'])
      for (const orderStatus of ['created', 'paying', 'paid', 'closed', 'review']) {
        const isLive = ['created', 'submitting', 'pending'].includes(status);
        if (isLive && !['created', 'paying'].includes(orderStatus)) continue;
        const order = await insertOrder(client, { status: orderStatus });
        const record = await insertPayRecord(client, order, { status });
        await set('pay_records', 'pay_record_id', record, `status = 'paid'`);
        await insertCapture(client, record, { settles: false, kind: 'held', amount_minor: 1 });
      }
  });
});

it.each(['paid', 'closed', 'review'])('no attempt opens on an order that is %s', async (status) => {
  const order = await insertOrder(client, { status });
  expect(await refusal(() => insertPayRecord(client, order, { status: 'created' }))).toEqual([
    CHECK,
    'pay_records_need_open_order',
  ]);
});

it('no attempt opens on an order that is being closed', async () => {
  const order = await insertOrder(client, { close_requested_at: new Date().toISOString() });
  expect(await refusal(() => insertPayRecord(client, order, { status: 'created' }))).toEqual([
    CHECK,
    'pay_records_need_open_order',
  ]);
});

describe('the history of an order', () => {
  beforeEach(() =>
    insertRow(client, 'order_events', {
      merchant_id: 'shop',
      order_id: 'o',
      subject: 'order',
      subject_id: 'o',
      to_status: 'paid',
      cause: 'first_success',
      actor: 'system',
    }),
  );

  it.each([
    ['changed', `update order_events set actor = 'nobody'`],
    ['taken back', `delete from order_events`],
  ])('is never %s', async (_, statement) => {
    expect((await refusal(() => client.query(statement)))[0]).toBe(RESTRICT);
    const { rows } = await client.query('select actor from order_events');
    expect(rows).toEqual([{ actor: 'system' }]);
  });
});
