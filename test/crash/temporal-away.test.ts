import { inbox, untilDelivered } from '../support/callback-waits';
import { expectAlwaysTrue, figuresOf, money, outTradeNoOf } from '../support/figures';
import { SagaProcesses } from '../support/processes-saga';
import { Saga } from '../support/saga';
import { testServers } from '../support/servers';
import { startTcpProxy } from '../support/tcp-proxy';
import type { TcpProxy } from '../support/tcp-proxy';
import { waitFor } from '../support/wait';

const ASK_WITHIN_MS = 1_500;

describe('Temporal goes away and comes back', () => {
  let saga: Saga;
  let proxy: TcpProxy;
  let processes: SagaProcesses;
  beforeAll(async () => {
    const [host = '', port = ''] = testServers().temporalAddress.split(':');
    proxy = await startTcpProxy({ host, port: Number(port) });
    saga = await Saga.start({
      workers: 0,
      // Nothing is settled by asking: what ends paid here was paid by its callback.
      policy: { pollLadderMs: [60_000] },
      env: {
        TEMPORAL_ADDRESS: `127.0.0.1:${proxy.port}`,
        API_ASK_WITHIN_MS: String(ASK_WITHIN_MS),
      },
    });
    processes = new SagaProcesses(saga);
    await processes.startWorker();
  });
  afterAll(async () => {
    await saga?.stop().finally(() => processes?.end());
    await proxy?.close();
  });

  /** Everything of ours, API and worker, loses Temporal while `run` runs. */
  function away<T>(run: () => Promise<T>): Promise<T> {
    return saga.outage(async () => {
      proxy.cut();
      try {
        return await run();
      } finally {
        proxy.restore();
      }
    });
  }

  async function expectPaidOnce(orderId: string): Promise<void> {
    await saga.untilOrder(orderId, 'paid');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'paid',
      trades: 1,
      cap: money(1, 10_000),
      ref: money(0, 0),
      calls: 1,
      rows: 1,
      settling: 1,
      evt: 1,
      review: 0,
    });
  }

  it('B25: a callback of that time is acknowledged, and its order paid soon after', async () => {
    const orderId = await saga.createOrder();
    expect((await saga.pay(orderId)).status).toBe(201);
    const outTradeNo = await saga.outTradeNo(orderId);
    await away(async () => {
      await saga.mock.approve(outTradeNo);
      expect(await untilDelivered(saga, outTradeNo)).toMatchObject([
        { httpStatus: 200, acknowledged: true },
      ]);
      // Longer than the API's own try to ring: from here on only the relay can tell the run.
      await waitFor('the ring was given up and tried again', async () => {
        const [row] = await saga.rows<{ again: boolean }>(
          `select next_due_at > received_at + interval '8 seconds' as again
           from channel_callbacks where our_no = $1::text`,
          outTradeNo,
        );
        return row?.again;
      });
      expect(await inbox(saga, orderId)).toMatchObject([{ status: 'stored', copies: 1 }]);
      expect((await saga.order(orderId)).status).toBe('paying');
    });
    const backAt = Date.now();
    await saga.untilOrder(orderId, 'paid', 10_000);
    expect(Date.now() - backAt).toBeLessThan(10_000);
    await expectPaidOnce(orderId);
    expect((await figuresOf(saga, orderId)).resend).toBe(0);
  });

  it('B128: an order of that time is accepted, and the sweep starts its run', async () => {
    const orderId = await away(async () => {
      const created = await saga.createOrder();
      expect(await saga.runs(created)).toEqual([]);
      return created;
    });
    const run = await waitFor('the sweep starts its run', () =>
      saga
        .handle(orderId)
        .describe()
        .catch(() => undefined),
    );
    expect(run.status.name).toBe('RUNNING');
    expect((await saga.pay(orderId)).status).toBe(201);
    await saga.mock.approve(await saga.outTradeNo(orderId));
    await expectPaidOnce(orderId);
  });

  it('B128: a request to pay is answered 503, and its repeat pays once', async () => {
    const orderId = await saga.createOrder();
    const outTradeNo = outTradeNoOf(saga, orderId);
    await away(async () => {
      for (const startedAt of [Date.now(), Date.now()]) {
        const answer = await saga.pay(orderId);
        expect(answer.status).toBe(503);
        expect(answer.body).toMatchObject({ code: 'outcome_unknown' });
        expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
        expect(Date.now() - startedAt).toBeLessThan(3 * ASK_WITHIN_MS);
      }
      expect(await saga.records(orderId)).toEqual([]);
      expect((await saga.mock.summary({ outTradeNos: [outTradeNo] })).trades).toBe(0);
    });
    const repeat = await waitFor('the repeat is answered', async () => {
      const answer = await saga.outage(() => saga.pay(orderId));
      // 202: the attempt is there, and the channel's word came later than the answer waits.
      return answer.status === 503 || answer.status === 202 ? undefined : answer;
    });
    expect([200, 201]).toContain(repeat.status);
    expect(repeat.body).toMatchObject({ out_trade_no: outTradeNo });
    await saga.mock.approve(outTradeNo);
    await expectPaidOnce(orderId);
  });
});
