import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

const LADDER_MS = [50, 60, 70, 80, 90, 100, 110, 120, 130];

describe('a merchant that cannot be told', () => {
  let saga: Saga;
  /** Tries of each order's events that reached the merchant, in order. */
  const tries = new Map<string, { type: string; seq: number; at: number }[]>();
  let answerOf: (orderId: string, type: string) => number;
  beforeAll(async () => {
    saga = await Saga.start({ env: { NOTIFY_LADDER_MS: LADDER_MS.join(',') } });
    saga.merchant.answer = ({ orderId, type, seq }) => {
      tries.set(orderId, [...(tries.get(orderId) ?? []), { type, seq, at: Date.now() }]);
      return answerOf(orderId, type);
    };
  });
  afterAll(() => saga?.stop());
  beforeEach(() => {
    answerOf = () => 200;
  });

  const notifications = (orderId: string) =>
    saga.rows<{ notification_id: number; event_type: string; status: string; tries: number }>(
      `select notification_id, event_type, status, tries from notifications
       where order_id = $1::text order by seq`,
      orderId,
    );
  const untilTold = (orderId: string, status: string, boundMs?: number) =>
    waitFor(
      `every event of ${orderId} is ${status}`,
      async () => {
        const rows = await notifications(orderId);
        return rows.length > 0 && rows.every((row) => row.status === status) && rows;
      },
      boundMs,
    );
  const resend = (id: number, reason = 'their server is back') =>
    saga.call('POST', `/ops/notifications/${id}/resend`, { reason });

  it('down for the whole ladder: a dead letter, listed with every try, sent again, told once', async () => {
    answerOf = () => 503;
    const { orderId } = await saga.paidOrder();
    const [row] = await untilTold(orderId, 'dead');
    const id = row!.notification_id;
    expect(row).toMatchObject({ event_type: 'order.paid', tries: LADDER_MS.length + 1 });
    expect(tries.get(orderId)).toHaveLength(LADDER_MS.length + 1);
    // Nothing is left to do: the run has ended, the money is as it was.
    await saga.untilSettled(orderId);
    expect((await saga.order(orderId)).status).toBe('paid');

    const list = await saga.call('GET', '/ops/notifications?status=dead');
    expect(list.body.notifications).toMatchObject([
      {
        notification_id: String(id),
        merchant_id: saga.merchantId,
        order_id: orderId,
        type: 'order.paid',
        status: 'dead',
        tries: LADDER_MS.length + 1,
        last_error: 'the merchant answered 503',
      },
    ]);
    const detail = await saga.call('GET', `/ops/notifications/${id}`);
    const log = detail.body.tries_log as { tried_at: string; status: number; error: string }[];
    expect(log.map(({ status }) => status)).toEqual(LADDER_MS.map(() => 503).concat(503));
    const times = log.map(({ tried_at }) => Date.parse(tried_at));
    LADDER_MS.forEach((ms, i) => expect(times[i + 1]! - times[i]!).toBeGreaterThanOrEqual(ms - 5));

    answerOf = () => 200;
    const resent = await resend(id);
    expect(resent.status).toBe(200);
    await untilTold(orderId, 'sent');
    expect(saga.merchant.effects(orderId, 'order.paid')).toHaveLength(1);
    const again = await resend(id);
    expect([again.status, again.body.status, again.body.resends.length]).toEqual([200, 'sent', 1]);
    expect((await saga.call('GET', '/ops/notifications')).body.notifications).toEqual([]);
    await saga.untilSettled(orderId);
  });

  it('keeps the events of an order in order, and a dead one lets the next ones go', async () => {
    answerOf = (_, type) => (type === 'order.paid' ? 500 : 200);
    const { orderId } = await saga.paidOrder();
    await saga.refund(orderId, 'R1', 1_000);
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await saga.untilSettled(orderId);
    expect((await notifications(orderId)).map((n) => `${n.event_type} ${n.status}`)).toEqual([
      'order.paid dead',
      'refund.succeeded sent',
    ]);
    const seen = tries.get(orderId)!.map(({ seq }) => seq);
    // Never an event before its turn: first every try of the first, then the second.
    expect(seen).toEqual([...LADDER_MS.map(() => 1), 1, 2]);
    // Sent again it comes late, and says by its seq where it belongs.
    answerOf = () => 200;
    await resend((await notifications(orderId))[0]!.notification_id);
    await untilTold(orderId, 'sent');
    expect(saga.merchant.effects(orderId).map(({ seq }) => seq)).toEqual([2, 1]);
  });

  it('one that waits for a day is told at once on an operator’s word', async () => {
    answerOf = () => 503;
    saga.merchant.headers = { 'retry-after': '86400' };
    const { orderId } = await saga.paidOrder();
    const [row] = await waitFor('one try', async () => {
      const rows = await notifications(orderId);
      return rows[0]?.tries === 1 && rows;
    });
    saga.merchant.headers = {};
    answerOf = () => 200;
    await resend(row!.notification_id);
    await untilTold(orderId, 'sent', 5_000);
    expect(tries.get(orderId)).toHaveLength(2);
  });

  it('and with it what waits behind it: three events in order, at once', async () => {
    answerOf = () => 503;
    saga.merchant.headers = { 'retry-after': '86400' };
    const { orderId } = await saga.paidOrder();
    await waitFor('one try', async () => (await notifications(orderId))[0]?.tries === 1);
    for (const refundNo of ['R1', 'R2']) {
      await saga.refund(orderId, refundNo, 1_000);
      await saga.untilRefund(orderId, refundNo, 'succeeded');
    }
    const waiting = await notifications(orderId);
    expect(waiting.map(({ status, tries: n }) => [status, n])).toEqual([
      ['pending', 1],
      ['pending', 0],
      ['pending', 0],
    ]);
    saga.merchant.headers = {};
    answerOf = () => 200;
    await resend(waiting[0]!.notification_id);
    await untilTold(orderId, 'sent', 5_000);
    expect(tries.get(orderId)!.map(({ seq }) => seq)).toEqual([1, 1, 2, 3]);
    await saga.untilSettled(orderId);
  });

  it('410 stops the address until it is set again; what was missed is read and sent again', async () => {
    answerOf = () => 410;
    const { orderId } = await saga.paidOrder();
    const [dead] = await untilTold(orderId, 'dead');
    expect(dead!.tries).toBe(1);
    answerOf = () => 200;
    const { orderId: later } = await saga.paidOrder();
    await untilTold(later, 'kept');
    expect(tries.get(later)).toBeUndefined();
    // Both can be read.
    const feed = await saga.call('GET', '/v1/events?limit=1000');
    const told = feed.body.events.map((e: { data: { order_id: string } }) => e.data.order_id);
    expect(told).toEqual(expect.arrayContaining([orderId, later]));
    const refused = await resend(dead!.notification_id);
    expect([refused.status, refused.body.code]).toEqual([409, 'no_address']);
    // Set again: what is new is told, what was missed on request.
    await saga.rows(
      `update merchants set notify_stopped_at = null where merchant_id = $1::text`,
      saga.merchantId,
    );
    const { orderId: next } = await saga.paidOrder();
    await untilTold(next, 'sent');
    for (const missed of [orderId, later]) {
      await resend((await notifications(missed))[0]!.notification_id);
      await untilTold(missed, 'sent');
      expect(saga.merchant.effects(missed, 'order.paid')).toHaveLength(1);
    }
  });

  it('knows only the notifications there are', async () => {
    for (const id of ['999999', '123456789012345']) {
      const answer = await resend(Number(id));
      expect([answer.status, answer.body.code]).toEqual([404, 'notification_not_found']);
    }
    expect((await saga.call('GET', '/ops/notifications/x')).status).toBe(400);
    expect((await saga.call('POST', '/ops/notifications/1/resend', {})).status).toBe(400);
    expect((await saga.call('GET', '/ops/notifications?status=lost')).status).toBe(400);
  });
});
