import type { BookRecord } from '../../mock-channel/books';
import type { FaultAction, FaultRule } from '../../mock-channel/control-types';
import { ageOrder } from '../support/age-order';
import { expectAlwaysTrue, figuresOf, money, outTradeNoOf } from '../support/figures';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

/** The failures of one test must not hold back the calls of another beside it. */
const NO_BREAKER = 1_000;
const ONCE = money(1, 10_000);
const NONE = money(0, 0);
const CHANNELS = ['mock-a', 'mock-b'] as const;
type Channel = (typeof CHANNELS)[number];
const CAPTURED_AND_CUT: FaultAction = { captureNow: true, answer: 'drop' };

describe('an outcome that nobody knows', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start({
      policy: { pollLadderMs: [200, 300, 400], maxSends: 3, breakerFailures: NO_BREAKER },
    });
  });
  afterAll(() => saga?.stop());

  type Operation = FaultRule['match']['operation'];
  const onNumber = (
    outTradeNo: string,
    operation: Operation,
    action: FaultAction,
    often: { times?: number; skip?: number } = {},
  ) => saga.mock.addFault({ match: { operation, outTradeNo }, ...often, do: action });

  /** An order and the number that its attempt K1 will have. Its callbacks are lost if asked for. */
  const anOrder = async (
    channel: Channel = 'mock-a',
    options: { callbacks?: boolean; expires_in?: number } = {},
  ) => {
    const { callbacks = true, ...fields } = options;
    const orderId = await saga.createOrder(fields);
    const outTradeNo = outTradeNoOf(saga, orderId, 'K1', channel);
    if (!callbacks) await onNumber(outTradeNo, 'callback', { drop: true });
    return { orderId, outTradeNo };
  };

  /** Requests about one number, as the channel booked them: `create fault:drop`, `query ok`, … */
  const requests = async (outTradeNo: string): Promise<string[]> =>
    (await saga.mock.books())
      .filter((record): record is BookRecord & { type: 'request' } => record.type === 'request')
      .filter((record) => record.outTradeNo === outTradeNo)
      .map((record) => `${record.operation} ${record.outcome}`);

  const isPaidOnce = async (orderId: string, outTradeNo: string) => {
    await saga.untilOrder(orderId, 'paid');
    await expectAlwaysTrue(saga, orderId);
    expect(await saga.moves(orderId)).toEqual(['null>created', 'created>paying', 'paying>paid']);
    const figures = await figuresOf(saga, orderId);
    expect(figures).toMatchObject({
      trades: 1,
      cap: ONCE,
      ref: NONE,
      numbers: [outTradeNo],
      rows: 1,
      settling: 1,
      evt: 1,
      review: 0,
    });
    return figures;
  };
  const neverFailed = async (orderId: string) =>
    expect((await saga.moves(orderId, 'pay_record')).join()).not.toMatch(/failed|closed/);

  describe('B10: the answer is lost after the capture', () => {
    it.concurrent.each(CHANNELS)(
      'B10: a query finds the money at %s, nothing is sent again',
      async (channel) => {
        const { orderId, outTradeNo } = await anOrder(channel, { callbacks: false });
        await onNumber(outTradeNo, 'create', CAPTURED_AND_CUT, { times: 2 });
        const answer = await saga.pay(orderId, 'K1', { channel });
        expect(answer).toMatchObject({ status: 202, body: { status: 'submitting' } });
        const { calls } = await isPaidOnce(orderId, outTradeNo);
        expect(calls).toBe(1);
        expect(await requests(outTradeNo)).toEqual(['create fault:drop', 'query ok']);
        await neverFailed(orderId);
      },
    );

    it.concurrent.each(CHANNELS)(
      'B10: %s that finds its own trade late gets the same number three times',
      async (channel) => {
        const { orderId, outTradeNo } = await anOrder(channel, { callbacks: false });
        await onNumber(outTradeNo, 'create', CAPTURED_AND_CUT, { times: 2 });
        await onNumber(outTradeNo, 'query', { answer: 'no_such_order' }, { times: 2 });
        await saga.pay(orderId, 'K1', { channel });
        const { calls } = await isPaidOnce(orderId, outTradeNo);
        expect(calls).toBe(3);
        // Never two sends without a query between them.
        expect(await requests(outTradeNo)).toEqual([
          'create fault:drop',
          'query TRADE_NOT_EXIST',
          'create fault:drop',
          'query TRADE_NOT_EXIST',
          'create ok',
        ]);
        await neverFailed(orderId);
      },
    );
  });

  describe('B13: a number that is bound to an error for ever', () => {
    it.concurrent.each(CHANNELS)(
      'B13: is closed at %s once a query saw it unpaid',
      async (channel) => {
        const { orderId, outTradeNo } = await anOrder(channel);
        await onNumber(outTradeNo, 'create', { answer: 'replay', status: 500 });
        expect(await saga.pay(orderId, 'K1', { channel })).toMatchObject({ status: 202 });
        await waitFor('the number is given up', async () => {
          const [record] = await saga.records(orderId);
          return record?.status === 'closed' || record?.status === 'failed';
        });
        expect(await saga.mock.trade(outTradeNo)).toMatchObject({ status: 'closed', captures: [] });
        const asked = await requests(outTradeNo);
        expect(asked.filter((request) => request.startsWith('create'))).toHaveLength(3);
        expect(asked.filter((request) => request.startsWith('close'))).toEqual(['close ok']);
        const close = asked.indexOf('close ok');
        expect([asked[close - 1], asked[close + 1]]).toEqual(['query ok', 'query ok']);

        const next = await saga.pay(orderId, 'K2', { channel });
        const secondNo = outTradeNoOf(saga, orderId, 'K2', channel);
        expect(next).toMatchObject({ status: 201, body: { out_trade_no: secondNo } });
        await saga.mock.approve(secondNo);
        await saga.untilOrder(orderId, 'paid');
        await expectAlwaysTrue(saga, orderId);
        const { paid_at, expires_at } = (await saga.status(orderId)).body;
        expect(Date.parse(paid_at)).toBeLessThan(Date.parse(expires_at));
        expect((await saga.records(orderId)).map((record) => record.status)).toEqual([
          'closed',
          'paid',
        ]);
        expect(await figuresOf(saga, orderId)).toMatchObject({
          trades: 2,
          cap: ONCE,
          ref: NONE,
          rows: 1,
          settling: 1,
          evt: 1,
          review: 0,
        });
      },
    );

    it.concurrent(
      'B13: is not given up while the channel says that it does not know it',
      async () => {
        const { orderId, outTradeNo } = await anOrder();
        const unreachable: FaultAction = { effect: 'none', answer: 'http', status: 500 };
        const fault = await onNumber(outTradeNo, 'create', unreachable);
        await saga.pay(orderId);
        const sends = async () => (await saga.books(orderId)).calls.create;
        // More sends than a number that exists is given.
        await waitFor('it was sent five times', async () => (await sends()) >= 5);
        expect(await saga.pay(orderId, 'K2')).toMatchObject({
          status: 202,
          body: { out_trade_no: outTradeNo },
        });
        const asked = await requests(outTradeNo);
        expect(asked.filter((request) => request.startsWith('close'))).toEqual([]);
        expect(await saga.records(orderId)).toHaveLength(1);
        await saga.mock.removeFault(fault);
        await waitFor('the channel has it', async () => (await saga.books(orderId)).trades === 1);
        await saga.mock.approve(outTradeNo);
        await isPaidOnce(orderId, outTradeNo);
      },
    );
  });

  it.concurrent.each(CHANNELS)(
    'B14: "already processed" from %s is asked about, and a callback two days later is accepted',
    async (channel) => {
      const { orderId, outTradeNo } = await anOrder(channel, { callbacks: false });
      await onNumber(outTradeNo, 'create', CAPTURED_AND_CUT, { times: 1 });
      await onNumber(outTradeNo, 'create', { answer: 'already_processed' });
      // One "no such order", or the channel would never be sent the number a second time.
      await onNumber(outTradeNo, 'query', { answer: 'no_such_order' }, { times: 1 });
      await saga.pay(orderId, 'K1', { channel });
      const { calls } = await isPaidOnce(orderId, outTradeNo);
      expect(calls).toBe(2);
      expect(await requests(outTradeNo)).toEqual([
        'create fault:drop',
        'query TRADE_NOT_EXIST',
        'create ALREADY_PROCESSED',
        'query ok',
      ]);
      await neverFailed(orderId);

      await ageOrder(saga, orderId, '48 hours');
      const late = await saga.mock.sendCallback({ outTradeNo });
      expect(late).toMatchObject([{ httpStatus: 200, acknowledged: true }]);
      await isPaidOnce(orderId, outTradeNo);
    },
  );

  describe('B16: the channel never heard of it', () => {
    it('B16: a refused connection leads to the same number again, however often it is "not found"', async () => {
      const { orderId, outTradeNo } = await anOrder();
      await onNumber(outTradeNo, 'query', { answer: 'no_such_order' });
      await saga.mock.refuseConnections({ dialect: 'mock-a' });
      const answer = await saga.pay(orderId);
      expect(answer).toMatchObject({ status: 202, body: { out_trade_no: outTradeNo } });
      expect((await saga.books(orderId)).trades).toBe(0);
      await saga.mock.acceptConnections({ dialect: 'mock-a' });
      await waitFor('the number arrived', async () => (await saga.books(orderId)).trades === 1);
      const asked = async () => (await saga.books(orderId)).calls.query;
      const before = await asked();
      await waitFor('"not found" two more times', async () => (await asked()) >= before + 2);
      expect(await saga.records(orderId)).toMatchObject([{ out_trade_no: outTradeNo }]);
      await saga.mock.approve(outTradeNo);
      await isPaidOnce(orderId, outTradeNo);
    });

    it.concurrent(
      'B16: a number that never arrives ends with the order, some time after the deadline',
      async () => {
        const { orderId, outTradeNo } = await anOrder('mock-a', { expires_in: 3 });
        await onNumber(outTradeNo, 'create', { effect: 'none', answer: 'drop' });
        await saga.pay(orderId);
        await saga.untilOrder(orderId, 'closed');
        await expectAlwaysTrue(saga, orderId);
        expect(await saga.records(orderId)).toMatchObject([{ status: 'closed' }]);
        expect(await figuresOf(saga, orderId)).toMatchObject({
          trades: 0,
          cap: NONE,
          numbers: [outTradeNo],
          rows: 0,
          evt: 0,
        });
        // "Not found" became final only when nothing could arrive any more.
        const [ended] = await saga.rows<{ late_by_ms: number }>(
          `select (extract(epoch from closed_at - expires_at) * 1000)::bigint as late_by_ms
         from orders where order_id = $1::text`,
          orderId,
        );
        expect(ended?.late_by_ms).toBeGreaterThanOrEqual(2_500);
        expect(ended?.late_by_ms).toBeLessThan(15_000);
      },
    );

    it.concurrent.each(CHANNELS)(
      'B16: the first "no such order" of %s is not final',
      async (channel) => {
        const { orderId, outTradeNo } = await anOrder(channel, { callbacks: false });
        await onNumber(outTradeNo, 'create', CAPTURED_AND_CUT, { times: 1 });
        await onNumber(outTradeNo, 'query', { answer: 'no_such_order' }, { times: 1 });
        await saga.pay(orderId, 'K1', { channel });
        await isPaidOnce(orderId, outTradeNo);
        expect((await requests(outTradeNo)).slice(0, 2)).toEqual([
          'create fault:drop',
          'query TRADE_NOT_EXIST',
        ]);
        await neverFailed(orderId);
      },
    );
  });

  describe('B17: a success that cannot be read', () => {
    it.concurrent.each(CHANNELS)(
      'B17: an unknown field and a missing one at %s: paid, at once or after a query',
      async (channel) => {
        const { orderId, outTradeNo } = await anOrder(channel, { callbacks: false });
        await onNumber(outTradeNo, 'create', {
          captureNow: true,
          answer: 'odd_fields',
          status: 201,
        });
        const { status } = await saga.pay(orderId, 'K1', { channel });
        expect(status).toBeLessThan(300);
        const { calls } = await isPaidOnce(orderId, outTradeNo);
        expect(calls).toBe(1);
        await neverFailed(orderId);
      },
    );

    const unreadable = CHANNELS.flatMap((channel) =>
      (['html', 'empty', 'cut_off'] as const).map((answer) => ({ channel, answer })),
    );
    it.concurrent.each(unreadable)(
      'B17: "$answer" from $channel is unknown, then paid by query',
      async ({ channel, answer }) => {
        const { orderId, outTradeNo } = await anOrder(channel, { callbacks: false });
        await onNumber(outTradeNo, 'create', { captureNow: true, answer, status: 200 });
        expect(await saga.pay(orderId, 'K1', { channel })).toMatchObject({
          status: 202,
          body: { out_trade_no: outTradeNo, status: 'submitting', order_status: 'paying' },
        });
        const { calls } = await isPaidOnce(orderId, outTradeNo);
        expect(calls).toBe(1);
        expect(await requests(outTradeNo)).toEqual([`create fault:${answer}`, 'query ok']);
        await neverFailed(orderId);
      },
    );
  });
});
