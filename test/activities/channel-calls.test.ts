import { MockActivityEnvironment } from '@temporalio/testing';
import { createChannelCalls } from '../../activities/channel-calls';
import type { PaymentAttempt, RefundAttempt } from '../../channels/contract';
import { openAttempt } from '../../db/attempts';
import { storeRequest } from '../../db/merchant-requests';
import { openRefund } from '../../db/refunds';
import type { PaymentAnswer, RefundAnswer } from '../../domain/answers';
import type { OrderRef } from '../../domain/orders';
import { aPolicy } from '../support/builders';
import { insertCapture, insertOrder, insertPayRecord } from '../support/rows';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';

const numberSecret = 'a secret for channel calls';

describe('calls to a channel', () => {
  let database: StatementDatabase;
  const payments: PaymentAttempt[] = [];
  const refunds: RefundAttempt[] = [];
  beforeAll(async () => {
    database = await createStatementDatabase();
  });
  afterAll(() => database?.end());
  beforeEach(() => {
    payments.length = 0;
    refunds.length = 0;
  });

  /** A channel that answers nothing definite, and notes what it was sent. */
  const channel = {
    row: { channel: 'ch-a' },
    policy: aPolicy(),
    channel: {
      async createPayment(attempt: PaymentAttempt) {
        payments.push(attempt);
        const payParameters = { type: 'redirect', value: 'https://pay.example/1', expiresAt: null };
        return { outcome: 'unknown', reason: 'x'.repeat(1_000), retryAfterMs: null, payParameters };
      },
      async createRefund(refund: RefundAttempt) {
        refunds.push(refund);
        return { outcome: 'unknown', reason: 'dropped', retryAfterMs: null };
      },
    },
  };

  function calls() {
    const { submitPayment, submitRefund } = createChannelCalls({
      pool: database.pool,
      channels: { get: async () => channel, all: async () => [channel] } as never,
      client: undefined as never,
      taskQueue: 'unused',
      numberSecret,
      notifications: undefined as never,
      reconciliation: undefined as never,
      fulfilment: undefined as never,
      postToMerchant: undefined as never,
    });
    return {
      submitPayment: (input: OrderRef & { payRecordId: number }) =>
        new MockActivityEnvironment().run(submitPayment, input) as Promise<PaymentAnswer>,
      submitRefund: (input: OrderRef & { refundNo: string }) =>
        new MockActivityEnvironment().run(submitRefund, input) as Promise<RefundAnswer>,
    };
  }

  async function anAttempt() {
    const row = await insertOrder(database.pool);
    const ref = { merchantId: String(row['merchant_id']), orderId: String(row['order_id']) };
    await storeRequest(database.pool, ref, 'pay', {
      requestNo: 'K1',
      fingerprint: Buffer.from('K1'),
      params: { channel: 'ch-a', method: null, returnUrl: null, clientIp: null, payer: null },
    });
    const answer = await openAttempt(database.pool, ref, 'K1', { numberSecret });
    if (answer.outcome !== 'attempt') throw new Error(`no attempt: ${answer.outcome}`);
    return { ...ref, payRecordId: answer.payRecordId };
  }

  it('B10: an attempt keeps its number and amount on every send, and a query comes in between', async () => {
    const attempt = await anAttempt();
    await calls().submitPayment(attempt);
    expect(await calls().submitPayment(attempt)).toEqual({ outcome: 'not_sent' });
    await database.pool.query(
      `update pay_records set last_call = 'query', last_fact_state = 'not_found'
       where pay_record_id = $1::bigint`,
      [attempt.payRecordId],
    );
    await calls().submitPayment(attempt);
    expect(payments).toHaveLength(2);
    expect(
      new Set(payments.map((p) => `${p.outTradeNo} ${p.amountMinor} ${p.currency}`)).size,
    ).toBe(1);
  });

  it('is marked as sent before the call, so that a death in between is an unknown outcome', async () => {
    const attempt = await anAttempt();
    const seen: unknown[] = [];
    const { createPayment } = channel.channel;
    channel.channel.createPayment = async (sent) => {
      const { rows } = await database.pool.query(
        `select status, sends, outcome_unknown from pay_records where pay_record_id = $1::bigint`,
        [attempt.payRecordId],
      );
      seen.push(...rows);
      return createPayment(sent);
    };
    try {
      await calls().submitPayment(attempt);
    } finally {
      channel.channel.createPayment = createPayment;
    }
    expect(seen).toEqual([{ status: 'submitting', sends: 1, outcome_unknown: true }]);
  });

  it('brings no pay parameters and no long texts into a history', async () => {
    const answer = await calls().submitPayment(await anAttempt());
    expect(answer).toEqual({ outcome: 'unknown', reason: 'x'.repeat(200), retryAfterMs: null });
  });

  it('B54: a refund keeps its number and amount on every send, and a query comes in between', async () => {
    const order = await insertOrder(database.pool, { status: 'paying' });
    const record = await insertPayRecord(database.pool, order, { status: 'pending' });
    const ref = { merchantId: String(order['merchant_id']), orderId: String(order['order_id']) };
    await insertCapture(database.pool, record);
    await database.pool.query(`update pay_records set status = 'paid' where order_id = $1::text`, [
      ref.orderId,
    ]);
    await database.pool.query(`update orders set status = 'paid' where order_id = $1::text`, [
      ref.orderId,
    ]);
    await storeRequest(database.pool, ref, 'refund', {
      requestNo: 'R1',
      fingerprint: Buffer.from('R1'),
      params: { amountMinor: 3_000, reason: '' },
    });
    const deps = { policyOf: () => aPolicy(), numberSecret };
    expect(await openRefund(database.pool, ref, 'R1', deps)).toMatchObject({ outcome: 'accepted' });
    const refund = { ...ref, refundNo: 'R1' };
    await calls().submitRefund(refund);
    expect(await calls().submitRefund(refund)).toEqual({ outcome: 'not_sent' });
    await database.pool.query(
      `update refunds set last_call = 'query', last_fact_state = 'not_found' where order_id = $1::text`,
      [ref.orderId],
    );
    await calls().submitRefund(refund);
    expect(refunds).toHaveLength(2);
    expect(new Set(refunds.map((r) => `${r.outRefundNo} ${r.amountMinor}`)).size).toBe(1);
  });
});
