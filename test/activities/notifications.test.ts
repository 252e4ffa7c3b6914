import { MockActivityEnvironment } from '@temporalio/testing';
import { ApplicationFailure } from '@temporalio/common';
import { createNotificationSteps } from '../../activities/notifications';
import { listNotifications, readNotification, resendNotification } from '../../db/dead-letters';
import { insertNotification, stopMerchantAddress } from '../../db/notifications';
import type { OrderRef } from '../../domain/orders';
import type { OrderProgress } from '../../domain/progress';
import { aPolicy } from '../support/builders';
import { startMerchantServer } from '../support/merchant-server';
import type { MerchantServer } from '../support/merchant-server';
import { insertOrder } from '../support/rows';
import { createMerchantPost } from '../../worker/notify-guard';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';

const SECRET = `whsec_${Buffer.from('a secret of twenty-four b').toString('base64')}`;

describe('telling the merchant', () => {
  let database: StatementDatabase;
  let merchant: MerchantServer;
  beforeAll(async () => {
    database = await createStatementDatabase();
    merchant = await startMerchantServer(SECRET);
  });
  afterAll(async () => {
    await merchant?.close();
    await database?.end();
  });
  beforeEach(() => {
    merchant.answer = () => 200;
    merchant.received.length = 0;
    merchant.headers = {};
    return setAddress(merchant.url);
  });

  async function setAddress(url: string | null, previousSecretRef: string | null = null) {
    await database.pool.query(
      `update merchants set notify_url = $1::text, notify_secret_ref = 'env:X',
         notify_previous_secret_ref = $2::text, notify_stopped_at = null`,
      [url, previousSecretRef],
    );
  }

  function steps(
    more: { ladderMs?: number[]; allowed?: boolean; secrets?: Record<string, string> } = {},
  ) {
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
        resolveSecret: async (reference) => {
          const secret = more.secrets ? more.secrets[reference] : SECRET;
          if (secret === undefined) throw new Error(`no secret at ${reference}`);
          return secret;
        },
      },
      fulfilment: undefined as never,
      postToMerchant: createMerchantPost({
        privateAllowed: (more.allowed ?? true) ? ['127.0.0.1'] : [],
      }),
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
    await setAddress(null);
    const ref = await anOrderWith('order.paid');
    await setAddress(merchant.url);
    await steps()(ref);
    expect(merchant.received).toEqual([]);
    expect(await told(ref)).toEqual(['order.paid kept 0']);
  });

  it('gives up what waits for an address that was taken away', async () => {
    const ref = await anOrderWith('order.paid');
    await setAddress(null);
    await steps()(ref);
    expect(await told(ref)).toEqual(['order.paid dead 0']);
  });

  it('logs every try with status or error and how long it took', async () => {
    const ref = await anOrderWith('order.paid');
    merchant.answer = () => 500;
    await expect(steps({ ladderMs: [1, 1] })(ref)).rejects.toMatchObject({ type: 'NotDelivered' });
    await setAddress('http://127.0.0.1:1/nobody');
    await expect(steps({ ladderMs: [1, 1] })(ref)).rejects.toMatchObject({ type: 'NotDelivered' });
    await setAddress(merchant.url);
    merchant.answer = () => 200;
    await steps({ ladderMs: [1, 1] })(ref);
    const { triesLog } = (await readNotification(database.pool, await idOf(ref)))!;
    expect(triesLog).toMatchObject([
      { status: 500, error: 'the merchant answered 500' },
      { status: null, error: expect.stringContaining('ECONNREFUSED') },
      { status: 200, error: null },
    ]);
    for (const { durationMs } of triesLog) expect(durationMs).toBeGreaterThanOrEqual(0);
  });

  it('waits as long as the merchant asks, a day at most, and never less than the ladder', async () => {
    merchant.answer = () => 503;
    for (const [header, delay] of [
      ['60', 60_000],
      ['1', 5_000],
      ['99999999', 86_400_000],
    ] as const) {
      merchant.headers = { 'retry-after': header };
      const ref = await anOrderWith('order.paid');
      await expect(steps()(ref)).rejects.toMatchObject({ nextRetryDelay: delay });
    }
  });

  it('has later events wait with the one before them, also those written meanwhile', async () => {
    merchant.answer = () => 500;
    const ref = await anOrderWith('order.paid', 'refund.succeeded');
    await expect(steps()(ref)).rejects.toMatchObject({ nextRetryDelay: 5_000 });
    await insertNotification(database.pool, ref, 'order.closed', '');
    const { rows } = await database.pool.query<{ waits: boolean }>(
      `select next_due_at > now() + interval '3 seconds' as waits from notifications
       where order_id = $1::text order by seq`,
      [ref.orderId],
    );
    expect(rows).toEqual([{ waits: true }, { waits: true }, { waits: true }]);
    merchant.answer = (event) => (event.type === 'order.paid' ? 500 : 200);
    await makeDue(ref);
    await steps({ ladderMs: [] })(ref);
    expect(await told(ref)).toEqual([
      'order.paid dead 2',
      'refund.succeeded sent 1',
      'order.closed sent 1',
    ]);
  });

  it('stops an address that answers 410: what waits is dead, what comes later is kept', async () => {
    merchant.answer = () => 410;
    const ref = await anOrderWith('order.paid', 'refund.succeeded');
    const other = await anOrderWith('order.paid');
    await steps()(ref);
    merchant.answer = () => 200;
    await insertNotification(database.pool, ref, 'order.closed', '');
    await steps()(ref);
    await steps()(other);
    expect(merchant.received).toEqual([]);
    expect(await told(ref)).toEqual([
      'order.paid dead 1',
      'refund.succeeded dead 0',
      'order.closed kept 0',
    ]);
    expect(await told(other)).toEqual(['order.paid dead 0']);
    expect((await readNotification(database.pool, await idOf(other)))!.lastError).toBe(
      `${merchant.url} answered 410 Gone`,
    );

    // Nothing is sent again before the address is set again.
    const again = { notificationId: await idOf(ref), actor: 'op', reason: 'it is back' };
    expect(await resendNotification(database.pool, again)).toMatchObject({ outcome: 'no_address' });
    await setAddress(merchant.url);
    const { rows } = await database.pool.query<{ notification_id: number }>(
      `select notification_id from notifications where order_id = $1::text order by seq`,
      [ref.orderId],
    );
    for (const { notification_id } of rows.reverse()) {
      await resendNotification(database.pool, { ...again, notificationId: notification_id });
    }
    await steps()(ref);
    expect(merchant.received.map((event) => event.seq)).toEqual([1, 2, 3]);
  });

  it('an address that was set anew is not stopped by the old one’s 410', async () => {
    const ref = await anOrderWith('order.paid');
    await stopMerchantAddress(database.pool, {
      merchantId: 'shop',
      notifyUrl: 'http://127.0.0.1:1/old',
      because: 'the old one is gone',
    });
    await steps()(ref);
    expect(await told(ref)).toEqual(['order.paid sent 1']);
  });

  it('follows no redirect: it is no receipt', async () => {
    merchant.answer = () => 302;
    merchant.headers = { location: 'http://127.0.0.1:1/inside' };
    const ref = await anOrderWith('order.paid');
    await expect(steps()(ref)).rejects.toMatchObject({ message: 'the merchant answered 302' });
  });

  describe('while a secret is being replaced', () => {
    const NEW = `whsec_${Buffer.from('another secret of 24 byte').toString('base64')}`;

    it('both sign, so the merchant may check with either', async () => {
      await setAddress(merchant.url, 'env:OLD');
      // The merchant still knows the old one only.
      await steps({ secrets: { 'env:X': NEW, 'env:OLD': SECRET } })(
        await anOrderWith('order.paid'),
      );
      // And in the other direction.
      await steps({ secrets: { 'env:X': SECRET, 'env:OLD': NEW } })(
        await anOrderWith('order.paid'),
      );
      expect([merchant.received.length, merchant.badSignatures]).toEqual([2, 0]);
    });

    it('the previous secret may be gone already', async () => {
      await setAddress(merchant.url, 'env:OLD');
      await steps({ secrets: { 'env:X': SECRET } })(await anOrderWith('order.paid'));
      expect(merchant.received).toHaveLength(1);
    });

    it('the current one may not: that is a failed try with the reason', async () => {
      const failing = steps({ secrets: {} })(await anOrderWith('order.paid'));
      await expect(failing).rejects.toMatchObject({ message: 'Error: no secret at env:X' });
    });
  });

  describe('sending again by hand', () => {
    it('gives a dead letter the whole ladder anew, under the same id', async () => {
      const ids: string[] = [];
      merchant.answer = (event) => {
        ids.push(event.id);
        return 500;
      };
      const ref = await anOrderWith('order.paid');
      await steps({ ladderMs: [] })(ref);
      const notificationId = await idOf(ref);
      expect(
        (
          await listNotifications(database.pool, { status: 'dead', limit: 1_000 })
        ).notifications.map((n) => n.notificationId),
      ).toContain(notificationId);
      const again = { notificationId, actor: 'key-op', reason: 'their server is back' };
      expect(await resendNotification(database.pool, again)).toMatchObject({ changed: true });
      // Asked twice it is the same.
      expect(await resendNotification(database.pool, again)).toMatchObject({ changed: false });
      await expect(steps()(ref)).rejects.toMatchObject({ nextRetryDelay: 5_000 });
      // And one that waits for its next try need not wait.
      expect(await resendNotification(database.pool, again)).toMatchObject({ changed: true });
      merchant.answer = () => 200;
      await steps()(ref);
      expect(await told(ref)).toEqual(['order.paid sent 2']);
      expect(new Set([...ids, merchant.received[0]!.id]).size).toBe(1);
      expect(await resendNotification(database.pool, again)).toMatchObject({
        outcome: 'already_sent',
      });
      expect((await readNotification(database.pool, notificationId))!.resends).toMatchObject([
        { fromStatus: 'dead', actor: 'key-op', reason: 'their server is back' },
        { fromStatus: 'pending', actor: 'key-op' },
      ]);
      expect((await readNotification(database.pool, notificationId))!.triesLog).toHaveLength(3);
    });

    it('finds nothing where there is nothing', async () => {
      const nobody = { notificationId: 999_999, actor: 'x', reason: 'x' };
      expect(await resendNotification(database.pool, nobody)).toEqual({ outcome: 'not_found' });
    });
  });

  async function idOf(ref: OrderRef): Promise<number> {
    const { rows } = await database.pool.query<{ notification_id: number }>(
      `select notification_id from notifications where order_id = $1::text order by seq limit 1`,
      [ref.orderId],
    );
    return rows[0]!.notification_id;
  }

  async function makeDue(ref: OrderRef): Promise<void> {
    await database.pool.query(
      `update notifications set next_due_at = now() where order_id = $1::text`,
      [ref.orderId],
    );
  }
});
