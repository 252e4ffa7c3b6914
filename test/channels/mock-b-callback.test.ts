import { aCallbackOrder, anAccount, anAdapter, writeMockCallback } from './mock-callback-writer';
import type { CallbackOverrides } from '../../mock-channel/control-types';

const account = anAccount('mock-b');
const channel = anAdapter(account);
const now = new Date();

function read(overrides: CallbackOverrides = {}, order = aCallbackOrder()) {
  const { rawBody, headers } = writeMockCallback(account, order, overrides);
  return channel.readCallback(rawBody, headers, now);
}

const resource = (fields: object) =>
  JSON.stringify({
    mchid: account.accountId,
    appid: account.appId,
    out_trade_no: 'OUT1',
    transaction_id: '4200',
    trade_state: 'SUCCESS',
    amount: { total: 10_000, currency: 'CNY' },
    ...fields,
  });

describe('reading mock-b callbacks', () => {
  it('B76: a bare trade number beyond 2^53 keeps its last digit', () => {
    expect(read({ channelTradeNo: '9007199254740993', bareTradeNo: true })).toMatchObject({
      ok: true,
      fact: { channelTradeNo: '9007199254740993' },
    });
  });

  it.each([
    '{"trade_state":"SUCCESS","trade_state":"NOTPAY"}',
    resource({}).replace('"amount":{', '"amount":{"total":10000,'),
    resource({ amount: { total: '10000', currency: 'CNY' } }),
    resource({ amount: { total: 100.5, currency: 'CNY' } }),
    resource({ amount: { total: 0, currency: 'CNY' } }),
    resource({ amount: { total: -1, currency: 'CNY' } }),
    resource({ amount: 10_000 }),
    resource({ amount: null }),
    resource({ amount: { total: 10_000 } }),
    resource({ out_trade_no: ['OUT1'] }),
    resource({ out_trade_no: 'OUT-1' }),
    resource({ transaction_id: null }),
    resource({ trade_state: 1.5 }),
    resource({ trade_state: undefined }),
    '{"__proto__":{"trade_state":"SUCCESS"}}',
    'null',
    '[]',
    '"x"',
    '{',
    '{}',
  ])('B88: refuses the signed and encrypted content %s with 400', (resourceText) => {
    expect(read({ resourceText })).toMatchObject({ ok: false, status: 400 });
  });

  it('reads the same content when nothing is wrong with it', () => {
    expect(read({ resourceText: resource({ new_field: [1, { a: null }] }) })).toMatchObject({
      ok: true,
      fact: { state: 'paid', amountMinor: 10_000, outTradeNo: 'OUT1' },
    });
  });

  it.each(['{', '', 'null', '[]', '"x"', '{}', '{"id":"1","id":"1"}', '{"resource":{}}', '\xff'])(
    'B88: refuses the signed body %p with 400',
    (text) => {
      const bodyBase64 = Buffer.from(text, 'latin1').toString('base64');
      expect(read({ bodyBase64 })).toMatchObject({ ok: false, status: 400 });
    },
  );

  it('refuses a refund dressed up as a transaction', () => {
    const order = aCallbackOrder({ outRefundNo: 'REF1', state: 'succeeded' });
    const { rawBody } = writeMockCallback(account, order);
    const dressed = rawBody.toString().replace('"REFUND.', '"TRANSACTION.');
    const bodyBase64 = Buffer.from(dressed).toString('base64');
    expect(read({ bodyBase64 }, order)).toMatchObject({ ok: false, status: 400 });
  });

  it('B80: refuses a serial that names no key of ours, and a key under the other’s serial', () => {
    const { rawBody, headers } = writeMockCallback(account, aCallbackOrder());
    const previous = writeMockCallback(account, aCallbackOrder({ key: 'previous' })).headers;
    for (const serial of [undefined, '', '0000000000000000', previous['mockpay-serial']]) {
      const reading = channel.readCallback(rawBody, { ...headers, 'mockpay-serial': serial }, now);
      expect(reading).toMatchObject({ ok: false, status: 401 });
    }
    expect(channel.readCallback(rawBody, headers, now)).toMatchObject({ ok: true });
  });

  it('B80: refuses a signed nonce or timestamp that was changed', () => {
    const { rawBody, headers } = writeMockCallback(account, aCallbackOrder());
    const later = String(Number(headers['mockpay-timestamp']) + 1);
    for (const changed of [{ 'mockpay-timestamp': later }, { 'mockpay-nonce': 'other' }]) {
      const reading = channel.readCallback(rawBody, { ...headers, ...changed }, now);
      expect(reading).toMatchObject({ ok: false, status: 401 });
    }
  });

  it.each([
    ['REVERSED', 3_000, { state: 'reversed', reversedMinor: 3_000 }],
    ['REINSTATED', 0, { state: 'reinstated', reversedMinor: 0 }],
    ['PAYERROR', 0, { state: 'failed' }],
    ['CLOSED', 0, { state: 'closed' }],
  ])('reads %s', (word, reversed, fact) => {
    expect(read({ word, fields: { reversed } })).toMatchObject({ ok: true, fact });
  });
});
