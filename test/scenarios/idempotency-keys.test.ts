import { connect } from 'node:net';
import { WorkflowNotFoundError } from '@temporalio/client';
import { ageOrder } from '../support/age-order';
import { expectBooksAgree } from '../support/refund-books';
import { forgetRun, FORGET_BOUND_MS } from '../support/forget-run';
import { Saga } from '../support/saga';
import type { Answer } from '../support/saga';
import { waitFor } from '../support/wait';

/** How long the slow channel of B67 takes; the call's own limit is above it. */
const SLOW_MS = 3_000;

describe('a request repeated under its key', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start({
      apis: 2,
      policy: { callTimeoutMs: SLOW_MS + 2_000, notFoundGraceMs: SLOW_MS + 3_000 },
    });
  });
  afterAll(() => saga?.stop());

  /** Pays with the key in the header only, so that it is the request number too. */
  const payWith = (orderId: string, key: string, body: Record<string, unknown> = {}) =>
    saga.call(
      'POST',
      `/v1/orders/${orderId}/payments`,
      { channel: 'mock-a', amount: 10_000, currency: 'CNY', ...body },
      { key },
    );

  it('B65: a key with other content is refused, on its own route it answers for itself', async () => {
    const orderId = await saga.createOrder();
    const other = await saga.createOrder();
    const first = await payWith(orderId, 'K65');
    expect(first.status).toBe(201);
    const otherAmount = await payWith(orderId, 'K65', { amount: 20_000 });
    const otherOrder = await payWith(other, 'K65');
    for (const answer of [otherAmount, otherOrder]) {
      expect(answer.status).toBe(422);
      expect(answer.body.code).toBe('idempotency_key_reused');
    }
    await saga.mock.approve(first.body.out_trade_no);
    await saga.untilOrder(orderId, 'paid');

    // The key's scope is caller, method and route: another operation has a result of its own.
    const refund = await saga.call(
      'POST',
      `/v1/orders/${orderId}/refunds`,
      { refund_no: 'R1', amount: 3_000 },
      { key: 'K65' },
    );
    expect(refund.status).toBe(201);
    expect(refund.body).toMatchObject({ refund_no: 'R1', amount: 3_000 });
    const reordered = await saga.call('POST', `/v1/orders/${orderId}/payments`, undefined, {
      key: 'K65',
      raw: '{ "currency": "CNY", "amount": 10000, "channel": "mock-a" }',
      headers: { 'content-type': 'application/json' },
    });
    expect(reordered.status).toBe(200);
    expect(reordered.headers.get('idempotency-replayed')).toBe('true');
    expect(reordered.body).toMatchObject({
      out_trade_no: first.body.out_trade_no,
      request_no: 'K65',
      status: 'paid',
    });

    await saga.untilSettled(orderId);
    expect((await saga.books(orderId)).captures).toEqual({ count: 1, sums: { CNY: 10_000 } });
    expect((await saga.books(orderId)).refunds).toEqual({ count: 1, sums: { CNY: 3_000 } });
    expect(await saga.records(other)).toEqual([]);
    expect((await saga.order(other)).status).toBe('created');
    await expectBooksAgree(saga, orderId);
  });

  it.each(['the header', 'the body'])(
    'B67: fifty at once with the key in %s, at a slow channel, are one payment',
    async (where) => {
      const tag = where === 'the header' ? 'b67h' : 'b67b';
      const orderId = await saga.createOrder({ subject: `Order #${tag}` });
      await saga.mock.addFault({
        match: { operation: 'create', tag },
        do: { delayBeforeAnswerMs: SLOW_MS },
      });
      const answers = await Promise.all(
        Array.from({ length: 50 }, () =>
          where === 'the header' ? payWith(orderId, 'K67') : saga.pay(orderId, 'K67'),
        ),
      );
      const outTradeNo = await saga.outTradeNo(orderId);
      expect(answers.filter(({ status }) => status >= 500)).toEqual([]);
      for (const { status, body } of answers) {
        if (status === 409) expect(body.code).toBe('request_in_progress');
        else expect([status, body.out_trade_no]).toEqual([expect.any(Number), outTradeNo]);
        // 202 is the payment too: stored, and the channel has not answered yet.
        expect([200, 201, 202, 409]).toContain(status);
      }
      expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);

      await saga.mock.approve(outTradeNo);
      await saga.untilOrder(orderId, 'paid');
      await saga.untilSettled(orderId);
      const books = await saga.books(orderId);
      expect(books.captures).toEqual({ count: 1, sums: { CNY: 10_000 } });
      expect(books.trades).toBe(1);
      expect(books.calls.create).toBe(1);
      expect(await saga.records(orderId)).toHaveLength(1);
      await expectBooksAgree(saga, orderId);
    },
  );

  it('B68: a key is 1 to 64 of its alphabet, whatever unit a length is counted in', async () => {
    const accepted = ['K', '7', 'a'.repeat(64), `${'a'.repeat(63)}b`, `${'a'.repeat(63)}B`];
    const refused = [
      'a'.repeat(65),
      'a'.repeat(255),
      'a'.repeat(256),
      '中'.repeat(255),
      '中',
      '😀'.repeat(128),
      '',
      'K\u0001',
      'K\u007f',
      'a b',
    ];
    for (const key of accepted) {
      // Each accepted key makes an order of its own: none of them is taken for another.
      const orderId = `b68-${accepted.indexOf(key)}`;
      expect(await rawCreate(orderId, key)).toBe(201);
      expect((await saga.order(orderId)).status).toBe('created');
    }
    for (const key of refused) {
      const orderId = `b68-refused-${refused.indexOf(key)}`;
      expect([key, await rawCreate(orderId, key)]).toEqual([key, 400]);
      await expect(saga.order(orderId)).rejects.toThrow('no order');
    }
    const kept = await saga.rows<{ idempotency_key: string }>(
      `select idempotency_key from idempotency_keys where merchant_id = $1::text
         and route = '/v1/orders'`,
      saga.merchantId,
    );
    expect(kept.map((row) => row.idempotency_key).sort()).toEqual([...accepted].sort());
    // A blank around a header's value is no part of it (RFC 9110, 5.5): the very same key.
    expect(await rawCreate('b68-0', 'K ')).toBe(200);
  });

  it('B68: a number in a body is taken as it is, never trimmed or shortened', async () => {
    const orderId = await saga.createOrder();
    const long = ['a'.repeat(255), '中'.repeat(255), '😀'.repeat(128), 'K\u0001', 'K ', ' K', ''];
    for (const requestNo of long) {
      const answer = await saga.pay(orderId, requestNo);
      expect([requestNo, answer.status]).toEqual([requestNo, 400]);
    }
    expect(await saga.records(orderId)).toEqual([]);
    expect((await saga.pay(orderId, 'a'.repeat(64))).status).toBe(201);
    expect((await saga.records(orderId))[0]?.request_no).toBe('a'.repeat(64));
    expect((await saga.books(orderId)).calls.create).toBe(1);
  });

  it(
    'B70: forty days later, past every retention, the same key finds the old payment',
    async () => {
      const orderId = await saga.createOrder();
      const first = await payWith(orderId, 'K70');
      await saga.mock.approve(first.body.out_trade_no);
      await saga.untilOrder(orderId, 'paid');
      await saga.untilSettled(orderId);
      await saga.handle(orderId).result();
      await forgetRun(saga, orderId);
      await ageOrder(saga, orderId, '40 days');
      await saga.rows(
        `update idempotency_keys set created_at = created_at - interval '40 days',
         leased_until = leased_until - interval '40 days', expires_at = expires_at - interval '40 days'
       where merchant_id = $1::text and idempotency_key = 'K70'`,
        saga.merchantId,
      );

      const again = await payWith(orderId, 'K70');
      expect(again.status).toBe(200);
      expect(again.body).toMatchObject({
        out_trade_no: first.body.out_trade_no,
        request_no: 'K70',
        status: 'paid',
        order_status: 'paid',
      });
      const books = await saga.books(orderId);
      expect(books.captures).toEqual({ count: 1, sums: { CNY: 10_000 } });
      expect(books.calls.create).toBe(1);
      expect(await saga.records(orderId)).toHaveLength(1);
      // The rows alone knew it: no run was started for the repeat.
      await expect(saga.handle(orderId).describe()).rejects.toBeInstanceOf(WorkflowNotFoundError);
      await expectBooksAgree(saga, orderId);
    },
    2 * FORGET_BOUND_MS,
  );

  it.each(['the header', 'the body'])(
    'B71: a client that hung up learns its payment by repeating, with the key in %s',
    async (where) => {
      const tag = where === 'the header' ? 'b71h' : 'b71b';
      const orderId = await saga.createOrder({ subject: `Order #${tag}` });
      const repeat = (): Promise<Answer> =>
        where === 'the header' ? payWith(orderId, 'K71') : saga.pay(orderId, 'K71');
      await saga.mock.addFault({
        match: { operation: 'create', tag },
        do: { delayBeforeAnswerMs: 1_500 },
      });
      const abort = new AbortController();
      const hungUp = fetch(`${saga.apis[0]?.url}/v1/orders/${orderId}/payments`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${saga.apiKey}`,
          'content-type': 'application/json',
          ...(where === 'the header' ? { 'idempotency-key': 'K71' } : {}),
        },
        body: JSON.stringify(
          where === 'the header'
            ? { channel: 'mock-a', amount: 10_000, currency: 'CNY' }
            : { channel: 'mock-a', request_no: 'K71' },
        ),
        signal: abort.signal,
      });
      const outTradeNo = await saga.outTradeNo(orderId);
      abort.abort();
      await expect(hungUp).rejects.toMatchObject({ name: 'AbortError' });

      const inProgress = await repeat();
      expect([200, 202, 409]).toContain(inProgress.status);
      if (inProgress.status !== 409) expect(inProgress.body.out_trade_no).toBe(outTradeNo);
      const full = await waitFor('the whole result', async () => {
        const answer = await repeat();
        return answer.status === 200 && answer.body.next_action !== null && answer;
      });
      expect(full.body).toMatchObject({
        request_no: 'K71',
        out_trade_no: outTradeNo,
        status: 'pending',
        next_action: { type: 'redirect' },
      });

      await saga.mock.approve(outTradeNo);
      await saga.untilOrder(orderId, 'paid');
      await saga.untilSettled(orderId);
      expect((await repeat()).body).toMatchObject({ status: 'paid', out_trade_no: outTradeNo });
      const books = await saga.books(orderId);
      expect(books.captures).toEqual({ count: 1, sums: { CNY: 10_000 } });
      expect(books.calls.create).toBe(1);
      await expectBooksAgree(saga, orderId);
    },
  );

  /** Creates an order over a bare socket, because no HTTP client sends such header values. */
  async function rawCreate(orderId: string, key: string): Promise<number> {
    const body = JSON.stringify({
      order_id: orderId,
      amount: 100,
      currency: 'CNY',
      subject: 'keys',
    });
    const { hostname, port, host } = new URL(saga.apis[0]?.url ?? '');
    const head = [
      'POST /v1/orders HTTP/1.1',
      `host: ${host}`,
      `authorization: Bearer ${saga.apiKey}`,
      'content-type: application/json',
      `content-length: ${Buffer.byteLength(body)}`,
      'connection: close',
      `idempotency-key: ${key}`,
    ];
    const text = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(port), hostname, () =>
        socket.write(`${head.join('\r\n')}\r\n\r\n${body}`),
      );
      let answer = '';
      socket.setEncoding('utf8');
      socket.on('data', (data: string) => (answer += data));
      socket.on('end', () => resolve(answer));
      socket.on('error', reject);
    });
    return Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]);
  }
});
