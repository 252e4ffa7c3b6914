import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

let saga: Saga;
beforeAll(async () => {
  saga = await Saga.start();
});
afterAll(() => saga?.stop());

/** The capture's reversed sum as the database has it, and as the channel has it. */
async function reversedOf(orderId: string, outTradeNo: string) {
  const [row] = await saga.rows<{ reversed_minor: number }>(
    `select reversed_minor from captures where merchant_id = $1::text and order_id = $2::text`,
    saga.merchantId,
    orderId,
  );
  const { captures } = await saga.mock.trade(outTradeNo);
  return { ours: row?.reversed_minor, channel: captures[0]?.reversedMinor };
}

async function untilAgreed(orderId: string, outTradeNo: string): Promise<void> {
  await saga.mock.waitUntilIdle({ timeoutMs: 10_000 });
  await saga.untilSettled(orderId);
  const { ours, channel } = await reversedOf(orderId, outTradeNo);
  expect({ orderId, reversed: ours }).toEqual({ orderId, reversed: channel });
}

async function questionsAbout(outTradeNo: string): Promise<number> {
  const books = await saga.mock.books();
  return books.filter(
    (entry) =>
      entry.type === 'request' && entry.operation === 'query' && entry.outTradeNo === outTradeNo,
  ).length;
}

describe.each(['mock-a', 'mock-b'])('money taken back and given back at %s', (channel) => {
  async function paidWithHeldNews(tag: string) {
    const subject = `${tag} #${tag}-${channel}`;
    const paid = await saga.paidOrder({ order_id: `${tag}-${channel}`, subject }, channel);
    await saga.mock.addFault({
      match: { operation: 'callback', tag: `${tag}-${channel}` },
      do: { hold: true },
    });
    return paid;
  }

  const untilHeld = (outTradeNo: string, count: number) =>
    waitFor('the callbacks are held', async () => {
      const all = (await saga.mock.heldCallbacks()).filter((n) => n.outTradeNo === outTradeNo);
      return all.length === count && all;
    });

  async function release(outTradeNo: string, count: number): Promise<void> {
    const held = await untilHeld(outTradeNo, count);
    await saga.mock.releaseCallbacks({
      order: held.reverse().map(({ noticeId }) => noticeId),
      outTradeNo,
    });
  }

  it('B40: counts as the channel has it when the reversal is told after its reinstatement', async () => {
    const { orderId, outTradeNo } = await paidWithHeldNews('given-back');
    await saga.mock.reverse({ outTradeNo });
    await saga.mock.reinstate({ outTradeNo });
    await release(outTradeNo, 2);
    await untilAgreed(orderId, outTradeNo);
    expect((await saga.order(orderId)).status).toBe('review');
  });

  it('B40: counts as the channel has it when a reinstatement comes after a later reversal', async () => {
    const { orderId, outTradeNo } = await paidWithHeldNews('taken-twice');
    await saga.mock.reverse({ outTradeNo });
    await release(outTradeNo, 1);
    await saga.untilOrder(orderId, 'review');
    await saga.mock.reinstate({ outTradeNo });
    await saga.mock.reverse({ outTradeNo, amountMinor: 4_000 });
    await release(outTradeNo, 2);
    await untilAgreed(orderId, outTradeNo);
  });

  it('B40: an answer older than the callback it is asked about does not end the question', async () => {
    const { orderId, outTradeNo } = await paidWithHeldNews('answered-late');
    await saga.mock.addFault({
      match: { operation: 'query', outTradeNo },
      times: 1,
      do: { delayBeforeAnswerMs: 1_500 },
    });
    const before = await questionsAbout(outTradeNo);
    await saga.mock.reverse({ outTradeNo });
    await release(outTradeNo, 1);
    await waitFor(
      'the channel is asked about the reversal',
      async () => (await questionsAbout(outTradeNo)) > before,
    );
    await saga.mock.reinstate({ outTradeNo });
    await saga.mock.reverse({ outTradeNo, amountMinor: 4_000 });
    await release(outTradeNo, 2);
    await untilAgreed(orderId, outTradeNo);
  });

  it('B40: an answer from between two reversals does not outlive the callback of the second', async () => {
    const { orderId, outTradeNo } = await paidWithHeldNews('in-between');
    await saga.mock.reverse({ outTradeNo });
    await saga.mock.reinstate({ outTradeNo });
    const [reversal, reinstatement] = await untilHeld(outTradeNo, 2);
    await saga.mock.addFault({
      match: { operation: 'query', outTradeNo },
      times: 1,
      do: { delayBeforeAnswerMs: 1_500 },
    });
    const before = await questionsAbout(outTradeNo);
    await saga.mock.releaseCallbacks({ order: [reversal!.noticeId], outTradeNo });
    await waitFor(
      'the channel is asked when all is given back',
      async () => (await questionsAbout(outTradeNo)) > before,
    );
    await saga.mock.reverse({ outTradeNo, amountMinor: 4_000 });
    const again = (await untilHeld(outTradeNo, 2)).find(
      (n) => n.noticeId !== reinstatement!.noticeId,
    );
    await saga.mock.releaseCallbacks({ order: [again!.noticeId], outTradeNo });
    await waitFor(
      'the answer has come',
      async () => (await reversedOf(orderId, outTradeNo)).ours !== 10_000,
    );
    await saga.mock.releaseCallbacks({ order: [reinstatement!.noticeId], outTradeNo });
    await untilAgreed(orderId, outTradeNo);
  });

  it('B40: asks until it is answered, also when its run ends meanwhile', async () => {
    const { orderId, outTradeNo } = await paidWithHeldNews('asked-again');
    await saga.mock.addFault({
      match: { operation: 'query', outTradeNo },
      times: 2,
      do: { effect: 'none', answer: 'drop' },
    });
    await saga.mock.reverse({ outTradeNo });
    await saga.mock.reinstate({ outTradeNo });
    await release(outTradeNo, 2);
    await saga.untilOrder(orderId, 'review');
    await saga.handle(orderId).terminate('an operator ended it');
    await untilAgreed(orderId, outTradeNo);
  });
});
