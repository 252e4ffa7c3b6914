import { Saga } from '../support/saga';
import {
  begin,
  CHANNELS,
  daysAgo,
  ended,
  expectWhole,
  instantOf,
  paidOn,
  payingAt,
  reconcile,
  refundedOn,
  standing,
  zoneAtHour,
} from '../support/reconciliations';
import { waitFor } from '../support/wait';

const HALF_AN_HOUR_MS = 1_800_000;

describe('what reconciliation finds of the money, and what it repairs', () => {
  let saga: Saga;
  let lastDay = 20;
  beforeAll(async () => {
    // No poll tells anything here: what no callback told, only reconciliation finds.
    saga = await Saga.start({
      timeZone: zoneAtHour(6),
      policy: {
        pollLadderMs: [HALF_AN_HOUR_MS],
        refundLadderMs: [HALF_AN_HOUR_MS],
        reconcileAskMs: 3_000,
      },
    });
    await saga.mock.addFault({
      match: { operation: 'callback', tag: 'silent' },
      do: { drop: true },
    });
  });
  afterAll(() => saga?.stop());

  const aDay = () => daysAgo(saga, ++lastDay);
  const refundsOf = (orderId: string) =>
    saga.rows<{ status: string; out_refund_no: string; refund_no: string }>(
      `select status, out_refund_no, refund_no from refunds
       where merchant_id = $1::text and order_id = $2::text order by refund_id`,
      saga.merchantId,
      orderId,
    );

  it.each(CHANNELS)(
    'a payment at %s whose every notice was lost is found, asked about and settled: nothing is left',
    async (channel) => {
      const day = aDay();
      const { orderId, outTradeNo } = await payingAt(saga, channel, { subject: 'lost #silent' });
      await saga.mock.capture({ outTradeNo, at: instantOf(saga, day) });
      const dry = await reconcile(saga, channel, day, { dryRun: true });
      expect(standing(dry)).toEqual(['channel_only open']);
      expect((await saga.order(orderId)).status).toBe('paying');

      const found = await reconcile(saga, channel, day);
      expect(standing(found)).toEqual([]);
      expect(found.differences).toMatchObject([{ kind: 'channel_only', status: 'resolved' }]);
      await saga.untilOrder(orderId, 'paid');
      await saga.untilSettled(orderId);
      expect(saga.merchant.effects(orderId, 'order.paid')).toHaveLength(1);
      expect(await saga.openCases(orderId)).toEqual([]);
      expectWhole(found);
    },
  );

  it('money for a closed order is found, given back by itself, and listed until it is', async () => {
    const day = aDay();
    const { orderId, outTradeNo } = await payingAt(saga, 'mock-a', { subject: 'late #silent' });
    await saga.cancel(orderId);
    await saga.untilOrder(orderId, 'closed');
    await saga.mock.capture({ outTradeNo, at: instantOf(saga, day) });
    const found = await reconcile(saga, 'mock-a', day);
    expect(standing(found).filter((line) => !line.endsWith('waiting'))).toEqual([]);
    await waitFor('it went back', async () => {
      return (await saga.books(orderId)).refunds.count === 1;
    });
    expect((await saga.order(orderId)).status).toBe('closed');
    expect((await saga.books(orderId)).refunds).toEqual({ count: 1, sums: { CNY: 10_000 } });
    const [refund] = await refundsOf(orderId);
    // Its notice is lost, too: asking about the order settles it.
    const asked = await saga.call('POST', '/ops/reconciliations', {
      merchant_id: saga.merchantId,
      order_id: orderId,
    });
    expect(asked).toMatchObject({ status: 202, body: { asked: 2 } });
    expect(asked.body.differences.length).toBeGreaterThan(0);
    await saga.untilRefund(orderId, refund!.refund_no, 'succeeded');
    expect(standing(await reconcile(saga, 'mock-a', day))).toEqual([]);
  });

  it.each(CHANNELS)(
    'B03: %s is paid twice: exactly 1 "paid twice" until it is refunded',
    async (channel) => {
      const day = aDay();
      const { orderId, outTradeNo } = await paidOn(saga, channel, day);
      await saga.mock.addFault({
        match: { operation: 'refund', outTradeNo },
        do: { refund: 'hold' },
      });
      await saga.mock.capture({ outTradeNo, at: instantOf(saga, day, 60_000) });
      const [refund] = await waitFor('it is on its way back', async () => {
        const rows = await refundsOf(orderId);
        return rows[0]?.status === 'processing' && rows;
      });
      const found = await reconcile(saga, channel, day);
      expect(standing(found)).toEqual(['duplicate_payment waiting']);
      expect(found.bill).toMatchObject({ rows: 2 });
      expect(standing(await reconcile(saga, channel, day))).toEqual(['duplicate_payment waiting']);
      expect(await saga.openCases(orderId)).toEqual([]);

      await saga.mock.finishRefund({ outRefundNo: refund!.out_refund_no, result: 'succeed' });
      await saga.untilRefund(orderId, refund!.refund_no, 'succeeded');
      const after = await reconcile(saga, channel, day);
      expect(standing(after)).toEqual([]);
      expect(after.differences).toHaveLength(1);
      expect((await saga.order(orderId)).status).toBe('paid');
      expect(saga.merchant.effects(orderId, 'order.paid')).toHaveLength(1);
      expect((await saga.books(orderId)).refunds).toEqual({ count: 1, sums: { CNY: 10_000 } });
    },
  );

  it.each(CHANNELS)(
    'B41: 2000 yen at %s are 2000 in the bill, 500 back are 500',
    async (channel) => {
      const day = aDay();
      const yen = { amount: 2_000, currency: 'JPY' };
      const { orderId } = await paidOn(saga, channel, day, yen);
      await refundedOn(saga, day, orderId, 'R1', 500);
      const found = await reconcile(saga, channel, day);
      expect(found.differences).toEqual([]);
      expect(found.totals).toMatchObject([
        {
          currency: 'JPY',
          file: { rows: 2, net_minor: 1_500, payments_minor: 2_000, refunds_minor: 500 },
          matched: { rows: 2, net_minor: 1_500 },
        },
      ]);
    },
  );

  it.each(CHANNELS)(
    'B43: 0.01, 8.20, 19.99, 64.35 and 100.00 at %s match to the cent',
    async (channel) => {
      const day = aDay();
      const amounts = [1, 820, 1_999, 6_435, 10_000];
      for (const amount of amounts) await paidOn(saga, channel, day, { amount });
      const found = await reconcile(saga, channel, day);
      expect(found.differences).toEqual([]);
      expect(found.totals).toMatchObject([
        { matched: { rows: 5, net_minor: amounts.reduce((sum, amount) => sum + amount, 0) } },
      ]);
    },
  );

  it('B85: what the channel has and we have not is 1 difference and 1 orphan case, never an order', async () => {
    const day = aDay();
    const outTradeNo = 'NOSUCHORDER0001';
    await saga.mock.sendCallback({ outTradeNo, dialect: 'mock-a', amountMinor: 4_200, copies: 5 });
    await saga.mock.addBillRow(
      { dialect: 'mock-a', day },
      { kind: 'payment', outTradeNo, amountMinor: 4_200 },
    );
    const { orderId } = await paidOn(saga, 'mock-a', day);
    const found = await reconcile(saga, 'mock-a', day);
    expect(standing(found)).toEqual(['channel_only case']);
    expect(found.differences).toMatchObject([
      { ours: null, channel_says: { out_trade_no: outTradeNo, amount_minor: 4_200 } },
    ]);
    await reconcile(saga, 'mock-a', day);
    await waitFor('the inbox had its say', async () => {
      const [row] = await saga.rows<{ status: string }>(
        `select status from channel_callbacks where our_no = $1::text`,
        outTradeNo,
      );
      return row?.status === 'unmatched';
    });
    const cases = await saga.rows(
      `select order_id from cases where status = 'open' and subject_no = $1::text`,
      outTradeNo,
    );
    expect(cases).toEqual([{ order_id: null }]);
    const orders = await saga.rows(
      `select from pay_records where out_trade_no = $1::text`,
      outTradeNo,
    );
    expect(orders).toEqual([]);
    expect((await saga.order(orderId)).status).toBe('paid');
  });

  it.each(CHANNELS)(
    'B98: two equal payments at %s are two, the same row twice is one difference, however often it runs',
    async (channel) => {
      const day = aDay();
      const [one] = await Promise.all([
        paidOn(saga, channel, day, { amount: 990, subject: 'the same' }),
        paidOn(saga, channel, day, { amount: 990, subject: 'the same' }),
      ]);
      await saga.mock.duplicateBillRow({ dialect: channel, day }, { outTradeNo: one.outTradeNo });
      const first = await reconcile(saga, channel, day);
      await Promise.all([begin(saga, channel, day), begin(saga, channel, day)]);
      await ended(saga, channel, day);
      const third = await reconcile(saga, channel, day);
      expect(third).toEqual(first);
      expect(standing(third)).toEqual(['duplicate_row case']);
      expect(third.totals).toMatchObject([
        { file: { rows: 3 }, matched: { rows: 2, net_minor: 1_980 }, differences: { rows: 1 } },
      ]);
      expectWhole(third);
      const rows = await saga.rows(
        `select from differences where channel = $1::text and business_date = $2::date`,
        channel,
        day,
      );
      expect(rows).toHaveLength(1);
    },
  );

  it.each(CHANNELS)(
    'B100: fees at %s that are missing or wrong are told, a row nobody names is listed, the sums add up',
    async (channel) => {
      const day = aDay();
      const orders = [];
      for (let i = 0; i < 5; i++) orders.push(await paidOn(saga, channel, day, { amount: 1_000 }));
      const [empty, dash, negative, wrong] = orders;
      const bill = { dialect: channel, day };
      const change = (order: typeof empty, set: Parameters<typeof saga.mock.changeBillRow>[2]) =>
        saga.mock.changeBillRow(bill, { outTradeNo: order!.outTradeNo }, set);
      await change(empty, { feeMinor: null });
      await change(dash, { feeMinor: null, cells: { fee: '-' } });
      await change(negative, { feeMinor: -6 });
      await change(wrong, { feeMinor: 7 });
      await saga.mock.addBillRow(bill, { kind: 'unknown', amountMinor: -321 });
      const found = await reconcile(saga, channel, day, { dryRun: true });
      const of = (order: typeof empty) =>
        found.differences
          .filter(({ subject }) => subject === order!.tradeNo)
          .map(({ kind, reason }) => `${kind} ${reason}`);
      expect(of(empty)).toEqual(['fee missing']);
      expect(of(dash)).toEqual(['fee missing']);
      expect(of(negative)).toEqual(['fee wrong']);
      expect(of(wrong)).toEqual(['fee wrong']);
      expect(found.by_kind).toEqual({ fee: 4, unknown_row: 1 });
      expect(found.totals).toMatchObject([
        {
          file: { rows: 6, net_minor: 4_679 },
          matched: { rows: 1, net_minor: 1_000 },
          differences: { rows: 4, net_minor: 4_000 },
          unknown: { rows: 1, net_minor: -321 },
        },
      ]);
      expectWhole(found);
    },
  );

  describe.each(CHANNELS)('B101: a refund that the file of %s calls processing', (channel) => {
    async function aRefund(tag: string) {
      const day = aDay();
      const { orderId, outTradeNo } = await paidOn(saga, channel, day, {
        subject: `refund #${tag}`,
      });
      await saga.mock.addFault({
        match: { operation: 'callback', kind: 'refund', outTradeNo },
        do: { drop: true },
      });
      await saga.mock.freezeBillRefunds({ dialect: channel, day });
      await saga.mock.configure({
        businessClockOffsetMs: Date.parse(instantOf(saga, day)) - Date.now(),
      });
      return { day, orderId, outTradeNo };
    }

    it('B101: and a query calls success: it is asked about and settled, nothing is left', async () => {
      const { day, orderId } = await aRefund('asked');
      await saga.refund(orderId, 'R1', 500);
      await waitFor('the channel paid it', async () => {
        return (await saga.books(orderId)).refunds.count === 1;
      });
      await saga.mock.configure({ businessClockOffsetMs: 0 });
      const found = await reconcile(saga, channel, day);
      expect(standing(found)).toEqual([]);
      await saga.untilRefund(orderId, 'R1', 'succeeded');
      expect(await saga.openCases(orderId)).toEqual([]);
      // The next day's file does not mention it.
      const next = await reconcile(saga, channel, daysAgo(saga, lastDay - 1), { dryRun: true });
      expect(next.differences.filter(({ order_id }) => order_id === orderId)).toEqual([]);
    });

    it('B101: and a query calls processing, too: it waits, and is no mismatch', async () => {
      const { day, orderId, outTradeNo } = await aRefund('held');
      await saga.mock.addFault({
        match: { operation: 'refund', outTradeNo },
        do: { refund: 'hold' },
      });
      await saga.refund(orderId, 'R1', 500);
      await saga.untilRefund(orderId, 'R1', 'processing');
      await saga.mock.configure({ businessClockOffsetMs: 0 });
      expect(standing(await reconcile(saga, channel, day))).toEqual(['refund_status waiting']);
      expect(await saga.openCases(orderId)).toEqual([]);
      const [refund] = await refundsOf(orderId);
      await saga.mock.finishRefund({ outRefundNo: refund!.out_refund_no, result: 'succeed' });
      expect(standing(await reconcile(saga, channel, day))).toEqual([]);
      await saga.untilRefund(orderId, 'R1', 'succeeded');
    });
  });
});
