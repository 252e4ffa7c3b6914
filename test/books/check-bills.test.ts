import { checkBooks } from '../../scripts/books/check';
import { lineOf } from '../../scripts/books/findings';
import { Saga } from '../support/saga';
import { daysAgo, paidOn, reconcile, zoneAtHour } from '../support/reconciliations';

describe('I9: what the books checker says of reconciled bills', () => {
  let saga: Saga;
  let lastDay = 20;
  beforeAll(async () => {
    saga = await Saga.start({ timeZone: zoneAtHour(6), policy: { reconcileAskMs: 1_000 } });
  });
  afterAll(async () => {
    saga?.final.skip('the invariant was broken on purpose');
    await saga?.stop();
  });

  async function violations(day: string): Promise<string[]> {
    const found = await checkBooks(saga.final.input());
    return found.violations
      .filter(({ invariant }) => invariant === 'I9')
      .map(lineOf)
      .filter((line) => line.includes(day));
  }

  async function aDay() {
    const day = daysAgo(saga, ++lastDay);
    const [one, two] = [await paidOn(saga, 'mock-b', day), await paidOn(saga, 'mock-b', day)];
    return { day, one, two, bill: { dialect: 'mock-b', day } as const };
  }

  /** Changes rows as nobody may. */
  async function force(sql: string, ...values: unknown[]): Promise<void> {
    const client = await saga.pool.connect();
    try {
      await client.query('set session_replication_role = replica');
      const { rowCount } = await client.query(sql, values);
      expect(rowCount).toBe(1);
    } finally {
      await client.query('reset session_replication_role');
      client.release();
    }
  }

  it('nothing, of a bill without faults and of one whose every fault was found', async () => {
    const { day, one, two, bill } = await aDay();
    await reconcile(saga, 'mock-b', day);
    expect(await violations(day)).toEqual([]);
    await saga.mock.changeBillRow(bill, { outTradeNo: one.outTradeNo }, { amountMinor: 9_999 });
    await saga.mock.dropBillRow(bill, { outTradeNo: two.outTradeNo });
    await saga.mock.addBillRow(bill, { kind: 'payment' });
    await saga.mock.addBillRow(bill, { kind: 'unknown' });
    await saga.mock.spoilBill(bill, { totalsOff: { currency: 'CNY', feesMinor: 1 } });
    const found = await reconcile(saga, 'mock-b', day);
    expect(found.by_kind).toEqual({
      amount: 1,
      channel_only: 1,
      file_total: 1,
      ours_only: 1,
      unknown_row: 1,
    });
    expect(await violations(day)).toEqual([]);
  });

  it('nothing, of what was paid after its bill, though another date has the same empty file later', async () => {
    const [day, other] = [daysAgo(saga, ++lastDay), daysAgo(saga, ++lastDay)];
    await reconcile(saga, 'mock-b', day);
    await paidOn(saga, 'mock-b', day);
    await reconcile(saga, 'mock-b', other);
    const made = (await saga.mock.books()).filter((record) => record.type === 'bill_made');
    const hashOf = (of: string) => made.find((bill) => bill.day === of)?.sha256;
    expect(hashOf(day)).toBe(hashOf(other));
    expect(await violations(day)).toEqual([]);
  });

  it('a fault that no difference tells, by its line', async () => {
    const { day, one, bill } = await aDay();
    await saga.mock.changeBillRow(bill, { outTradeNo: one.outTradeNo }, { feeMinor: 61 });
    await reconcile(saga, 'mock-b', day);
    await force(`delete from differences where business_date = $1::date`, day);
    expect(await violations(day)).toEqual([
      expect.stringMatching(/line \d+: is not what the books say, and no difference tells it$/),
    ]);
  });

  it('a difference about a row that is right', async () => {
    const { day, one } = await aDay();
    await reconcile(saga, 'mock-b', day);
    await force(
      `insert into differences (channel, business_date, kind, subject, status, bill_id, line_no)
       select 'mock-b', $1::date, 'amount', $2::text, 'open', b.bill_id, l.line_no
       from trade_bills b join trade_bill_lines l on l.bill_id = b.bill_id
       where b.business_date = $1::date and l.channel_trade_no = $2::text`,
      day,
      one.tradeNo,
    );
    expect(await violations(day)).toEqual([
      expect.stringContaining('is what the books say, and the difference amount (open) stands'),
    ]);
  });

  it('a capture that the file leaves out and the report does not tell', async () => {
    const { day, one, bill } = await aDay();
    await saga.mock.dropBillRow(bill, { outTradeNo: one.outTradeNo });
    await reconcile(saga, 'mock-b', day);
    expect(await violations(day)).toEqual([]);
    await force(`delete from differences where business_date = $1::date`, day);
    expect(await violations(day)).toEqual([
      expect.stringContaining(`capture mock-b/${one.tradeNo}: no bill has it`),
    ]);
  });

  it.each([
    ['ours_only', 'the file has it'],
    ['file_total', 'the sums that the file states are its own'],
  ])('a difference %s that is invented', async (kind, says) => {
    const { day, one } = await aDay();
    await reconcile(saga, 'mock-b', day);
    await force(
      `insert into differences (channel, business_date, kind, subject, status)
       values ('mock-b', $1::date, $2::text, $3::text, 'open')`,
      day,
      kind,
      kind === 'file_total' ? 'CNY' : one.tradeNo,
    );
    expect(await violations(day)).toEqual([expect.stringContaining(says)]);
  });
});
