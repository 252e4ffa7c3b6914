import { appendFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BookRecord } from '../../mock-channel/books';
import { readConfig } from '../../mock-channel/config';
import { MockChannelControl } from '../../mock-channel/control-client';
import { startMockChannel, type MockChannel } from '../../mock-channel/server';
import { ACCOUNTS, aNumber, callA, createA, createB, refundA, until } from './merchant';

let folder: string;
let booksPath: string;
let running: MockChannel | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mock-channel-'));
  booksPath = join(folder, 'books.jsonl');
});
afterEach(async () => {
  await running?.close();
  await rm(folder, { recursive: true });
});

async function start(refundAfterMs = 1) {
  running = await startMockChannel({ ...ACCOUNTS, booksPath, settings: { refundAfterMs } });
  return { channel: running, control: new MockChannelControl(running.control) };
}

const recordsInFile = async (): Promise<BookRecord[]> =>
  (await readFile(booksPath, 'utf8'))
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as BookRecord);

test('survive a restart: the same trades, refunds and figures, and numbers stay idempotent', async () => {
  const before = await start();
  const [paid, open, r] = [aNumber(), aNumber(), aNumber('R')];
  await createA(before.channel.a, paid);
  await createB(before.channel.b, open);
  await before.control.approve(paid);
  await refundA(before.channel.a, paid, r, '30.00');
  await before.control.waitUntilIdle();
  await before.control.reverse({ outTradeNo: paid, amountMinor: 500 });
  const trades = await before.control.trades();
  const summary = await before.control.summary();
  expect(summary.netMinor).toEqual({ CNY: 6500 });
  await before.channel.close();

  const after = await start();
  expect(await after.control.trades()).toEqual(trades);
  expect(await after.control.summary()).toEqual(summary);
  const again = await createA(after.channel.a, paid);
  expect(again.json.trade_no).toBe(trades[0]?.channelTradeNo);
  expect((await createA(after.channel.a, paid, { total_amount: '1.00' })).status).toBe(409);
  expect((await refundA(after.channel.a, paid, r, '30.00')).json.refund_status).toBe(
    'REFUND_SUCCESS',
  );
  await after.control.approve(open);
  const records = await recordsInFile();
  expect(records.map((record) => record.seq)).toEqual(records.map((_record, index) => index + 1));
});

test('hold what was done before the answer is sent, and sums agree with the records', async () => {
  const { channel, control } = await start();
  const numbers = [aNumber(), aNumber(), aNumber()];
  for (const n of numbers) {
    await createA(channel.a, n);
    expect(
      (await recordsInFile()).filter((one) => one.type === 'trade_created').at(-1),
    ).toMatchObject({ outTradeNo: n });
    await control.approve(n);
    await refundA(channel.a, n, aNumber('R'), '0.01');
  }
  await control.waitUntilIdle();
  const records = await recordsInFile();
  expect(await control.books()).toEqual(records);
  const sum = (type: 'captured' | 'refund_executed') =>
    records.reduce((total, one) => (one.type === type ? total + one.amountMinor : total), 0);
  const summary = await control.summary({ outTradeNos: numbers });
  expect(summary.captures.sums).toEqual({ CNY: sum('captured') });
  expect(summary.refunds.sums).toEqual({ CNY: sum('refund_executed') });
  expect(summary.netMinor).toEqual({ CNY: 29_997 });
});

test('execute after a restart the refunds that were accepted before it', async () => {
  const before = await start(60_000);
  const [n, r] = [aNumber(), aNumber('R')];
  await createA(before.channel.a, n);
  await before.control.approve(n);
  await refundA(before.channel.a, n, r, '30.00');
  await before.channel.close();
  const after = await start();
  await until('executed', async () => {
    const { json } = await callA(after.channel.a, 'refund.query', { out_refund_no: r });
    return json.refund_status === 'REFUND_SUCCESS';
  });
  expect((await after.control.summary()).refunds).toEqual({ count: 1, sums: { CNY: 3000 } });
});

test('drop a line torn by a crash, and refuse a file with a gap', async () => {
  const before = await start();
  await createA(before.channel.a, aNumber());
  await before.channel.close();
  const whole = await recordsInFile();
  await appendFile(booksPath, '{"seq":3,"at":"2026-');
  const after = await start();
  expect(await after.control.books()).toEqual(whole);
  await after.channel.close();
  await appendFile(booksPath, '{"seq":99,"type":"trade_moved"}\n');
  await expect(start()).rejects.toThrow(/out of sequence/);
});

test('configuration names all its faults at once and binds control to loopback', () => {
  expect(() => readConfig({ MOCK_CHANNEL_A_PORT: 'x', MOCK_B_KEY: 'short' })).toThrow(
    /MOCK_CHANNEL_A_PORT[\s\S]*MOCK_A_KEY[\s\S]*MOCK_B_KEY/,
  );
  const options = readConfig({
    MOCK_A_KEY: 'long enough a',
    MOCK_B_KEY: 'long enough b',
    MOCK_CHANNEL_HOST: '0.0.0.0',
    MOCK_A_CALLBACK_URLS: 'http://127.0.0.1:1/a, http://127.0.0.1:2/a',
  });
  expect(options.controlHost).toBe('127.0.0.1');
  expect(options.settings?.callbackUrls?.['mock-a']).toEqual([
    'http://127.0.0.1:1/a',
    'http://127.0.0.1:2/a',
  ]);
});
