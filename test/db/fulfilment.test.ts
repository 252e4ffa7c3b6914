import { applyChanges } from '../../db/changes';
import { advanceFulfilment, applyStepAnswer, beginStepCall } from '../../db/fulfilment';
import { upsertMerchant } from '../../db/merchants';
import { readOrderState } from '../../db/rows';
import { withTransaction } from '../../db/transaction';
import type { Pool } from '../../db/transaction';
import type { StepAnswer, StepCall } from '../../domain/fulfilment';
import type { OrderRef } from '../../domain/orders';
import { insertCapture, insertOrder, insertPayRecord } from '../support/rows';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';

const CAUSE = {
  verdict: 'test',
  fact: null,
  channel: 'ch-a',
  actor: 'test',
  numberSecret: 'secret',
};
const DEPS = {
  policy: { ladderMs: [0], timeoutMs: 0, stuckCaseAfterMs: 3_600_000, undoTriesMax: 2 },
  numberSecret: 'secret',
};
const STEPS = ['reserve', 'grant'].map((name) => ({
  name,
  url: `https://shop.example/${name}`,
  undo_url: `https://shop.example/${name}/undo`,
}));

describe('the steps of an order', () => {
  let database: StatementDatabase;
  let pool: Pool;
  beforeAll(async () => {
    database = await createStatementDatabase();
    pool = database.pool;
  });
  afterAll(() => database?.end());
  const configure = (fulfilmentSteps: typeof STEPS) =>
    upsertMerchant(pool, {
      merchantId: 'shop',
      name: 'The shop',
      notifySecretRef: 'env:S',
      fulfilmentSteps,
    });
  beforeEach(() => configure(STEPS));

  async function paidOrder(): Promise<OrderRef> {
    const order = await insertOrder(pool, { status: 'paying' });
    const ref = { merchantId: 'shop', orderId: String(order['order_id']) };
    await insertCapture(pool, await insertPayRecord(pool, order, { status: 'paid' }));
    await pays(ref, 'paying');
    return ref;
  }
  const pays = (ref: OrderRef, from: 'paying' | 'review') =>
    withTransaction(pool, (client) =>
      applyChanges(
        client,
        ref,
        { changes: [{ change: 'move_order', from, to: 'paid', reason: null }] },
        CAUSE,
      ),
    );
  const stateOf = async (ref: OrderRef) => {
    const state = await readOrderState(pool, ref);
    return {
      fulfilment: state?.order.fulfilmentStatus,
      steps: state?.fulfilmentSteps.map(({ name, status }) => `${name} ${status}`),
      due: state?.fulfilmentSteps.filter(({ nextDueAt }) => nextDueAt !== null).length,
    };
  };
  const begin = (ref: OrderRef, stepNo: number, call: StepCall = 'do', tryNo = 1) =>
    beginStepCall(pool, ref, { stepNo, call, tryNo }, DEPS);
  const settle = (
    ref: OrderRef,
    stepNo: number,
    answer: StepAnswer,
    call: StepCall = 'do',
    tryNo = 1,
  ) => applyStepAnswer(pool, ref, { stepNo, call, tryNo, answer }, DEPS);
  /** The mark of a call outlives the call; a test lets it be over. */
  const callIsOver = (ref: OrderRef) =>
    pool.query(
      `update fulfilment_steps set next_due_at = now(), last_sent_at = now() - interval '1 minute'
       where order_id = $1::text and next_due_at is not null`,
      [ref.orderId],
    );
  const unknown: StepAnswer = { outcome: 'unknown', reason: 'time over', retryAfterMs: null };

  it('are copied when the order becomes paid, and a later configuration changes nothing', async () => {
    const ref = await paidOrder();
    await configure([]);
    expect(await stateOf(ref)).toEqual({
      fulfilment: 'running',
      steps: ['reserve waiting', 'grant waiting'],
      due: 1,
    });
    expect(await stateOf(await paidOrder())).toEqual({ fulfilment: 'none', steps: [], due: 0 });
  });

  it('are not copied again when a review ends with the money accepted', async () => {
    const ref = await paidOrder();
    await pool.query(`update orders set status = 'review' where order_id = $1::text`, [
      ref.orderId,
    ]);
    await advanceFulfilment(pool, ref, DEPS);
    expect((await stateOf(ref)).fulfilment).toBe('failed');
    await pays(ref, 'review');
    expect(await stateOf(ref)).toEqual({
      fulfilment: 'failed',
      steps: ['reserve skipped', 'grant skipped'],
      due: 0,
    });
  });

  it('are sent by one of many that would at once', async () => {
    const ref = await paidOrder();
    const sent = await Promise.all(Array.from({ length: 12 }, () => begin(ref, 1)));
    expect(sent.filter((one) => one !== undefined)).toHaveLength(1);
    expect((await readOrderState(pool, ref))?.fulfilmentSteps[0]?.tries).toBe(1);
  });

  it('are sent in their order, and not while a call of them is under way', async () => {
    const ref = await paidOrder();
    expect(await begin(ref, 2)).toBeUndefined();
    expect(await begin(ref, 1)).toBeDefined();
    expect(await begin(ref, 1, 'do', 2)).toBeUndefined();
    await callIsOver(ref);
    expect(await begin(ref, 1, 'do', 2)).toBeDefined();
    expect((await readOrderState(pool, ref))?.fulfilmentSteps[0]?.outcomeUnknown).toBe(true);
  });

  it('take a yes whichever try it answers, and no unknown of an older one', async () => {
    const ref = await paidOrder();
    await begin(ref, 1);
    await callIsOver(ref);
    await begin(ref, 1, 'do', 2);
    const before = (await readOrderState(pool, ref))?.fulfilmentSteps[0]?.nextDueAt;
    await settle(ref, 1, unknown);
    expect((await readOrderState(pool, ref))?.fulfilmentSteps[0]?.nextDueAt).toBe(before);
    await settle(ref, 1, { outcome: 'done' });
    await settle(ref, 1, { outcome: 'refused', reason: 'late' }, 'do', 2);
    expect((await stateOf(ref)).steps).toEqual(['reserve done', 'grant waiting']);
  });

  it('end done once, and the merchant is told once, however often the last answer is settled', async () => {
    const ref = await paidOrder();
    for (const stepNo of [1, 2]) {
      await begin(ref, stepNo);
      await Promise.all([1, 2, 3].map(() => settle(ref, stepNo, { outcome: 'done' })));
    }
    expect((await stateOf(ref)).fulfilment).toBe('done');
    const { rows } = await pool.query(
      `select event_type from notifications where order_id = $1::text`,
      [ref.orderId],
    );
    expect(rows).toEqual([{ event_type: 'order.fulfilled' }]);
  });

  it('give the rest of the payment back once when one is refused, under the capture’s own number', async () => {
    const ref = await paidOrder();
    await begin(ref, 1);
    await settle(ref, 1, { outcome: 'done' });
    await begin(ref, 2);
    await settle(ref, 2, { outcome: 'refused', reason: 'sold out' });
    expect((await stateOf(ref)).steps).toEqual(['reserve undoing', 'grant refused']);
    await begin(ref, 1, 'undo');
    await Promise.all([1, 2].map(() => settle(ref, 1, { outcome: 'done' }, 'undo')));
    expect(await stateOf(ref)).toEqual({
      fulfilment: 'failed',
      steps: ['reserve undone', 'grant refused'],
      due: 0,
    });
    const state = await readOrderState(pool, ref);
    const [capture] = state?.captures ?? [];
    expect(capture?.reservedMinor).toBe(10_000);
    expect(state?.refunds).toMatchObject([
      { refundNo: `auto:${capture?.captureId}`, amountMinor: 10_000, origin: 'fulfilment' },
    ]);
  });

  it('give an undo up after its tries, with a case, and the money back all the same', async () => {
    const ref = await paidOrder();
    await begin(ref, 1);
    await settle(ref, 1, { outcome: 'done' });
    await begin(ref, 2);
    await settle(ref, 2, { outcome: 'refused', reason: 'sold out' });
    for (const tryNo of [1, 2]) {
      await begin(ref, 1, 'undo', tryNo);
      await settle(ref, 1, unknown, 'undo', tryNo);
      await callIsOver(ref);
    }
    expect((await stateOf(ref)).steps).toEqual(['reserve undo_failed', 'grant refused']);
    expect((await readOrderState(pool, ref))?.refunds).toHaveLength(1);
    const { rows } = await pool.query(`select kind from cases where order_id = $1::text`, [
      ref.orderId,
    ]);
    expect(rows).toEqual([{ kind: 'undo_failed' }]);
  });

  it('wait for the last call of a step to be over before its undo is sent', async () => {
    const ref = await paidOrder();
    const slow = { ...DEPS, policy: { ...DEPS.policy, timeoutMs: 30_000 } };
    await beginStepCall(pool, ref, { stepNo: 1, call: 'do', tryNo: 1 }, slow);
    await pool.query(
      `update captures set refunded_minor = amount_minor where order_id = $1::text`,
      [ref.orderId],
    );
    const progress = await advanceFulfilment(pool, ref, slow);
    expect(progress?.next).toMatchObject({ call: 'undo', stepNo: 1, tryNo: 1 });
    expect(progress?.next?.dueInMs).toBeGreaterThan(25_000);
    expect(
      await beginStepCall(pool, ref, { stepNo: 1, call: 'undo', tryNo: 1 }, slow),
    ).toBeUndefined();
  });

  it('have one due time as long as they are not over', async () => {
    const ref = await paidOrder();
    const dues: (number | undefined)[] = [];
    const note = async () => dues.push((await stateOf(ref)).due);
    await note();
    await begin(ref, 1);
    await note();
    await settle(ref, 1, unknown);
    await note();
    await settle(ref, 1, { outcome: 'done' });
    await note();
    await begin(ref, 2);
    await settle(ref, 2, { outcome: 'refused', reason: 'no' });
    await note();
    await begin(ref, 1, 'undo');
    await settle(ref, 1, { outcome: 'done' }, 'undo');
    await note();
    expect(dues).toEqual([1, 1, 1, 1, 1, 0]);
  });
});

describe('what a merchant may be configured with', () => {
  let database: StatementDatabase;
  beforeAll(async () => {
    database = await createStatementDatabase();
  });
  afterAll(() => database?.end());

  const good = { name: 'grant', url: 'https://shop.example/grant' };
  it.each<[string, unknown]>([
    ['no name', [{ url: good.url }]],
    ['a name that cannot be part of a key', [{ ...good, name: 'a:b' }]],
    ['no address', [{ name: 'grant' }]],
    ['an undo that is no address', [{ ...good, undo_url: 7 }]],
    ['a time that is no whole number of milliseconds', [{ ...good, timeout_ms: 99.5 }]],
    ['two steps of one name', [good, good]],
    ['more steps than twenty', Array.from({ length: 21 }, (_, i) => ({ ...good, name: `s${i}` }))],
    ['no list', { grant: good }],
  ])('is refused with %s, by the code and by the schema', async (_, steps) => {
    await expect(
      upsertMerchant(database.pool, {
        merchantId: 'm',
        name: 'M',
        notifySecretRef: 'env:S',
        fulfilmentSteps: steps as never,
      }),
    ).rejects.toThrow('the fulfilment steps have faults');
    await expect(
      database.pool.query(
        `insert into merchants (merchant_id, name, notify_secret_ref, fulfilment_steps)
         values ('m', 'M', 'env:S', $1::jsonb)`,
        [JSON.stringify(steps)],
      ),
    ).rejects.toThrow('merchants_fulfilment_steps_shape');
  });

  it('is refused without a secret to sign the calls with', async () => {
    await expect(
      upsertMerchant(database.pool, { merchantId: 'm', name: 'M', fulfilmentSteps: [good] }),
    ).rejects.toThrow('merchants_fulfilment_needs_secret');
  });

  it.each(['ftp://shop.example/grant', 'grant', ''])(
    'is refused with the address %j',
    async (url) => {
      await expect(
        upsertMerchant(database.pool, {
          merchantId: 'm',
          name: 'M',
          notifySecretRef: 'env:S',
          fulfilmentSteps: [{ ...good, url }],
        }),
      ).rejects.toThrow('must be an http(s) address');
    },
  );
});
