import { beginSubmit, openAttempt, requestOrderClose } from '../../db/attempts';
import { storeRequest } from '../../db/merchant-requests';
import { deriveNumber } from '../../db/numbers';
import type { Pool } from '../../db/transaction';
import type { OrderRef } from '../../domain/orders';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';
import { insertOrder } from '../support/rows';

const numberSecret = 'a secret of the statements';

describe('the statements of an attempt', () => {
  let database: StatementDatabase;
  let pool: Pool;
  beforeAll(async () => {
    database = await createStatementDatabase();
    pool = database.pool;
  });
  afterAll(() => database?.end());

  async function anOrder(): Promise<OrderRef> {
    const row = await insertOrder(pool);
    return { merchantId: String(row['merchant_id']), orderId: String(row['order_id']) };
  }

  function ask(ref: OrderRef, requestNo: string, channel = 'ch-a') {
    return storeRequest(pool, ref, 'pay', {
      requestNo,
      fingerprint: Buffer.from(`${channel}:${requestNo}`),
      params: { channel, method: null, returnUrl: null, clientIp: null, payer: null },
    });
  }

  async function open(ref: OrderRef, requestNo: string, channel?: string) {
    await ask(ref, requestNo, channel);
    return openAttempt(pool, ref, requestNo, { numberSecret });
  }

  async function records(ref: OrderRef) {
    const { rows } = await pool.query<{
      pay_record_id: number;
      out_trade_no: string;
      status: string;
    }>(
      `select * from pay_records where merchant_id = $1::text and order_id = $2::text
       order by pay_record_id`,
      [ref.merchantId, ref.orderId],
    );
    return rows;
  }

  it('twenty requests at once under twenty numbers open one attempt and join it', async () => {
    const ref = await anOrder();
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => open(ref, `K${i}`)));
    expect(await records(ref)).toHaveLength(1);
    expect(answers.filter((a) => a.outcome === 'attempt' && a.opened)).toHaveLength(1);
    expect(new Set(answers.map((a) => ('payRecordId' in a ? a.payRecordId : a)))).toEqual(
      new Set([(await records(ref))[0]?.pay_record_id]),
    );
  });

  it('one request at once ten times is one attempt, and its number is derived, not drawn', async () => {
    const ref = await anOrder();
    await Promise.all(Array.from({ length: 10 }, () => open(ref, 'K1')));
    expect((await records(ref)).map((r) => r.out_trade_no)).toEqual([
      deriveNumber(numberSecret, ['pay', ref.merchantId, ref.orderId, 'ch-a', 'K1'], 0),
    ]);
  });

  it('a number already taken is stopped before the channel hears of it, and the next is used', async () => {
    const [taken, ref] = [await anOrder(), await anOrder()];
    const number = deriveNumber(
      numberSecret,
      ['pay', ref.merchantId, ref.orderId, 'ch-a', 'K1'],
      0,
    );
    await open(taken, 'K1');
    await pool.query(`update pay_records set out_trade_no = $1::text where order_id = $2::text`, [
      number,
      taken.orderId,
    ]);
    await open(ref, 'K1');
    expect((await records(ref)).map((r) => r.out_trade_no)).toEqual([
      deriveNumber(numberSecret, ['pay', ref.merchantId, ref.orderId, 'ch-a', 'K1'], 1),
    ]);
  });

  it('another channel waits until the live attempt is closed, and never opens beside it', async () => {
    const ref = await anOrder();
    await open(ref, 'K1', 'ch-a');
    expect(await open(ref, 'K2', 'ch-b')).toMatchObject({ outcome: 'wait' });
    expect(await records(ref)).toHaveLength(1);
    await pool.query(`update pay_records set status = 'closed' where order_id = $1::text`, [
      ref.orderId,
    ]);
    expect(await open(ref, 'K2', 'ch-b')).toMatchObject({ outcome: 'attempt', opened: true });
  });

  it('a number may be sent once; a second send needs a query in between', async () => {
    const ref = await anOrder();
    await open(ref, 'K1');
    const id = (await records(ref))[0]?.pay_record_id ?? 0;
    const sends = await Promise.all(Array.from({ length: 5 }, () => beginSubmit(pool, ref, id)));
    expect(sends.filter((s) => s !== undefined)).toHaveLength(1);
    expect(await records(ref)).toMatchObject([{ status: 'submitting', sends: 1 }]);
    await pool.query(
      `update pay_records set last_call = 'query', last_fact_state = 'not_found' where pay_record_id = $1::bigint`,
      [id],
    );
    expect(await beginSubmit(pool, ref, id)).toMatchObject({ sends: 2 });
    expect(await beginSubmit(pool, ref, id)).toBeUndefined();
  });

  it('nothing is sent for an order that is being closed', async () => {
    const ref = await anOrder();
    await open(ref, 'K1');
    await requestOrderClose(pool, ref, { reason: 'cancelled', actor: 'merchant', numberSecret });
    const id = (await records(ref))[0]?.pay_record_id ?? 0;
    expect(await beginSubmit(pool, ref, id)).toBeUndefined();
    expect(await records(ref)).toMatchObject([{ status: 'created', sends: 0 }]);
  });

  it('closing and paying at once end in one of the two, never in both', async () => {
    for (let round = 0; round < 10; round++) {
      const ref = await anOrder();
      await ask(ref, 'K1');
      const [, answer] = await Promise.all([
        requestOrderClose(pool, ref, { reason: 'cancelled', actor: 'merchant', numberSecret }),
        openAttempt(pool, ref, 'K1', { numberSecret }),
      ]);
      const { rows } = await pool.query<{ status: string }>(
        `select status from orders where order_id = $1::text`,
        [ref.orderId],
      );
      const opened = answer.outcome === 'attempt';
      expect(rows[0]?.status).toBe(opened ? 'paying' : 'closed');
      expect(await records(ref)).toHaveLength(opened ? 1 : 0);
    }
  });

  it('a deadline that has not passed by the database’s clock closes nothing', async () => {
    const ref = await anOrder();
    await requestOrderClose(pool, ref, { reason: 'expired', actor: 'system', numberSecret });
    const { rows } = await pool.query(`select status from orders where order_id = $1::text`, [
      ref.orderId,
    ]);
    expect(rows).toEqual([{ status: 'created' }]);
  });
});
