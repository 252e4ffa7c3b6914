import { createDecipheriv, createHash, createHmac } from 'node:crypto';
import { decode } from 'iconv-lite';
import { MockChannelControl } from '../../mock-channel/control-client';
import { startMockChannel, type MockChannel } from '../../mock-channel/server';
import {
  acknowledgement,
  ACCOUNTS,
  aNumber,
  CallbackReceiver,
  createA,
  createB,
  KEY_A,
  KEY_A_OLD,
  KEY_B,
  KEY_B_OLD,
  refundA,
  serialOf,
  until,
  type Received,
} from './merchant';

let channel: MockChannel;
let control: MockChannelControl;
const merchant = new CallbackReceiver();
let merchantUrl: string;

beforeAll(async () => {
  merchantUrl = await merchant.start();
  channel = await startMockChannel({
    ...ACCOUNTS,
    settings: {
      refundAfterMs: 1,
      callbackUrls: {
        'mock-a': [`${merchantUrl}/a1`, `${merchantUrl}/a2`],
        'mock-b': [`${merchantUrl}/b`],
      },
      callbackLadderMs: [10, 10, 10, 10],
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

/** Reads a mock-a callback from its raw bytes; `signed` is told for the given key. */
function readA(one: Received | undefined, key = KEY_A) {
  const raw = (one?.body.toString('latin1') ?? '').split('&').map((pair) => {
    const [name = '', value = ''] = pair.split('=');
    return { name, bytes: Buffer.from(unescape(value.replace(/\+/g, ' ')), 'latin1') };
  });
  const signed = raw
    .filter(({ name }) => name !== 'sign' && name !== 'sign_type')
    .sort((left, right) => (left.name < right.name ? -1 : 1))
    .map(({ name, bytes }) => `${name}=${bytes.toString('latin1')}`)
    .join('&');
  const value = (name: string): Buffer | undefined => raw.find((pair) => pair.name === name)?.bytes;
  const sign = createHmac('sha256', key).update(Buffer.from(signed, 'latin1')).digest('hex');
  return {
    text: (name: string) => value(name)?.toString('utf8'),
    bytes: (name: string) => value(name) ?? Buffer.alloc(0),
    signed: value('sign')?.toString() === sign,
  };
}

/** Verifies and opens a mock-b callback with the key its serial names. */
function readB(one: Received | undefined) {
  const header = (name: string): string => String(one?.headers[`mockpay-${name}`] ?? '');
  const key = [KEY_B, KEY_B_OLD].find((each) => serialOf(each) === header('serial'));
  const body = one?.body.toString('utf8') ?? '';
  const message = `${header('timestamp')}\n${header('nonce')}\n${body}\n`;
  const signed =
    key !== undefined &&
    createHmac('sha256', key).update(message).digest('hex') === header('signature');
  const envelope = JSON.parse(body);
  if (!key) return { signed, envelope, serial: header('serial'), plaintext: '' };
  const sealed = Buffer.from(envelope.resource.ciphertext, 'base64');
  const decipher = createDecipheriv(
    'aes-256-gcm',
    createHash('sha256').update(`aes:${key}`).digest(),
    Buffer.from(envelope.resource.nonce),
  );
  decipher.setAAD(Buffer.from(envelope.resource.associated_data));
  decipher.setAuthTag(sealed.subarray(-16));
  const plaintext = decipher.update(sealed.subarray(0, -16)).toString() + decipher.final('utf8');
  return { signed, envelope, serial: header('serial'), plaintext };
}

async function paidA(subject = 'a thing'): Promise<string> {
  const n = aNumber();
  await createA(channel.a, n, { subject });
  await control.approve(n);
  await control.waitUntilIdle();
  return n;
}

const figures = async (n: string) => (await control.summary({ outTradeNos: [n] })).callbacks;

test('is sent once, in turn to each address, when acknowledged exactly', async () => {
  const first = await paidA();
  const second = await paidA();
  expect(await figures(first)).toMatchObject({ notices: 1, sent: 1, resent: 0, acknowledged: 1 });
  expect(await figures(second)).toMatchObject({ sent: 1, resent: 0 });
  expect(merchant.received.map((one) => one.path).sort()).toEqual(['/a1', '/a2']);
  const read = readA(merchant.received[0]);
  expect(read.signed).toBe(true);
  expect(read.text('trade_status')).toBe('TRADE_SUCCESS');
  expect(read.text('total_amount')).toBe('100.00');
  expect(read.text('out_trade_no')).toBe(first);
});

test.each([
  ['another status', { status: 202 }],
  ['another word', { body: 'SUCCESS' }],
  ['a word with a line end', { body: 'success\n' }],
  ['another content type', { contentType: 'application/json' }],
  ['a failure', { status: 503, body: 'later' }],
])('is sent again after %s, freshly signed, until the exact word', async (_name, wrong) => {
  merchant.answer = (count, path) => ({ ...acknowledgement(path), ...(count < 3 ? wrong : {}) });
  const n = await paidA();
  expect(await figures(n)).toMatchObject({
    notices: 1,
    sent: 3,
    resent: 2,
    acknowledged: 1,
    notAcknowledged: 2,
  });
  const read = merchant.received.map((one) => readA(one));
  expect(read.every((one) => one.signed)).toBe(true);
  expect(new Set(read.map((one) => one.text('notify_id'))).size).toBe(1);
  expect(new Set(read.map((one) => one.text('notify_time'))).size).toBe(3);
});

test('demands the JSON acknowledgement in the other dialect', async () => {
  merchant.answer = (count) =>
    count === 1
      ? { status: 200, contentType: 'application/json', body: '{"code":"SUCCESS"}' }
      : acknowledgement('/b');
  const n = aNumber();
  await createB(channel.b, n);
  await control.approve(n);
  await control.waitUntilIdle();
  expect(await figures(n)).toMatchObject({ sent: 2, resent: 1, acknowledged: 1 });
  const read = readB(merchant.received[1]);
  expect(read.signed).toBe(true);
  expect(read.envelope.event_type).toBe('TRANSACTION.SUCCESS');
  expect(JSON.parse(read.plaintext)).toMatchObject({
    out_trade_no: n,
    trade_state: 'SUCCESS',
    amount: { total: 10_000, currency: 'CNY' },
  });
  expect(merchant.received[0]?.headers['mockpay-nonce']).not.toBe(
    merchant.received[1]?.headers['mockpay-nonce'],
  );
});

test('gives up at the end of the ladder', async () => {
  merchant.answer = () => ({ status: 500, contentType: 'text/plain', body: 'no' });
  const n = await paidA();
  expect(await figures(n)).toMatchObject({ sent: 5, resent: 4, acknowledged: 0 });
});

test('faults drop, multiply, hold and change the natural ones', async () => {
  const tag = aNumber('t');
  const match = { operation: 'callback' as const, tag };
  const lost = await control.addFault({ match, do: { drop: true } });
  const dropped = await paidA(`a #${tag}`);
  expect(await figures(dropped)).toMatchObject({ notices: 0, sent: 0 });
  await control.removeFault(lost);

  await control.addFault({ match, times: 1, do: { copies: 20 } });
  const many = await paidA(`b #${tag}`);
  expect(await figures(many)).toMatchObject({ notices: 1, sent: 20, resent: 0, acknowledged: 20 });

  await control.addFault({
    match,
    times: 1,
    do: { callback: { amountMinor: 6000, key: 'unknown' } },
  });
  merchant.reset();
  await paidA(`c #${tag}`);
  const read = readA(merchant.received[0]);
  expect([read.text('total_amount'), read.signed]).toEqual(['60.00', false]);
});

test('held ones are released in the order wanted', async () => {
  const tag = aNumber('t');
  await control.addFault({ match: { operation: 'callback', tag }, do: { hold: true } });
  const n = await paidA(`a #${tag}`);
  await refundA(channel.a, n, aNumber('R'), '100.00');
  await control.waitUntilIdle();
  expect((await control.heldCallbacks()).map((one) => one.word)).toEqual([
    'TRADE_SUCCESS',
    'REFUND_SUCCESS',
  ]);
  await control.releaseCallbacks({ order: 'lifo', outTradeNo: n });
  const types = merchant.received.map((one) => readA(one).text('notify_type'));
  expect(types).toEqual(['refund_status_sync', 'trade_status_sync']);
  expect(await control.heldCallbacks()).toEqual([]);
});

test('any other one is sent on demand: word, number, amount, account, notice id, time', async () => {
  const n = await paidA();
  merchant.reset();
  await control.sendCallback({
    outTradeNo: n,
    word: 'FROZEN',
    amountText: '500',
    accountId: 'seller-2',
    notifyId: 'new',
    timestampShiftSeconds: -301,
    fields: { out_trade_no: 'OTHER1', trade_no: null },
    copies: 3,
  });
  expect(merchant.received).toHaveLength(3);
  const read = readA(merchant.received[0]);
  expect(read.signed).toBe(true);
  expect(read.text('trade_status')).toBe('FROZEN');
  expect(read.text('total_amount')).toBe('500');
  expect(read.text('seller_id')).toBe('seller-2');
  expect(read.text('out_trade_no')).toBe('OTHER1');
  expect(read.text('trade_no')).toBeUndefined();
  const behind = Date.now() / 1000 - Number(read.text('timestamp'));
  expect(behind).toBeGreaterThan(300);
  expect(behind).toBeLessThan(303);
  expect((await control.summary({ outTradeNos: [n] })).captures.count).toBe(1);
});

test('a stranger, and a payment that the books do not know', async () => {
  const stranger = aNumber();
  await control.sendCallback({ dialect: 'mock-a', outTradeNo: stranger, amountMinor: 777 });
  const unpaid = aNumber();
  await createA(channel.a, unpaid);
  await control.sendCallback({ outTradeNo: unpaid, word: 'TRADE_SUCCESS', amountMinor: 10 });
  const read = merchant.received.map((one) => readA(one));
  expect(read.map((one) => one.text('total_amount'))).toEqual(['7.77', '0.10']);
  expect(read.every((one) => one.text('gmt_payment') !== undefined && one.signed)).toBe(true);
  const { captures } = await control.summary({ outTradeNos: [stranger, unpaid] });
  expect(captures.count).toBe(0);
});

test('signatures are absent, empty, spoilt, of another body, of an old or unknown key', async () => {
  const n = await paidA();
  merchant.reset();
  const good = 64;
  const kinds = ['absent', 'empty', 'null', 'truncated', 'other_body'] as const;
  for (const signature of kinds) await control.sendCallback({ outTradeNo: n, signature });
  const signs = merchant.received.map((one) => readA(one).text('sign'));
  expect(signs.map((sign) => sign?.length)).toEqual([undefined, 0, 4, good - 8, good]);
  expect(merchant.received.some((one) => readA(one).signed)).toBe(false);
  merchant.reset();
  await control.sendCallback({ outTradeNo: n, key: 'previous' });
  await control.sendCallback({ outTradeNo: n, signType: 'MD5' });
  await control.sendCallback({ outTradeNo: n, signType: null });
  expect(readA(merchant.received[0], KEY_A_OLD).signed).toBe(true);
  expect(readA(merchant.received[1]).text('sign_type')).toBe('MD5');
  expect(readA(merchant.received[2]).text('sign_type')).toBeUndefined();

  const b = aNumber();
  await createB(channel.b, b);
  merchant.reset();
  for (const key of ['current', 'previous', 'unknown'] as const) {
    await control.sendCallback({ outTradeNo: b, key });
  }
  const read = merchant.received.map((one) => readB(one));
  expect(read.map((one) => one.signed)).toEqual([true, true, false]);
  expect(new Set(read.map((one) => one.serial)).size).toBe(3);
});

test('a timestamp is missing, no number, or in milliseconds', async () => {
  const n = aNumber();
  await createB(channel.b, n);
  const stamps = [null, 'abc', String(Date.now())];
  for (const timestamp of stamps) await control.sendCallback({ outTradeNo: n, timestamp });
  const sent = merchant.received.map((one) => one.headers['mockpay-timestamp']);
  expect(sent).toEqual([undefined, 'abc', stamps[2]]);
});

test('GBK is signed over its bytes, its name in the field, the header or nowhere', async () => {
  const n = await paidA('测试订单');
  merchant.reset();
  for (const charsetIn of ['field', 'header', 'both', 'neither'] as const) {
    await control.sendCallback({ outTradeNo: n, charset: 'gbk', charsetIn });
  }
  const read = merchant.received.map((one) => readA(one));
  expect(read.every((one) => one.signed)).toBe(true);
  expect(read.map((one) => decode(one.bytes('subject'), 'gbk'))).toEqual(Array(4).fill('测试订单'));
  expect(read.map((one) => one.text('charset'))).toEqual(['gbk', undefined, 'gbk', undefined]);
  const named = merchant.received.map((one) => /gbk/.test(one.headers['content-type'] ?? ''));
  expect(named).toEqual([false, true, true, false]);
});

test('bodies are sent as they are, contents as they are, numbers bare', async () => {
  const n = aNumber();
  await createB(channel.b, n);
  await control.sendCallback({ outTradeNo: n, bodyBase64: Buffer.from('{').toString('base64') });
  expect(merchant.received[0]?.body.toString()).toBe('{');
  await control.sendCallback({ outTradeNo: n, resourceText: '{"amount":1,"amount":2}' });
  expect(readB(merchant.received[1]).plaintext).toBe('{"amount":1,"amount":2}');
  await control.sendCallback({
    outTradeNo: n,
    channelTradeNo: '9007199254740993',
    bareTradeNo: true,
    contentType: 'text/plain',
  });
  const a = aNumber();
  await createA(channel.a, a);
  await control.sendCallback({ outTradeNo: a, resourceText: 'b=2&amount=1&amount=%20' });
  const twice = merchant.received[3]?.body.toString();
  expect(twice).toMatch(/^b=2&amount=1&amount=%20&sign_type=HMAC-SHA256&sign=[0-9a-f]{64}$/);
  expect(readA(merchant.received[3]).signed).toBe(true);
  const bare = readB(merchant.received[2]);
  expect(bare.plaintext).toContain('"transaction_id":9007199254740993,');
  expect(bare.signed).toBe(true);
  expect(merchant.received[2]?.headers['content-type']).toBe('text/plain');
});

test('is replayed byte for byte, also to another address, or sent anew under its own id', async () => {
  const n = await paidA();
  const [recorded] = await control.deliveries({ outTradeNo: n });
  if (!recorded) throw new Error('nothing was recorded');
  await control.replayCallback({ deliveryId: recorded.deliveryId, copies: 2 });
  await control.replayCallback({
    deliveryId: recorded.deliveryId,
    url: `${merchantUrl}/b-instead`,
  });
  const [first, ...again] = merchant.received;
  expect(again).toHaveLength(3);
  for (const one of again) expect(one.body.equals(first?.body ?? Buffer.alloc(0))).toBe(true);
  expect(again[2]?.path).toBe('/b-instead');
  await control.resendCallback({ outTradeNo: n });
  await control.resendCallback({ outTradeNo: n, newNotifyId: true });
  const ids = merchant.received.map((one) => readA(one).text('notify_id'));
  expect(ids[4]).toBe(ids[0]);
  expect(ids[5]).not.toBe(ids[0]);
  expect(await figures(n)).toMatchObject({ resent: 0 });
});

test('tells of declines, refunds, reversals; of closes and expiry only if configured', async () => {
  const n = aNumber();
  await createA(channel.a, n);
  await control.decline(n);
  const paid = await paidA();
  await refundA(channel.a, paid, aNumber('R'), '1.00');
  await control.waitUntilIdle();
  await control.reverse({ outTradeNo: paid });
  await control.configure({ expiryCallbacks: true });
  await createA(channel.a, aNumber(), { time_expire: new Date(Date.now() + 20).toISOString() });
  await until('expiry is told', () => merchant.received.length === 5);
  await control.configure({ expiryCallbacks: false });
  const words = merchant.received.map(
    (one) => readA(one).text('trade_status') ?? readA(one).text('refund_status'),
  );
  expect(words).toEqual([
    'TRADE_FAILED',
    'TRADE_SUCCESS',
    'REFUND_SUCCESS',
    'TRADE_REVERSED',
    'TRADE_CLOSED',
  ]);
});
