import type { Pool } from '../../db/transaction';
import { withTransaction } from '../../db/transaction';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';

describe('what waits is found without reading what is over', () => {
  let database: StatementDatabase;
  let pool: Pool;
  beforeAll(async () => {
    database = await createStatementDatabase();
    pool = database.pool;
  });
  afterAll(() => database?.end());

  /** The plan when a table is read from end to end only if nothing else is possible. */
  const planOf = (statement: string) =>
    withTransaction(pool, async (client) => {
      await client.query('set local enable_seqscan = off');
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(
        `explain (costs off) ${statement}`,
      );
      return rows.map((row) => row['QUERY PLAN'].trim());
    });

  it('the sweep finds each reason by its due time', async () => {
    const plan = await planOf(
      'select merchant_id, order_id from orders_with_work where next_due_at < now()',
    );
    expect(plan.filter((line) => line.includes('Seq Scan'))).toEqual([]);
    const byDueTime = plan.filter((line) =>
      /^Index Cond: .*(next_due_at|learnt_at|confirmed_at|status = 'pending')/i.test(line),
    );
    // By its due time, or (on empty tables) by an index that holds only what waits. One per reason:
    // open, live attempt, refund, surplus, fulfilment, callback, notification, act.
    expect(byDueTime).toHaveLength(8);
  });

  it.each([
    `select reason from orders_with_work where merchant_id = 'shop' and order_id = 'o-1'`,
    `select from refunds where out_refund_no = 'R'`,
  ])('no table is read from end to end: %s', async (statement) => {
    expect((await planOf(statement)).filter((line) => line.includes('Seq Scan'))).toEqual([]);
  });
});
