import { applyChanges, LostMoveError } from '../../db/changes';
import { lockOrderState } from '../../db/rows';
import { withTransaction } from '../../db/transaction';
import type { Pool } from '../../db/transaction';
import { openRefund, reserve } from '../../db/refunds';
import { storeRequest } from '../../db/merchant-requests';
import type { Change } from '../../domain/verdicts';
import { aPolicy } from '../support/builders';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';
import { insertCapture, insertOrder, insertPayRecord } from '../support/rows';
import { waitFor } from '../support/wait';

const CAUSE = {
  verdict: 'test',
  fact: null,
  channel: 'ch-a',
  actor: 'test',
  numberSecret: 'secret',
};

describe('statements that move money', () => {
  let database: StatementDatabase;
  let pool: Pool;
  beforeAll(async () => {
    database = await createStatementDatabase();
    pool = database.pool;
  });
  afterAll(() => database?.end());

  async function paidOrder() {
    const order = await insertOrder(pool, { status: 'paying' });
    const record = await insertPayRecord(pool, order, { status: 'submitting' });
    await pool.query(`update pay_records set status = 'paid' where pay_record_id = $1::bigint`, [
      record['pay_record_id'],
    ]);
    const capture = await insertCapture(pool, record);
    await pool.query(`update orders set status = 'paid' where order_id = $1::text`, [
      order['order_id'],
    ]);
    const ref = { merchantId: String(order['merchant_id']), orderId: String(order['order_id']) };
    return { ref, captureId: Number(capture['capture_id']) };
  }

  it('a move whose expected state is gone is refused, although the table would allow it', async () => {
    const order = await insertOrder(pool, { status: 'paying' });
    const record = await insertPayRecord(pool, order, { status: 'submitting' });
    const ref = { merchantId: String(order['merchant_id']), orderId: String(order['order_id']) };
    const stale: Change = {
      change: 'move_record',
      payRecordId: Number(record['pay_record_id']),
      from: 'pending',
      to: 'paid',
      reason: null,
      channelTradeNo: null,
    };
    await expect(
      withTransaction(pool, (client) => applyChanges(client, ref, { changes: [stale] }, CAUSE)),
    ).rejects.toThrow(LostMoveError);
    const { rows } = await pool.query(`select status from pay_records where order_id = $1::text`, [
      ref.orderId,
    ]);
    expect(rows).toEqual([{ status: 'submitting' }]);
  });

  it('an order is moved only from the state it is expected in', async () => {
    const order = await insertOrder(pool, { status: 'review' });
    const ref = { merchantId: String(order['merchant_id']), orderId: String(order['order_id']) };
    const stale: Change = { change: 'move_order', from: 'paying', to: 'paid', reason: null };
    await expect(
      withTransaction(pool, (client) => applyChanges(client, ref, { changes: [stale] }, CAUSE)),
    ).rejects.toThrow(LostMoveError);
  });

  it('whoever holds the order’s lock is waited for by the next', async () => {
    const order = await insertOrder(pool);
    const ref = { merchantId: String(order['merchant_id']), orderId: String(order['order_id']) };
    const seen: string[] = [];
    let letGo: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (letGo = resolve));
    const first = withTransaction(pool, async (client) => {
      await lockOrderState(client, ref);
      seen.push('first has it');
      await held;
      seen.push('first lets go');
    });
    await waitFor('the first lock', () => seen.length === 1);
    const second = withTransaction(pool, async (client) => {
      await lockOrderState(client, ref);
      seen.push('second has it');
    });
    await waitFor('the second to wait for it, or to have it', async () => {
      const { rowCount } = await pool.query(
        `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
      );
      return rowCount === 1 || seen.length > 1;
    });
    letGo();
    await Promise.all([first, second]);
    expect(seen).toEqual(['first has it', 'first lets go', 'second has it']);
  });

  it('reservations at once never pass the capture, even without the trigger and the lock', async () => {
    const { captureId } = await paidOrder();
    await pool.query(`alter table captures disable trigger captures_reservation_within_rest`);
    try {
      const reserved = await Promise.all(
        Array.from({ length: 10 }, () =>
          withTransaction(pool, (client) => reserve(client, captureId, 1_500)),
        ),
      );
      expect(reserved.filter(Boolean)).toHaveLength(6);
    } finally {
      await pool.query(`alter table captures enable trigger captures_reservation_within_rest`);
    }
    const { rows } = await pool.query(
      `select reserved_minor from captures where capture_id = $1::bigint`,
      [captureId],
    );
    expect(rows).toEqual([{ reserved_minor: 9_000 }]);
  });

  it('one refund number at once ten times is one refund with one number at the channel', async () => {
    const { ref } = await paidOrder();
    await storeRequest(pool, ref, 'refund', {
      requestNo: 'R1',
      fingerprint: Buffer.from('R1'),
      params: { amountMinor: 4_000, reason: '' },
    });
    const deps = { policyOf: () => aPolicy(), numberSecret: 'secret' };
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => openRefund(pool, ref, 'R1', deps)),
    );
    expect(answers.filter((a) => a.outcome === 'accepted' && a.opened)).toHaveLength(1);
    const { rows } = await pool.query(
      `select c.reserved_minor, count(f.*)::int as refunds from captures c join refunds f using (capture_id)
       where c.order_id = $1::text group by c.reserved_minor`,
      [ref.orderId],
    );
    expect(rows).toEqual([{ reserved_minor: 4_000, refunds: 1 }]);
  });
});
