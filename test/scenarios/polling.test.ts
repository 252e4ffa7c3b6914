import { setTimeout as delay } from 'node:timers/promises';
import type { ChannelPolicy } from '../../domain/channel-policy';
import { nudgeSignal } from '../../workflows/messages';
import { expectAlwaysTrue, historiesOf } from '../support/figures';
import { inParallel } from '../support/in-parallel';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

/** `npm run test:full` runs the scenario's own size. */
const FULL = Boolean(process.env['FULL']);
const B19_ORDERS = FULL ? 50 : 20;
const B20 = FULL ? { orders: 1_000, queriesPerSecond: 50 } : { orders: 16, queriesPerSecond: 20 };
const B20_BOUND_MS = FULL ? 600_000 : 60_000;
const LADDER_MS = [1_000, 2_000, 4_000, 8_000, 16_000];
/** No order is asked about before all are there. */
const NEVER_MS = [24 * 3_600_000];
/** Below the limit by more than clocks and the window's edges can hide. */
const OUR_SHARE_OF_LIMIT = 0.8;

describe('nobody calls back', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start({
      policy: { pollLadderMs: NEVER_MS },
    });
    await saga.mock.configure({ callbackUrls: { 'mock-a': [], 'mock-b': [] } });
    // The limit of mock-a is known to its channel row; that of mock-b only its answers tell.
    await setPolicy('mock-a', { maxCallsPerSecond: B20.queriesPerSecond * OUR_SHARE_OF_LIMIT });
  });
  afterAll(() => saga?.stop());

  async function setPolicy(channel: string, policy: Partial<ChannelPolicy>): Promise<void> {
    await saga.rows(
      `update channels set policy = policy || $2::jsonb, updated_at = now()
       where channel = $1::text`,
      channel,
      policy,
    );
    // The processes read it again by then.
    await delay(3 * Number(saga.env['CHANNELS_REFRESH_MS']));
  }

  /** So many orders, each with a pending attempt at the channel. */
  async function pendingOrders(count: number, channel: string, tag: string): Promise<string[]> {
    await setPolicy(channel, { pollLadderMs: NEVER_MS });
    const orderIds = Array.from({ length: count }, (_, i) => `${tag}-${i}`);
    await inParallel(orderIds, 8, async (orderId) => {
      // Long enough for the full size; the attempt is never given up for lack of time.
      await saga.createOrder({ order_id: orderId, subject: `Order #${tag}`, expires_in: 7_200 });
      // A machine that is too slow for so many answers "unknown": a shop repeats.
      await saga.outage(() =>
        waitFor(
          `${orderId} is answered`,
          async () => {
            const answer = await saga.pay(orderId, 'K1', { channel });
            if (answer.status === 503) return false;
            if (answer.status >= 300) {
              throw new Error(`${orderId}: ${answer.status} ${JSON.stringify(answer.body)}`);
            }
            return true;
          },
          B20_BOUND_MS,
        ),
      );
    });
    await waitFor(
      'every attempt is pending',
      async () => (await countOf(tag, 'pending')) === count,
      B20_BOUND_MS,
    );
    return orderIds;
  }

  /** Every order's first question is due at the same moment; later ones climb the ladder. */
  async function askAboutAll(orderIds: string[], channel: string): Promise<void> {
    await setPolicy(channel, { pollLadderMs: LADDER_MS });
    await saga.rows(
      `update pay_records set next_due_at = now()
       where order_id = any($1::text[]) and status = 'pending'`,
      orderIds,
    );
    await inParallel(orderIds, 16, (orderId) => saga.handle(orderId).signal(nudgeSignal));
  }

  async function countOf(tag: string, recordStatus: string): Promise<number> {
    const [row] = await saga.rows<{ count: number }>(
      `select count(*) as count from pay_records
       where order_id like $1::text || '-%' and status = $2::text`,
      tag,
      recordStatus,
    );
    return row?.count ?? 0;
  }

  async function approveAll(orderIds: string[]): Promise<void> {
    const records = await saga.rows<{ out_trade_no: string }>(
      `select out_trade_no from pay_records where order_id = any($1::text[])`,
      orderIds,
    );
    await inParallel(records, 8, (record) => saga.mock.approve(record.out_trade_no));
  }

  async function untilAllPaid(orderIds: string[]): Promise<void> {
    await waitFor(
      `${orderIds.length} orders are paid and told`,
      async () => {
        const [row] = await saga.rows<{ paid: number; work: number }>(
          `select (select count(*) from orders where order_id = any($1::text[]) and status = 'paid') as paid,
             (select count(*) from orders_with_work where order_id = any($1::text[])) as work`,
          orderIds,
        );
        if (row?.paid !== orderIds.length || row.work !== 0) throw new Error(JSON.stringify(row));
        return true;
      },
      B20_BOUND_MS,
    );
  }

  /** Every order once paid, once told, never failed. */
  async function expectAllPaidOnce(orderIds: string[], tag: string): Promise<void> {
    const books = await saga.mock.summary({ tag });
    expect(books).toMatchObject({
      trades: orderIds.length,
      captures: { count: orderIds.length, sums: { CNY: orderIds.length * 10_000 } },
      refunds: { count: 0 },
      callbacks: { sent: 0 },
    });
    expect(books.createNumbers).toHaveLength(orderIds.length);
    const told = orderIds.map((orderId) => saga.merchant.effects(orderId, 'order.paid').length);
    expect(told).toEqual(orderIds.map(() => 1));
    const rows = await saga.rows(
      `select o.status, r.status as record, count(*) as count from orders o
       join pay_records r using (merchant_id, order_id)
       join captures c using (merchant_id, order_id)
       where o.order_id = any($1::text[]) and c.settles group by 1, 2`,
      orderIds,
    );
    expect(rows).toEqual([{ status: 'paid', record: 'paid', count: orderIds.length }]);
    const ended = await saga.rows(
      `select to_status from order_events where order_id = any($1::text[])
         and to_status in ('failed', 'closed', 'review')`,
      orderIds,
    );
    expect(ended).toEqual([]);
  }

  it(`B19: ${B19_ORDERS} captured orders whose callbacks never come are paid by polling`, async () => {
    const orderIds = await pendingOrders(B19_ORDERS, 'mock-a', 'b19');
    await approveAll(orderIds);
    await askAboutAll(orderIds, 'mock-a');
    await untilAllPaid(orderIds);
    await expectAllPaidOnce(orderIds, 'b19');
    const pendingForADay = await saga.rows(
      `select order_id from orders where status in ('created', 'paying')
         and created_at + interval '24 hours' < now() + interval '24 hours'
         and order_id = any($1::text[])`,
      orderIds,
    );
    expect(pendingForADay).toEqual([]);
    for (const orderId of orderIds.slice(0, 3)) await expectAlwaysTrue(saga, orderId);
  }, 120_000);

  it.each([
    { channel: 'mock-a', knows: 'its limit is configured' },
    { channel: 'mock-b', knows: 'only its answers tell the limit' },
  ])(
    `B20: ${B20.orders} pending orders polled at $channel, ${B20.queriesPerSecond} queries a second allowed: $knows`,
    async ({ channel }) => {
      const tag = `b20-${channel}`;
      // The first wave is told 429 whatever its speed, so that each order has met it.
      const wave = await saga.mock.addFault({
        match: { operation: 'query', tag },
        times: B20.orders,
        do: { effect: 'none', answer: 'http', status: 429, retryAfterSeconds: 1 },
      });
      await saga.mock.configure({ queryRateLimitPerSecond: B20.queriesPerSecond });
      const orderIds = await pendingOrders(B20.orders, channel, tag);
      await askAboutAll(orderIds, channel);
      await waitFor(
        'the first wave was told to wait',
        async () => (await saga.mock.faults()).find((f) => f.id === wave)?.hits === B20.orders,
        B20_BOUND_MS,
      );
      const afterWave = (await saga.mock.books()).at(-1)?.seq ?? 0;
      await approveAll(orderIds);
      await untilAllPaid(orderIds);
      await expectAllPaidOnce(orderIds, tag);

      const queries = (await saga.mock.books({ after: afterWave })).filter(
        (record) => record.type === 'request' && record.operation === 'query',
      );
      const refused = queries.filter((q) => q.type === 'request' && q.httpStatus === 429);
      if (channel === 'mock-a') {
        expect(refused).toEqual([]);
        expect(busiestSecond(queries.map((q) => Date.parse(q.at)))).toBeLessThanOrEqual(
          B20.queriesPerSecond,
        );
      }
      for (const orderId of orderIds) {
        for (const history of await historiesOf(saga, orderId)) {
          expect(history.length).toBeLessThanOrEqual(500);
        }
      }
      await saga.mock.configure({ queryRateLimitPerSecond: null });
    },
    B20_BOUND_MS * 3,
  );
});

/** The most instants that lie within one second of each other. */
function busiestSecond(instantsMs: number[]): number {
  const sorted = [...instantsMs].sort((a, b) => a - b);
  let first = 0;
  return sorted.reduce((most, at, last) => {
    while (at - (sorted[first] as number) >= 1_000) first++;
    return Math.max(most, last - first + 1);
  }, 0);
}
