import { takeWaitingCallbacks } from '../../db/callbacks';
import { noteNudge, noteRunStarted, overdueOrders } from '../../db/work';
import type { Pool } from '../../db/transaction';
import { insertOrder, insertRow } from '../support/rows';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';

describe('telling a run that does not look', () => {
  let database: StatementDatabase;
  let pool: Pool;
  // What is kept for ever cannot be emptied: each test has a database of its own.
  beforeEach(async () => {
    database = await createStatementDatabase();
    pool = database.pool;
  });
  afterEach(() => database?.end());

  async function anOverdueOrder() {
    const order = await insertOrder(pool, { next_due_at: '2020-01-01T00:00:00Z' });
    return { merchantId: 'shop', orderId: String(order['order_id']) };
  }

  const overdue = () => overdueOrders(pool, { pastDueMs: 60_000, limit: 10 });
  const nudgedAgo = (ago: string) =>
    pool.query(`update orders set nudged_at = now() - $1::interval`, [ago]);

  it('waits twice as long each time, an hour at most', async () => {
    const ref = await anOverdueOrder();
    expect(await overdue()).toEqual([ref]);
    for (const [left, again] of [
      ['15 seconds', '25 seconds'],
      ['35 seconds', '45 seconds'],
      ['75 seconds', '85 seconds'],
    ] as const) {
      await noteNudge(pool, ref);
      expect(await overdue()).toEqual([]);
      await nudgedAgo(left);
      expect(await overdue()).toEqual([]);
      await nudgedAgo(again);
      expect(await overdue()).toEqual([ref]);
    }
    await pool.query('update orders set nudges = 1000');
    await nudgedAgo('59 minutes');
    expect(await overdue()).toEqual([]);
    await nudgedAgo('61 minutes');
    expect(await overdue()).toEqual([ref]);
  });

  it('begins anew once a run has looked', async () => {
    const ref = await anOverdueOrder();
    await noteNudge(pool, ref);
    await noteRunStarted(pool, ref);
    await pool.query(`update orders set next_due_at = '2020-01-01T00:00:00Z'`);
    expect(await overdue()).toEqual([ref]);
  });

  it('rings less and less often for news that nobody reads', async () => {
    const ref = await anOverdueOrder();
    await insertRow(pool, 'channel_callbacks', {
      channel: 'ch-a',
      fact_sha256: Buffer.from('1'),
      fact: '{}',
      our_no: 'X',
      raw_body: Buffer.from(''),
      merchant_id: 'shop',
      order_id: ref.orderId,
    });
    const ring = async () => {
      await pool.query(`update channel_callbacks set next_due_at = now()`);
      expect(await takeWaitingCallbacks(pool, { limit: 5, againAfterMs: 5_000 })).toEqual([ref]);
      await noteNudge(pool, ref);
      const { rows } = await pool.query<{ wait: number }>(
        `select round(extract(epoch from next_due_at - now()))::int as wait from channel_callbacks`,
      );
      return rows[0]?.wait;
    };
    expect([await ring(), await ring(), await ring()]).toEqual([5, 10, 20]);
    await pool.query('update orders set nudges = 1000');
    expect(await ring()).toBe(3_600);
  });
});
