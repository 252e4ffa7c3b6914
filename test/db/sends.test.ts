import { beginSubmit } from '../../db/attempts';
import { applyRefundAnswer, beginRefundSubmit } from '../../db/refunds';
import { applyPaymentAnswer } from '../../db/settlement';
import type { Pool } from '../../db/transaction';
import { aPaymentFact, aPolicy, aRefundFact } from '../support/builders';
import { insertCapture, insertOrder, insertPayRecord, insertRefund } from '../support/rows';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';

const DEPS = { policyOf: () => aPolicy(), numberSecret: 'a secret of the tests' };

describe('a send that never left this machine', () => {
  let database: StatementDatabase;
  let pool: Pool;
  beforeAll(async () => {
    database = await createStatementDatabase();
    pool = database.pool;
  });
  afterAll(() => database?.end());
  const NEVER_LEFT = { outcome: 'never_left', reason: 'refused', retryAfterMs: null } as const;

  it('is taken back once when its answer is settled twice: an earlier unknown send stays counted', async () => {
    const order = await insertOrder(pool, { status: 'paying' });
    const record = await insertPayRecord(pool, order, {
      status: 'submitting',
      sends: 1,
      outcome_unknown: true,
      last_call: 'query',
      last_fact_state: 'not_found',
    });
    const ref = { merchantId: 'shop', orderId: String(order['order_id']) };
    const payRecordId = Number(record['pay_record_id']);
    expect(await beginSubmit(pool, ref, payRecordId)).toBeDefined();
    for (let run = 0; run < 2; run++) {
      const input = { payRecordId, call: 'submit', answer: NEVER_LEFT } as const;
      await applyPaymentAnswer(pool, ref, input, DEPS);
    }
    const { rows } = await pool.query(
      `select sends, outcome_unknown from pay_records where pay_record_id = $1::bigint`,
      [payRecordId],
    );
    expect(rows).toEqual([{ sends: 1, outcome_unknown: true }]);
  });

  it('is taken back once for a refund too', async () => {
    const { ref, refund } = await refundOfPaidOrder(pool, {
      status: 'submitting',
      sends: 1,
      outcome_unknown: true,
      last_call: 'query',
      last_fact_state: 'not_found',
    });
    const refundNo = String(refund['refund_no']);
    expect(await beginRefundSubmit(pool, ref, refundNo, DEPS.policyOf)).toBeDefined();
    for (let run = 0; run < 2; run++) {
      const input = { refundNo, call: 'submit', answer: NEVER_LEFT } as const;
      await applyRefundAnswer(pool, ref, input, DEPS);
    }
    const { rows } = await pool.query(
      `select sends, outcome_unknown from refunds where refund_id = $1::bigint`,
      [refund['refund_id']],
    );
    expect(rows).toEqual([{ sends: 1, outcome_unknown: true }]);
  });

  it('leaves a refund that may be held for a person, from the state it really had', async () => {
    const { ref, refund } = await refundOfPaidOrder(pool, {
      status: 'submitting',
      sends: 0,
      outcome_unknown: false,
      last_call: 'submit',
    });
    const { orderId } = ref;
    // The money is taken back by the channel before the refund's first send that leaves.
    await pool.query(
      `update captures set status = 'reversed', reversed_minor = 7_000 where order_id = $1::text`,
      [orderId],
    );
    const refundNo = String(refund['refund_no']);
    expect(await beginRefundSubmit(pool, ref, refundNo, DEPS.policyOf)).toBeUndefined();
    const held = await pool.query(
      `select status, status_reason, sends from refunds where refund_id = $1::bigint`,
      [refund['refund_id']],
    );
    expect(held.rows).toEqual([{ status: 'abnormal', status_reason: 'refund_in_doubt', sends: 0 }]);
    const events = await pool.query(
      `select from_status, to_status from order_events where order_id = $1::text and subject = 'refund'`,
      [orderId],
    );
    expect(events.rows).toEqual([{ from_status: 'submitting', to_status: 'abnormal' }]);
  });
});

describe('what a query says of a send', () => {
  let database: StatementDatabase;
  let pool: Pool;
  beforeAll(async () => {
    database = await createStatementDatabase();
    pool = database.pool;
  });
  afterAll(() => database?.end());

  const NOT_FOUND = {
    channel: 'mock-a',
    accountId: 'account-a',
    appId: 'app-a',
    learntFrom: 'query',
    state: 'not_found',
    channelTradeNo: null,
    amountMinor: null,
    currency: null,
  } as const;
  const SENT_BEFORE = '2026-03-01T12:00:00.000Z';
  const SENT_LAST = '2026-03-01T12:00:05.000Z';
  const SENT_TWICE = {
    status: 'submitting',
    sends: 2,
    outcome_unknown: true,
    first_sent_at: SENT_BEFORE,
    last_sent_at: SENT_LAST,
    last_call: 'submit',
  };
  const rows: [string, string | null, boolean][] = [
    ['asked after the last send: it may be sent again', SENT_LAST, true],
    ['asked between two sends: nothing is known of the second', SENT_BEFORE, false],
    ['asked before the first send: nothing is known', null, false],
  ];

  it.each(rows)('"no such order", %s', async (_, sentBefore, maySend) => {
    const order = await insertOrder(pool, { status: 'paying' });
    const record = await insertPayRecord(pool, order, SENT_TWICE);
    const ref = { merchantId: 'shop', orderId: String(order['order_id']) };
    const payRecordId = Number(record['pay_record_id']);
    const fact = aPaymentFact({ ...NOT_FOUND, outTradeNo: String(record['out_trade_no']) });
    const answer = { outcome: 'answered', fact, sentBefore } as const;
    const input = { payRecordId, call: 'query', answer } as const;
    await applyPaymentAnswer(pool, ref, input, DEPS);
    expect((await beginSubmit(pool, ref, payRecordId)) !== undefined).toBe(maySend);
  });

  it.each(rows)('"no such refund", %s', async (_, sentBefore, maySend) => {
    const { ref, refund } = await refundOfPaidOrder(pool, SENT_TWICE);
    const refundNo = String(refund['refund_no']);
    const fact = aRefundFact({ ...NOT_FOUND, outRefundNo: String(refund['out_refund_no']) });
    const answer = { outcome: 'answered', fact, sentBefore } as const;
    await applyRefundAnswer(pool, ref, { refundNo, call: 'query', answer }, DEPS);
    const sent = await beginRefundSubmit(pool, ref, refundNo, DEPS.policyOf);
    expect(sent !== undefined).toBe(maySend);
  });

  it('a query that never left lets nothing be sent again, though it was the last call', async () => {
    const order = await insertOrder(pool, { status: 'paying' });
    const record = await insertPayRecord(pool, order, SENT_TWICE);
    const ref = { merchantId: 'shop', orderId: String(order['order_id']) };
    const payRecordId = Number(record['pay_record_id']);
    const answer = { outcome: 'never_left', reason: 'rate_brake', retryAfterMs: 100 } as const;
    const input = { payRecordId, call: 'query', answer } as const;
    await applyPaymentAnswer(pool, ref, input, DEPS);
    expect(await beginSubmit(pool, ref, payRecordId)).toBeUndefined();

    const paid = await refundOfPaidOrder(pool, SENT_TWICE);
    const refundNo = String(paid.refund['refund_no']);
    await applyRefundAnswer(pool, paid.ref, { refundNo, call: 'query', answer }, DEPS);
    expect(await beginRefundSubmit(pool, paid.ref, refundNo, DEPS.policyOf)).toBeUndefined();
  });
});

/** A paid order with one refund that has money promised to it. */
async function refundOfPaidOrder(pool: Pool, columns: Record<string, unknown>) {
  const order = await insertOrder(pool, { status: 'paying' });
  const record = await insertPayRecord(pool, order, { status: 'pending' });
  const orderId = String(order['order_id']);
  await pool.query(`update pay_records set status = 'paid' where order_id = $1::text`, [orderId]);
  await pool.query(`update orders set status = 'paid' where order_id = $1::text`, [orderId]);
  const capture = await insertCapture(pool, record, { reserved_minor: 3_000 });
  const refund = await insertRefund(pool, capture, columns);
  return { ref: { merchantId: 'shop', orderId }, refund };
}
