import type { BillFileDefects } from '../../mock-channel/bill-types';
import { Saga } from '../support/saga';
import type { ChannelName } from '../support/reconciliations';
import {
  billCases,
  CHANNELS,
  daysAgo,
  expectWhole,
  paidOn,
  reconcile,
  standing,
  zoneAtHour,
} from '../support/reconciliations';

/** What a bill may look like: read exactly, or refused by name; nothing is ever invented. */
describe('files of trade bills, end to end', () => {
  let saga: Saga;
  let lastDay = 20;
  beforeAll(async () => {
    saga = await Saga.start({ timeZone: zoneAtHour(6), policy: { reconcileAskMs: 1_000 } });
  });
  afterAll(() => saga?.stop());

  const aDay = () => daysAgo(saga, ++lastDay);

  /** A bill of so many payments of 9.90, changed as said. */
  async function aBill(channel: ChannelName, file: BillFileDefects, payments = 2) {
    const day = aDay();
    const orders = await Promise.all(
      Array.from({ length: payments }, () => paidOn(saga, channel, day, { amount: 990 })),
    );
    await saga.mock.spoilBill({ dialect: channel, day }, file);
    return { day, orders };
  }

  describe('B89: byte-order marks and line ends', () => {
    it.each(
      CHANNELS.flatMap((channel) =>
        (
          [
            ['a UTF-8 mark', { bom: true }],
            ['a mark and CRLF', { bom: true, lineEnd: 'crlf' }],
            ['LF', { lineEnd: 'lf' }],
            ['CRLF and no final newline', { lineEnd: 'crlf', finalNewline: false }],
            ['LF and no final newline', { lineEnd: 'lf', finalNewline: false }],
          ] as [string, BillFileDefects][]
        ).map(([what, file]) => ({ channel, what, file })),
      ),
    )('B89: $channel with $what has 0 differences', async ({ channel, file }) => {
      const { day } = await aBill(channel, file);
      const found = await reconcile(saga, channel, day);
      expect(found).toMatchObject({ status: 'done', bill: { rows: 2, row_errors: 0 } });
      expect(found.differences).toEqual([]);
    });

    it.each(CHANNELS)('B89: UTF-16 from %s is read or refused by name', async (channel) => {
      const { day } = await aBill(channel, { charset: 'utf-16le' });
      const found = await reconcile(saga, channel, day);
      expect(['done', 'rejected']).toContain(found.status);
      expect(found.differences).toEqual([]);
      if (found.status === 'rejected') {
        expect(found.rejected).toMatchObject({ fault: 'wrong_encoding' });
        expect(await billCases(saga, channel, day)).toHaveLength(1);
      } else {
        expect(found.bill).toMatchObject({ rows: 2, row_errors: 0 });
      }
    });
  });

  describe('B91: thousands separators', () => {
    /** Text of the amount cell, and what it is in minor units; null: nobody can say. */
    const AMOUNTS: [string, number | null][] = [
      ['25,000.00', 2_500_000],
      ['25,000', 2_500_000],
      ['1.234,56', null],
      ['￥1,234.56', 123_456],
      ['1 234.56', null],
      [' 10.00 ', 1_000],
      ['１０.００', 1_000],
    ];

    it.each(AMOUNTS)('B91: mock-a says %j', async (text, exact) => {
      const { day, orders } = await aBill('mock-a', {}, 1);
      const [one] = orders;
      await saga.mock.setBill({
        dialect: 'mock-a',
        day,
        extraRows: [{ kind: 'payment', amountMinor: exact ?? 5, cells: { amount: text } }],
      });
      const found = await reconcile(saga, 'mock-a', day, { dryRun: true });
      expect(found).toMatchObject({ status: 'done', bill: { rows: 2 } });
      const odd = found.differences.find(({ subject }) => subject !== one?.tradeNo);
      const payment = found.differences.find(({ kind }) => kind === 'channel_only');
      const error = found.differences.find(({ kind }) => kind === 'row_error');
      if (payment) {
        // Read: then to the exact amount, never to a part of it.
        expect(payment.channel_says).toMatchObject({ amount_minor: exact });
        expect(found.bill?.row_errors).toBe(0);
      } else {
        expect(error).toMatchObject({ line_no: expect.any(Number) });
        expect(error?.channel_says?.['error']).toContain(text.trim());
        expect(found.bill?.row_errors).toBe(1);
      }
      expect(odd).toBeDefined();
      expect(found.differences.map(({ kind }) => kind)).not.toContain('ours_only');
      expectWhole(found);
    });

    it.each([['25,000.00'], ['9.90'], ['￥10'], ['1e3']])(
      'B91: mock-b, whose amounts are whole numbers, says %j: a row error with its line',
      async (text) => {
        const { day } = await aBill('mock-b', {}, 1);
        const row = { kind: 'payment', amountMinor: 5, cells: { amount: text } } as const;
        await saga.mock.addBillRow({ dialect: 'mock-b', day }, row);
        const found = await reconcile(saga, 'mock-b', day, { dryRun: true });
        expect(found).toMatchObject({ status: 'done', bill: { rows: 2, row_errors: 1 } });
        expect(found.differences.find(({ kind }) => kind === 'row_error')).toMatchObject({
          line_no: expect.any(Number),
        });
        expectWhole(found);
      },
    );
  });

  describe('B92: backticks, other columns, summary lines', () => {
    it.each(
      CHANNELS.flatMap((channel) =>
        (
          [
            ['backticks', { backticks: true }],
            ['no backticks', { backticks: false }],
            ['columns added in front', { addColumns: ['门店', 'Extra'] }],
            ['columns backwards', { reverseColumns: true }],
            ['no subject column', { dropColumns: ['subject'] }],
          ] as [string, BillFileDefects][]
        ).map(([what, file]) => ({ channel, what, file })),
      ),
    )('B92: $channel with $what: 4 transactions, 0 phantom rows', async ({ channel, file }) => {
      const { day } = await aBill(channel, file, 4);
      const found = await reconcile(saga, channel, day);
      expect(found).toMatchObject({ status: 'done', bill: { rows: 4, row_errors: 0 } });
      expect(found.differences).toEqual([]);
      expect(found.totals).toMatchObject([{ matched: { rows: 4, net_minor: 3_960 } }]);
    });

    it.each(CHANNELS)(
      'B92: %s without the column of amounts is refused by name',
      async (channel) => {
        const { day } = await aBill(channel, { dropColumns: ['amount'] }, 4);
        const found = await reconcile(saga, channel, day);
        expect(found).toMatchObject({ status: 'rejected', rejected: { fault: 'wrong_columns' } });
        expect(found.differences).toEqual([]);
      },
    );

    it.each(CHANNELS)(
      'B92: %s states a sum wrong by 0.01: 1 difference "file total"',
      async (channel) => {
        const { day } = await aBill(
          channel,
          { totalsOff: { currency: 'CNY', paymentsMinor: 1 } },
          4,
        );
        const found = await reconcile(saga, channel, day);
        expect(standing(found)).toEqual(['file_total case']);
        expect(await billCases(saga, channel, day)).toHaveLength(1);
      },
    );
  });

  describe('B94: an empty statement', () => {
    it.each(CHANNELS.flatMap((channel) => [0, 3].map((orders) => ({ channel, orders }))))(
      'B94: header and zero summary from $channel, with $orders orders of ours',
      async ({ channel, orders }) => {
        const { day } = await aBill(channel, { empty: true }, orders);
        const found = await reconcile(saga, channel, day);
        expect(found).toMatchObject({ status: 'done', bill: { rows: 0 } });
        expect(standing(found)).toEqual(Array(orders).fill('ours_only case'));
      },
    );

    it('B94: a header only, from the channel that states no sums in its file', async () => {
      const { day } = await aBill('mock-b', { headerOnly: true }, 3);
      const found = await reconcile(saga, 'mock-b', day);
      // Where sums are stated elsewhere, a header alone is an empty file or one cut off: never guessed.
      expect(['done', 'rejected']).toContain(found.status);
      const ours = standing(found).filter((line) => line.startsWith('ours_only'));
      expect(ours).toHaveLength(found.status === 'done' ? 3 : 0);
    });

    it.each(CHANNELS)(
      'B94: zero bytes from %s are "not ready", not an empty day',
      async (channel) => {
        const { day } = await aBill(channel, {}, 1);
        await saga.mock.holdBill({ dialect: channel, day }, { zeroBytes: true });
        // Its deadline is long past: not ready ends as "no bill", and a person is told.
        const found = await reconcile(saga, channel, day);
        expect(found).toMatchObject({ status: 'no_bill', differences: [] });
        expect((await billCases(saga, channel, day)).map((k) => k.subject_no)).toEqual([
          `bill:${day}:missing`,
        ]);
        await saga.mock.releaseBill({ dialect: channel, day });
        expect(await reconcile(saga, channel, day)).toMatchObject({
          status: 'done',
          differences: [],
        });
      },
    );
  });

  describe('bad files: a clear word, a case, and nothing compared', () => {
    it.each(
      CHANNELS.flatMap((channel) =>
        (
          [
            ['wrong_hash', { wrongHash: true }],
            ['cut_off', { cutOff: { share: 0.6, how: 'whole' } }],
            ['wrong_columns', { renameColumns: { amount: 'Betrag' } }],
            ['wrong_encoding', { brokenByte: true }],
            ['wrong_day', { sayDay: '2020-01-01' }],
            ['unreadable', { notPacked: true }],
          ] as [string, BillFileDefects][]
        )
          .filter(
            ([fault]) => channel === 'mock-b' || !['wrong_hash', 'unreadable'].includes(fault),
          )
          .map(([fault, file]) => ({ channel, fault, file })),
      ),
    )('a bill of $channel that is $fault', async ({ channel, fault, file }) => {
      const { day } = await aBill(channel, file, 3);
      const found = await reconcile(saga, channel, day);
      expect(found).toMatchObject({ status: 'rejected', bill: null, rejected: { fault } });
      expect(found.differences).toEqual([]);
      const lines = await saga.rows(
        `select from trade_bills where business_date = $1::date and status = 'loaded'`,
        day,
      );
      expect(lines).toEqual([]);
      const [only, ...rest] = await billCases(saga, channel, day);
      expect(only).toMatchObject({ subject_no: `bill:${day}:rejected`, status: 'open' });
      expect(only?.summary).toContain(fault);
      expect(rest).toEqual([]);

      // The channel gives a right one later: it is compared, and the case hears of it.
      await saga.mock.resetBill({ dialect: channel, day });
      expect(await reconcile(saga, channel, day)).toMatchObject({
        status: 'done',
        differences: [],
      });
      const [after] = await billCases(saga, channel, day);
      expect(after?.evidence).toHaveLength(2);
    });

    it('a connection lost in the middle is no bad file: it is fetched again', async () => {
      const cutOff = { share: 0.5, how: 'connection', times: 2 } as const;
      const { day } = await aBill('mock-b', { cutOff }, 3);
      const found = await reconcile(saga, 'mock-b', day);
      expect(found).toMatchObject({ status: 'done', differences: [] });
      const { file } = await saga.mock.bill({ dialect: 'mock-b', day });
      expect(file.cutOff).toBeUndefined();
      expect(await billCases(saga, 'mock-b', day)).toEqual([]);
    });

    it('a zip bomb ends at the configured size, and is too_big', async () => {
      await saga.configureChannels({ reconcileAskMs: 1_000, tradeBillMaxBytes: 5_000_000 });
      const { day } = await aBill('mock-b', { bombBytes: 50_000_000 }, 1);
      const found = await reconcile(saga, 'mock-b', day);
      expect(found).toMatchObject({ status: 'rejected', rejected: { fault: 'too_big' } });
      expect(found.differences).toEqual([]);
      await saga.configureChannels({ reconcileAskMs: 1_000 });
    });
  });
});
