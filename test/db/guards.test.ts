/**
 * What PostgreSQL itself refuses, and what it must let through: the statements go straight to the
 * tables, around every other gate.
 */
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

const UNIQUE = '23505';
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

describe('what may exist once', () => {
  it('an order id per merchant; B73: in upper and lower case it is two', async () => {
    await insertOrder(client, { order_id: 'ORDER1' });
    await insertOrder(client, { order_id: 'order1' });
    expect(await refusal(() => insertOrder(client, { order_id: 'ORDER1' }))).toEqual([
      UNIQUE,
      'orders_pkey',
    ]);
  });

  it('an attempt per order, channel and request number, also after its end', async () => {
    const order = await insertOrder(client);
    await insertPayRecord(client, order, { request_no: 'k', status: 'failed' });
    const again = { request_no: 'k', status: 'closed' };
    expect(await refusal(() => insertPayRecord(client, order, again))).toEqual([
      UNIQUE,
      'pay_records_merchant_id_order_id_channel_request_no_key',
    ]);
    await insertPayRecord(client, order, { ...again, channel: 'ch-b' });
    await insertPayRecord(client, await insertOrder(client), again);
  });

  it.each(['created', 'submitting', 'pending'])(
    'B01, B02: an attempt that may still take money, beside one that is %s',
    async (status) => {
      const order = await insertOrder(client);
      const first = await insertPayRecord(client, order, { status });
      for (const second of ['created', 'submitting', 'pending'])
        for (const channel of ['ch-a', 'ch-b'])
          expect(
            await refusal(() => insertPayRecord(client, order, { status: second, channel })),
          ).toEqual([UNIQUE, 'pay_records_one_live_attempt']);
      await set('pay_records', 'pay_record_id', first, `status = 'closed'`);
      await insertPayRecord(client, order, { status: 'pending' });
    },
  );

  it('our number at a channel, for ever: B77', async () => {
    await insertPayRecord(client, await insertOrder(client), {
      out_trade_no: 'SAME',
      status: 'failed',
    });
    const other = await insertOrder(client);
    expect(
      await refusal(() =>
        insertPayRecord(client, other, { out_trade_no: 'SAME', channel: 'ch-b' }),
      ),
    ).toEqual([UNIQUE, 'pay_records_out_trade_no_key']);
  });

  it('a trade number per channel, whatever the order', async () => {
    const first = await insertPayRecord(client, await insertOrder(client));
    const second = await insertPayRecord(client, await insertOrder(client));
    await insertCapture(client, first, { channel_trade_no: 'T' });
    expect(await refusal(() => insertCapture(client, second, { channel_trade_no: 'T' }))).toEqual([
      UNIQUE,
      'captures_channel_channel_trade_no_key',
    ]);
    await insertCapture(client, second, { channel_trade_no: 'T', channel: 'ch-b' });
  });

  it('a capture that settles an order; the surplus beside it is a fact and let through', async () => {
    const record = await insertPayRecord(client, await insertOrder(client));
    const settling = await insertCapture(client, record);
    expect(await refusal(() => insertCapture(client, record))).toEqual([
      UNIQUE,
      'captures_one_settles',
    ]);
    const surplus = { settles: false, kind: 'surplus_duplicate' };
    await insertCapture(client, record, surplus);
    const second = await insertCapture(client, record, surplus);
    expect(await refusal(() => set('captures', 'capture_id', second, 'settles = true'))).toEqual([
      UNIQUE,
      'captures_one_settles',
    ]);
    // Also when the first was taken back: what settles an order is decided once, or by a person.
    await set('captures', 'capture_id', settling, `status = 'reversed'`);
    expect(await refusal(() => insertCapture(client, record))).toEqual([
      UNIQUE,
      'captures_one_settles',
    ]);
  });

  it('a refund number per order, and our refund number for ever: B54', async () => {
    const record = await insertPayRecord(client, await insertOrder(client));
    const capture = await insertCapture(client, record);
    await insertRefund(client, capture, { refund_no: 'R1', out_refund_no: 'X', status: 'failed' });
    expect(await refusal(() => insertRefund(client, capture, { refund_no: 'R1' }))).toEqual([
      UNIQUE,
      'refunds_merchant_id_order_id_refund_no_key',
    ]);
    expect(await refusal(() => insertRefund(client, capture, { out_refund_no: 'X' }))).toEqual([
      UNIQUE,
      'refunds_out_refund_no_key',
    ]);
    const other = await insertCapture(
      client,
      await insertPayRecord(client, await insertOrder(client)),
    );
    await insertRefund(client, other, { refund_no: 'R1' });
  });

  const request = (order: Row, said: Row = {}): Row => ({
    merchant_id: 'shop',
    order_id: order['order_id'],
    kind: 'pay',
    request_no: 'n',
    fingerprint: Buffer.from('f'),
    params: '{}',
    ...said,
  });
  it('a request number per order and kind of request', async () => {
    const order = await insertOrder(client);
    await insertRow(client, 'merchant_requests', request(order));
    await insertRow(client, 'merchant_requests', request(order, { kind: 'refund' }));
    expect(await refusal(() => insertRow(client, 'merchant_requests', request(order)))).toEqual([
      UNIQUE,
      'merchant_requests_pkey',
    ]);
  });

  const callback = (said: Row = {}): Row => ({
    channel: 'ch-a',
    fact_sha256: Buffer.from('hash'),
    fact: '{}',
    our_no: 'OUT',
    raw_body: Buffer.from('body'),
    ...said,
  });
  it('B23: the same news per channel', async () => {
    await insertRow(client, 'channel_callbacks', callback());
    await insertRow(client, 'channel_callbacks', callback({ channel: 'ch-b' }));
    expect(
      await refusal(() => insertRow(client, 'channel_callbacks', callback({ event_id: 'other' }))),
    ).toEqual([UNIQUE, 'channel_callbacks_channel_fact_sha256_key']);
  });

  const aCase = (said: Row): Row => ({ subject_no: 's', kind: 'k', summary: 's', ...said });
  it('an open case per order, and per number of no order; closed ones do not count', async () => {
    const { order_id } = await insertOrder(client);
    const ofOrder = aCase({ merchant_id: 'shop', order_id });
    const first = await insertRow(client, 'cases', ofOrder);
    expect(await refusal(() => insertRow(client, 'cases', { ...ofOrder, kind: 'x' }))).toEqual([
      UNIQUE,
      'cases_one_open_per_order',
    ]);
    await set('cases', 'case_id', first, `status = 'closed'`);
    await insertRow(client, 'cases', ofOrder);

    const ofNumber = aCase({ channel: 'ch-a', subject_no: 'STRAY' });
    await insertRow(client, 'cases', ofNumber);
    expect(await refusal(() => insertRow(client, 'cases', ofNumber))).toEqual([
      UNIQUE,
      'cases_one_open_per_number',
    ]);
    await insertRow(client, 'cases', { ...ofNumber, channel: 'ch-b' });
  });

  const event = (order: Row, said: Row): Row => ({
    merchant_id: 'shop',
    order_id: order['order_id'],
    seq: 1,
    event_type: 'order.paid',
    payload: '{}',
    ...said,
  });
  it('B22: an event per subject, and a place in the order of telling', async () => {
    const order = await insertOrder(client);
    await insertRow(client, 'notifications', event(order, {}));
    expect(
      await refusal(() => insertRow(client, 'notifications', event(order, { seq: 2 }))),
    ).toEqual([UNIQUE, 'notifications_merchant_id_order_id_event_type_subject_no_key']);
    expect(
      await refusal(() => insertRow(client, 'notifications', event(order, { event_type: 'x' }))),
    ).toEqual([UNIQUE, 'notifications_merchant_id_order_id_seq_key']);
    await insertRow(client, 'notifications', event(order, { seq: 2, subject_no: 'r-1' }));
  });

  const key = (said: Row = {}): Row => ({
    merchant_id: 'shop',
    method: 'POST',
    route: '/v1/orders',
    idempotency_key: 'K',
    fingerprint: Buffer.from('f'),
    leased_until: new Date(),
    expires_at: new Date(),
    ...said,
  });
  it('B65: an Idempotency-Key per caller, method and route', async () => {
    await insertRow(client, 'idempotency_keys', key());
    await insertRow(client, 'idempotency_keys', key({ route: '/v1/orders/{order_id}/cancel' }));
    await insertRow(client, 'idempotency_keys', key({ idempotency_key: 'k' }));
    expect(await refusal(() => insertRow(client, 'idempotency_keys', key()))).toEqual([
      UNIQUE,
      'idempotency_keys_pkey',
    ]);
  });

  it('an API key’s hash', async () => {
    const apiKey = { merchant_id: 'shop', key_sha256: Buffer.from('h'), scopes: ['pay'] };
    await insertRow(client, 'api_keys', { ...apiKey, key_id: 'a' });
    expect(await refusal(() => insertRow(client, 'api_keys', { ...apiKey, key_id: 'b' }))).toEqual([
      UNIQUE,
      'api_keys_key_sha256_key',
    ]);
    expect(
      await refusal(() =>
        insertRow(client, 'api_keys', {
          ...apiKey,
          key_id: 'c',
          key_sha256: 'x',
          scopes: ['root'],
        }),
      ),
    ).toEqual([CHECK, 'api_keys_scopes_check']);
  });
});

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

describe('which moves may be made, hand-typed ones too', () => {
  /** Rows that stand at a state from their birth. */
  const born: Record<
    string,
    { table: string; id: string; make: (status: string) => Promise<Row> }
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
    const result = await refusal(() => set(kind.table, kind.id, row, `status = '${to}'`));
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
        const order = await insertOrder(client, { status: orderStatus });
        const record = await insertPayRecord(client, order, { status });
        await set('pay_records', 'pay_record_id', record, `status = 'paid'`);
        await insertCapture(client, record, { settles: false, kind: 'held', amount_minor: 1 });
      }
  });
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

describe('two writers at once', () => {
  it('B01: open one attempt between them: the second waits and is refused', async () => {
    await client.query('rollback');
    const order = await insertOrder(client);
    const second = new pg.Client({ connectionString: database.url });
    await second.connect();
    try {
      await client.query('begin');
      await insertPayRecord(client, order);
      const late = insertPayRecord(second, order).then(
        () => 'let through',
        (error: unknown) => (error instanceof pg.DatabaseError ? error.constraint : error),
      );
      await client.query('commit');
      expect(await late).toBe('pay_records_one_live_attempt');
    } finally {
      await second.end();
      await client.query('begin');
    }
  });
});
