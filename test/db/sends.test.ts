import { beginSubmit } from '../../db/attempts';
import { applyRefundAnswer, beginRefundSubmit } from '../../db/refunds';
import { applyPaymentAnswer } from '../../db/settlement';
import type { Pool } from '../../db/transaction';
import { aPolicy } from '../support/builders';
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
      const input = { payRecordId, call: 'submit', answer: NEVER_LEFT, askedSince: false } as const;
      await applyPaymentAnswer(pool, ref, input, DEPS);
    }
    const { rows } = await pool.query(
      `select sends, outcome_unknown from pay_records where pay_record_id = $1::bigint`,
      [payRecordId],
    );
    expect(rows).toEqual([{ sends: 1, outcome_unknown: true }]);
  });

  it('is taken back once for a refund too', async () => {
    const order = await insertOrder(pool, { status: 'paying' });
    const record = await insertPayRecord(pool, order, { status: 'pending' });
    await pool.query(`update pay_records set status = 'paid' where order_id = $1::text`, [
      order['order_id'],
    ]);
    await pool.query(`update orders set status = 'paid' where order_id = $1::text`, [
      order['order_id'],
    ]);
    const capture = await insertCapture(pool, record, { reserved_minor: 3_000 });
    const refund = await insertRefund(pool, capture, {
      status: 'submitting',
      sends: 1,
      outcome_unknown: true,
      last_call: 'query',
      last_fact_state: 'not_found',
    });
    const ref = { merchantId: 'shop', orderId: String(order['order_id']) };
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
    const order = await insertOrder(pool, { status: 'paying' });
    const record = await insertPayRecord(pool, order, { status: 'pending' });
    const orderId = String(order['order_id']);
    await pool.query(`update pay_records set status = 'paid' where order_id = $1::text`, [orderId]);
    await pool.query(`update orders set status = 'paid' where order_id = $1::text`, [orderId]);
    const capture = await insertCapture(pool, record, { reserved_minor: 3_000 });
    const refund = await insertRefund(pool, capture, {
      status: 'submitting',
      sends: 0,
      outcome_unknown: false,
      last_call: 'submit',
    });
    // The money is taken back by the channel before the refund's first send that leaves.
    await pool.query(
      `update captures set status = 'reversed', reversed_minor = 7_000 where order_id = $1::text`,
      [orderId],
    );
    const ref = { merchantId: 'shop', orderId };
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
