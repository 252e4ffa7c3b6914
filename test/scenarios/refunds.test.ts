import { ageOrder } from '../support/age-order';
import {
  expectBooksAgree,
  refundCalls,
  refundRow,
  refundRows,
  refundStates,
} from '../support/refund-books';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

const DAY_MS = 24 * 60 * 60 * 1000;

describe('money goes back once', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start({ apis: 2, policy: { refundCaseAfterMs: DAY_MS } });
  });
  afterAll(() => saga?.stop());

  const statuses = (answers: { status: number }[]) => answers.map((a) => a.status).sort();

  it('B51: two refunds of 60.00 at once never exceed a payment of 100.00', async () => {
    const { orderId } = await saga.paidOrder();
    const answers = await Promise.all(['R1', 'R2'].map((no) => saga.refund(orderId, no, 6_000)));
    expect(statuses(answers)).toEqual([201, 422]);
    const refused = answers.find((answer) => answer.status === 422);
    expect(refused?.body).toMatchObject({ code: 'over_the_rest', refundable_minor: 4_000 });

    await saga.untilSettled(orderId);
    expect((await saga.books(orderId)).refunds).toEqual({ count: 1, sums: { CNY: 6_000 } });
    expect(await refundRows(saga, orderId)).toMatchObject([
      { amount_minor: 6_000, status: 'succeeded' },
    ]);
    expect((await saga.order(orderId)).refund_status).toBe('partial');
    await expectBooksAgree(saga, orderId);
  });

  it('B51: ten refunds of 15.00 at once come to 90.00', async () => {
    const { orderId } = await saga.paidOrder();
    const numbers = Array.from({ length: 10 }, (_, i) => `R${i}`);
    const answers = await Promise.all(numbers.map((no) => saga.refund(orderId, no, 1_500)));
    expect(statuses(answers)).toEqual([...Array(6).fill(201), ...Array(4).fill(422)]);

    await saga.untilSettled(orderId);
    const books = await saga.books(orderId);
    expect(books.refunds).toEqual({ count: 6, sums: { CNY: 9_000 } });
    expect(books.refundNumbers).toHaveLength(6);
    expect((await saga.status(orderId)).body.refundable_minor).toBe(1_000);
    await expectBooksAgree(saga, orderId);
  });

  it('B52: two equal refunds under two numbers are both paid, a repeat is the first', async () => {
    const { orderId } = await saga.paidOrder();
    expect((await saga.refund(orderId, 'R1', 3_000)).status).toBe(201);
    expect((await saga.refund(orderId, 'R2', 3_000)).status).toBe(201);
    await saga.untilSettled(orderId);
    const repeat = await saga.refund(orderId, 'R1', 3_000);
    expect(repeat.status).toBe(200);
    const first = await refundRow(saga, orderId, 'R1');
    expect(repeat.body).toMatchObject({
      refund_no: 'R1',
      out_refund_no: first.out_refund_no,
      amount: 3_000,
      status: 'succeeded',
    });

    await saga.untilSettled(orderId);
    expect((await saga.books(orderId)).refunds).toEqual({ count: 2, sums: { CNY: 6_000 } });
    expect(await refundRows(saga, orderId)).toHaveLength(2);
    await expectBooksAgree(saga, orderId);
  });

  it('B53: a refund whose answer was lost is never failed and ends by a query', async () => {
    const { orderId } = await saga.paidOrder({ subject: 'Order #b53' });
    await saga.mock.addFault({
      match: { operation: 'refund', tag: 'b53' },
      times: 1,
      do: { refund: 'now', answer: 'drop' },
    });
    await saga.mock.addFault({
      match: { operation: 'refund_query', tag: 'b53' },
      times: 2,
      do: { answer: 'drop' },
    });
    await saga.mock.addFault({
      match: { operation: 'callback', kind: 'refund', tag: 'b53' },
      do: { drop: true },
    });
    expect((await saga.refund(orderId, 'R1', 3_000)).status).toBe(201);
    const seen = new Set<string>();
    await waitFor('the refund by query', async () => {
      const { body } = await saga.call('GET', `/v1/orders/${orderId}/refunds/R1`);
      seen.add(body.status);
      return body.status === 'succeeded';
    });
    expect([...seen].filter((s) => !['created', 'submitting', 'processing'].includes(s))).toEqual([
      'succeeded',
    ]);
    expect(seen).toContain('submitting');
    expect(await refundStates(saga, orderId, 'R1')).toEqual(['created', 'submitting', 'succeeded']);

    await saga.untilSettled(orderId);
    const books = await saga.books(orderId);
    expect(books.refunds).toEqual({ count: 1, sums: { CNY: 3_000 } });
    expect(books.calls.refund).toBe(1);
    await expectBooksAgree(saga, orderId);
  });

  it('B54: a refund executed and dropped twice, and asked for again, keeps its one number', async () => {
    const { orderId } = await saga.paidOrder({ subject: 'Order #b54' });
    await saga.mock.addFault({
      match: { operation: 'refund', tag: 'b54' },
      times: 2,
      do: { refund: 'now', answer: 'drop' },
    });
    // The channel's query lags behind: only that makes a second send right, under the same number.
    await saga.mock.addFault({
      match: { operation: 'refund_query', tag: 'b54' },
      times: 1,
      do: { answer: 'no_such_order' },
    });
    await saga.mock.addFault({
      match: { operation: 'callback', kind: 'refund', tag: 'b54' },
      do: { drop: true },
    });
    const abort = new AbortController();
    const cut = fetch(`${saga.apis[0]?.url}/v1/orders/${orderId}/refunds`, {
      method: 'POST',
      headers: { authorization: `Bearer ${saga.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ refund_no: 'R1', amount: 3_000, reason: 'test' }),
      signal: abort.signal,
    }).catch(() => 'cut');
    await waitFor('the refund', async () => (await refundRows(saga, orderId)).length === 1);
    abort.abort();
    await cut;
    expect((await saga.refund(orderId, 'R1', 3_000)).status).toBe(200);
    await waitFor('the second send', async () => (await saga.books(orderId)).calls.refund === 2);
    expect((await saga.refund(orderId, 'R1', 3_000)).status).toBe(200);

    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await saga.untilSettled(orderId);
    const [row, ...others] = await refundRows(saga, orderId);
    expect(others).toEqual([]);
    const books = await saga.books(orderId);
    expect(books.refundNumbers).toEqual([row?.out_refund_no]);
    expect(books.calls.refund).toBe(2);
    expect(books.refunds).toEqual({ count: 1, sums: { CNY: 3_000 } });
    expect(saga.merchant.effects(orderId, 'refund.succeeded')).toHaveLength(1);
    await expectBooksAgree(saga, orderId);
  });

  it('B55: 25 hours without a word fail no refund and free no money', async () => {
    const { orderId } = await saga.paidOrder({ subject: 'Order #b55' });
    await saga.mock.addFault({
      match: { operation: 'refund', tag: 'b55' },
      do: { refund: 'now', answer: 'drop' },
    });
    const silence = await saga.mock.addFault({
      match: { operation: 'refund_query', tag: 'b55' },
      do: { answer: 'drop' },
    });
    await saga.mock.addFault({
      match: { operation: 'callback', kind: 'refund', tag: 'b55' },
      do: { drop: true },
    });
    expect((await saga.refund(orderId, 'R1')).status).toBe(201);
    await waitFor('the send', async () => (await saga.books(orderId)).refunds.count === 1);
    await ageOrder(saga, orderId, '25 hours');
    await waitFor('the case', async () => (await saga.openCases(orderId)).length === 1);
    expect(await saga.openCases(orderId)).toMatchObject([{ kind: 'refund_overdue' }]);
    expect((await refundRow(saga, orderId, 'R1')).status).toBe('submitting');
    const again = await saga.refund(orderId, 'R2');
    expect(again.status).toBe(422);
    expect(again.body).toMatchObject({ code: 'over_the_rest', refundable_minor: 0 });

    await saga.mock.removeFault(silence);
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await saga.untilSettled(orderId);
    expect(await refundStates(saga, orderId, 'R1')).toEqual(['created', 'submitting', 'succeeded']);
    expect((await saga.books(orderId)).refunds).toEqual({ count: 1, sums: { CNY: 10_000 } });
    expect(await refundRows(saga, orderId)).toHaveLength(1);
    await expectBooksAgree(saga, orderId);
  });

  it('B56: a refund that never reached the channel is not taken for its equal twin', async () => {
    const { orderId } = await saga.paidOrder();
    await saga.mock.refuseConnections({ dialect: 'mock-a' });
    try {
      expect((await saga.refund(orderId, 'R1', 500)).status).toBe(201);
      await waitFor('a refused connection', async () => {
        const row = await refundRow(saga, orderId, 'R1');
        return row.polls > 0 && row.sends === 0;
      });
    } finally {
      await saga.mock.acceptConnections({ dialect: 'mock-a' });
    }
    expect((await saga.refund(orderId, 'R2', 500)).status).toBe(201);
    await expectBothPaid(orderId);
  });

  it('B56: a refund lost on its way to the channel is not taken for its equal twin', async () => {
    const { orderId } = await saga.paidOrder({ subject: 'Order #b56' });
    await saga.mock.addFault({
      match: { operation: 'refund', tag: 'b56' },
      times: 1,
      do: { effect: 'none', answer: 'drop' },
    });
    expect((await saga.refund(orderId, 'R1', 500)).status).toBe(201);
    await waitFor('the lost call', async () => (await saga.books(orderId)).calls.refund === 1);
    expect((await saga.refund(orderId, 'R2', 500)).status).toBe(201);
    await expectBothPaid(orderId);
  });

  async function expectBothPaid(orderId: string): Promise<void> {
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await saga.untilRefund(orderId, 'R2', 'succeeded');
    await saga.untilSettled(orderId);
    const { out_refund_no: mine } = await refundRow(saga, orderId, 'R1');
    const calls = await refundCalls(saga, mine);
    // The query by R1's own number says "unknown"; only then is it sent (again).
    const unknownAt = calls.indexOf('refund_query REFUND_NOT_EXIST');
    expect(unknownAt).toBeGreaterThanOrEqual(0);
    expect(calls.indexOf('refund ok')).toBeGreaterThan(unknownAt);
    const books = await saga.books(orderId);
    expect(books.refunds).toEqual({ count: 2, sums: { CNY: 1_000 } });
    expect(books.refundNumbers).toHaveLength(2);
    await expectBooksAgree(saga, orderId);
  }
});
