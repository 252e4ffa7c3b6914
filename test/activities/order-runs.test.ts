import type { Client } from '@temporalio/client';
import { ServiceError } from '@temporalio/client';
import { tellRuns } from '../../activities/order-runs';
import { overdueOrders } from '../../db/work';
import type { OrderRef } from '../../domain/orders';
import { nudgeSignal } from '../../workflows/messages';
import { insertOrder } from '../support/rows';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';

const ORDERS = 30;
const [INVALID_ARGUMENT, UNAVAILABLE] = [3, 14];

describe('telling orders’ runs from outside', () => {
  let database: StatementDatabase;
  let refs: OrderRef[];
  beforeAll(async () => {
    database = await createStatementDatabase();
    refs = [];
    for (let i = 0; i < ORDERS; i++) {
      const order = await insertOrder(database.pool, {
        next_due_at: new Date(Date.now() - 3_600_000),
      });
      refs.push({ merchantId: 'shop', orderId: String(order['order_id']) });
    }
  });
  afterAll(() => database?.end());

  /** A server that refuses signals with this gRPC code: to the first order, or to everybody. */
  function serverThatRefuses(code: number, everybody = false) {
    const signalled: string[] = [];
    const signalWithStart = (_: string, { workflowId }: { workflowId: string }) => {
      const isFirst = workflowId === `order:shop:${refs[0]?.orderId}`;
      if (!isFirst) signalled.push(workflowId);
      if (isFirst || everybody) {
        const cause = Object.assign(new Error('refused'), { code, details: '', metadata: {} });
        return Promise.reject(new ServiceError('refused', { cause }));
      }
      return Promise.resolve();
    };
    return { signalled, client: { workflow: { signalWithStart } } as unknown as Client };
  }

  it('an order whose run takes no more signals keeps no other from being told', async () => {
    const { client, signalled } = serverThatRefuses(INVALID_ARGUMENT);
    const failures: OrderRef[] = [];
    const deps = { pool: database.pool, client, taskQueue: 'test' };
    const told = await tellRuns(deps, refs, nudgeSignal, (ref) => failures.push(ref));
    expect(told).toBe(ORDERS - 1);
    expect(signalled).toHaveLength(ORDERS - 1);
    expect(failures).toEqual([refs[0]]);
  });

  it('a server that is away ends the round at once', async () => {
    const { client, signalled } = serverThatRefuses(UNAVAILABLE, true);
    const deps = { pool: database.pool, client, taskQueue: 'test' };
    const telling = tellRuns(deps, refs, nudgeSignal, () => undefined);
    await expect(telling).rejects.toBeInstanceOf(ServiceError);
    // Each lane stops at its first refusal.
    expect(signalled.length).toBeLessThan(ORDERS / 2);
  });

  it('orders that stay overdue whatever happens keep no other from being found', async () => {
    const found = new Set<string>();
    for (let sweep = 0; sweep < 40 * ORDERS && found.size < ORDERS; sweep++) {
      // As if each had been told long ago: how long a told order is left alone is not the question.
      await database.pool.query('update orders set nudged_at = null');
      for (const ref of await overdueOrders(database.pool, { pastDueMs: 60_000, limit: 2 }))
        found.add(ref.orderId);
    }
    expect(found.size).toBe(ORDERS);
  });
});
