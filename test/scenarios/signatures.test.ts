import type { SendCallback } from '../../mock-channel/control-types';
import { WORDS } from '../support/callback-waits';
import { expectAlwaysTrue, figuresOf, money } from '../support/figures';
import { traceOf } from '../support/order-trace';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

const CHANNELS = ['mock-a', 'mock-b'] as const;
type Channel = (typeof CHANNELS)[number];
type Said = Partial<SendCallback>;

const ONCE = money(1, 10_000);
const PENDING_WORD = { 'mock-a': 'WAIT_BUYER_PAY', 'mock-b': 'NOTPAY' } as const;
const STATUS_FIELD = { 'mock-a': 'trade_status', 'mock-b': 'trade_state' } as const;

describe('signatures', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start({ env: { OTHER_KEY: 'key-of-the-other-account-0001' } });
    // The same two channels once more: other accounts there, with a key of their own.
    await saga.rows(
      `insert into channels (channel, adapter, account_id, app_id, gateway_url, time_zone,
         secret_refs, policy)
       select channel || '-2', adapter, account_id || '2', app_id || '2', gateway_url, time_zone,
         '{"current":"env:OTHER_KEY"}', policy from channels`,
    );
  });
  afterAll(() => saga?.stop());

  /** A pending attempt whose own callbacks never leave the channel. */
  async function pendingOrder(channel: Channel, subject?: string) {
    const orderId = await saga.createOrder(subject === undefined ? {} : { subject });
    const outTradeNo = (await saga.pay(orderId, 'K1', { channel })).body.out_trade_no as string;
    await saga.mock.addFault({ match: { operation: 'callback', outTradeNo }, do: { drop: true } });
    return { orderId, outTradeNo };
  }
  /** Sends "paid" about the attempt and gives the status it was answered with. */
  async function claimPaid(channel: Channel, outTradeNo: string, said: Said = {}) {
    const [delivery] = await saga.mock.sendCallback({
      outTradeNo,
      word: WORDS[channel].paid,
      ...said,
    });
    return delivery?.httpStatus;
  }
  const urlOf = (channel: string) => `${saga.apis[0]?.url}/callbacks/${channel}`;
  /** The payer pays and only a poll can tell. */
  async function isSettledByPolling(orderId: string, outTradeNo: string) {
    await saga.mock.approve(outTradeNo);
    await saga.untilOrder(orderId, 'paid');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'paid',
      cap: ONCE,
      rows: 1,
      settling: 1,
      evt: 1,
      review: 0,
    });
    const [row] = await saga.rows<{ learnt_from: string }>(
      `select learnt_from from captures where order_id = $1::text`,
      orderId,
    );
    expect(row?.learnt_from).toBe('query');
  }
  /** None of the callbacks leaves a trace of any kind, and a poll finds the money. */
  async function refusesAll(channel: Channel, saidAndStatus: [Said, number][]) {
    const { orderId, outTradeNo } = await pendingOrder(channel);
    const before = await traceOf(saga, orderId);
    expect(before).toMatchObject({ status: 'paying', records: ['pending'], signals: 0 });
    for (const [said, status] of saidAndStatus) {
      expect([said, await claimPaid(channel, outTradeNo, said)]).toEqual([said, status]);
    }
    expect(await traceOf(saga, orderId)).toEqual(before);
    await isSettledByPolling(orderId, outTradeNo);
  }

  describe('B79: a callback in GBK', () => {
    it.each([
      ['in the field', 'field'],
      ['in the header', 'header'],
      ['in both', 'both'],
    ] as const)('B79: with the charset %s says the same as one in UTF-8', async (_, charsetIn) => {
      const { orderId, outTradeNo } = await pendingOrder('mock-a', '测试订单');
      await saga.mock.addFault({
        match: { operation: 'query', outTradeNo },
        do: { answer: 'word', word: PENDING_WORD['mock-a'] },
      });
      await saga.mock.approve(outTradeNo);
      const encodings: Said[] = [
        { charset: 'gbk', charsetIn },
        { charset: 'utf-8', charsetIn },
        { charset: 'utf-8', charsetIn: 'neither' },
      ];
      for (const said of encodings) {
        expect(await claimPaid('mock-a', outTradeNo, said)).toBe(200);
        await saga.untilOrder(orderId, 'paid');
      }
      const stored = await saga.rows<{ copies: number; fact: Record<string, unknown> }>(
        `select copies, fact from channel_callbacks where our_no = $1::text`,
        outTradeNo,
      );
      // One fact, whatever the bytes: the same number, amount and trade.
      expect(stored).toMatchObject([{ copies: 3, fact: { outTradeNo, amountMinor: 10_000 } }]);
      expect((await saga.status(orderId)).body).toMatchObject({
        subject: '测试订单',
        amount: 10_000,
      });
      expect((await saga.mock.trade(outTradeNo)).subject).toBe('测试订单');
      await expectAlwaysTrue(saga, orderId);
      expect(await figuresOf(saga, orderId)).toMatchObject({ cap: ONCE, rows: 1, evt: 1 });
    });

    it('B79: that names its charset nowhere, or another one, is 400 and changes nothing', () =>
      refusesAll('mock-a', [
        [{ subject: '测试订单', charset: 'gbk', charsetIn: 'neither' }, 400],
        [{ subject: '测试订单', fields: { charset: 'utf-7' } }, 400],
      ]));
  });

  describe('B80: no signature, or a sender that picks the algorithm', () => {
    it.each(CHANNELS)('B80: is refused by %s without a signal or a change', (channel) =>
      refusesAll(channel, [
        [{ signature: 'absent' }, 401],
        [{ signature: 'empty' }, 401],
        [{ signature: 'null' }, 401],
        [{ signature: 'truncated' }, 401],
        [{ signature: 'other_body' }, 401],
        [{ signature: { text: '0'.repeat(64) } }, 401],
        [{ key: 'unknown' }, 401],
        [{ signType: 'none' }, 401],
        [{ signType: 'MD5' }, 401],
        [{ signType: null }, 401],
        [{ signType: null, signature: 'absent' }, 401],
        [{ fields: { [STATUS_FIELD[channel]]: null } }, 400],
      ]),
    );

    it.each(CHANNELS)('B80: a valid one of %s is refused by another account there', (channel) =>
      refusesAll(channel, [[{ url: urlOf(`${channel}-2`) }, 401]]),
    );
  });

  describe('B82: clock skew', () => {
    /** Early in a second, so that none begins between the signing and the check. */
    const atStartOfSecond = () => waitFor('a second begins', () => Date.now() % 1_000 < 200);

    it.each(CHANNELS)('B82: at %s 299 s either way are accepted and settle', async (channel) => {
      for (const timestampShiftSeconds of [-299, 299]) {
        const { orderId, outTradeNo } = await pendingOrder(channel);
        await saga.mock.addFault({
          match: { operation: 'query', outTradeNo },
          do: { answer: 'word', word: PENDING_WORD[channel] },
        });
        await saga.mock.approve(outTradeNo);
        await atStartOfSecond();
        expect(await claimPaid(channel, outTradeNo, { timestampShiftSeconds })).toBe(200);
        await saga.untilOrder(orderId, 'paid');
        await expectAlwaysTrue(saga, orderId);
        expect(await figuresOf(saga, orderId)).toMatchObject({ cap: ONCE, rows: 1, evt: 1 });
      }
    });

    it.concurrent.each(CHANNELS)(
      'B82: at %s what is further off is refused, polls settle',
      async (channel) => {
        for (const said of [
          { timestampShiftSeconds: -301 },
          { timestampShiftSeconds: 301 },
          { timestamp: null },
          { timestamp: 'yesterday' },
          { timestamp: String(Date.now()) },
        ]) {
          await atStartOfSecond();
          await refusesAll(channel, [[said, 401]]);
        }
      },
    );
  });

  describe('B83: an old callback, validly signed', () => {
    afterEach(() => jest.useRealTimers());

    /** Sends the recorded bytes while this process's clock (not its timers) is `hours` ahead. */
    async function replayLater(deliveryId: string, hours: number, url?: string) {
      jest.useFakeTimers({ now: Date.now() + hours * 3_600_000, doNotFake: [...ALL_TIMERS] });
      const [delivery] = await saga.mock.replayCallback({ deliveryId, url });
      jest.useRealTimers();
      return delivery?.httpStatus;
    }

    it.each(CHANNELS)('B83: of %s has no effect a second time', async (channel) => {
      const { orderId, outTradeNo } = await saga.paidOrder({}, channel);
      await expectAlwaysTrue(saga, orderId);
      const [recorded] = await saga.mock.deliveries({ outTradeNo });
      if (!recorded) throw new Error('no callback was delivered');
      expect(recorded.httpStatus).toBe(200);
      const before = await traceOf(saga, orderId);

      expect(await replayLater(recorded.deliveryId, 1)).toBe(401);
      expect(await replayLater(recorded.deliveryId, 25)).toBe(401);
      expect(await replayLater(recorded.deliveryId, 0, urlOf(`${channel}-2`))).toBe(401);
      // Inside the window it is the same news again.
      expect(await replayLater(recorded.deliveryId, 0)).toBe(200);

      await expectAlwaysTrue(saga, orderId);
      expect(await traceOf(saga, orderId)).toEqual(before);
      expect(await figuresOf(saga, orderId)).toMatchObject({
        status: 'paid',
        cap: ONCE,
        rows: 1,
        evt: 1,
        runs: 1,
        review: 0,
      });
    });
  });
});

const ALL_TIMERS = [
  'hrtime',
  'nextTick',
  'performance',
  'queueMicrotask',
  'setImmediate',
  'clearImmediate',
  'setInterval',
  'clearInterval',
  'setTimeout',
  'clearTimeout',
] as const;
