import { readProgress } from '../../db/progress';
import { aPolicy } from '../support/builders';
import { insertCapture, insertOrder, insertPayRecord, insertRefund } from '../support/rows';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';

describe('where an order stands', () => {
  let database: StatementDatabase;
  beforeAll(async () => {
    database = await createStatementDatabase();
  });
  afterAll(() => database?.end());

  it('names a new refund though twenty older ones wait for weeks', async () => {
    const { pool } = database;
    const order = await insertOrder(pool, { status: 'paying' });
    const capture = await insertCapture(pool, await insertPayRecord(pool, order));
    const nextWeek = new Date(Date.now() + 7 * 86_400_000);
    for (let i = 0; i < 20; i++)
      await insertRefund(pool, capture, {
        status: 'processing',
        amount_minor: 1,
        next_due_at: nextWeek,
      });
    const fresh = await insertRefund(pool, capture, { amount_minor: 1 });
    const ref = { merchantId: 'shop', orderId: String(order['order_id']) };
    const progress = await readProgress(pool, ref, () => aPolicy());
    expect(progress?.refunds).toHaveLength(20);
    expect(progress?.refunds.map((r) => r.refundNo)).toContain(fresh['refund_no']);
  });
});
