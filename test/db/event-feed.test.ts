import { readFeed } from '../../db/event-feed';
import { insertNotification } from '../../db/notifications';
import type { OrderRef } from '../../domain/orders';
import { insertOrder, insertRow } from '../support/rows';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';

describe('a merchant’s feed of events', () => {
  let database: StatementDatabase;
  let merchantId: string;
  let merchants = 0;
  beforeAll(async () => {
    database = await createStatementDatabase();
  });
  afterAll(() => database?.end());
  beforeEach(async () => {
    merchantId = `shop-${++merchants}`;
    await insertRow(database.pool, 'merchants', { merchant_id: merchantId, name: 'A shop' });
  });

  async function anOrder(): Promise<OrderRef> {
    const row = await insertOrder(database.pool, { merchant_id: merchantId });
    return { merchantId, orderId: String(row['order_id']) };
  }

  /** A transaction that has written its event and waits for the word to commit. */
  async function openTransaction(ref: OrderRef, event: 'order.paid' | 'order.closed') {
    const client = await database.pool.connect();
    await client.query('begin');
    await client.query(`select 1 from orders where order_id = $1 for update`, [ref.orderId]);
    await insertNotification(client, ref, event, '');
    return {
      async end(word: 'commit' | 'rollback') {
        await client.query(word);
        client.release();
      },
    };
  }

  const read = (afterNo: number, limit = 100) =>
    readFeed(database.pool, merchantId, { afterNo, limit });

  it('numbers what is committed, from 1, and never anew', async () => {
    const refs = [await anOrder(), await anOrder(), await anOrder()];
    for (const ref of refs) await insertNotification(database.pool, ref, 'order.paid', '');
    const first = await read(0);
    expect(first.map(({ eventNo, orderId }) => [eventNo, orderId])).toEqual(
      refs.map(({ orderId }, i) => [i + 1, orderId]),
    );
    await insertNotification(database.pool, refs[0]!, 'order.closed', '');
    expect((await read(0)).slice(0, 3)).toEqual(first);
    expect((await read(3)).map(({ eventNo, eventType }) => [eventNo, eventType])).toEqual([
      [4, 'order.closed'],
    ]);
    expect(await read(4)).toEqual([]);
  });

  it('does not skip an event whose transaction began first and commits last', async () => {
    const [slow, quick] = [await anOrder(), await anOrder()];
    const open = await openTransaction(slow, 'order.paid');
    await insertNotification(database.pool, quick, 'order.paid', '');
    const before = await read(0);
    expect(before.map(({ orderId }) => orderId)).toEqual([quick.orderId]);
    await open.end('commit');
    // It has the smaller row number, and comes after all that was read before.
    const after = await read(before.at(-1)!.eventNo);
    expect(after.map(({ orderId }) => orderId)).toEqual([slow.orderId]);
  });

  it('has no gap where a transaction was rolled back', async () => {
    const open = await openTransaction(await anOrder(), 'order.paid');
    await insertNotification(database.pool, await anOrder(), 'order.paid', '');
    await open.end('rollback');
    await insertNotification(database.pool, await anOrder(), 'order.paid', '');
    expect((await read(0)).map(({ eventNo }) => eventNo)).toEqual([1, 2]);
  });

  it('holds up no settlement: an open reader’s lock is none of the writers’', async () => {
    const ref = await anOrder();
    await insertNotification(database.pool, ref, 'order.paid', '');
    await read(0);
    const reader = await database.pool.connect();
    await reader.query('begin');
    await reader.query(`select 1 from event_feeds where merchant_id = $1 for update`, [merchantId]);
    await insertNotification(database.pool, ref, 'order.closed', '');
    await reader.query('rollback');
    reader.release();
    expect(await read(1)).toHaveLength(1);
  });

  it('is complete for every reader while writers commit in any order', async () => {
    const WRITERS = 8;
    const EVENTS = 25;
    let writing = WRITERS;
    const writers = Array.from({ length: WRITERS }, async (_, w) => {
      for (let i = 0; i < EVENTS; i++) {
        const open = await openTransaction(await anOrder(), 'order.paid');
        // A wait of its own length between writing and committing, so that the orders differ.
        await database.pool.query(`select pg_sleep($1)`, [((w * 7 + i * 3) % 10) / 500]);
        await open.end(i % 9 === 8 ? 'rollback' : 'commit');
      }
      writing--;
    });
    const readers = Array.from({ length: 3 }, async () => {
      const seen: string[] = [];
      let afterNo = 0;
      for (let isLast = false; ;) {
        const page = await read(afterNo, 7);
        seen.push(...page.map(({ orderId }) => orderId));
        afterNo = page.at(-1)?.eventNo ?? afterNo;
        if (page.length === 0 && isLast) return seen;
        isLast = page.length === 0 && writing === 0;
      }
    });
    await Promise.all(writers);
    const { rows } = await database.pool.query<{ order_id: string }>(
      `select order_id from notifications where merchant_id = $1`,
      [merchantId],
    );
    const [one, ...others] = await Promise.all(readers);
    expect(one!.length).toBe(WRITERS * (EVENTS - 2));
    expect([...one!].sort()).toEqual(rows.map(({ order_id }) => order_id).sort());
    for (const other of others) expect(other).toEqual(one);
  }, 60_000);

  it('keeps the events of one order in their order', async () => {
    const ref = await anOrder();
    for (const event of ['order.paid', 'refund.succeeded', 'order.closed'] as const)
      await insertNotification(database.pool, ref, event, '');
    expect((await read(0)).map(({ seq }) => seq)).toEqual([1, 2, 3]);
  });
});
