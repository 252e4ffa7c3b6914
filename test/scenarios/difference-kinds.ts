import { Saga } from '../support/saga';
import type { ChannelName, Report } from '../support/reconciliations';
import {
  daysAgo,
  ended,
  expectWhole,
  paidOn,
  reconcile,
  refundedOn,
  standing,
  zoneAtHour,
} from '../support/reconciliations';
import { waitFor } from '../support/wait';

interface Fixture {
  kind: string;
  what: string;
  /** Makes the day's bill, or our books, differ in this one thing. */
  inject(at: At): Promise<void>;
  /** How it stands at the end, when not in a case. */
  endsAs?: 'waiting' | 'case';
  reason?: string;
}

interface At {
  saga: Saga;
  channel: ChannelName;
  day: string;
  /** Two orders paid on the day. */
  one: { orderId: string; outTradeNo: string; tradeNo: string };
  two: { orderId: string; outTradeNo: string; tradeNo: string };
}

const bill = ({ channel, day }: At) => ({ dialect: channel, day });

const FIXTURES: readonly Fixture[] = [
  {
    kind: 'row_error',
    what: 'an amount that is no amount',
    inject: async (at) => {
      const row = { kind: 'payment', amountMinor: 1_000, cells: { amount: '12.3.4' } } as const;
      await at.saga.mock.addBillRow(bill(at), row);
      // With its sum stated there would be one more difference: we add up only what we can read.
      const totalsOff = { currency: 'CNY', payments: -1, paymentsMinor: -1_000, feesMinor: -6 };
      await at.saga.mock.spoilBill(bill(at), { totalsOff });
    },
  },
  {
    kind: 'unknown_row',
    what: 'a row of a type nobody knows',
    inject: async (at) => void (await at.saga.mock.addBillRow(bill(at), { kind: 'unknown' })),
  },
  {
    kind: 'adjustment',
    what: 'an entry made by hand',
    inject: async (at) => {
      await at.saga.mock.addBillRow(bill(at), { kind: 'adjustment', amountMinor: 500 });
    },
  },
  {
    kind: 'duplicate_row',
    what: 'one row twice',
    reason: 'repeated',
    inject: async (at) => {
      await at.saga.mock.duplicateBillRow(bill(at), { outTradeNo: at.one.outTradeNo });
    },
  },
  {
    kind: 'channel_only',
    what: 'a payment that no order of ours knows',
    inject: async (at) => void (await at.saga.mock.addBillRow(bill(at), { kind: 'payment' })),
  },
  {
    kind: 'ours_only',
    what: 'a payment that the bill leaves out',
    inject: async (at) => {
      await at.saga.mock.dropBillRow(bill(at), { outTradeNo: at.one.outTradeNo });
    },
  },
  {
    kind: 'amount',
    what: 'another amount, by one cent',
    inject: async (at) => {
      const match = { outTradeNo: at.one.outTradeNo };
      await at.saga.mock.changeBillRow(bill(at), match, { amountMinor: 10_001 });
    },
  },
  {
    kind: 'currency',
    what: 'another currency',
    inject: async (at) => {
      const match = { outTradeNo: at.one.outTradeNo };
      await at.saga.mock.changeBillRow(bill(at), match, { currency: 'USD' });
    },
  },
  {
    kind: 'status',
    what: 'a reversal that we have not heard of, nor does a query know it',
    reason: 'not_reversed_here',
    inject: async (at) => {
      const { outTradeNo, tradeNo: channelTradeNo } = at.one;
      const row = { kind: 'reversal', outTradeNo, channelTradeNo, amountMinor: 10_000 } as const;
      await at.saga.mock.addBillRow(bill(at), row);
    },
  },
  {
    kind: 'duplicate_payment',
    what: 'a second payment of one order that is on its way back',
    endsAs: 'waiting',
    reason: 'being_refunded',
    inject: async (at) => {
      const { saga, one } = at;
      await saga.mock.addFault({
        match: { operation: 'refund', outTradeNo: one.outTradeNo },
        do: { refund: 'hold' },
      });
      await saga.mock.capture({ outTradeNo: one.outTradeNo, at: `${at.day}T12:00:00Z` });
      await waitFor('the surplus is being refunded', async () => {
        const rows = await saga.rows(
          `select from refunds where order_id = $1::text and status = 'processing'`,
          one.orderId,
        );
        return rows.length === 1;
      });
      // Its refund is accepted today, by the channel's clock: not in this bill.
    },
  },
  {
    kind: 'refund_channel_only',
    what: 'a refund that we never made',
    inject: async (at) => {
      const { outTradeNo, tradeNo: channelTradeNo } = at.one;
      await at.saga.mock.addBillRow(bill(at), { kind: 'refund', outTradeNo, channelTradeNo });
    },
  },
  {
    kind: 'refund_ours_only',
    what: 'a refund that the bill leaves out',
    inject: async (at) => {
      const outRefundNo = await refunded(at);
      await at.saga.rows(
        `update refunds set first_sent_at = $2::timestamptz where out_refund_no = $1::text`,
        outRefundNo,
        `${at.day}T12:00:00Z`,
      );
      await at.saga.mock.dropBillRow(bill(at), { outRefundNo });
    },
  },
  {
    kind: 'refund_amount',
    what: 'a refund of another amount',
    inject: async (at) => {
      const outRefundNo = await refunded(at);
      await at.saga.mock.changeBillRow(bill(at), { outRefundNo }, { amountMinor: 2_999 });
    },
  },
  {
    kind: 'refund_status',
    what: 'a refund that the bill calls failed',
    reason: 'failed_there',
    inject: async (at) => {
      const outRefundNo = await refunded(at);
      await at.saga.mock.changeBillRow(bill(at), { outRefundNo }, { status: 'failed' });
    },
  },
  {
    kind: 'fee',
    what: 'a fee that is wrong by a cent',
    reason: 'wrong',
    inject: async (at) => {
      const match = { outTradeNo: at.one.outTradeNo };
      await at.saga.mock.changeBillRow(bill(at), match, { feeMinor: 61 });
    },
  },
  {
    kind: 'file_total',
    what: 'stated sums that are not those of the rows, by a cent',
    inject: async (at) => {
      await at.saga.mock.spoilBill(bill(at), { totalsOff: { currency: 'CNY', paymentsMinor: 1 } });
    },
  },
];

function refunded({ saga, day, one }: At): Promise<string> {
  return refundedOn(saga, day, one.orderId, 'R1', 3_000);
}

/** Far enough back that no schedule touches the dates, and each test has one of its own. */
const FIRST_DAY_BACK = 20;

/** One bill per kind of difference: found alone, the same each time, and put where it belongs. */
export function testsOfKinds(channel: ChannelName): void {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start({ timeZone: zoneAtHour(6), policy: { reconcileAskMs: 2_000 } });
  });
  afterAll(() => saga?.stop());

  it.each(FIXTURES.map((fixture, index) => ({ ...fixture, index })))(
    '$kind, $what: found alone, twice the same, and before a person once',
    async ({ index, kind, inject, endsAs = 'case', reason }) => {
      const day = daysAgo(saga, FIRST_DAY_BACK + index);
      const [one, two] = await Promise.all([
        paidOn(saga, channel, day, { subject: 'one' }),
        paidOn(saga, channel, day, { subject: 'two' }),
      ]);
      await inject({ saga, channel, day, one, two });

      const dry = await reconcile(saga, channel, day, { dryRun: true });
      expect(dry).toMatchObject({ status: 'done', dry_run: true, by_kind: { [kind]: 1 } });
      expect(dry.differences).toHaveLength(1);
      if (reason !== undefined) expect(dry.differences[0]).toMatchObject({ reason });
      expectWhole(dry);
      const again = await reconcile(saga, channel, day, { dryRun: true });
      expect(again).toEqual(dry);
      expect(await casesOf(dry)).toEqual([]);

      const real = await reconcile(saga, channel, day);
      expect(real).toMatchObject({ status: 'done', dry_run: false });
      expect(standing(real)).toEqual([`${kind} ${endsAs}`]);
      await reconcile(saga, channel, day);
      expect(await casesOf(real)).toHaveLength(endsAs === 'case' ? 1 : 0);
      expect((await saga.order(two.orderId)).status).toBe('paid');
      // A difference un-pays nobody.
      expect((await saga.order(one.orderId)).status).toBe('paid');
      expect(await ended(saga, channel, day)).toMatchObject({ status: 'done' });
    },
  );

  /** Open cases that name the day's difference. */
  function casesOf({ day, differences }: Report) {
    const [difference] = differences;
    return saga.rows(
      `select case_id, kind, summary from cases
       where status = 'open' and (subject_no like $1::text || '%'
         or order_id = $2::text or subject_no = $3::text or subject_no = $4::text)`,
      `bill:${day}`,
      difference?.order_id ?? '',
      difference?.subject ?? '',
      (difference?.channel_says?.['out_trade_no'] as string | undefined) ?? '',
    );
  }
}
