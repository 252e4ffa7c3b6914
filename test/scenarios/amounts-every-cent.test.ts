import { parseJsonObject } from '../../api/json-body';
import { newOrderSchema } from '../../api/schemas';
import { createMockA } from '../../channels/mock-a';
import { createMockB } from '../../channels/mock-b';
import type { HttpClient } from '../../channels/http-client';
import { createHttpDownload } from '../../channels/http-download';
import { createPool } from '../../db/transaction';
import type { Pool } from '../../db/transaction';
import { dialectA } from '../../mock-channel/dialect-a';
import { dialectB } from '../../mock-channel/dialect-b';
import type { Trade } from '../../mock-channel/ledger';
import { imaginedCapture, noticeFor } from '../../mock-channel/notices';
import type { NewTrade } from '../../mock-channel/trade-desk';
import { anAccount, aRow } from '../channels/mock-callback-writer';
import type { MockDialect } from '../channels/mock-callback-writer';
import { createTestDatabase } from '../support/database';
import type { TestDatabase } from '../support/database';
import { insertMerchantAndChannels } from '../support/rows';

/** From one to 10,000; all of them in the full run, and always those that end in 9 and 99. */
const EVERY_AMOUNT = Array.from({ length: 10_000 }, (_, index) => index + 1).filter(
  (amount) => process.env['FULL'] || amount <= 100 || amount % 10 === 9,
);
/** Seconds on an idle machine; beside other suites as long as they let it. */
const BOUND_MS = 120_000;
const CHANNEL_TRADE_NO = '4200000000000000000000000001';

/** One channel in both halves: our adapter, and the mock's own reading and writing at the far end. */
function bothEnds(dialect: MockDialect) {
  const account = anAccount(dialect);
  const format = dialect === 'mock-a' ? dialectA : dialectB;
  const create = dialect === 'mock-a' ? createMockA : createMockB;
  const received: NewTrade[] = [];
  const http: HttpClient = async ({ method, url, headers, body }) => {
    const { pathname, search } = new URL(url);
    const request = { method, path: pathname + search, headers, body };
    const reading = format.readRequest(account, request, new Date());
    if (!reading.ok || reading.call.operation !== 'create') {
      return { result: 'unknown', reason: JSON.stringify(reading), trouble: false };
    }
    received.push(reading.call.order);
    const { trade, capture } = paid(reading.call.order);
    const content = format.tradeContent(account, trade, capture);
    const answer = format.signAnswer(account, Buffer.from(format.answerText(content)));
    return { result: 'answer', status: 200, headers: answer.headers, body: answer.body };
  };
  const secrets = { current: account.keys.current };
  const download = createHttpDownload();
  const channel = create(aRow(account), secrets, { http, download, now: () => new Date() });

  return async function amountsOf(amountMinor: number) {
    received.length = 0;
    const answer = await channel.createPayment({
      outTradeNo: 'OUT0000000000000000000000001',
      amountMinor,
      currency: 'CNY',
      subject: 'Every cent',
      expiresAt: new Date(Date.now() + 60_000).toISOString(),
      method: null,
      returnUrl: null,
      clientIp: null,
      payer: null,
    });
    const [order] = received;
    if (!order) return { answer };
    const news = { kind: 'payment' as const, ...paid(order) };
    const notice = noticeFor(format, account, news, 'notice-1');
    const { body, headers } = format.buildCallback(account, notice, {}, new Date());
    const callback = channel.readCallback(body, headers, new Date());
    return {
      request: order.amountMinor,
      answer: answer.outcome === 'answered' ? answer.fact.amountMinor : answer,
      callback: callback.ok ? callback.fact.amountMinor : callback,
    };
  };
}

/** The trade as it stands once its payer has paid. */
function paid(order: NewTrade) {
  const { amountMinor, currency } = order;
  const capture = imaginedCapture(CHANNEL_TRADE_NO, amountMinor, currency);
  const trade: Trade = {
    ...order,
    channelTradeNo: CHANNEL_TRADE_NO,
    status: 'open',
    createdAt: new Date().toISOString(),
    captures: [capture],
    refunds: [],
  };
  return { trade, capture };
}

describe('every amount from 0.01 to 100.00', () => {
  let database: TestDatabase;
  let pool: Pool;
  beforeAll(async () => {
    database = await createTestDatabase();
    pool = createPool({
      databaseUrl: database.url,
      max: 1,
      connectionTimeoutMs: 5_000,
      statementTimeoutMs: 60_000,
      applicationName: 'test',
      onIdleError: () => undefined,
    });
    await insertMerchantAndChannels(pool);
  });
  afterAll(async () => {
    await pool?.end();
    await database?.drop();
  });

  it(`B43: ${EVERY_AMOUNT.length} amounts are taken by the API as they were written`, () => {
    const schema = newOrderSchema(60);
    const mismatches = EVERY_AMOUNT.filter((amount) => {
      const body = `{"order_id":"o","amount":${amount},"currency":"CNY","subject":"s"}`;
      return schema.parse(parseJsonObject(Buffer.from(body))).amount !== amount;
    });
    expect(mismatches).toEqual([]);
  });

  it.each(['mock-a', 'mock-b'] as const)(
    `B43: ${EVERY_AMOUNT.length} amounts go to %s, come back in its answer and in its callback, unchanged`,
    async (dialect) => {
      const amountsOf = bothEnds(dialect);
      const mismatches: unknown[] = [];
      for (const amount of EVERY_AMOUNT) {
        const seen = await amountsOf(amount);
        const isSame =
          seen.request === amount && seen.answer === amount && seen.callback === amount;
        if (!isSame) mismatches.push({ amount, seen });
      }
      expect(mismatches).toEqual([]);
    },
    BOUND_MS,
  );

  it('B43: 10,000 amounts pass the money columns of order, attempt and capture unchanged', async () => {
    await pool.query(
      `insert into orders (merchant_id, order_id, amount_minor, currency, subject, expires_at)
       select 'shop', 'cents-' || amount, amount, 'CNY', 's', now() + interval '1 hour'
       from unnest($1::bigint[]) amount`,
      [EVERY_AMOUNT],
    );
    await pool.query(
      `insert into pay_records (merchant_id, order_id, channel, request_no, out_trade_no,
         amount_minor, currency)
       select merchant_id, order_id, 'ch-a', 'K1', 'OUT' || amount_minor, amount_minor, currency
       from orders`,
    );
    await pool.query(
      `insert into captures (channel, channel_trade_no, merchant_id, order_id, pay_record_id,
         amount_minor, currency, kind, settles, learnt_from)
       select channel, out_trade_no, merchant_id, order_id, pay_record_id, amount_minor, currency,
         'settling', true, 'callback'
       from pay_records`,
    );
    const { rows } = await pool.query<{ order_id: string; amounts: number[] }>(
      `select o.order_id, array[o.amount_minor, r.amount_minor, c.amount_minor]::int[] as amounts
       from orders o join pay_records r using (merchant_id, order_id)
         join captures c using (merchant_id, order_id)
       order by o.amount_minor`,
    );
    expect(rows).toEqual(
      EVERY_AMOUNT.map((amount) => ({
        order_id: `cents-${amount}`,
        amounts: [amount, amount, amount],
      })),
    );
  });
});
