import { aNewOrder, startApiHarness } from './api-harness';
import type { Saga } from './saga-harness';
import { startSaga } from './saga-harness';

let saga: Saga;
beforeAll(async () => {
  saga = await startSaga();
}, 120_000);
afterAll(() => saga.close());

const pay = (orderId: string, body: object, headers?: Record<string, string>) =>
  saga.post(`/v1/orders/${orderId}/payments`, { channel: 'mock-a', ...body }, headers);

test('a payment is opened 201 with what the payer does next, and its repeat finds it', async () => {
  const orderId = await saga.anOrder();
  const first = await pay(orderId, { request_no: 'k-1' });
  expect(first.status).toBe(201);
  expect(first.body).toMatchObject({
    order_id: orderId,
    request_no: 'k-1',
    channel: 'mock-a',
    status: 'pending',
    amount: 10_000,
    currency: 'CNY',
    next_action: { type: expect.any(String) },
    status_url: `/v1/orders/${orderId}`,
  });
  const again = await pay(orderId, { request_no: 'k-1', amount: 10_000, currency: 'CNY' });
  expect([again.status, again.body.out_trade_no]).toEqual([200, first.body.out_trade_no]);
  const joined = await pay(orderId, { request_no: 'k-2' });
  expect([joined.status, joined.body.out_trade_no]).toEqual([200, first.body.out_trade_no]);
  expect((await saga.booksOf(orderId)).trades).toBe(1);
});

test('the Idempotency-Key names the attempt when the body gives no number', async () => {
  const orderId = await saga.anOrder();
  const headers = { 'idempotency-key': 'click-1' };
  const first = await pay(orderId, {}, headers);
  expect([first.status, first.body.request_no]).toEqual([201, 'click-1']);
  const again = await pay(orderId, {}, headers);
  expect(again.status).toBe(200);
  expect(again.headers.get('idempotency-replayed')).toBe('true');
  expect(again.body.out_trade_no).toBe(first.body.out_trade_no);
});

test('B65: one number with other content is refused, whichever way it is given', async () => {
  const [orderId, other] = [await saga.anOrder(), await saga.anOrder()];
  const headers = { 'idempotency-key': 'K' };
  expect((await pay(orderId, { amount: 10_000 }, headers)).status).toBe(201);
  const dearer = await pay(orderId, { amount: 20_000 }, headers);
  expect([dearer.status, dearer.body.code]).toEqual([422, 'idempotency_key_reused']);
  const elsewhere = await pay(other, { amount: 10_000 }, headers);
  expect([elsewhere.status, elsewhere.body.code]).toEqual([422, 'idempotency_key_reused']);
  const bare = await pay(orderId, { request_no: 'K', method: 'qr' });
  expect([bare.status, bare.body.code]).toEqual([422, 'request_no_reused']);
  // Another operation is another scope: the key means nothing there yet.
  const refund = await saga.post(`/v1/orders/${orderId}/refunds`, { refund_no: 'r-1' }, headers);
  expect([refund.status, refund.body.code]).toEqual([422, 'nothing_captured']);
  expect((await saga.booksOf(orderId)).trades).toBe(1);
  expect((await saga.booksOf(other)).trades).toBe(0);
});

test('a paid order answers every pay request with the payment, without asking its run', async () => {
  const orderId = await saga.anOrder();
  await saga.payAndSettle(orderId);
  for (const request_no of ['k-paid', 'k-new']) {
    const answer = await pay(orderId, { request_no });
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ status: 'paid', order_status: 'paid', next_action: null });
  }
  const { rows } = await saga.pool.query(
    `select from merchant_requests where order_id = $1 and request_no = 'k-new'`,
    [orderId],
  );
  expect(rows).toHaveLength(0);
  expect((await saga.booksOf(orderId)).captured).toBe(10_000);
});

test('B70: when the Idempotency-Key is long forgotten the number still finds the payment', async () => {
  const orderId = await saga.anOrder();
  const headers = { 'idempotency-key': 'k-paid' };
  await pay(orderId, {}, headers);
  await saga.payAndSettle(orderId);
  await saga.pool.query(`update idempotency_keys set expires_at = now() - interval '33 days'`);
  const answer = await pay(orderId, {}, headers);
  expect([answer.status, answer.body.status]).toEqual([200, 'paid']);
  expect((await saga.booksOf(orderId)).captured).toBe(10_000);
});

test('with Temporal away a pay request is 503 with Retry-After, and may be repeated when it is back', async () => {
  const away = await startApiHarness({
    temporalAddress: '127.0.0.1:1',
    limits: { askWithinMs: 500, startWithinMs: 100 },
  });
  try {
    const order = aNewOrder();
    await away.ask('POST', '/v1/orders', { body: order });
    for (const [path, body] of [
      ['payments', { channel: 'mock-a', request_no: 'k-1' }],
      ['cancel', {}],
    ] as const) {
      const startedAt = performance.now();
      const answer = await away.ask('POST', `/v1/orders/${order.order_id}/${path}`, { body });
      expect([answer.status, answer.body.code]).toEqual([503, 'outcome_unknown']);
      expect(answer.headers.get('retry-after')).toBe('2');
      expect(performance.now() - startedAt).toBeLessThan(2_000);
    }
    // The request is on record: the run that is started later can serve it, and so can a repeat.
    const { rows } = await away.pool.query('select request_no from merchant_requests');
    expect(rows).toEqual([{ request_no: 'k-1' }]);
  } finally {
    await away.close();
  }
});

test('a closed order refuses, and the refusal binds no number', async () => {
  const orderId = await saga.anOrder();
  const cancelled = await saga.post(`/v1/orders/${orderId}/cancel`, {});
  expect([cancelled.status, cancelled.body.status]).toEqual([200, 'closed']);
  const answer = await pay(orderId, { request_no: 'k-1' });
  expect([answer.status, answer.body.code]).toEqual([409, 'order_closed']);
  const { rows } = await saga.pool.query('select from merchant_requests where order_id = $1', [
    orderId,
  ]);
  expect(rows).toHaveLength(0);
});

test('a channel that hangs is answered 202 with a place to look, and the repeat finds the attempt', async () => {
  const orderId = await saga.anOrder();
  await saga.control.addFault({
    match: { dialect: 'mock-a', operation: 'create' },
    times: 1,
    do: { answer: 'drop' },
  });
  const first = await pay(orderId, { request_no: 'k-1' });
  expect([201, 202]).toContain(first.status);
  expect(first.headers.get('location') ?? `/v1/orders/${orderId}`).toBe(`/v1/orders/${orderId}`);
  for (let i = 0; i < 100; i++) {
    const again = await pay(orderId, { request_no: 'k-1' });
    expect([200, 202]).toContain(again.status);
    expect(again.body.out_trade_no).toBe(first.body.out_trade_no);
    if (again.body.status === 'pending') return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('never pending');
});

test('B67: fifty at once while the channel takes its time: one attempt, no 5xx', async () => {
  const orderId = await saga.anOrder();
  await saga.control.addFault({
    match: { dialect: 'mock-a', operation: 'create' },
    times: 1,
    do: { delayBeforeAnswerMs: 3_000 },
  });
  const headers = { 'idempotency-key': 'same' };
  const answers = await Promise.all(Array.from({ length: 50 }, () => pay(orderId, {}, headers)));
  for (const answer of answers) expect([200, 201, 202, 409]).toContain(answer.status);
  const numbers = answers.map(({ body }) => body.out_trade_no).filter(Boolean);
  expect(new Set(numbers).size).toBe(1);
  expect((await saga.booksOf(orderId)).trades).toBe(1);
});

describe('cancel', () => {
  const cancel = (orderId: string) => saga.post(`/v1/orders/${orderId}/cancel`, {});

  test('of an order with a pending attempt closes it at the channel first', async () => {
    const orderId = await saga.anOrder();
    await pay(orderId, { request_no: 'k-1' });
    let answer = await cancel(orderId);
    for (let i = 0; i < 100 && answer.status === 202; i++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      answer = await cancel(orderId);
    }
    expect([answer.status, answer.body.status]).toEqual([200, 'closed']);
    expect(answer.body.attempts).toMatchObject([{ status: 'closed' }]);
  });

  test('of a paid order is refused 409', async () => {
    const orderId = await saga.anOrder();
    await saga.payAndSettle(orderId);
    const answer = await cancel(orderId);
    expect([answer.status, answer.body.code]).toEqual([409, 'order_paid']);
  });
});

describe('refunds', () => {
  const refund = (orderId: string, body: object) =>
    saga.post(`/v1/orders/${orderId}/refunds`, body);

  async function succeeded(orderId: string, refundNo: string): Promise<void> {
    for (let i = 0; i < 200; i++) {
      const answer = await saga.ask('GET', `/v1/orders/${orderId}/refunds/${refundNo}`);
      expect(answer.status).toBe(200);
      if (answer.body.status === 'succeeded') return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`refund ${refundNo} does not succeed`);
  }

  test('B52: two equal refunds are both made, a repeat of one is not', async () => {
    const orderId = await saga.anOrder();
    await saga.payAndSettle(orderId);
    expect((await refund(orderId, { refund_no: 'R1', amount: 3_000 })).status).toBe(201);
    expect((await refund(orderId, { refund_no: 'R2', amount: 3_000 })).status).toBe(201);
    const again = await refund(orderId, { refund_no: 'R1', amount: 3_000 });
    expect([again.status, again.body.refund_no]).toEqual([200, 'R1']);
    const other = await refund(orderId, { refund_no: 'R1', amount: 2_000 });
    expect([other.status, other.body.code]).toEqual([422, 'refund_no_reused']);
    await succeeded(orderId, 'R1');
    await succeeded(orderId, 'R2');
    expect((await saga.booksOf(orderId)).refunded).toBe(6_000);
  });

  test('B49: no amount means the rest, once; over the rest is 422 and says what is left', async () => {
    const orderId = await saga.anOrder();
    await saga.payAndSettle(orderId);
    const over = await refund(orderId, { refund_no: 'R0', amount: 10_001 });
    expect([over.status, over.body.code, over.body.refundable_minor]).toEqual([
      422,
      'over_the_rest',
      10_000,
    ]);
    // The refusal bound no number: R0 may be used for what is allowed.
    expect((await refund(orderId, { refund_no: 'R0', amount: 1_000 })).status).toBe(201);
    const rest = await refund(orderId, { refund_no: 'R1' });
    expect([rest.status, rest.body.amount]).toEqual([201, 9_000]);
    const again = await refund(orderId, { refund_no: 'R1' });
    expect([again.status, again.body.amount]).toEqual([200, 9_000]);
    expect((await refund(orderId, { refund_no: 'R1', amount: 9_000 })).status).toBe(200);
    await succeeded(orderId, 'R1');
    expect((await refund(orderId, { refund_no: 'R2', amount: 1 })).status).toBe(422);
    expect((await saga.booksOf(orderId)).refunded).toBe(10_000);
  });

  test('B51: two at once that together exceed the payment: one is made', async () => {
    const orderId = await saga.anOrder();
    await saga.payAndSettle(orderId);
    const answers = await Promise.all([
      refund(orderId, { refund_no: 'R1', amount: 6_000 }),
      refund(orderId, { refund_no: 'R2', amount: 6_000 }),
    ]);
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 422]);
  });
});

test('a run that finds the request gone is asked anew, not answered 5xx', async () => {
  const orderId = await saga.anOrder();
  // A refused repeat frees the number between storing and asking: here by a trigger, always once.
  await saga.pool.query(`create table freed (request_no text primary key)`);
  await saga.pool.query(
    `create function free_once() returns trigger language plpgsql as $$
     begin
       insert into freed values (new.request_no) on conflict do nothing;
       if found then delete from merchant_requests where request_no = new.request_no; end if;
       return null;
     end $$`,
  );
  await saga.pool.query(
    `create trigger free_once after insert on merchant_requests
     for each row execute function free_once()`,
  );
  try {
    const answer = await pay(orderId, { request_no: 'freed-1' });
    expect([answer.status, answer.body.request_no]).toEqual([201, 'freed-1']);
  } finally {
    await saga.pool.query('drop trigger free_once on merchant_requests');
  }
});
