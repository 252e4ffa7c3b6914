import { storeCallback } from '../../db/callbacks';
import { applyRefundAnswer } from '../../db/refunds';
import { applyPaymentAnswer, settleNews } from '../../db/settlement';
import type { Pool } from '../../db/transaction';
import type { PaymentFact } from '../../domain/channel-facts';
import type { OrderRef } from '../../domain/orders';
import { aPaymentFact, aPolicy, aRefundFact } from '../support/builders';
import { insertCapture, insertOrder, insertPayRecord, insertRefund } from '../support/rows';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';

const DEPS = { policyOf: () => aPolicy(), numberSecret: 'a secret of the tests' };
/** An instant that our time columns do not hold: PostgreSQL knows no year 0. */
const YEAR_ZERO = '0000-01-01T00:00:00.000Z';
const OF_CHANNEL = { channel: 'ch-a', accountId: null, appId: null };

describe('facts that PostgreSQL cannot keep as they are', () => {
  let database: StatementDatabase;
  let pool: Pool;
  beforeAll(async () => {
    database = await createStatementDatabase();
    pool = database.pool;
  });
  afterAll(() => database?.end());

  async function payingOrder(status = 'pending') {
    const order = await insertOrder(pool, { status: 'paying' });
    const record = await insertPayRecord(pool, order, { status });
    return {
      ref: { merchantId: String(order['merchant_id']), orderId: String(order['order_id']) },
      payRecordId: Number(record['pay_record_id']),
      outTradeNo: String(record['out_trade_no']),
      record,
    };
  }

  const paid = (outTradeNo: string, said: Partial<PaymentFact> = {}) =>
    aPaymentFact({
      ...OF_CHANNEL,
      outTradeNo,
      channelTradeNo: `C${outTradeNo}`,
      state: 'paid',
      ...said,
    });
  const store = (fact: PaymentFact) => storeCallback(pool, fact, Buffer.from('{}'), () => false);
  const cases = async (ref: OrderRef) =>
    (
      await pool.query<{ kind: string; version: number }>(
        `select kind, version from cases where merchant_id = $1::text and order_id = $2::text`,
        [ref.merchantId, ref.orderId],
      )
    ).rows;
  const inbox = async (ref: OrderRef) =>
    (
      await pool.query<{ status: string; verdict: string }>(
        `select status, verdict from channel_callbacks
         where merchant_id = $1::text and order_id = $2::text order by callback_id`,
        [ref.merchantId, ref.orderId],
      )
    ).rows;
  const statusOf = async (ref: OrderRef) =>
    (
      await pool.query<{ status: string }>(
        `select status from orders where merchant_id = $1::text and order_id = $2::text`,
        [ref.merchantId, ref.orderId],
      )
    ).rows[0]?.status;

  it('a callback that cannot be booked becomes a case and stops no other callback', async () => {
    const { ref, outTradeNo } = await payingOrder();
    await store(paid(outTradeNo, { paidAt: YEAR_ZERO, channelTradeNo: 'ODD' + outTradeNo }));
    await store(paid(outTradeNo));
    await settleNews(pool, ref, DEPS);
    expect(await statusOf(ref)).toBe('paid');
    expect(await inbox(ref)).toEqual([
      { status: 'applied', verdict: 'unbookable' },
      { status: 'applied', verdict: 'first_success' },
    ]);
    expect(await cases(ref)).toEqual([{ kind: 'unbookable', version: 1 }]);
  });

  it('the same callback again adds nothing to its case', async () => {
    const { ref, outTradeNo } = await payingOrder();
    for (let copy = 0; copy < 3; copy++) {
      await store(paid(outTradeNo, { paidAt: YEAR_ZERO }));
      await settleNews(pool, ref, DEPS);
    }
    expect(await cases(ref)).toEqual([{ kind: 'unbookable', version: 1 }]);
    expect(await statusOf(ref)).toBe('paying');
  });

  it('an answer that cannot be booked becomes a case, and asking goes on by the ladder', async () => {
    const { ref, payRecordId, outTradeNo } = await payingOrder();
    const fact = paid(outTradeNo, { paidAt: YEAR_ZERO, learntFrom: 'query' });
    const answer = { outcome: 'answered', fact } as const;
    await applyPaymentAnswer(pool, ref, { payRecordId, call: 'query', answer }, DEPS);
    expect(await cases(ref)).toEqual([{ kind: 'unbookable', version: 1 }]);
    const { rows } = await pool.query(
      `select status, polls, next_due_at > now() as waits from pay_records
       where pay_record_id = $1::bigint`,
      [payRecordId],
    );
    expect(rows).toEqual([{ status: 'pending', polls: 1, waits: true }]);
  });

  it('an answer about a refund that cannot be booked becomes a case likewise', async () => {
    const { ref, record } = await payingOrder();
    const capture = await insertCapture(pool, record, { reserved_minor: 3_000 });
    const refund = await insertRefund(pool, capture, { status: 'processing' });
    const fact = aRefundFact({
      ...OF_CHANNEL,
      outRefundNo: String(refund['out_refund_no']),
      outTradeNo: null,
      channelTradeNo: null,
      state: 'succeeded',
      // More than the sums of a capture may hold.
      amountMinor: Number.MAX_SAFE_INTEGER + 1,
      learntFrom: 'query',
    });
    await applyRefundAnswer(
      pool,
      ref,
      {
        refundNo: String(refund['refund_no']),
        call: 'query',
        answer: { outcome: 'answered', fact },
      },
      DEPS,
    );
    expect(await cases(ref)).toEqual([{ kind: 'unbookable', version: 1 }]);
    const { rows } = await pool.query(
      `select r.status, r.polls, c.reserved_minor from refunds r join captures c using (capture_id)
       where r.refund_id = $1::bigint`,
      [refund['refund_id']],
    );
    expect(rows).toEqual([{ status: 'processing', polls: 1, reserved_minor: 3_000 }]);
  });

  it.each([
    ['U+0000', 'a\0b'],
    ['half a surrogate pair', 'a\ud83d'],
  ])('texts with %s are kept with U+FFFD in its place, and the money is booked', async (_, odd) => {
    const { ref, outTradeNo } = await payingOrder();
    await store(paid(outTradeNo, { eventId: odd, word: odd }));
    await settleNews(pool, ref, DEPS);
    expect(await statusOf(ref)).toBe('paid');
  });

  it.each([
    ['U+0000', 'a\0b'],
    ['half a surrogate pair', 'a\ud83d'],
  ])('an unknown word with %s in an answer is warned of and moves nothing', async (_, odd) => {
    const { ref, payRecordId, outTradeNo } = await payingOrder();
    const fact = paid(outTradeNo, { state: 'unknown', word: odd, learntFrom: 'query' });
    const answer = { outcome: 'answered', fact } as const;
    await applyPaymentAnswer(pool, ref, { payRecordId, call: 'query', answer }, DEPS);
    expect(await cases(ref)).toEqual([]);
    expect(await statusOf(ref)).toBe('paying');
  });
});
