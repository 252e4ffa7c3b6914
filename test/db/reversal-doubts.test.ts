import { storeCallback } from '../../db/callbacks';
import { readOrderState } from '../../db/rows';
import { applyPaymentAnswer, settleNews } from '../../db/settlement';
import type { Pool } from '../../db/transaction';
import type { PaymentFact } from '../../domain/channel-facts';
import { aPaymentFact, aPolicy } from '../support/builders';
import { insertCapture, insertOrder, insertPayRecord } from '../support/rows';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';

const DEPS = { policyOf: () => aPolicy(), numberSecret: 'a secret of the tests' };

/** B40: what a channel says of reversed sums while it is being asked about them. */
describe('words about a reversed sum that cross', () => {
  let database: StatementDatabase;
  let pool: Pool;
  beforeAll(async () => {
    database = await createStatementDatabase();
    pool = database.pool;
  });
  afterAll(() => database?.end());

  async function aReview() {
    const order = await insertOrder(pool, { status: 'review', status_reason: 'reversed' });
    const record = await insertPayRecord(pool, order, { status: 'paid' });
    const capture = await insertCapture(pool, record);
    await pool.query(
      `update pay_records set channel_trade_no = $2::text where pay_record_id = $1::bigint`,
      [record['pay_record_id'], capture['channel_trade_no']],
    );
    const ref = { merchantId: String(order['merchant_id']), orderId: String(order['order_id']) };
    const payRecordId = Number(record['pay_record_id']);
    const said = (fact: Partial<PaymentFact>) =>
      aPaymentFact({
        ...{ channel: 'ch-a', accountId: null, appId: null },
        outTradeNo: String(record['out_trade_no']),
        channelTradeNo: String(capture['channel_trade_no']),
        ...fact,
      });
    return {
      ref,
      /** A callback; `known`: judged as nothing new when it came. */
      told: (fact: Partial<PaymentFact>, known = false) =>
        storeCallback(
          pool,
          said({ learntFrom: 'callback', ...fact }),
          Buffer.from('{}'),
          () => known,
        ),
      news: () => settleNews(pool, ref, DEPS),
      now: async () => (await readOrderState(pool, ref))!.readAt,
      answered: (fact: Partial<PaymentFact>, askedAt: string) =>
        applyPaymentAnswer(
          pool,
          ref,
          {
            payRecordId,
            call: 'query',
            answer: {
              outcome: 'answered',
              fact: said({ learntFrom: 'query', ...fact }),
              sentBefore: null,
              askedAt,
            },
          },
          DEPS,
        ),
      reversed: async () => (await readOrderState(pool, ref))!.captures[0]!.reversedMinor,
      waiting: async () =>
        (
          await pool.query<{ verdict: string }>(
            `select verdict from channel_callbacks where merchant_id = $1::text and order_id = $2::text
               and status = 'stored' order by callback_id`,
            [ref.merchantId, ref.orderId],
          )
        ).rows.map(({ verdict }) => verdict),
      payRecordId,
    };
  }

  it('an answer asked before a callback ends no question of that callback', async () => {
    const it = await aReview();
    const before = await it.now();
    await it.told({ state: 'reversed', reversedMinor: 10_000 });
    expect(await it.news()).toMatchObject({ ask: [it.payRecordId] });
    await it.answered({ state: 'reversed', reversedMinor: 10_000 }, before);
    expect(await it.waiting()).toEqual(['reversed']);
    await it.answered({ state: 'reversed', reversedMinor: 10_000 }, await it.now());
    expect(await it.waiting()).toEqual([]);
  });

  it('an older answer that moves the sum past a callback thought known makes that callback a question', async () => {
    const it = await aReview();
    const whileReversed = await it.now();
    // Given back meanwhile; we had not heard of the reversal, so this says nothing new.
    await it.told({ state: 'reinstated' }, true);
    await it.answered({ state: 'reversed', reversedMinor: 10_000 }, whileReversed);
    expect(await it.reversed()).toBe(10_000);
    expect(await it.waiting()).toEqual(['reversed']);
    expect(await it.news()).toMatchObject({ ask: [it.payRecordId] });
    await it.answered({ state: 'reinstated' }, await it.now());
    expect(await it.reversed()).toBe(0);
    expect(await it.waiting()).toEqual([]);
  });

  it('an answer that moves the sum and was asked after the last callback raises no question', async () => {
    const it = await aReview();
    await it.told({ state: 'reinstated' }, true);
    await it.answered({ state: 'reversed', reversedMinor: 10_000 }, await it.now());
    expect(await it.reversed()).toBe(10_000);
    expect(await it.waiting()).toEqual([]);
  });
});
