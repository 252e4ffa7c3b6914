import { deriveNumber } from '../../db/numbers';
import { orderWorkflowId } from '../../workflows/ids';
import { expectAlwaysTrue, figuresOf, money, outTradeNoOf } from '../support/figures';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

const ONCE = money(1, 10_000);

describe('order numbers', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start();
  });
  afterAll(() => saga?.stop());

  /** What exists of anybody: rows, and requests that a channel received. */
  const everything = async () => {
    const [counted] = await saga.rows(
      `select (select count(*) from orders) as orders, (select count(*) from pay_records) as records`,
    );
    const requests = (await saga.mock.books()).filter((record) => record.type === 'request');
    return { ...counted, requests: requests.length };
  };
  const answers = async (outTradeNo: string) =>
    (await saga.mock.deliveries({ outTradeNo })).map((delivery) => delivery.httpStatus);

  it.each([
    ['mock-a', ['ORDER123', 'order123']],
    ['mock-b', ['ORDER124', 'order124']],
  ])('B73: at %s ids that differ in case alone are two orders', async (channel, ids) => {
    const paid = await Promise.all(ids.map((order_id) => saga.paidOrder({ order_id }, channel)));
    expect(new Set(paid.map(({ outTradeNo }) => outTradeNo)).size).toBe(2);
    const rows = await saga.rows<{ order_id: string }>(
      `select order_id from orders where lower(order_id) = $1::text order by order_id collate "C"`,
      ids[1],
    );
    expect(rows.map((row) => row.order_id)).toEqual(ids);
    const workflowIds = new Set<string>();
    for (const { orderId, outTradeNo } of paid) {
      await expectAlwaysTrue(saga, orderId);
      for (const run of await saga.runs(orderId)) workflowIds.add(run.workflowId);
      expect(await answers(outTradeNo)).toEqual([200]);
      expect(await figuresOf(saga, orderId)).toMatchObject({
        status: 'paid',
        cap: ONCE,
        numbers: [outTradeNo],
        rows: 1,
        settling: 1,
        evt: 1,
        runs: 1,
        resend: 0,
        review: 0,
      });
    }
    expect([...workflowIds].sort()).toEqual(
      ids.map((orderId) => orderWorkflowId({ merchantId: saga.merchantId, orderId })),
    );
  });

  it('B74: an id that a channel or a path could refuse leaves no row, no run and no call', async () => {
    const before = await everything();
    const ids = ['订单', 'a b', 'a/b', '..', '%2F', 'a?b', 'a#b', 'a\nb', '💰', "a'b", 'a"b'];
    for (const order_id of [...ids, 'x'.repeat(65), 'x'.repeat(1000), '']) {
      const created = await saga.call('POST', '/v1/orders', {
        order_id,
        amount: 10_000,
        currency: 'CNY',
        subject: 'x',
      });
      expect([order_id, created.status, created.body.status]).toEqual([order_id, 400, 400]);
      expect(created.headers.get('content-type')).toBe('application/problem+json');
      await expect(saga.handle(order_id).describe()).rejects.toThrow();
      // Where the path can carry it at all, paying such an order is refused as well.
      if (order_id === '' || order_id === '..') continue;
      expect([order_id, (await saga.pay(order_id)).status]).toEqual([order_id, 400]);
    }
    expect(await everything()).toEqual(before);
  });

  it('B74: an id that is accepted works in every path and reaches the channel as a number of ours', async () => {
    const ids = ['0', '007', 'Z', 'a..b', '9._-', 'x'.repeat(33), `${'y'.repeat(63)}z`];
    for (const order_id of ids) {
      const { orderId, outTradeNo } = await saga.paidOrder({ order_id });
      expect(outTradeNo).toMatch(/^[0-9A-Z]{30}$/);
      const read = await saga.status(orderId);
      expect([read.status, read.body.order_id, read.body.status]).toEqual([200, orderId, 'paid']);
      await expectAlwaysTrue(saga, orderId);
      expect(await figuresOf(saga, orderId)).toMatchObject({ cap: ONCE, rows: 1, evt: 1 });
    }
  });

  describe('B76: numbers beyond 2^53', () => {
    const tradeNo = async (orderId: string) => {
      const [capture] = await saga.rows<{ channel_trade_no: string }>(
        `select channel_trade_no from captures where order_id = $1::text`,
        orderId,
      );
      const [record] = await saga.records(orderId);
      return [record?.channel_trade_no, capture?.channel_trade_no];
    };
    const bareAt = (operation: 'create' | 'query' | 'callback', outTradeNo: string, no?: string) =>
      saga.mock.addFault({
        match: { operation, outTradeNo },
        do:
          operation === 'callback'
            ? { callback: { bareTradeNo: true } }
            : { bareTradeNo: true, ...(no === undefined ? {} : { channelTradeNo: no }) },
      });

    it('B76: a bare trade number in the charge answer and in the callback keeps its last digit', async () => {
      const no = '9007199254740993';
      const orderId = await saga.createOrder();
      const outTradeNo = outTradeNoOf(saga, orderId, 'K1', 'mock-b');
      await bareAt('create', outTradeNo, no);
      await bareAt('callback', outTradeNo);
      // Only the callback tells of the money.
      await saga.mock.addFault({
        match: { operation: 'query', outTradeNo },
        do: { answer: 'word', word: 'NOTPAY' },
      });
      const paying = await saga.pay(orderId, 'K1', { channel: 'mock-b' });
      expect([paying.status, paying.body.channel_trade_no]).toEqual([201, no]);
      await saga.mock.approve(outTradeNo);
      await saga.untilOrder(orderId, 'paid');
      const [callback] = await saga.mock.deliveries({ outTradeNo });
      expect(callback?.httpStatus).toBe(200);
      expect(await tradeNo(orderId)).toEqual([no, no]);
      const [stored] = await saga.rows<{ fact: { channelTradeNo: unknown } }>(
        `select fact from channel_callbacks where our_no = $1::text`,
        outTradeNo,
      );
      expect(stored?.fact.channelTradeNo).toBe(no);
      await expectAlwaysTrue(saga, orderId);
      expect(await figuresOf(saga, orderId)).toMatchObject({ cap: ONCE, rows: 1, evt: 1 });
    });

    it('B76: a bare trade number in the answer to a query keeps its last digit', async () => {
      const no = '9007199254740995';
      const orderId = await saga.createOrder();
      const outTradeNo = outTradeNoOf(saga, orderId, 'K1', 'mock-b');
      await saga.mock.addFault({
        match: { operation: 'create', outTradeNo },
        do: { channelTradeNo: no, answer: 'drop' },
      });
      await bareAt('query', outTradeNo);
      await saga.mock.addFault({
        match: { operation: 'callback', outTradeNo },
        do: { drop: true },
      });
      await saga.pay(orderId, 'K1', { channel: 'mock-b' });
      await saga.mock.approve(outTradeNo);
      await saga.untilOrder(orderId, 'paid');
      expect(await tradeNo(orderId)).toEqual([no, no]);
      await expectAlwaysTrue(saga, orderId);
      expect(await figuresOf(saga, orderId)).toMatchObject({ cap: ONCE, rows: 1, evt: 1 });
    });

    it('B76: two ids of 19 digits that one double could not tell apart are two orders', async () => {
      const ids = ['9223372036854775806', '9223372036854775807'];
      for (const order_id of ids) await saga.createOrder({ order_id });
      for (const orderId of ids) {
        expect((await saga.status(orderId)).body.order_id).toBe(orderId);
        expect((await saga.cancel(orderId)).status).toBe(200);
      }
    });

    it('B76: a bare number as an order id is refused, and no order is there', async () => {
      const before = await everything();
      for (const id of ['9007199254740993', '1', '1e3']) {
        const raw = `{"order_id":${id},"amount":10000,"currency":"CNY","subject":"x"}`;
        const answer = await saga.call('POST', '/v1/orders', undefined, { raw });
        expect([id, answer.status]).toEqual([id, 400]);
        expect(answer.body.detail).toContain('order_id');
      }
      expect(await everything()).toEqual(before);
    });
  });

  describe('B77: two numbers that are one', () => {
    const derive = (counter: number, ...parts: string[]) =>
      deriveNumber(String(saga.env['NUMBER_SECRET']), parts, counter);

    it('B77: an attempt whose number is taken gets another one before the channel is called', async () => {
      const orderId = await saga.createOrder();
      const parts = ['pay', saga.merchantId, orderId, 'mock-a', 'K1'];
      const taken = derive(0, ...parts);
      const other = await saga.createOrder();
      await takeNumber(other, taken);
      const answer = await saga.pay(orderId, 'K1');
      expect([answer.status, answer.body.out_trade_no]).toEqual([201, derive(1, ...parts)]);
      await saga.mock.approve(answer.body.out_trade_no);
      await saga.untilOrder(orderId, 'paid');
      await expectAlwaysTrue(saga, orderId);
      expect(await figuresOf(saga, orderId)).toMatchObject({
        trades: 1,
        cap: ONCE,
        calls: 1,
        numbers: [derive(1, ...parts)],
        rows: 1,
        evt: 1,
      });
      expect((await saga.mock.summary({ outTradeNos: [taken] })).calls.create).toBe(0);
      expect(await saga.records(other)).toMatchObject([{ out_trade_no: taken, status: 'failed' }]);
      expect((await saga.cancel(other)).status).toBe(200);
    });

    /** A failed attempt of another order, under this number. */
    async function takeNumber(orderId: string, outTradeNo: string): Promise<void> {
      await saga.rows(
        `with taken as (
           insert into pay_records (merchant_id, order_id, channel, request_no, out_trade_no,
             amount_minor, currency, status)
           values ($1::text, $2::text, 'mock-a', 'K0', $3::text, 10000, 'CNY', 'failed')
           returning pay_record_id)
         insert into order_events (merchant_id, order_id, subject, subject_id, to_status, cause, actor)
         select $1::text, $2::text, 'pay_record', pay_record_id::text, 'failed', 'test', 'test'
         from taken`,
        saga.merchantId,
        orderId,
        outTradeNo,
      );
    }

    /** A failed refund of an order's capture, under this number. */
    async function takeRefundNumber(orderId: string, outRefundNo: string): Promise<void> {
      await saga.rows(
        `with taken as (
           insert into refunds (merchant_id, order_id, refund_no, capture_id, channel, out_refund_no,
             amount_minor, currency, reason, origin, status)
           select merchant_id, order_id, 'R0', capture_id, channel, $3::text, 1, currency, 'test',
             'merchant', 'failed' from captures
           where merchant_id = $1::text and order_id = $2::text
           returning refund_id)
         insert into order_events (merchant_id, order_id, subject, subject_id, to_status, cause, actor)
         select $1::text, $2::text, 'refund', refund_id::text, 'failed', 'test', 'test' from taken`,
        saga.merchantId,
        orderId,
        outRefundNo,
      );
    }

    it('B77: a refund whose number is taken gets another one before the channel is called', async () => {
      const { orderId } = await saga.paidOrder();
      const parts = ['refund', saga.merchantId, orderId, 'R1'];
      const other = await saga.paidOrder();
      await takeRefundNumber(other.orderId, derive(0, ...parts));
      expect((await saga.refund(orderId, 'R1', 3_000)).status).toBe(201);
      await saga.untilRefund(orderId, 'R1', 'succeeded');
      await expectAlwaysTrue(saga, orderId);
      expect((await saga.books(orderId)).refundNumbers).toEqual([derive(1, ...parts)]);
      expect(await figuresOf(saga, orderId)).toMatchObject({ cap: ONCE, ref: money(1, 3_000) });
      expect((await saga.books(other.orderId)).refundNumbers).toEqual([]);
    });

    it('B77: an automatic refund whose number is taken gets another one as well', async () => {
      const { orderId, outTradeNo } = await saga.paidOrder();
      const parts = ['surplus', saga.merchantId, orderId, 'mock-a', '77770001'];
      const other = await saga.paidOrder();
      await takeRefundNumber(other.orderId, derive(0, ...parts));
      await saga.mock.capture({ outTradeNo, channelTradeNo: '77770001' });
      const surplus = await waitFor('the surplus is stored', async () =>
        (await saga.captures(orderId)).find((capture) => !capture.settles),
      );
      await saga.untilRefund(orderId, `auto:${surplus.capture_id}`, 'succeeded');
      await expectAlwaysTrue(saga, orderId);
      expect((await saga.books(orderId)).refundNumbers).toEqual([derive(1, ...parts)]);
      expect(await figuresOf(saga, orderId)).toMatchObject({
        status: 'paid',
        cap: money(2, 20_000),
        ref: ONCE,
        settling: 1,
        evt: 1,
      });
    });
  });
});
