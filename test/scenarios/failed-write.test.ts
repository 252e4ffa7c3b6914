import type { FaultAction } from '../../mock-channel/control-types';
import { failInserts } from '../support/failing-writes';
import { expectAlwaysTrue, figuresOf, historiesOf, money, outTradeNoOf } from '../support/figures';
import { Saga } from '../support/saga';

const SERIALIZATION_FAILURE = '40001';

/**
 * PostgreSQL refuses our write after the money was taken. `times` goes from what one transaction
 * repeats by itself, over what a local activity repeats, to what only an ordinary activity outlasts.
 */
describe('a database conflict after the charge', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start();
  });
  afterAll(() => saga?.stop());

  const settlesLater = async (
    times: number,
    { create, query, callbacks }: { create: FaultAction; query?: FaultAction; callbacks: boolean },
  ) => {
    const orderId = await saga.createOrder();
    const outTradeNo = outTradeNoOf(saga, orderId);
    const write = await failInserts(saga.pool, {
      table: 'captures',
      orderId,
      times,
      code: SERIALIZATION_FAILURE,
    });
    await saga.mock.addFault({ match: { operation: 'create', outTradeNo }, do: create });
    if (query) await saga.mock.addFault({ match: { operation: 'query', outTradeNo }, do: query });
    if (!callbacks) {
      await saga.mock.addFault({
        match: { operation: 'callback', outTradeNo },
        do: { drop: true },
      });
    }
    const answer = await saga.pay(orderId);
    expect(answer.status).toBeLessThan(300);
    await saga.untilOrder(orderId, 'paid');
    await expectAlwaysTrue(saga, orderId);
    expect(await write.tries()).toBe(times + 1);
    const figures = await figuresOf(saga, orderId);
    // Only the write was repeated: one call to the channel charged, and nothing was asked twice.
    expect(figures).toMatchObject({
      trades: 1,
      cap: money(1, 10_000),
      ref: money(0, 0),
      calls: 1,
      numbers: [outTradeNo],
      rows: 1,
      settling: 1,
      evt: 1,
      review: 0,
    });
    expect(await saga.captures(orderId)).toHaveLength(1);
    expect(await saga.moves(orderId)).toEqual(['null>created', 'created>paying', 'paying>paid']);
    expect((await saga.moves(orderId, 'pay_record')).at(-1)).toMatch(/>paid$/);
    return { orderId, figures };
  };

  const ordinarySteps = async (orderId: string) =>
    (await historiesOf(saga, orderId))
      .flat()
      .map((event) => event.activityTaskScheduledEventAttributes?.activityType?.name)
      .filter((name) => name === 'settleAnswer' || name === 'settleNews');

  const BY_ANSWER = { create: { captureNow: true }, callbacks: false };
  const BY_QUERY = { create: { captureNow: true, answer: 'drop' as const }, callbacks: false };
  const BY_CALLBACK = {
    create: { captureNow: true, answer: 'drop' as const },
    query: { answer: 'word' as const, word: 'WAIT_BUYER_PAY' },
    callbacks: true,
  };

  it('B11: twice, after the answer to the charge: the transaction is run again', async () => {
    const { orderId, figures } = await settlesLater(2, BY_ANSWER);
    expect(figures.queries).toBe(0);
    expect(await ordinarySteps(orderId)).toEqual([]);
  });

  it('B11: twice, after a query found the money', async () => {
    const { figures } = await settlesLater(2, BY_QUERY);
    expect(figures.queries).toBe(1);
  });

  it('B11: twice, when the callback is settled', async () => {
    await settlesLater(2, BY_CALLBACK);
  });

  it('B11: seven times: the local activity is run again', async () => {
    const { orderId, figures } = await settlesLater(7, BY_ANSWER);
    expect(figures.queries).toBe(0);
    expect(await ordinarySteps(orderId)).toEqual([]);
  });

  it('B11: until the local activity has no attempt left: an ordinary one goes on', async () => {
    const { orderId, figures } = await settlesLater(22, BY_ANSWER);
    expect(figures.queries).toBe(0);
    expect(await ordinarySteps(orderId)).toEqual(['settleAnswer']);
  });
});
