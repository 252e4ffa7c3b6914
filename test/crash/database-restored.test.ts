import { inbox } from '../support/callback-waits';
import { figuresOf, money, outTradeNoOf } from '../support/figures';
import { refundRows } from '../support/refund-books';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';
import { Backup } from './backup';

/** What each order was when the backup was made; all went on afterwards, and then came the restore. */
const NO_RECORD = 'no-record';
const NO_RECORD_RESENT = 'no-record-resent';
const PENDING = 'pending';
const NO_REFUND = 'no-refund';
const OPEN_REFUND = 'open-refund';
const NO_ORDER = 'no-order';
const NEVER_REPEATED = 'never-repeated';
const LEFT_ALONE = 'left-alone';

describe('PostgreSQL restored to a backup taken mid-way', () => {
  let saga: Saga;
  let backup: Backup;

  beforeAll(async () => {
    saga = await Saga.start();
    for (const invariant of ['I6', 'I8'] as const) {
      saga.final.expect({
        invariant,
        about: NEVER_REPEATED,
        why: 'its order was lost with the restore, and its money is a case',
      });
    }
    for (const orderId of [NO_RECORD, NO_RECORD_RESENT, PENDING]) {
      await saga.createOrder({ order_id: orderId });
    }
    await saga.pay(PENDING);
    for (const orderId of [NO_REFUND, OPEN_REFUND, LEFT_ALONE]) {
      await saga.paidOrder({ order_id: orderId });
      await saga.untilSettled(orderId);
    }
    await saga.mock.addFault({
      match: { operation: 'refund', outTradeNo: outTradeNoOf(saga, OPEN_REFUND) },
      do: { refund: 'hold' },
    });
    await saga.refund(OPEN_REFUND, 'R1', 3_000);
    await saga.untilRefund(OPEN_REFUND, 'R1', 'processing');
    backup = await Backup.take(saga);

    await Promise.all(
      [NO_ORDER, NEVER_REPEATED].map((orderId) => saga.createOrder({ order_id: orderId })),
    );
    await Promise.all(
      [NO_RECORD, NO_RECORD_RESENT, NO_ORDER, NEVER_REPEATED].map((orderId) => saga.pay(orderId)),
    );
    for (const orderId of [NO_RECORD, NO_RECORD_RESENT, PENDING, NO_ORDER, NEVER_REPEATED]) {
      await saga.mock.approve(outTradeNoOf(saga, orderId));
    }
    await saga.refund(NO_REFUND, 'R1', 3_000);
    const [held] = await refundRows(saga, OPEN_REFUND);
    await saga.mock.finishRefund({ outRefundNo: held?.out_refund_no ?? '', result: 'succeed' });
    for (const orderId of [NO_RECORD, NO_RECORD_RESENT, PENDING, NO_ORDER, NEVER_REPEATED]) {
      await saga.untilOrder(orderId, 'paid');
      await saga.untilSettled(orderId);
    }
    await saga.untilRefund(NO_REFUND, 'R1', 'succeeded');
    await saga.untilRefund(OPEN_REFUND, 'R1', 'succeeded');
    for (const orderId of [NO_REFUND, OPEN_REFUND]) await saga.untilSettled(orderId);
    await saga.mock.waitUntilIdle();
    await waitFor('every run has ended', async () => (await openRuns()).length === 0);
    await backup.restore();
  });
  afterAll(async () => {
    await saga?.stop().finally(() => backup?.drop());
  });

  const paidOnce = {
    status: 'paid',
    trades: 1,
    cap: money(1, 10_000),
    ref: money(0, 0),
    rows: 1,
    settling: 1,
    review: 0,
  };

  it('an attempt that was pending is found paid by asking, and charged once', async () => {
    await saga.untilOrder(PENDING, 'paid');
    await saga.untilSettled(PENDING);
    expect(await figuresOf(saga, PENDING)).toMatchObject({ ...paidOnce, calls: 1 });
  });

  it('a pay request whose record is gone is repeated under the same number: charged once', async () => {
    expect(await saga.records(NO_RECORD)).toEqual([]);
    await repeatPay(NO_RECORD);
    expect(await figuresOf(saga, NO_RECORD)).toMatchObject({
      ...paidOnce,
      numbers: [outTradeNoOf(saga, NO_RECORD)],
    });
  });

  it('a callback that comes before the repeat is kept, and used once its number is back', async () => {
    const outTradeNo = outTradeNoOf(saga, NO_RECORD_RESENT);
    const [delivery] = await saga.mock.resendCallback({ outTradeNo });
    expect(delivery).toMatchObject({ httpStatus: 200, acknowledged: true });
    expect(await orphan(outTradeNo)).toMatchObject({ status: 'unmatched' });
    expect((await saga.order(NO_RECORD_RESENT)).status).toBe('created');
    await repeatPay(NO_RECORD_RESENT);
    expect(await figuresOf(saga, NO_RECORD_RESENT)).toMatchObject(paidOnce);
    expect(await inbox(saga, NO_RECORD_RESENT)).toMatchObject([
      { status: expect.stringMatching(/^(applied|no_effect)$/) as string },
    ]);
  });

  it('an order that is gone is created and paid again under its numbers: charged once', async () => {
    await saga.createOrder({ order_id: NO_ORDER });
    await repeatPay(NO_ORDER);
    expect(await figuresOf(saga, NO_ORDER)).toMatchObject({
      ...paidOnce,
      numbers: [outTradeNoOf(saga, NO_ORDER)],
    });
  });

  it('a refund whose row is gone is repeated under the same number: paid out once', async () => {
    expect(await refundRows(saga, NO_REFUND)).toEqual([]);
    const repeat = await saga.refund(NO_REFUND, 'R1', 3_000);
    expect(repeat.status).toBe(201);
    await saga.untilRefund(NO_REFUND, 'R1', 'succeeded');
    await saga.untilSettled(NO_REFUND);
    const books = await saga.books(NO_REFUND);
    expect(books.refunds).toEqual(money(1, 3_000));
    expect(books.refundNumbers).toEqual([repeat.body.out_refund_no]);
    expect((await saga.order(NO_REFUND)).refund_status).toBe('partial');
    expect(await saga.openCases(NO_REFUND)).toEqual([]);
  });

  it('a refund that was under way is found paid out by asking', async () => {
    await saga.untilRefund(OPEN_REFUND, 'R1', 'succeeded');
    await saga.untilSettled(OPEN_REFUND);
    const books = await saga.books(OPEN_REFUND);
    expect(books.refunds).toEqual(money(1, 3_000));
    expect(books.refundNumbers).toHaveLength(1);
    expect(books.calls.refund).toBe(1);
  });

  it('money for an order that nobody knows any more becomes a case', async () => {
    const outTradeNo = outTradeNoOf(saga, NEVER_REPEATED);
    const [delivery] = await saga.mock.resendCallback({ outTradeNo });
    expect(delivery).toMatchObject({ httpStatus: 200, acknowledged: true });
    const open = await waitFor('a case', async () => {
      const cases = await saga.rows<{ kind: string; evidence: unknown[] }>(
        `select kind, evidence from cases where subject_no = $1::text and status = 'open'`,
        outTradeNo,
      );
      return cases.length > 0 && cases;
    });
    expect(open).toMatchObject([{ kind: 'unknown_number' }]);
    expect(JSON.stringify(open[0]?.evidence)).toContain('10000');
    expect((await saga.mock.summary({ outTradeNos: [outTradeNo] })).captures).toEqual(
      money(1, 10_000),
    );
  });

  it('what had ended stays as it was, and no run is open without a row', async () => {
    expect(await figuresOf(saga, LEFT_ALONE)).toMatchObject({ ...paidOnce, calls: 1, evt: 1 });
    const known = new Set(
      (await saga.rows<{ order_id: string }>('select order_id from orders')).map(
        (row) => `order:${saga.merchantId}:${row.order_id}`,
      ),
    );
    expect((await openRuns()).filter((id) => id.startsWith('order:') && !known.has(id))).toEqual(
      [],
    );
  });

  it('a merchant that counts by webhook-id counts every payment once', () => {
    const contents = new Map<string, Set<string>>();
    for (const { id, type, orderId, subject } of saga.merchant.received) {
      contents.set(id, (contents.get(id) ?? new Set()).add(`${type} ${orderId} ${subject}`));
    }
    expect([...contents.values()].filter((set) => set.size > 1)).toEqual([]);
    const ids = new Map<string, Set<string>>();
    for (const { id, type, orderId } of saga.merchant.received) {
      if (type === 'order.paid') ids.set(orderId, (ids.get(orderId) ?? new Set()).add(id));
    }
    expect([...ids].filter(([, set]) => set.size > 1)).toEqual([]);
  });

  async function openRuns(): Promise<string[]> {
    const ids: string[] = [];
    const query = `MerchantId = '${saga.merchantId}' and ExecutionStatus = 'Running'`;
    for await (const run of saga.client.workflow.list({ query })) ids.push(run.workflowId);
    return ids;
  }

  async function repeatPay(orderId: string): Promise<void> {
    const answer = await saga.pay(orderId);
    expect([200, 201, 202]).toContain(answer.status);
    expect(answer.body).toMatchObject({ out_trade_no: outTradeNoOf(saga, orderId) });
    await saga.untilOrder(orderId, 'paid');
    await saga.untilSettled(orderId);
    expect(await saga.records(orderId)).toMatchObject([
      { out_trade_no: outTradeNoOf(saga, orderId), status: 'paid' },
    ]);
  }

  async function orphan(ourNo: string) {
    const [row] = await saga.rows<{ status: string }>(
      'select status from channel_callbacks where our_no = $1::text',
      ourNo,
    );
    return row;
  }
});
