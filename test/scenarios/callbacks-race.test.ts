import { expectAlwaysTrue, money } from '../support/figures';
import { inParallel } from '../support/in-parallel';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

/** How many orders race their own callbacks; as published in the full run. */
const RACES = process.env['FULL'] ? 200 : 70;
/** Seconds on an idle machine; beside other suites it takes as long as they let it. */
const BOUND_MS = 240_000;

describe('callbacks that race the answer to the charge', () => {
  let saga: Saga;
  beforeAll(async () => {
    // Nothing is settled by asking: only the answer and the callback are in the race.
    saga = await Saga.start({ policy: { pollLadderMs: [30_000] } });
  });
  afterAll(() => saga?.stop());

  it(
    'B22: a callback that races the answer to its own charge pays the order once',
    async () => {
      await saga.mock.addFault({
        match: { operation: 'create', tag: 'b22' },
        do: { captureNow: true, answerAfterCallback: true, delayBeforeAnswerMs: [0, 50] },
      });
      const orderIds = Array.from({ length: RACES }, (_, index) => `b22-${index}`);
      await inParallel(orderIds, 10, async (orderId) => {
        await saga.createOrder({ order_id: orderId, subject: `Order ${orderId} #b22` });
        // "Not known yet" is what a machine too busy for ten seconds says: then it is asked again.
        const answer = await waitFor(`${orderId} is answered`, async () => {
          const said = await saga.pay(orderId);
          return said.status === 202 ? undefined : said;
        });
        expect([200, 201]).toContain(answer.status);
        expect(answer.body).toMatchObject({ status: 'paid', order_status: 'paid' });
      });
      await inParallel(orderIds, 10, (orderId) => saga.untilSettled(orderId));

      const moves = await saga.rows<{ order_id: string; count: number }>(
        `select order_id, count(*)::int as count from order_events
       where merchant_id = $1::text and order_id like 'b22-%' and subject = 'order'
         and from_status = 'paying' and to_status = 'paid' group by order_id`,
        saga.merchantId,
      );
      expect(moves).toHaveLength(RACES);
      expect(moves.filter(({ count }) => count !== 1)).toEqual([]);
      const effects = orderIds.flatMap((orderId) => saga.merchant.effects(orderId, 'order.paid'));
      expect(effects).toHaveLength(RACES);
      expect(new Set(effects.map(({ orderId }) => orderId)).size).toBe(RACES);
      const books = await saga.mock.summary({ tag: 'b22' });
      expect(books.captures).toEqual(money(RACES, RACES * 10_000));
      expect(books.callbacks).toMatchObject({ sent: RACES, acknowledged: RACES, resent: 0 });
      // A race indeed: now the callback was settled first, now the answer.
      const settledFrom = await saga.rows<{ learnt_from: string }>(
        `select distinct learnt_from from captures
       where merchant_id = $1::text and order_id like 'b22-%' order by learnt_from`,
        saga.merchantId,
      );
      expect(settledFrom).toEqual([{ learnt_from: 'callback' }, { learnt_from: 'submit' }]);
      await expectAlwaysTrue(saga, 'b22-0');
    },
    BOUND_MS,
  );
});
