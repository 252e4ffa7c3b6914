import { matchLateNumbers, takeWaitingCallbacks } from '../../db/callbacks';
import type { CallbackOrder } from '../../channels/conformance-harness';
import { aCallbackOrder, anAdapter, writeMockCallback } from '../channels/mock-callback-writer';
import type { MockDialect } from '../channels/mock-callback-writer';
import type { Answer, ApiHarness } from './api-harness';
import { ACCOUNTS, aNewOrder, countRows, startApiHarness } from './api-harness';

let api: ApiHarness;
beforeAll(async () => {
  api = await startApiHarness();
});
afterAll(() => api.close());

let attempts = 0;

/** An order with a pending attempt at the channel, as the order's run would have left it. */
async function aPendingAttempt(channel: MockDialect = 'mock-a') {
  attempts += 1;
  const body = aNewOrder();
  await api.ask('POST', '/v1/orders', { body });
  const outTradeNo = `OUT${process.pid}X${attempts}`;
  await api.pool.query(
    `insert into pay_records (merchant_id, order_id, channel, request_no, out_trade_no,
       amount_minor, currency, status, sends)
     values ($1, $2, $3, 'k-1', $4, 10000, 'CNY', 'pending', 1)`,
    [api.merchantId, body.order_id, channel, outTradeNo],
  );
  await api.pool.query(`update orders set status = 'paying' where order_id = $1`, [body.order_id]);
  return { orderId: body.order_id, outTradeNo, channelTradeNo: `4200${attempts}` };
}

async function deliver(
  channel: MockDialect,
  order: Partial<CallbackOrder>,
  said: { to?: string; headers?: Record<string, string>; body?: Buffer } = {},
): Promise<Answer> {
  const { rawBody, headers } = writeMockCallback(ACCOUNTS[channel], aCallbackOrder(order));
  const sent: Record<string, string> = {};
  for (const [name, value] of Object.entries({ ...headers, ...said.headers })) {
    if (value !== undefined) sent[name] = value;
  }
  return api.ask('POST', `/callbacks/${said.to ?? channel}`, {
    key: null,
    raw: new Uint8Array(said.body ?? rawBody),
    headers: sent,
  });
}

async function inbox(outTradeNo: string) {
  const { rows } = await api.pool.query<{
    status: string;
    copies: number;
    order_id: string | null;
    callback_id: number;
  }>(
    `select callback_id, status, copies, order_id from channel_callbacks where our_no = $1
     order by callback_id`,
    [outTradeNo],
  );
  return rows;
}

async function ringsOf(orderId: string): Promise<number> {
  const handle = api.client.workflow.getHandle(`order:${api.merchantId}:${orderId}`);
  const { events } = await handle.fetchHistory();
  return (events ?? []).filter((e) => e.workflowExecutionSignaledEventAttributes).length;
}

async function eventually<T>(look: () => Promise<T>, isThere: (value: T) => boolean): Promise<T> {
  const deadline = Date.now() + 10_000;
  for (;;) {
    const value = await look();
    if (isThere(value) || Date.now() > deadline) return value;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

test.each(['mock-a', 'mock-b'] as const)(
  'B31: %s is acknowledged with exactly its own words once the news is stored',
  async (channel) => {
    const { orderId, outTradeNo, channelTradeNo } = await aPendingAttempt(channel);
    const answer = await deliver(channel, { outTradeNo, channelTradeNo });
    const expected = anAdapter(ACCOUNTS[channel]).acknowledgement;
    const text = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body);
    expect([answer.status, answer.headers.get('content-type'), text]).toEqual([
      expected.status,
      expected.contentType,
      expected.body,
    ]);
    expect(await inbox(outTradeNo)).toMatchObject([
      { status: 'stored', copies: 1, order_id: orderId },
    ]);
    expect(
      await eventually(
        () => ringsOf(orderId),
        (rings) => rings === 1,
      ),
    ).toBe(1);
  },
);

test('B23: twenty copies at once are one row with a counter and one ring', async () => {
  const { orderId, outTradeNo, channelTradeNo } = await aPendingAttempt();
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => deliver('mock-a', { outTradeNo, channelTradeNo })),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
  expect(await inbox(outTradeNo)).toMatchObject([{ status: 'stored', copies: 20 }]);
  expect(
    await eventually(
      () => ringsOf(orderId),
      (rings) => rings >= 1,
    ),
  ).toBe(1);
  // Other news while nobody has read the first rings no second time.
  await deliver('mock-a', { outTradeNo, channelTradeNo, state: 'closed' });
  expect(await inbox(outTradeNo)).toHaveLength(2);
  expect(await ringsOf(orderId)).toBe(1);
});

test('news that the order already knows is counted and rings nobody', async () => {
  const { orderId, outTradeNo, channelTradeNo } = await aPendingAttempt();
  const answer = await deliver('mock-a', { outTradeNo, channelTradeNo, state: 'pending' });
  expect(answer.status).toBe(200);
  expect(await inbox(outTradeNo)).toMatchObject([{ status: 'no_effect', copies: 1 }]);
  const { rows } = await api.pool.query('select doorbell_rung_at from orders where order_id = $1', [
    orderId,
  ]);
  expect(rows).toEqual([{ doorbell_rung_at: null }]);
});

test('B28: news that was applied and would change something again is news again', async () => {
  const { orderId, outTradeNo, channelTradeNo } = await aPendingAttempt();
  await deliver('mock-a', { outTradeNo, channelTradeNo });
  await api.pool.query(`update channel_callbacks set status = 'applied' where our_no = $1`, [
    outTradeNo,
  ]);
  await api.pool.query('update orders set doorbell_rung_at = null where order_id = $1', [orderId]);
  await deliver('mock-a', { outTradeNo, channelTradeNo });
  expect(await inbox(outTradeNo)).toMatchObject([{ status: 'stored', copies: 2 }]);
  expect(
    await eventually(
      () => ringsOf(orderId),
      (rings) => rings === 2,
    ),
  ).toBe(2);
});

test('B85: a number nobody knows is acknowledged, kept once, and matched when it appears', async () => {
  const outTradeNo = `OUTLATE${process.pid}`;
  for (let i = 0; i < 5; i++) expect((await deliver('mock-a', { outTradeNo })).status).toBe(200);
  expect(await inbox(outTradeNo)).toMatchObject([
    { status: 'unmatched', copies: 5, order_id: null },
  ]);
  const { orderId } = await aPendingAttempt();
  await api.pool.query('update pay_records set out_trade_no = $1 where order_id = $2', [
    outTradeNo,
    orderId,
  ]);
  expect(await matchLateNumbers(api.pool, 10)).toBe(1);
  expect(await inbox(outTradeNo)).toMatchObject([{ status: 'stored', order_id: orderId }]);
  const taken = await takeWaitingCallbacks(api.pool, { limit: 1_000, againAfterMs: 60_000 });
  expect(taken).toContainEqual({ merchantId: api.merchantId, orderId });
  // Put off: the next look does not take them again.
  const again = await takeWaitingCallbacks(api.pool, { limit: 1_000, againAfterMs: 60_000 });
  expect(again).not.toContainEqual({ merchantId: api.merchantId, orderId });
});

test('two relays at once never take the same news', async () => {
  await api.pool.query(`update channel_callbacks set next_due_at = now()`);
  const takes = await Promise.all(
    Array.from({ length: 4 }, () =>
      takeWaitingCallbacks(api.pool, { limit: 1, againAfterMs: 60_000 }),
    ),
  );
  const { rows } = await api.pool.query<{ taken: number }>(
    `select count(*) as taken from channel_callbacks where next_due_at > now() + interval '30 s'`,
  );
  expect(takes.flat()).toHaveLength(4);
  expect(rows[0]!.taken).toBe(4);
});

describe('B80, B82: what is not signed by the channel now', () => {
  const now = () => Math.floor(Date.now() / 1000);
  const unsigned: [string, Partial<CallbackOrder>][] = [
    ['no signature', { signature: 'absent' }],
    ['an empty signature', { signature: 'empty' }],
    ['the signature null', { signature: 'null' }],
    ['a cut-off signature', { signature: 'truncated' }],
    ["another body's signature", { signature: 'other_body' }],
    ['no timestamp', { timestamp: null }],
    ['a timestamp in words', { timestamp: 'now' }],
    ['an old timestamp', { timestamp: String(now() - 400) }],
    ['a timestamp ahead', { timestamp: String(now() + 400) }],
    ['milliseconds', { timestamp: String(Date.now()) }],
    ['a key nobody has', { key: 'unknown' }],
  ];
  test.each(unsigned)('%s is answered 401 and leaves nothing', async (_name, said) => {
    const { outTradeNo, channelTradeNo } = await aPendingAttempt();
    for (const channel of ['mock-a', 'mock-b'] as const) {
      const before = await countRows(api.pool);
      const answer = await deliver(channel, { outTradeNo, channelTradeNo, ...said });
      expect([channel, answer.status, answer.body.code]).toEqual([
        channel,
        401,
        'invalid_signature',
      ]);
      expect(await countRows(api.pool)).toEqual(before);
    }
  });

  test('a success without its status is answered 400', async () => {
    const { outTradeNo, channelTradeNo } = await aPendingAttempt();
    const answer = await deliver('mock-a', { outTradeNo, channelTradeNo, withoutStatus: true });
    expect([answer.status, answer.body.code]).toEqual([400, 'malformed_callback']);
    expect(await inbox(outTradeNo)).toEqual([]);
  });
});

describe('what never reaches a signature check', () => {
  test('an unknown channel is 404', async () => {
    for (const to of ['mock-z', '..%2Fmock-a', '%E4%B8%AD']) {
      const answer = await deliver('mock-a', {}, { to });
      expect([answer.status, answer.body.code]).toEqual([404, 'channel_not_found']);
    }
  });

  test("another channel's media type is 415", async () => {
    for (const type of ['text/plain', '', 'application/json']) {
      const answer = await deliver('mock-a', {}, { headers: { 'content-type': type } });
      expect(answer.status).toBe(415);
    }
  });

  test('more than 64 KB is 413', async () => {
    const answer = await deliver('mock-a', {}, { body: Buffer.alloc(64 * 1024 + 1, 'a') });
    expect([answer.status, answer.body.code]).toEqual([413, 'body_too_large']);
  });

  test('random bytes are 401 or 400, never 5xx', async () => {
    for (const channel of ['mock-a', 'mock-b'] as const) {
      for (const body of [Buffer.alloc(0), Buffer.from([0xff, 0x00, 0xfe]), Buffer.from('{')]) {
        const answer = await deliver(channel, {}, { body });
        expect([400, 401]).toContain(answer.status);
      }
    }
  });
});

test('the fact, not the notice, is what is counted: another notice id is the same news', async () => {
  const { outTradeNo, channelTradeNo } = await aPendingAttempt('mock-b');
  await deliver('mock-b', { outTradeNo, channelTradeNo });
  const { rawBody, headers } = writeMockCallback(
    ACCOUNTS['mock-b'],
    aCallbackOrder({ outTradeNo, channelTradeNo }),
    { noticeId: 'notice-2' } as never,
  );
  await api.ask('POST', '/callbacks/mock-b', {
    key: null,
    raw: new Uint8Array(rawBody),
    headers: headers as Record<string, string>,
  });
  expect(await inbox(outTradeNo)).toMatchObject([{ copies: 2 }]);
  await deliver('mock-b', { outTradeNo, channelTradeNo, amountMinor: 9_999 });
  expect(await inbox(outTradeNo)).toMatchObject([{ copies: 2 }, { copies: 1 }]);
});

test('with the inbox held up a callback is answered 503 with Retry-After, so that it comes again', async () => {
  const { outTradeNo, channelTradeNo } = await aPendingAttempt();
  const holder = await api.pool.connect();
  try {
    await holder.query('begin');
    await holder.query('lock table channel_callbacks in exclusive mode');
    const answer = await deliver('mock-a', { outTradeNo, channelTradeNo });
    expect([answer.status, answer.body.code]).toEqual([503, 'unavailable']);
    expect(answer.headers.get('retry-after')).toBe('2');
  } finally {
    await holder.query('rollback');
    holder.release();
  }
  expect(await inbox(outTradeNo)).toEqual([]);
  expect((await deliver('mock-a', { outTradeNo, channelTradeNo })).status).toBe(200);
  expect(await inbox(outTradeNo)).toMatchObject([{ status: 'stored', copies: 1 }]);
});
