import { MockChannelControl } from '../../mock-channel/control-client';
import type { FaultAction } from '../../mock-channel/control-types';
import { startMockChannel, type MockChannel } from '../../mock-channel/server';
import {
  ACCOUNTS,
  aNumber,
  callA,
  callB,
  CallbackReceiver,
  createA,
  createB,
  queryB,
  refundA,
  until,
} from './merchant';

let channel: MockChannel;
let control: MockChannelControl;
const merchant = new CallbackReceiver();

beforeAll(async () => {
  const url = await merchant.start();
  channel = await startMockChannel({
    ...ACCOUNTS,
    settings: {
      refundAfterMs: 5,
      callbackUrls: { 'mock-a': [`${url}/a`], 'mock-b': [`${url}/b`] },
    },
  });
  control = new MockChannelControl(channel.control);
});
afterAll(async () => {
  await channel.close();
  await merchant.stop();
});
afterEach(async () => {
  await control.clearFaults();
  await control.waitUntilIdle();
  merchant.reset();
});

/** A create with a fault set by a tag, as a test that cannot know the number would do. */
async function createWith(action: FaultAction, times?: number) {
  const tag = aNumber('t');
  const n = aNumber();
  await control.addFault({ match: { operation: 'create', tag }, times, do: action });
  const create = () => createB(channel.b, n, { description: `a thing #${tag}` });
  return { n, tag, create };
}

const captures = async (n: string) => (await control.summary({ outTradeNos: [n] })).captures.count;

test('capture and drop takes the money, cuts the connection, and a repeat is the same trade', async () => {
  const { n, create } = await createWith({ captureNow: true, answer: 'drop' }, 2);
  await expect(create()).rejects.toThrow();
  await expect(create()).rejects.toThrow();
  expect((await create()).json.trade_state).toBe('SUCCESS');
  expect(await control.summary({ outTradeNos: [n] })).toMatchObject({
    captures: { count: 1, sums: { CNY: 10_000 } },
    calls: { create: 3 },
    createNumbers: [n],
  });
});

test('drop before the effect leaves nothing behind', async () => {
  const { n, create } = await createWith({ effect: 'none', answer: 'drop' }, 1);
  await expect(create()).rejects.toThrow();
  expect((await queryB(channel.b, n)).json.code).toBe('TRADE_NOT_EXIST');
  expect((await create()).status).toBe(200);
});

test.each<[string, FaultAction, number, 'SUCCESS' | 'TRADE_NOT_EXIST' | 'NOTPAY']>([
  ['500 after the effect', { captureNow: true, answer: 'http', status: 500 }, 500, 'SUCCESS'],
  ['500 without effect', { effect: 'none', answer: 'http' }, 500, 'TRADE_NOT_EXIST'],
  ['an HTML page', { captureNow: true, answer: 'html' }, 200, 'SUCCESS'],
  ['an empty body', { captureNow: true, answer: 'empty' }, 200, 'SUCCESS'],
  ['a cut-off body', { captureNow: true, answer: 'cut_off' }, 200, 'SUCCESS'],
  ['a definite refusal', { answer: 'refuse' }, 403, 'TRADE_NOT_EXIST'],
  ['"already processed"', { captureNow: true, answer: 'already_processed' }, 409, 'SUCCESS'],
  ['"already paid"', { answer: 'already_paid' }, 409, 'NOTPAY'],
])(
  '%s is answered as asked and the books say what is true',
  async (_name, action, status, word) => {
    const { n, create } = await createWith(action);
    const answer = await create();
    expect(answer.status).toBe(status);
    if (action.answer && ['html', 'empty', 'cut_off'].includes(action.answer)) {
      expect(answer.json).toBeUndefined();
    }
    const { json } = await queryB(channel.b, n);
    expect(json.trade_state ?? json.code).toBe(word);
  },
);

test('an odd answer carries an unknown field, lacks a documented one, and is still signed', async () => {
  const { create } = await createWith({ captureNow: true, answer: 'odd_fields', status: 201 });
  const answer = await create();
  expect([answer.status, answer.signed]).toEqual([201, true]);
  expect(answer.json).toMatchObject({ new_feature: 'on', trade_state: 'SUCCESS' });
  expect(answer.json).not.toHaveProperty('transaction_id');
});

test('an unknown word, and then the real one', async () => {
  const { n, tag, create } = await createWith({ answer: 'word', word: 'FROZEN' });
  await control.addFault({
    match: { operation: 'query', tag },
    times: 1,
    do: { answer: 'word', word: 'FROZEN' },
  });
  expect((await create()).json.trade_state).toBe('FROZEN');
  expect((await queryB(channel.b, n)).json.trade_state).toBe('FROZEN');
  expect((await queryB(channel.b, n)).json.trade_state).toBe('NOTPAY');
});

test('a trade number beyond 2^53 goes out as a bare number', async () => {
  const { create } = await createWith({ bareTradeNo: true, channelTradeNo: '9007199254740993' });
  const answer = await create();
  expect(answer.text).toContain('"transaction_id":9007199254740993,');
  expect(answer.signed).toBe(true);
});

test('one stored answer is replayed per number, a stored 500 for ever', async () => {
  const { n, create } = await createWith({ answer: 'replay', status: 500 });
  for (let call = 0; call < 3; call += 1) expect((await create()).status).toBe(500);
  expect((await queryB(channel.b, n)).json.trade_state).toBe('NOTPAY');
  const match = { operation: 'query' as const, outTradeNo: n };
  await control.addFault({ match, do: { answer: 'replay' } });
  const first = await queryB(channel.b, n);
  await control.approve(n);
  expect((await queryB(channel.b, n)).text).toBe(first.text);
  expect((await createB(channel.b, aNumber())).status).toBe(200);
});

test('"no such order" for so many queries, then the truth', async () => {
  const n = aNumber();
  await createB(channel.b, n);
  const match = { operation: 'query' as const, outTradeNo: n };
  await control.addFault({ match, times: 2, skip: 1, do: { answer: 'no_such_order' } });
  const words = [];
  for (let call = 0; call < 4; call += 1) {
    const { json } = await queryB(channel.b, n);
    words.push(json.trade_state ?? json.code);
  }
  expect(words).toEqual(['NOTPAY', 'TRADE_NOT_EXIST', 'TRADE_NOT_EXIST', 'NOTPAY']);
});

test('a close loses the race: refused as paid, or OK although captured', async () => {
  const close = (n: string) =>
    callB(channel.b, 'POST', `/v3/pay/transactions/out-trade-no/${n}/close`, { mchid: 'mch-1' });
  const [raced, lied] = [aNumber(), aNumber()];
  await createB(channel.b, raced);
  await createB(channel.b, lied);
  const operation = 'close' as const;
  await control.addFault({ match: { operation, outTradeNo: raced }, do: { captureNow: true } });
  await control.addFault({
    match: { operation, outTradeNo: lied },
    do: { captureNow: true, effect: 'none', answer: 'ok' },
  });
  expect((await close(raced)).json.code).toBe('TRADE_ALREADY_PAID');
  const lie = await close(lied);
  expect([lie.status, lie.json.trade_state]).toEqual([200, 'CLOSED']);
  expect((await queryB(channel.b, lied)).json.trade_state).toBe('SUCCESS');
  expect([await captures(raced), await captures(lied)]).toEqual([1, 1]);
});

test('the callback comes before the answer when asked for', async () => {
  const { create } = await createWith({ captureNow: true, answerAfterCallback: true });
  await create();
  expect(merchant.received).toHaveLength(1);
});

test('delays hold back the effect or only the answer', async () => {
  const slow = await createWith({ captureNow: true, delayBeforeAnswerMs: 200 });
  const begun = Date.now();
  const answer = slow.create();
  await until('captured before the answer', async () => (await captures(slow.n)) === 1);
  await answer;
  expect(Date.now() - begun).toBeGreaterThanOrEqual(195);
  const late = await createWith({ delayBeforeEffectMs: 100 });
  const pending = late.create();
  expect((await control.summary({ outTradeNos: [late.n] })).trades).toBe(0);
  await pending;
  expect((await control.summary({ outTradeNos: [late.n] })).trades).toBe(1);
});

test('refunds executed and dropped are one refund under one number', async () => {
  const [n, r] = [aNumber(), aNumber('R')];
  await createA(channel.a, n);
  await control.approve(n);
  const match = { operation: 'refund' as const, outTradeNo: n };
  await control.addFault({ match, times: 2, do: { refund: 'now', answer: 'drop' } });
  await expect(refundA(channel.a, n, r, '30.00')).rejects.toThrow();
  await expect(refundA(channel.a, n, r, '30.00')).rejects.toThrow();
  expect((await refundA(channel.a, n, r, '30.00')).json.refund_status).toBe('REFUND_SUCCESS');
  expect(await control.summary({ outTradeNos: [n] })).toMatchObject({
    refunds: { count: 1, sums: { CNY: 3000 } },
    calls: { refund: 3 },
    refundNumbers: [r],
  });
});

test('queries over the limit get 429 with Retry-After, other calls do not', async () => {
  const n = aNumber();
  await createA(channel.a, n);
  await control.configure({ queryRateLimitPerSecond: 5 });
  const query = () => callA(channel.a, 'trade.query', { out_trade_no: n });
  const answers = await Promise.all(Array.from({ length: 12 }, query));
  await control.configure({ queryRateLimitPerSecond: null });
  const limited = answers.filter((one) => one.status === 429);
  expect(limited).toHaveLength(7);
  expect(limited[0]?.headers.get('retry-after')).toBe('1');
  expect((await createA(channel.a, n)).status).toBe(200);
  expect((await control.summary({ outTradeNos: [n] })).rateLimited).toBe(7);
});

test('a refused connection is really refused, for a while or until accepted again', async () => {
  await control.refuseConnections({ dialect: 'mock-a' });
  await expect(createA(channel.a, aNumber())).rejects.toMatchObject({
    cause: { code: 'ECONNREFUSED' },
  });
  expect((await createB(channel.b, aNumber())).status).toBe(200);
  await control.acceptConnections({ dialect: 'mock-a' });
  expect((await createA(channel.a, aNumber())).status).toBe(200);
  await control.refuseConnections({ dialect: 'mock-a', forMs: 50 });
  await until('accepting again', async () =>
    createA(channel.a, aNumber()).then(
      () => true,
      () => false,
    ),
  );
});

test('chance is repeatable: the same seed spoils the same calls', async () => {
  const pattern = async (): Promise<boolean[]> => {
    const tag = aNumber('t');
    const match = { operation: 'create' as const, tag };
    const rule = { match, probability: 0.5, seed: 42, do: { answer: 'http' as const } };
    const id = await control.addFault(rule);
    const spoilt = [];
    for (let call = 0; call < 20; call += 1) {
      const answer = await createB(channel.b, aNumber(), { description: `x #${tag}` });
      spoilt.push(answer.status === 500);
    }
    await control.removeFault(id);
    return spoilt;
  };
  const first = await pattern();
  expect(first).toEqual(await pattern());
  expect(new Set(first).size).toBe(2);
});

test('payers pay by themselves in load mode', async () => {
  const tag = aNumber('t');
  await control.configure({ autoApprove: { afterMs: 5, tag } });
  const n = aNumber();
  await createA(channel.a, n, { subject: `a thing #${tag}` });
  const other = aNumber();
  await createA(channel.a, other);
  await until('paid', async () => (await captures(n)) === 1);
  await control.configure({ autoApprove: null });
  expect(await captures(other)).toBe(0);
});

test('a tag fits whole words only, and a misspelt fault is refused', async () => {
  const { n, tag } = await createWith({ answer: 'refuse' });
  expect((await createB(channel.b, n, { description: `x #${tag}b` })).status).toBe(200);
  const misspelt = { match: { operation: 'create' as const }, do: { answr: 'drop' } };
  await expect(control.addFault(misspelt as never)).rejects.toMatchObject({ status: 400 });
});
