import { MockChannelControl } from '../../mock-channel/control-client';
import { startMockChannel, type MockChannel } from '../../mock-channel/server';
import {
  ACCOUNTS,
  aNumber,
  callA,
  callB,
  createA,
  createB,
  KEY_A_OLD,
  KEY_B,
  KEY_B_OLD,
  queryB,
  refundA,
  serialOf,
  until,
} from './merchant';

let channel: MockChannel;
let control: MockChannelControl;

beforeAll(async () => {
  channel = await startMockChannel({ ...ACCOUNTS, settings: { refundAfterMs: 5 } });
  control = new MockChannelControl(channel.control);
});
afterAll(() => channel.close());

const queryA = (outTradeNo: string) =>
  callA(channel.a, 'trade.query', { out_trade_no: outTradeNo });

describe('a trade', () => {
  test('is the same one for the same number and amount, however often and parallel', async () => {
    const n = aNumber();
    const answers = await Promise.all(Array.from({ length: 10 }, () => createA(channel.a, n)));
    expect(new Set(answers.map((one) => one.status))).toEqual(new Set([200]));
    expect(new Set(answers.map((one) => one.json.trade_no)).size).toBe(1);
    const summary = await control.summary({ outTradeNos: [n] });
    expect(summary).toMatchObject({ trades: 1, calls: { create: 10 }, createNumbers: [n] });
  });

  test('is refused under a known number with another amount or currency', async () => {
    const [a, b] = [aNumber(), aNumber()];
    await createA(channel.a, a);
    await createB(channel.b, b);
    const other = await createA(channel.a, a, { total_amount: '120.00' });
    expect([other.status, other.json.sub_code]).toEqual([409, 'TRADE_CONFLICT']);
    const yen = await createB(channel.b, b, { amount: { total: 10_000, currency: 'JPY' } });
    expect([yen.status, yen.json.code]).toEqual([409, 'TRADE_CONFLICT']);
    expect((await queryA(a)).json.total_amount).toBe('100.00');
    expect((await queryB(channel.b, b)).json.amount).toEqual({ total: 10_000, currency: 'CNY' });
  });

  test('pays once: a second completion is refused, a query says paid, a close too', async () => {
    const n = aNumber();
    await createA(channel.a, n);
    await control.approve(n);
    await expect(control.approve(n)).rejects.toThrow('TRADE_ALREADY_PAID');
    expect((await queryA(n)).json).toMatchObject({
      trade_status: 'TRADE_SUCCESS',
      payer_total: '100.00',
    });
    const close = await callA(channel.a, 'trade.close', { out_trade_no: n });
    expect([close.status, close.json.sub_code]).toEqual([409, 'TRADE_ALREADY_PAID']);
    expect((await control.summary({ outTradeNos: [n] })).captures).toEqual({
      count: 1,
      sums: { CNY: 10_000 },
    });
  });

  test('that was closed, declined or has expired takes no money from the payer', async () => {
    const [closed, declined, expired] = [aNumber(), aNumber(), aNumber()];
    await createB(channel.b, closed);
    const close = await callB(
      channel.b,
      'POST',
      `/v3/pay/transactions/out-trade-no/${closed}/close`,
      { mchid: 'mch-1' },
    );
    expect(close.json.trade_state).toBe('CLOSED');
    await createA(channel.a, declined);
    await control.decline(declined);
    await createA(channel.a, expired, { time_expire: new Date(Date.now() + 50).toISOString() });
    await until(
      'expired',
      async () => (await queryA(expired)).json.trade_status === 'TRADE_CLOSED',
    );
    expect((await queryA(declined)).json.trade_status).toBe('TRADE_FAILED');
    for (const n of [closed, declined, expired]) {
      await expect(control.approve(n)).rejects.toMatchObject({ status: 409 });
    }
    const { captures } = await control.summary({ outTradeNos: [closed, declined, expired] });
    expect(captures.count).toBe(0);
  });

  test('under review is pending until the channel approves', async () => {
    const n = aNumber();
    await createA(channel.a, n);
    await control.review(n);
    expect((await queryA(n)).json.trade_status).toBe('UNDER_REVIEW');
    await control.approve(n);
    expect((await queryA(n)).json.trade_status).toBe('TRADE_SUCCESS');
  });

  test('can be captured again under another number, or after its close, by the channel', async () => {
    const n = aNumber();
    await createA(channel.a, n);
    await control.approve(n);
    const second = await control.capture({ outTradeNo: n });
    const settling = (await control.trade(n)).channelTradeNo;
    expect(second.channelTradeNo).not.toBe(settling);
    expect((await queryA(n)).json.trade_no).toBe(settling);
    const late = aNumber();
    await createA(channel.a, late);
    await callA(channel.a, 'trade.close', { out_trade_no: late });
    await control.capture({ outTradeNo: late, amountMinor: 6000 });
    expect((await queryA(late)).json).toMatchObject({
      trade_status: 'TRADE_SUCCESS',
      total_amount: '60.00',
    });
    expect((await control.summary({ outTradeNos: [n, late] })).captures).toEqual({
      count: 3,
      sums: { CNY: 26_000 },
    });
  });

  test('shows a reversal in part and in full, and its reinstatement', async () => {
    const n = aNumber();
    await createB(channel.b, n);
    await control.approve(n);
    await control.reverse({ outTradeNo: n, amountMinor: 4000 });
    expect((await queryB(channel.b, n)).json).toMatchObject({
      trade_state: 'REVERSED',
      reversed: 4000,
    });
    await control.reverse({ outTradeNo: n });
    expect((await control.summary({ outTradeNos: [n] })).netMinor).toEqual({ CNY: 0 });
    await control.reinstate({ outTradeNo: n });
    expect((await queryB(channel.b, n)).json.trade_state).toBe('REINSTATED');
    expect((await control.summary({ outTradeNos: [n] })).netMinor).toEqual({ CNY: 10_000 });
  });

  test('keeps yen and dinars whole', async () => {
    const [yen, dinar] = [aNumber(), aNumber()];
    await createA(channel.a, yen, { total_amount: '2000', currency: 'JPY' });
    await createA(channel.a, dinar, { total_amount: '1.234', currency: 'KWD' });
    expect((await control.trade(yen)).amountMinor).toBe(2000);
    expect((await control.trade(dinar)).amountMinor).toBe(1234);
    const bad = await createA(channel.a, aNumber(), { total_amount: '16.24', currency: 'JPY' });
    expect([bad.status, bad.json.sub_code]).toEqual([400, 'INVALID_REQUEST']);
  });

  test('is paid, declined or left on its pay page, and the payer is sent back', async () => {
    const n = aNumber();
    const made = await createA(channel.a, n, {
      subject: '<b>bold</b>',
      return_url: 'http://127.0.0.1:1/back',
    });
    const page = await (await fetch(made.json.pay_url)).text();
    expect(page).toContain('&lt;b&gt;bold&lt;/b&gt;');
    const post = (choice: string) =>
      fetch(`${made.json.pay_url}/${choice}`, { method: 'POST', redirect: 'manual' });
    expect((await post('leave')).headers.get('location')).toBe('http://127.0.0.1:1/back');
    expect((await queryA(n)).json.trade_status).toBe('WAIT_BUYER_PAY');
    expect((await post('approve')).status).toBe(303);
    expect((await post('approve')).status).toBe(409);
    expect((await queryA(n)).json.trade_status).toBe('TRADE_SUCCESS');
    const [qr, web] = [
      await createB(channel.b, aNumber()),
      await createB(channel.b, aNumber(), { method: 'web' }),
    ];
    expect(qr.json.code_url).toMatch(/\/pay\/\d{28}$/);
    expect(web.json.redirect_url).toMatch(/\/pay\/\d{28}$/);
  });
});

describe('a refund', () => {
  test('is one effect under one number, and another amount under it is refused', async () => {
    const [n, r] = [aNumber(), aNumber('R')];
    await createA(channel.a, n);
    await control.approve(n);
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => refundA(channel.a, n, r, '30.00')),
    );
    expect(new Set(answers.map((one) => one.json.refund_no)).size).toBe(1);
    const other = await refundA(channel.a, n, r, '31.00');
    expect([other.status, other.json.sub_code]).toEqual([409, 'REFUND_CONFLICT']);
    await control.waitUntilIdle();
    expect((await callA(channel.a, 'refund.query', { out_refund_no: r })).json.refund_status).toBe(
      'REFUND_SUCCESS',
    );
    expect(await control.summary({ outTradeNos: [n] })).toMatchObject({
      refunds: { count: 1, sums: { CNY: 3000 } },
      calls: { refund: 6, refund_query: 1 },
      refundNumbers: [r],
      netMinor: { CNY: 7000 },
    });
  });

  test('never exceeds the capture, those still processing included', async () => {
    const n = aNumber();
    await createA(channel.a, n);
    expect((await refundA(channel.a, n, aNumber('R'), '1.00')).json.sub_code).toBe(
      'TRADE_NOT_PAID',
    );
    await control.approve(n);
    const two = await Promise.all([
      refundA(channel.a, n, aNumber('R'), '60.00'),
      refundA(channel.a, n, aNumber('R'), '60.00'),
    ]);
    expect(two.map((one) => one.status).sort()).toEqual([200, 422]);
    await control.waitUntilIdle();
    expect((await control.summary({ outTradeNos: [n] })).refunds.sums).toEqual({ CNY: 6000 });
  });

  test('waits for balance, is held, refused, abnormal or returned on demand', async () => {
    const tag = aNumber('t');
    const n = aNumber();
    await createA(channel.a, n, { subject: `a thing #${tag}` });
    await control.approve(n);
    const query = async (r: string) =>
      (await callA(channel.a, 'refund.query', { out_refund_no: r })).json;
    const match = { operation: 'refund' as const, tag };

    await control.addFault({ match, times: 2, do: { refund: 'not_enough_balance' } });
    const poor = aNumber('R');
    for (const code of ['BALANCE_NOT_ENOUGH', 'BALANCE_NOT_ENOUGH', undefined]) {
      expect((await refundA(channel.a, n, poor, '10.00')).json.sub_code).toBe(code);
    }
    await control.waitUntilIdle();
    expect((await query(poor)).refund_status).toBe('REFUND_SUCCESS');

    await control.addFault({ match, times: 1, do: { refund: 'hold' } });
    const held = aNumber('R');
    await refundA(channel.a, n, held, '10.00');
    await control.waitUntilIdle();
    expect((await query(held)).refund_status).toBe('REFUND_PROCESSING');
    await control.finishRefund({ outRefundNo: held, result: 'succeed' });
    await control.finishRefund({ outRefundNo: held, result: 'return' });
    expect((await query(held)).refund_status).toBe('REFUND_RETURNED');

    await control.addFault({ match, times: 1, do: { refund: 'refuse', code: 'USER_GONE' } });
    const refused = aNumber('R');
    expect((await refundA(channel.a, n, refused, '10.00')).json.sub_code).toBe('USER_GONE');
    expect(await query(refused)).toMatchObject({
      refund_status: 'REFUND_FAIL',
      fail_code: 'USER_GONE',
    });

    await control.addFault({ match, times: 1, do: { refund: 'abnormal', refundAfterMs: 0 } });
    const odd = aNumber('R');
    await refundA(channel.a, n, odd, '10.00');
    await until('abnormal', async () => (await query(odd)).refund_status === 'REFUND_ABNORMAL');
    await refundA(channel.a, n, odd, '10.00');
    await until('sent again', async () => (await query(odd)).refund_status === 'REFUND_SUCCESS');
    expect(await control.summary({ outTradeNos: [n] })).toMatchObject({
      refunds: { count: 3, sums: { CNY: 3000 } },
      returned: { count: 1, sums: { CNY: 1000 } },
      netMinor: { CNY: 8000 },
    });
  });
});

describe('a request', () => {
  test('without a good signature is refused and has no effect', async () => {
    const n = aNumber();
    const fields = {
      out_trade_no: n,
      total_amount: '1.00',
      currency: 'CNY',
      subject: 's',
      time_expire: new Date(Date.now() + 60_000).toISOString(),
    };
    const spoils: Parameters<typeof callA>[3][] = [
      { key: 'not the key' },
      { set: { sign_type: 'none' } },
      { set: { sign_type: 'MD5' } },
      { set: { sign: '' } },
      { drop: ['sign'] },
      { drop: ['sign_type'] },
      { set: { total_amount: '0.01' } },
    ];
    for (const spoil of spoils) {
      const answer = await callA(channel.a, 'trade.create', fields, spoil);
      expect([answer.status, answer.json.sub_code]).toEqual([401, 'INVALID_SIGNATURE']);
    }
    const old = { ...fields, timestamp: String(Math.floor(Date.now() / 1000) - 302) };
    expect((await callA(channel.a, 'trade.create', old)).status).toBe(401);
    const path = `/v3/pay/transactions/out-trade-no/${n}?mchid=mch-1`;
    for (const spoil of [
      { key: 'not the key' },
      { key: 'not the key', serial: serialOf(KEY_B) },
      { serial: '0123456789abcdef' },
      { timestamp: '1' },
    ]) {
      expect((await callB(channel.b, 'GET', path, undefined, spoil)).status).toBe(401);
    }
    expect((await control.summary({ outTradeNos: [n] })).trades).toBe(0);
  });

  test('signed with the previous key is still taken, and every answer is signed', async () => {
    const n = aNumber();
    const query = { out_trade_no: n };
    const a = await callA(channel.a, 'trade.query', query, { key: KEY_A_OLD });
    expect([a.status, a.json.sub_code, a.signed]).toEqual([404, 'TRADE_NOT_EXIST', true]);
    const path = `/v3/pay/transactions/out-trade-no/${n}?mchid=mch-1`;
    const b = await callB(channel.b, 'GET', path, undefined, { key: KEY_B_OLD });
    expect([b.status, b.json.code, b.signed]).toEqual([404, 'TRADE_NOT_EXIST', true]);
  });

  test('in GBK is verified over its bytes and read as the same text', async () => {
    const n = aNumber();
    const made = await callA(
      channel.a,
      'trade.create',
      {
        out_trade_no: n,
        total_amount: '1.00',
        currency: 'CNY',
        subject: '测试订单',
        time_expire: new Date(Date.now() + 60_000).toISOString(),
      },
      { charset: 'gbk' },
    );
    expect(made.status).toBe(200);
    expect((await control.trade(n)).subject).toBe('测试订单');
  });
});
