import { createHmac } from 'node:crypto';
import iconv from 'iconv-lite';
import { formatDecimal } from '../../domain/money';
import { aCallbackOrder, anAccount, anAdapter, writeMockCallback } from './mock-callback-writer';

const account = anAccount('mock-a');
const channel = anAdapter(account);
const now = new Date();

function read(
  ...[order, overrides]: Parameters<typeof writeMockCallback> extends [unknown, ...infer Rest]
    ? Rest
    : never
) {
  const { rawBody, headers } = writeMockCallback(account, order, overrides);
  return channel.readCallback(rawBody, headers, now);
}

/** A form signed by hand over its decoded bytes, for bodies that the mock channel never writes. */
function signedByHand(pairs: [string, Buffer | string][]): Buffer {
  const all: [string, Buffer][] = [
    ...pairs,
    ['timestamp', String(Math.floor(now.getTime() / 1_000))] as [string, string],
  ].map(([name, value]) => [name, Buffer.from(value as string)]);
  const sorted = [...all].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  const bytes = Buffer.concat(
    sorted.flatMap(([name, value], index) => [
      Buffer.from(`${index === 0 ? '' : '&'}${name}=`),
      value,
    ]),
  );
  const sign = createHmac('sha256', account.keys.current).update(bytes).digest('hex');
  const escape = (value: Buffer) =>
    [...value].map((byte) => `%${byte.toString(16).padStart(2, '0')}`);
  const parts = all.map(([name, value]) => `${name}=${escape(value).join('')}`);
  return Buffer.from([...parts, 'sign_type=HMAC-SHA256', `sign=${sign}`].join('&'));
}

const rightPairs: [string, string][] = [
  ['notify_type', 'trade_status_sync'],
  ['out_trade_no', 'OUT1'],
  ['trade_no', '4200'],
  ['trade_status', 'TRADE_SUCCESS'],
  ['total_amount', '100.00'],
  ['currency', 'CNY'],
];

describe('reading mock-a callbacks', () => {
  it.each([
    ['utf-8', 'field'],
    ['utf-8', 'header'],
    ['utf-8', 'both'],
    ['utf-8', 'neither'],
    ['gbk', 'field'],
    ['gbk', 'header'],
    ['gbk', 'both'],
  ] as const)('B79: %s with the charset in %s gives the same fact', (charset, charsetIn) => {
    const order = aCallbackOrder();
    const reading = read(order, { charset, charsetIn, subject: '测试订单' });
    expect(reading).toEqual(read(order));
    expect(reading).toMatchObject({ ok: true, fact: { state: 'paid', amountMinor: 10_000 } });
  });

  it('B79: GBK bytes that nobody names are undecodable as UTF-8: 400', () => {
    expect(read(aCallbackOrder(), { charset: 'gbk', charsetIn: 'neither' })).toEqual({
      ok: false,
      status: 400,
      reason: 'undecodable',
    });
  });

  it.each<[string, Buffer, string]>([
    ['utf-8', Buffer.from([0xff, 0xfe]), 'utf-8'],
    ['gbk', Buffer.from([0x81]), 'gbk'],
    ['a charset nobody reads', Buffer.from('x'), 'utf-7'],
  ])('B79: signed but undecodable as %s: 400', (_, subject, charset) => {
    const body = signedByHand([...rightPairs, ['charset', charset], ['subject', subject]]);
    expect(channel.readCallback(body, {}, now)).toMatchObject({ ok: false, status: 400 });
  });

  it('B79: the field names the charset before the header does', () => {
    const subject = iconv.encode('测试订单', 'gbk');
    const body = signedByHand([...rightPairs, ['charset', 'GBK'], ['subject', subject]]);
    const headers = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' };
    expect(channel.readCallback(body, headers, now)).toMatchObject({ ok: true });
  });

  it('B88: refuses a field given twice, though the signature covers both', () => {
    const body = signedByHand([...rightPairs, ['total_amount', '1.00']]);
    expect(channel.readCallback(body, {}, now)).toMatchObject({ ok: false, status: 400 });
    const one = signedByHand(rightPairs);
    expect(channel.readCallback(one, {}, now)).toMatchObject({ ok: true });
  });

  it('B47: reads the spellings 500, 500.0 and 500.00 as the same amount', () => {
    for (const amountText of ['500', '500.0', '500.00', '500.000']) {
      expect(read(aCallbackOrder(), { amountText })).toMatchObject({
        ok: true,
        fact: { amountMinor: 50_000 },
      });
    }
  });

  it.each([
    '',
    '1e3',
    '1,000.00',
    ' 100',
    '100.001',
    '-1.00',
    '+1',
    '0',
    '0.00',
    '.5',
    '１',
    'NaN',
  ])('B46: refuses the amount %p with 400', (amountText) => {
    expect(read(aCallbackOrder(), { amountText })).toMatchObject({ ok: false, status: 400 });
  });

  it.each(['cny', 'XXX', '', 'RMB'])('refuses the currency %p with 400', (currency) => {
    const overrides = { fields: { currency } };
    expect(read(aCallbackOrder(), overrides)).toMatchObject({ ok: false, status: 400 });
  });

  it.each(['trade_no', 'total_amount', 'currency', 'out_trade_no', 'trade_status', 'notify_type'])(
    'takes a callback without %s for no fact',
    (field) => {
      const overrides = { fields: { [field]: null } };
      expect(read(aCallbackOrder(), overrides)).toMatchObject({ ok: false, status: 400 });
    },
  );

  it('tells the payer’s own total and the time apart from the order’s amount', () => {
    const overrides = { fields: { payer_total: '90.00', gmt_payment: '2026-05-01T08:00:00Z' } };
    expect(read(aCallbackOrder(), overrides)).toMatchObject({
      ok: true,
      fact: { amountMinor: 10_000, payerTotalMinor: 9_000, paidAt: '2026-05-01T08:00:00.000Z' },
    });
  });

  it.each([
    ['TRADE_REVERSED', '30.00', { state: 'reversed', reversedMinor: 3_000 }],
    ['TRADE_REINSTATED', '0.00', { state: 'reinstated', reversedMinor: 0 }],
    ['TRADE_CLOSED', '0.00', { state: 'closed' }],
    ['TRADE_FAILED', '0.00', { state: 'failed' }],
  ])('reads %s', (word, reversed_amount, fact) => {
    const reading = read(aCallbackOrder(), { word, fields: { reversed_amount } });
    expect(reading).toMatchObject({ ok: true, fact });
  });

  it('does not take a reversal without its amount for a reversal of everything', () => {
    const reading = read(aCallbackOrder(), { word: 'TRADE_REVERSED' });
    expect(reading).toMatchObject({ ok: false, status: 400 });
  });

  it('B86: the word "constructor" is as unknown as any other', () => {
    expect(read(aCallbackOrder(), { word: 'constructor' })).toMatchObject({
      fact: { state: 'unknown', word: 'constructor' },
    });
  });

  it('B43: writes and reads each of 0.01 … 100.00 without a difference', () => {
    let mismatches = 0;
    for (let amountMinor = 1; amountMinor <= 10_000; amountMinor += 1) {
      const text = formatDecimal(amountMinor, 'CNY');
      const body = signedByHand(
        rightPairs.map(([name, value]) => [name, name === 'total_amount' ? text : value]),
      );
      const reading = channel.readCallback(body, {}, now);
      const fact = reading.ok && reading.fact.kind === 'payment' ? reading.fact : undefined;
      if (fact?.amountMinor !== amountMinor) mismatches += 1;
    }
    expect(mismatches).toBe(0);
  });

  it('compares signatures without telling how far they agree', () => {
    const { rawBody } = writeMockCallback(account, aCallbackOrder());
    const text = rawBody.toString();
    const sign = /[?&]sign=([0-9a-f]{64})/.exec(text)?.[1] ?? '';
    const variants = [sign.toUpperCase(), `${sign}0`, sign.slice(1), `0${sign}`, `${sign}%00`];
    for (const variant of variants) {
      const body = Buffer.from(text.replace(`sign=${sign}`, `sign=${variant}`));
      expect(channel.readCallback(body, {}, now)).toMatchObject({ ok: false, status: 401 });
    }
    expect(channel.readCallback(rawBody, {}, now)).toMatchObject({ ok: true });
  });
});
