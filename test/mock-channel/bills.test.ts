import { createHash, createHmac } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { decode } from 'iconv-lite';
import type { BillKey } from '../../mock-channel/bill-types';
import { MockChannelControl } from '../../mock-channel/control-client';
import { startMockChannel, type MockChannel } from '../../mock-channel/server';

import {
  ACCOUNTS,
  KEY_A,
  KEY_B,
  aNumber,
  callA,
  callB,
  createA,
  createB,
  refundA,
  serialOf,
} from './merchant';

/*
 * Bills as a merchant sees them who knows PROTOCOL.md only: read here by splitting text, without the
 * adapters' code.
 */

const DAY_MS = 86_400_000;
const ZONE = 'Asia/Shanghai';
let channel: MockChannel;
let control: MockChannelControl;
let daysBack = 1;
let day: string;
const of = (dialect: BillKey['dialect']): BillKey => ({ dialect, day });

beforeAll(async () => {
  channel = await startMockChannel({ ...ACCOUNTS, settings: { refundAfterMs: 1, timeZone: ZONE } });
  control = new MockChannelControl(channel.control);
});
afterAll(() => channel.close());
beforeEach(async () => {
  daysBack += 2;
  day = new Date(Date.now() - daysBack * DAY_MS).toISOString().slice(0, 10);
  await clockAt(`${day}T04:00:00.000Z`);
});
afterEach(() => control.configure({ businessClockOffsetMs: 0, timeZone: ZONE }));

const clockAt = (instant: string) =>
  control.configure({ businessClockOffsetMs: Date.parse(instant) - Date.now() });

/** The mock-a bill as text, and its answer's headers. */
async function billA(wanted = day) {
  const all: Record<string, string> = {
    app_id: 'app-1',
    bill_date: wanted,
    method: 'bill.download',
    seller_id: 'seller-1',
    timestamp: String(Math.floor(Date.now() / 1000)),
  };
  const signed = Object.entries(all).map(([name, value]) => `${name}=${value}`);
  const sign = createHmac('sha256', KEY_A).update(signed.join('&')).digest('hex');
  const response = await fetch(`${channel.a}/gateway`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: [...signed, 'sign_type=HMAC-SHA256', `sign=${sign}`].join('&'),
  });
  const bytes = Buffer.from(await response.arrayBuffer());
  const charset = /charset=(.+)$/.exec(response.headers.get('content-type') ?? '')?.[1] ?? 'utf-8';
  return {
    status: response.status,
    headers: response.headers,
    bytes,
    text: decode(bytes, charset),
  };
}

async function billB(wanted = day) {
  const answer = await callB(
    channel.b,
    'GET',
    `/v3/bill/tradebill?mchid=mch-1&bill_date=${wanted}`,
  );
  if (answer.status !== 200) return { answer, packed: Buffer.alloc(0), text: '' };
  const path = String(answer.json.download_path);
  const response = await fetchSigned(path);
  const packed = Buffer.from(await response.arrayBuffer());
  return { answer, packed, text: packed.length === 0 ? '' : gunzipSync(packed).toString('utf8') };
}

async function fetchSigned(path: string): Promise<Response> {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac('sha256', KEY_B).update(`GET\n${path}\n${timestamp}\nn\n\n`);
  return fetch(channel.b + path, {
    headers: {
      authorization:
        `MOCKPAY-HMAC-SHA256 mchid="mch-1",serial="${serialOf(KEY_B)}",` +
        `timestamp="${timestamp}",nonce="n",signature="${signature.digest('hex')}"`,
    },
  });
}

const rowsOf = (text: string) =>
  text
    .trim()
    .split('\n')
    .map((line) => line.split(','));

describe('a bill', () => {
  test('of mock-a lists the day’s payments and refunds behind backticks, with fees and sums', async () => {
    const [n, yen, r] = [aNumber(), aNumber(), aNumber('R')];
    await createA(channel.a, n, { total_amount: '1234.56' });
    await createA(channel.a, yen, { total_amount: '2000', currency: 'JPY' });
    await control.approve(n);
    await control.approve(yen);
    await refundA(channel.a, n, r, '5.00');
    await control.waitUntilIdle();
    const trade = await control.trade(n);
    const { headers, text } = await billA();
    expect(headers.get('x-mock-a-bill-date')).toBe(day);
    const name = headers.get('x-mock-a-bill-name') ?? '';
    expect(headers.get('x-mock-a-sign')).toBe(
      createHmac('sha256', KEY_A).update(`seller-1\n${day}\nutf-8\n${name}\n`).digest('hex'),
    );
    const rows = rowsOf(text);
    expect(rows.flat().every((cell) => cell.startsWith('`'))).toBe(true);
    const bare = rows.map((row) => row.map((cell) => cell.slice(1)));
    expect(bare[0]).toEqual([
      '交易时间',
      '商户号',
      '交易类型',
      '平台订单号',
      '商户订单号',
      '平台退款单号',
      '商户退款单号',
      '币种',
      '金额',
      '手续费',
      '状态',
      '商品名称',
    ]);
    const time = expect.stringMatching(new RegExp(`^${day} 12:0\\d:\\d\\d$`)) as string;
    const theirs = trade.channelTradeNo;
    expect(bare[1]).toEqual(
      [
        time,
        'seller-1',
        'PAYMENT',
        theirs,
        n,
        '',
        '',
        'CNY',
        '1234.56',
        '7.41',
        'TRADE_SUCCESS',
      ].concat('a thing'),
    );
    expect(bare[2]?.slice(7, 11)).toEqual(['JPY', '2000', '12', 'TRADE_SUCCESS']);
    expect(bare[3]?.slice(2)).toEqual([
      'REFUND',
      theirs,
      n,
      trade.refunds[0]?.channelRefundNo,
      r,
      'CNY',
      '5.00',
      '-0.03',
      'REFUND_SUCCESS',
      'a thing',
    ]);
    expect(bare.slice(4)).toEqual([
      ['汇总币种', '收款笔数', '收款金额', '退款笔数', '退款金额', '手续费金额'],
      ['CNY', '1', '1234.56', '1', '5.00', '7.38'],
      ['JPY', '1', '2000', '0', '0', '12'],
    ]);
  });

  test('of mock-b is gzip in minor units, its hash and sums stated beside it', async () => {
    const n = aNumber();
    await createB(channel.b, n);
    await control.approve(n);
    await control.reverse({ outTradeNo: n, amountMinor: 500 });
    const { answer, packed, text } = await billB();
    expect(answer.signed).toBe(true);
    expect(answer.json).toMatchObject({
      mchid: 'mch-1',
      bill_date: day,
      hash_type: 'SHA256',
      hash_value: createHash('sha256').update(packed).digest('hex'),
      totals: [
        {
          currency: 'CNY',
          payments: 1,
          payments_amount: 10_000,
          refunds: 0,
          refunds_amount: 0,
          fees: 60,
        },
      ],
    });
    const rows = rowsOf(text);
    expect(rows).toHaveLength(3);
    expect(rows[1]?.[0]).toMatch(new RegExp(`^${day}T12:0\\d:\\d\\d\\+08:00$`));
    expect(rows[1]?.slice(2, 3)).toEqual(['PAY']);
    expect(rows[1]?.slice(7, 11)).toEqual(['CNY', '10000', '60', 'SUCCESS']);
    expect(rows[2]?.slice(2, 3)).toEqual(['REVERSAL']);
    expect(rows[2]?.slice(7, 11)).toEqual(['CNY', '500', '0', 'SUCCESS']);
  });

  test('belongs to the business date of the dialect’s zone, each its own', async () => {
    await control.configure({ timeZone: { 'mock-a': ZONE, 'mock-b': 'America/New_York' } });
    const [a, b] = [aNumber(), aNumber()];
    await createA(channel.a, a);
    await createB(channel.b, b);
    const at = `${day}T17:00:00.000Z`;
    await control.capture({ outTradeNo: a, at });
    await control.capture({ outTradeNo: b, at });
    const next = new Date(Date.parse(day) + DAY_MS).toISOString().slice(0, 10);
    expect((await billA(day)).text).not.toContain(a);
    expect((await billA(next)).text).toContain(a);
    expect((await billB(day)).text).toContain(b);
    expect((await billB(next)).text).not.toContain(b);
  });

  test('is dated by the business clock, which answers and callbacks show, and messages do not', async () => {
    const n = aNumber();
    await createA(channel.a, n);
    await control.approve(n);
    const answer = await callA(channel.a, 'trade.query', { out_trade_no: n });
    expect(String(answer.json.gmt_payment).slice(0, 13)).toBe(`${day}T04`);
    const record = (await control.books()).find(
      (one) => one.type === 'captured' && one.outTradeNo === n,
    );
    expect(record?.businessAt?.slice(0, 10)).toBe(day);
    expect(Date.now() - Date.parse(record?.at ?? '')).toBeLessThan(60_000);
  });

  test('is not there before its day is over, for so many questions, or until it is released', async () => {
    const today = new Date(Date.now() + 8 * 3_600_000).toISOString().slice(0, 10);
    expect((await billA(today)).status).toBe(404);
    await control.holdBill(of('mock-a'), { times: 2, code: 'No Bill Exist', status: 400 });
    for (let time = 0; time < 2; time += 1) {
      const { status, text } = await billA();
      expect([status, (JSON.parse(text) as { sub_code: string }).sub_code]).toEqual([
        400,
        'No Bill Exist',
      ]);
    }
    expect((await billA()).status).toBe(200);
    await control.holdBill(of('mock-b'));
    expect((await billB()).answer.json.code).toBe('NO_STATEMENT_EXIST');
    expect((await billB()).answer.status).toBe(404);
    await control.releaseBill(of('mock-b'));
    expect((await billB()).answer.status).toBe(200);
    await control.holdBill(of('mock-a'), { zeroBytes: true });
    expect(await billA()).toMatchObject({ status: 200, text: '' });
  });

  test('is the same file until the books or what was set change', async () => {
    const n = aNumber();
    await createB(channel.b, n);
    await control.approve(n);
    const first = await control.prepareBill(of('mock-b'));
    expect(await control.prepareBill(of('mock-b'))).toEqual(first);
    expect((await billB()).answer.json.hash_value).toBe(first.sha256);
    const made = (await control.books()).filter(
      (one) => one.type === 'bill_made' && one.day === day,
    );
    expect(made).toEqual([expect.objectContaining({ rows: 1, sha256: first.sha256 })]);
    await control.capture({ outTradeNo: n });
    expect((await control.prepareBill(of('mock-b'))).rows).toBe(2);
  });

  test('takes rows dropped, doubled, changed, added and put off to the next day', async () => {
    const numbers = [aNumber(), aNumber(), aNumber(), aNumber()];
    for (const n of numbers) {
      await createA(channel.a, n);
      await control.approve(n);
    }
    const [dropped = '', doubled = '', changed = '', later = ''] = numbers;
    await control.dropBillRow(of('mock-a'), { outTradeNo: dropped });
    await control.duplicateBillRow(of('mock-a'), { outTradeNo: doubled });
    await control.changeBillRow(
      of('mock-a'),
      { outTradeNo: changed },
      {
        amountMinor: 9_999,
        feeMinor: null,
        cells: { status: 'FROZEN' },
      },
    );
    await control.postponeBillRow(of('mock-a'), { outTradeNo: later });
    await control.addBillRow(of('mock-a'), { kind: 'suspense', amountMinor: 700 });
    const rows = rowsOf((await billA()).text).map((row) => row.map((cell) => cell.slice(1)));
    expect(rows.slice(1, -2).map((row) => [row[2], row[4], row[8], row[9], row[10]])).toEqual([
      ['PAYMENT', doubled, '100.00', '0.60', 'TRADE_SUCCESS'],
      ['PAYMENT', doubled, '100.00', '0.60', 'TRADE_SUCCESS'],
      ['PAYMENT', changed, '99.99', '', 'FROZEN'],
      ['SUSPENSE', '', '7.00', '0.00', 'TRADE_SUCCESS'],
    ]);
    expect(rows.at(-1)).toEqual(['CNY', '3', '299.99', '0', '0.00', '1.20']);
    const next = new Date(Date.parse(day) + DAY_MS).toISOString().slice(0, 10);
    expect(rowsOf((await billA(next)).text)[1]?.[4]).toBe(`\`${later}`);
    await control.resetBill(of('mock-a'));
    expect(rowsOf((await billA()).text)).toHaveLength(1 + 4 + 2);
  });

  test('lists a refund as processing while it is, as refunded after, and never a refused one', async () => {
    const n = aNumber();
    await createA(channel.a, n);
    await control.approve(n);
    const [waiting, refused] = [aNumber('R'), aNumber('R')];
    for (const [outRefundNo, refund] of [
      [waiting, 'hold'],
      [refused, 'refuse'],
    ] as const) {
      await control.addFault({ match: { operation: 'refund', outRefundNo }, do: { refund } });
      await refundA(channel.a, n, outRefundNo, '1.00');
    }
    const words = async () => rowsOf((await billA()).text).flatMap((row) => row[10] ?? []);
    expect(await words()).toEqual(['`状态', '`TRADE_SUCCESS', '`REFUND_PROCESSING']);
    await control.finishRefund({ outRefundNo: waiting, result: 'succeed' });
    expect(await words()).toEqual(['`状态', '`TRADE_SUCCESS', '`REFUND_SUCCESS']);
    await control.freezeBillRefunds(of('mock-a'));
    expect(await words()).toEqual(['`状态', '`TRADE_SUCCESS', '`REFUND_PROCESSING']);
  });

  test('has as many rows by formula as wanted', async () => {
    await control.generateBillRows({ ...of('mock-b'), count: 5_000, seed: 7 });
    const { rows, totals } = await control.prepareBill(of('mock-b'));
    expect(rows).toBe(5_000);
    const amounts = Array.from(
      { length: 5_000 },
      (_, i) => 100 + ((7 * 31 + i * 7_919) % 1_000_000),
    );
    expect(totals[0]?.paymentsMinor).toBe(amounts.reduce((sum, one) => sum + one, 0));
    const last = rowsOf((await billB()).text).at(-1);
    expect(last?.slice(3, 5)).toEqual([
      `${day.replaceAll('-', '')}77000000007000004999`,
      'GEN7X000004999',
    ]);
    expect(last?.[8]).toBe(String(amounts[4_999]));
  });

  test('is refused what no bill can be, by name', async () => {
    const wrong = (set: object) => control.setBill({ ...of('mock-a'), ...set });
    await expect(wrong({ file: { bomb: 1 } })).rejects.toThrow(/bomb/);
    await expect(wrong({ day: '2026-02-30' })).rejects.toThrow(/day/);
    await expect(control.configure({ timeZone: 'Mars/Olympus' })).rejects.toThrow(/time zone/);
    expect((await billA('2026-02-30')).status).toBe(400);
    expect((await billB('yesterday')).answer.status).toBe(400);
  });
});

test('bills leave no files behind when the channel closes', async () => {
  const billFolder = await mkdtemp(join(tmpdir(), 'mock-channel-test-'));
  const own = await startMockChannel({ ...ACCOUNTS, billFolder });
  try {
    await new MockChannelControl(own.control).prepareBill({ dialect: 'mock-a', day: '2026-01-01' });
    expect(await readdir(billFolder)).toHaveLength(1);
    await own.close();
    expect(await readdir(billFolder)).toEqual([]);
  } finally {
    await own.close();
    await rm(billFolder, { recursive: true });
  }
});
