import { MockActivityEnvironment } from '@temporalio/testing';
import { ApplicationFailure } from '@temporalio/common';
import { createNotificationSteps } from '../../activities/notifications';
import { insertNotification } from '../../db/notifications';
import type { OrderRef } from '../../domain/orders';
import type { OrderProgress } from '../../domain/progress';
import { aPolicy } from '../support/builders';
import { startMerchantServer } from '../support/merchant-server';
import type { MerchantServer } from '../support/merchant-server';
import { insertOrder } from '../support/rows';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';

const SECRET = `whsec_${Buffer.from('a secret of twenty-four b').toString('base64')}`;

describe('telling the merchant', () => {
  let database: StatementDatabase;
  let merchant: MerchantServer;
  beforeAll(async () => {
    database = await createStatementDatabase();
    merchant = await startMerchantServer(SECRET);
    await database.pool.query(
      `update merchants set notify_url = $1::text, notify_secret_ref = 'env:X'`,
      [merchant.url],
    );
  });
  afterAll(async () => {
    await merchant?.close();
    await database?.end();
  });
  beforeEach(() => {
    merchant.answer = () => 200;
    merchant.received.length = 0;
  });

  function steps(more: { ladderMs?: number[]; allowed?: boolean } = {}) {
    const { deliverNotifications } = createNotificationSteps({
      pool: database.pool,
      channels: { all: async () => [{ row: { channel: 'ch-a' }, policy: aPolicy() }] } as never,
      client: undefined as never,
      taskQueue: 'unused',
      numberSecret: 'unused',
      reconciliation: undefined as never,
      notifications: {
        ladderMs: more.ladderMs ?? [5_000, 60_000],
        timeoutMs: 2_000,
        mayNotify: async () => more.allowed ?? true,
        resolveSecret: async () => SECRET,
      },
    });
    return (ref: OrderRef): Promise<{ order: OrderProgress }> =>
      new MockActivityEnvironment().run(deliverNotifications, ref) as Promise<{
        order: OrderProgress;
      }>;
  }

  async function anOrderWith(...events: ('order.paid' | 'order.closed' | 'refund.succeeded')[]) {
    const row = await insertOrder(database.pool);
    const ref = { merchantId: String(row['merchant_id']), orderId: String(row['order_id']) };
    for (const event of events) await insertNotification(database.pool, ref, event, '');
    return ref;
  }

  async function told(ref: OrderRef) {
    const { rows } = await database.pool.query<{
      event_type: string;
      status: string;
      tries: number;
    }>(
      `select event_type, status, tries from notifications where order_id = $1::text order by seq`,
      [ref.orderId],
    );
    return rows.map((row) => `${row.event_type} ${row.status} ${row.tries}`);
  }

  it('delivers in order, signed, each once', async () => {
    const ref = await anOrderWith('order.paid', 'refund.succeeded');
    const { order } = await steps()(ref);
    expect(order.notification).toBeNull();
    await steps()(ref);
    expect(merchant.received.map((e) => [e.type, e.seq])).toEqual([
      ['order.paid', 1],
      ['refund.succeeded', 2],
    ]);
    expect(merchant.badSignatures).toBe(0);
    expect(await told(ref)).toEqual(['order.paid sent 1', 'refund.succeeded sent 1']);
  });

  it('raises a failed try with the ladder’s delay, and a later event never overtakes', async () => {
    merchant.answer = (event) => (event.type === 'order.paid' ? 500 : 200);
    const ref = await anOrderWith('order.paid', 'refund.succeeded');
    const failure = await steps()(ref).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(failure).toBeInstanceOf(ApplicationFailure);
    expect(failure).toMatchObject({
      type: 'NotDelivered',
      nextRetryDelay: 5_000,
      nonRetryable: false,
    });
    expect(merchant.received).toEqual([]);
    expect(await told(ref)).toEqual(['order.paid pending 1', 'refund.succeeded pending 0']);
  });

  it('does not try before its time, also in another run', async () => {
    merchant.answer = () => 503;
    const ref = await anOrderWith('order.paid');
    await expect(steps()(ref)).rejects.toMatchObject({ type: 'NotDelivered' });
    merchant.answer = () => 200;
    await expect(steps()(ref)).rejects.toMatchObject({ message: 'its next try is not due yet' });
    expect(merchant.received).toEqual([]);
    expect(await told(ref)).toEqual(['order.paid pending 1']);
  });

  it('gives an event up after the last rung and goes on with the next', async () => {
    merchant.answer = (event) => (event.type === 'order.paid' ? 500 : 200);
    const ref = await anOrderWith('order.paid', 'refund.succeeded');
    await steps({ ladderMs: [] })(ref);
    expect(await told(ref)).toEqual(['order.paid dead 1', 'refund.succeeded sent 1']);
  });

  it('sends nothing to an address that is not allowed', async () => {
    const ref = await anOrderWith('order.paid');
    await steps({ ladderMs: [], allowed: false })(ref);
    expect(merchant.received).toEqual([]);
    expect(await told(ref)).toEqual(['order.paid dead 1']);
  });

  it('keeps events of a merchant without an address, and has nothing to do', async () => {
    await database.pool.query(`update merchants set notify_url = null where merchant_id = 'shop'`);
    const ref = await anOrderWith('order.paid');
    await database.pool.query(`update merchants set notify_url = $1::text`, [merchant.url]);
    await steps()(ref);
    expect(merchant.received).toEqual([]);
    expect(await told(ref)).toEqual(['order.paid kept 0']);
  });
});
