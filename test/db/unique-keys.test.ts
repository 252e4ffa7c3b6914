/** What may exist once: every unique key and partial index, by statements around all other gates. */
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

const UNIQUE = '23505';
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
      'refunds_channel_out_refund_no_key',
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
