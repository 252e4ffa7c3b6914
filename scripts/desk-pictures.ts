import { Desks } from '../test/support/desk';
import { Operators } from '../test/support/operators';
import { begin, daysAgo, ended, paidOn } from '../test/support/reconciliations';
import { BILL_DEFECTS } from '../test/support/bill-defects';
import type { Saga } from '../test/support/saga';
import { waitFor } from '../test/support/wait';

/** A shop's day at the desk: what a picture of each page shows, by its name. */
export interface DeskScene {
  desks: Desks;
  /** Addresses below the desk's own. */
  paths: Readonly<Record<string, string>>;
}

const SUBJECTS = [
  'Two oak chairs',
  'A lamp',
  'Six glasses',
  'A carpet',
  'Tea for a year',
  'A clock',
];
const AMOUNTS = [24_900, 8_950, 3_600, 59_000, 12_000, 17_500];

/** Orders in every state, a decision that waits for a second person, a dead letter, a bill that differs. */
export async function setDeskScene(saga: Saga): Promise<DeskScene> {
  const ops = await Operators.of(saga);
  const paid: string[] = [];
  for (const [i, subject] of SUBJECTS.entries()) {
    paid.push((await saga.paidOrder({ subject, amount: AMOUNTS[i]! })).orderId);
  }
  await saga.refund(paid[2]!, 'R1', 1_200);
  await saga.untilRefund(paid[2]!, 'R1', 'succeeded');
  await saga.createOrder({ subject: 'A bench, not paid yet', amount: 18_000 });

  const { orderId, captureId, held } = await ops.mismatch(150_000, {
    subject: 'A table for twelve',
    amount: 200_000,
  });
  const waiting = await ops.act(orderId, {
    ...{ kind: 'accept_money', ...held.named, capture_id: captureId },
    reason: 'agreed with the shop by telephone',
  });
  await ops.mismatch(3_000, { subject: 'A vase', amount: 3_500 });

  saga.merchant.answer = () => 503;
  const untold = await saga.paidOrder({ subject: 'A mirror', amount: 7_700 });
  const letter = await waitFor('a dead letter', async () => {
    const [row] = await saga.rows<{ id: string; status: string }>(
      `select notification_id::text as id, status from notifications where order_id = $1::text`,
      untold.orderId,
    );
    return row?.status === 'dead' && row.id;
  });
  saga.merchant.answer = () => 200;

  const day = daysAgo(saga, 2);
  for (let i = 0; i < 3; i++) await paidOn(saga, 'mock-a', day);
  const off = await paidOn(saga, 'mock-a', day);
  const bill = { dialect: 'mock-a' as const, day };
  await BILL_DEFECTS.fee(saga.mock, bill, {
    ...{ outTradeNo: off.outTradeNo, channelTradeNo: off.tradeNo, amountMinor: 10_000 },
  });
  await saga.mock.addBillRow(bill, { kind: 'payment', amountMinor: 4_200 });
  await begin(saga, 'mock-a', day);
  await ended(saga, 'mock-a', day);

  return {
    desks: await Desks.of(saga, ops),
    paths: {
      today: '',
      cases: '/cases',
      case: `/cases/${held.case_id}`,
      acts: '/acts',
      act: `/acts/${waiting.body.act_no}`,
      search: '/search?status=paid',
      order: `/orders/${saga.merchantId}/${paid[2]}`,
      timeline: `/orders/${saga.merchantId}/${paid[2]}#timeline`,
      'order-in-review': `/orders/${saga.merchantId}/${orderId}`,
      calendar: `/reconciliation?month=${day.slice(0, 7)}`,
      day: `/reconciliation/${day}`,
      'dead-letters': '/dead-letters',
      letter: `/dead-letters/${letter}`,
      stuck: '/stuck',
    },
  };
}
