import { pino } from 'pino';
import { readConfig } from '../../api/config';
import { startApi } from '../../api/server';
import { inbox, untilDelivered } from '../support/callback-waits';
import { expectAlwaysTrue, figuresOf, historiesOf, money } from '../support/figures';
import { Saga } from '../support/saga';
import { startTcpProxy } from '../support/tcp-proxy';

const CHANNELS = ['mock-a', 'mock-b'] as const;
const ACKNOWLEDGEMENTS = {
  'mock-a': { httpStatus: 200, contentType: 'text/plain; charset=utf-8', body: 'success' },
  'mock-b': {
    httpStatus: 200,
    contentType: 'application/json',
    body: '{"code":"SUCCESS","message":"OK"}',
  },
};

describe('callbacks that are early, many or not answered', () => {
  let saga: Saga;
  let log: ReturnType<typeof watchLog>;
  beforeAll(async () => {
    log = watchLog();
    saga = await Saga.start({
      apis: 2,
      // Nothing is settled by asking: what ends paid here was paid by its callback.
      policy: { pollLadderMs: [30_000], callTimeoutMs: 5_000, notFoundGraceMs: 6_000 },
      env: { LOG_LEVEL: 'error' },
    });
  });
  afterAll(async () => {
    await saga?.stop();
    log.stop();
  });

  it.each(CHANNELS)(
    'B23: twenty copies of one callback of %s over two APIs are one payment',
    async (channel) => {
      const orderId = await saga.createOrder();
      await saga.pay(orderId, 'K1', { channel });
      const outTradeNo = await saga.outTradeNo(orderId);
      await saga.mock.capture({ outTradeNo, callback: false });
      const deliveries = await saga.mock.sendCallback({ outTradeNo, copies: 20 });
      await saga.untilOrder(orderId, 'paid');

      expect(deliveries).toHaveLength(20);
      for (const delivery of deliveries) {
        expect(delivery).toMatchObject({ ...ACKNOWLEDGEMENTS[channel], acknowledged: true });
      }
      expect(new Set(deliveries.map(({ url }) => url)).size).toBe(2);
      await expectAlwaysTrue(saga, orderId);
      expect(await saga.moves(orderId)).toEqual(['null>created', 'created>paying', 'paying>paid']);
      expect(await saga.moves(orderId, 'capture')).toEqual(['null>captured']);
      expect(await inbox(saga, orderId)).toEqual([
        { status: 'applied', verdict: 'first_success', copies: 20 },
      ]);
      const figures = await figuresOf(saga, orderId);
      expect(figures).toMatchObject({ evt: 1, settling: 1, rows: 1, cap: money(1, 10_000) });
      const signals = (await historiesOf(saga, orderId))
        .flat()
        .filter((e) => e.workflowExecutionSignaledEventAttributes?.signalName === 'channelNews');
      expect(signals).toHaveLength(1);
    },
  );

  it('B26: a callback while the charge is unanswered is matched by our own number', async () => {
    log.lines.splice(0);
    await saga.mock.addFault({
      match: { operation: 'create', tag: 'b26' },
      do: { captureNow: true, delayBeforeAnswerMs: 3_000 },
    });
    const orderId = await saga.createOrder({ subject: 'Held back #b26' });
    const paying = saga.pay(orderId);
    // Paid by the callback, while the charge was still on its way.
    await saga.untilOrder(orderId, 'paid', 2_900);
    expect(await saga.captures(orderId)).toMatchObject([{ learnt_from: 'callback' }]);
    const outTradeNo = await saga.outTradeNo(orderId);
    expect(await untilDelivered(saga, outTradeNo)).toMatchObject([
      { httpStatus: 200, acknowledged: true },
    ]);
    expect((await paying).status).toBeLessThan(300);

    const trade = await saga.mock.trade(outTradeNo);
    expect(await saga.records(orderId)).toMatchObject([
      { status: 'paid', out_trade_no: outTradeNo, channel_trade_no: trade.channelTradeNo },
    ]);
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'paid',
      cap: money(1, 10_000),
      calls: 1,
      evt: 1,
      resend: 0,
      review: 0,
    });
    expect(log.lines).toEqual([]);
  });

  it.each(CHANNELS)(
    'B31: %s gets exactly its own words and sends nothing again',
    async (channel) => {
      const { orderId, outTradeNo } = await saga.paidOrder({}, channel);
      const deliveries = await untilDelivered(saga, outTradeNo);
      expect(deliveries).toMatchObject([{ ...ACKNOWLEDGEMENTS[channel], acknowledged: true }]);
      await expectAlwaysTrue(saga, orderId);
      expect((await saga.books(orderId)).callbacks).toMatchObject({
        notices: 1,
        sent: 1,
        resent: 0,
        acknowledged: 1,
        notAcknowledged: 0,
      });
    },
  );

  it('B31: without a database the callback is refused, sent again, and pays once', async () => {
    const database = new URL(saga.env['DATABASE_URL'] ?? '');
    const proxy = await startTcpProxy({ host: database.hostname, port: Number(database.port) });
    database.hostname = '127.0.0.1';
    database.port = String(proxy.port);
    const env = { ...saga.env, DATABASE_URL: database.href, LOG_LEVEL: 'error' };
    const api = await startApi(readConfig(env), env);
    try {
      const orderId = await saga.createOrder();
      await saga.pay(orderId);
      const outTradeNo = await saga.outTradeNo(orderId);
      await saga.mock.addFault({
        match: { operation: 'callback', outTradeNo },
        do: { callback: { url: `${api.url}/callbacks/mock-a` } },
      });
      proxy.cut();
      await saga.mock.approve(outTradeNo);
      const [refused] = await untilDelivered(saga, outTradeNo);
      expect(refused).toMatchObject({ httpStatus: 503, acknowledged: false });
      expect(refused?.contentType).toBe('application/problem+json');
      expect((await saga.order(orderId)).status).toBe('paying');
      expect(await inbox(saga, orderId)).toEqual([]);

      proxy.restore();
      await saga.untilOrder(orderId, 'paid');
      await expectAlwaysTrue(saga, orderId);
      await saga.mock.waitUntilIdle();
      const figures = await figuresOf(saga, orderId);
      expect(figures).toMatchObject({ evt: 1, settling: 1, rows: 1, cap: money(1, 10_000) });
      expect(figures.resend).toBeGreaterThanOrEqual(1);
      const { answers, acknowledged } = (await saga.books(orderId)).callbacks;
      expect(acknowledged).toBe(1);
      expect(Object.keys(answers).sort()).toEqual(['200', '503']);
      expect(await saga.moves(orderId)).toEqual(['null>created', 'created>paying', 'paying>paid']);
    } finally {
      await api.stop();
      await proxy.close();
    }
  });
});

/**
 * Collects what APIs and workers of this process log from now on. Begun before they are: pino takes
 * the stream, in place of the file behind it, only when it finds the stream's `write` replaced.
 */
function watchLog(): { lines: string[]; stop(): void } {
  const lines: string[] = [];
  const spy = jest.spyOn(process.stdout, 'write').mockImplementation((line) => {
    lines.push(String(line));
    return true;
  });
  pino({ level: 'error' }).error('is this seen?');
  if (lines.splice(0).length !== 1) throw new Error('the watch does not see what is logged');
  return { lines, stop: () => spy.mockRestore() };
}
