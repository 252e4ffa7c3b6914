import { expectAlwaysTrue, figuresOf, historiesOf, money } from '../support/figures';
import { Saga } from '../support/saga';
import { startTcpProxy } from '../support/tcp-proxy';
import type { TcpProxy } from '../support/tcp-proxy';
import { waitFor } from '../support/wait';

const HALF_AN_HOUR_MS = 1_800_000;

describe("an answer of Temporal's that is lost on its way", () => {
  let saga: Saga;
  let proxy: TcpProxy;
  beforeAll(async () => {
    saga = await Saga.start({
      apis: 0,
      // Nobody but the API starts a run here.
      env: { SWEEP_PAST_DUE_MS: String(HALF_AN_HOUR_MS) },
    });
    const direct = String(saga.env['TEMPORAL_ADDRESS']);
    const [host, port] = direct.split(':');
    proxy = await startTcpProxy({ host: String(host), port: Number(port) });
    saga.env['TEMPORAL_ADDRESS'] = `127.0.0.1:${proxy.port}`;
    await saga.startApi();
    saga.env['TEMPORAL_ADDRESS'] = direct;
    await saga.pointCallbacks();
  });
  afterAll(async () => {
    proxy?.resume();
    proxy?.restore();
    try {
      await saga?.stop();
    } finally {
      await proxy?.close();
    }
  });

  const hasRun = async (orderId: string) =>
    saga
      .handle(orderId)
      .describe()
      .then(
        () => true,
        () => false,
      );

  /** The API has a connection whose handshake is over: what is asked now goes out at once. */
  async function untilConnected(): Promise<void> {
    await waitFor('the API reaches Temporal', async () => {
      const readiness = await fetch(`${saga.apis[0]!.url}/readyz`);
      const { parts } = (await readiness.json()) as { parts: { temporal: { ok: boolean } } };
      return parts.temporal.ok;
    });
  }

  /** Lets every question through and loses what is answered, until `acted`. */
  async function losingAnswers(acted: () => Promise<boolean>): Promise<void> {
    await waitFor('Temporal has acted', acted);
    proxy.cut();
    proxy.resume();
    proxy.restore();
  }

  async function expectPaidByOneRun(orderId: string): Promise<void> {
    await saga.mock.approve(await saga.outTradeNo(orderId));
    await saga.untilOrder(orderId, 'paid');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'paid',
      cap: money(1, 10_000),
      calls: 1,
      runs: 1,
      rows: 1,
      evt: 1,
    });
    expect(await historiesOf(saga, orderId)).toHaveLength(1);
  }

  it("B127: PAY starts the run and loses the answer: the SDK's repeat lands in that run", async () => {
    // Without Temporal the order is stored and has no run: PAY is what starts it.
    proxy.cut();
    const orderId = await saga.outage(() => saga.createOrder());
    proxy.restore();
    await untilConnected();
    expect(await hasRun(orderId)).toBe(false);

    proxy.holdAnswers();
    const paying = saga.pay(orderId, 'K1');
    await losingAnswers(() => hasRun(orderId));
    const answer = await paying;
    expect([200, 201]).toContain(answer.status);
    const again = await saga.pay(orderId, 'K1');
    expect(again.status).toBe(200);
    expect(again.body.out_trade_no).toBe(answer.body.out_trade_no);
    await expectPaidByOneRun(orderId);
  });

  it('B127: an order whose start loses its answer is paid in that run', async () => {
    await untilConnected();
    proxy.holdAnswers();
    const creating = saga.createOrder();
    await losingAnswers(async () => {
      const [row] = await saga.rows<{ order_id: string }>(
        `select order_id from orders where merchant_id = $1::text order by created_at desc limit 1`,
        saga.merchantId,
      );
      return row !== undefined && (await hasRun(row.order_id));
    });
    const orderId = await creating;
    expect([200, 201]).toContain((await saga.pay(orderId, 'K1')).status);
    expect((await saga.pay(orderId, 'K1')).status).toBe(200);
    await expectPaidByOneRun(orderId);
  });

  it('B127: a PAY that gives up before Temporal answers is 202 or 503, and its repeat pays once', async () => {
    const orderId = await saga.createOrder();
    await untilConnected();
    proxy.holdAnswers();
    const paying = saga.outage(() => saga.pay(orderId, 'K1'));
    const answer = await paying;
    proxy.cut();
    proxy.resume();
    proxy.restore();
    expect([200, 202, 503]).toContain(answer.status);
    const again = await waitFor('the repeat is served', async () => {
      const repeat = await saga.outage(() => saga.pay(orderId, 'K1'));
      return repeat.status < 300 && repeat;
    });
    expect(again.body.out_trade_no).toBe(await saga.outTradeNo(orderId));
    await expectPaidByOneRun(orderId);
  });
});
