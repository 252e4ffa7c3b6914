import { expectAlwaysTrue, figuresOf, money, outTradeNoOf } from '../support/figures';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

/** Long enough to go away meanwhile also on a machine that is slow. */
const ANSWER_AFTER_MS = 6_000;

describe('a client that does not wait for its answer', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start({
      policy: {
        callTimeoutMs: ANSWER_AFTER_MS + 2_000,
        notFoundGraceMs: ANSWER_AFTER_MS + 3_000,
        pollLadderMs: [60_000],
      },
    });
  });
  afterAll(() => saga?.stop());

  it('B128: a client that goes away while it waits for PAY finds the same attempt', async () => {
    const orderId = await saga.createOrder();
    const outTradeNo = outTradeNoOf(saga, orderId);
    await saga.mock.addFault({
      match: { operation: 'create', outTradeNo },
      do: { delayBeforeAnswerMs: ANSWER_AFTER_MS },
    });
    const gone = new AbortController();
    const waiting = fetch(`${saga.apis[0]?.url}/v1/orders/${orderId}/payments`, {
      method: 'POST',
      headers: { authorization: `Bearer ${saga.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ channel: 'mock-a', request_no: 'K1' }),
      signal: gone.signal,
    }).then(
      () => 'answered',
      () => 'gone',
    );
    await waitFor(
      'the channel has the attempt',
      async () => (await saga.mock.summary({ outTradeNos: [outTradeNo] })).trades === 1,
    );
    gone.abort();
    expect(await waiting).toBe('gone');
    const repeat = await waitFor('the repeat is answered', async () => {
      const answer = await saga.pay(orderId);
      return answer.status === 202 ? undefined : answer;
    });
    expect(repeat.status).toBe(200);
    expect(repeat.body).toMatchObject({ out_trade_no: outTradeNo });
    expect(await saga.records(orderId)).toHaveLength(1);
    await saga.mock.approve(outTradeNo);
    await saga.untilOrder(orderId, 'paid');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'paid',
      trades: 1,
      cap: money(1, 10_000),
      rows: 1,
      settling: 1,
      evt: 1,
    });
  });
});
