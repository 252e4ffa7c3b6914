import { expectAlwaysTrue } from '../support/figures';
import { Operators } from '../support/operators';
import {
  daysAgo,
  instantOf,
  paidOn,
  reconcile,
  standing,
  zoneAtHour,
} from '../support/reconciliations';
import { Saga } from '../support/saga';

const CHANNEL = 'mock-a';

describe('money of an order that only the channel has, by its trade bill', () => {
  let saga: Saga;
  let ops: Operators;
  beforeAll(async () => {
    saga = await Saga.start({ timeZone: zoneAtHour(6), policy: { reconcileAskMs: 500 } });
    ops = await Operators.of(saga);
  });
  afterAll(() => saga?.stop());

  /** The bill names one more payment of 50.00 for the order; asked about it, the channel knows none. */
  const inBill = (day: string, outTradeNo: string) =>
    saga.mock.addBillRow(
      { dialect: CHANNEL, day },
      { kind: 'payment', outTradeNo, amountMinor: 5_000 },
    );

  it('is closed by two persons’ evidence, once, as an orphan’s is', async () => {
    const day = daysAgo(saga, 2);
    const { orderId, outTradeNo } = await paidOn(saga, CHANNEL, day);
    await inBill(day, outTradeNo);
    expect(standing(await reconcile(saga, CHANNEL, day))).toEqual(['duplicate_payment case']);

    expect(await ops.decide(orderId, { kind: 'close_case' })).toMatchObject({
      status: 422,
      body: { code: 'evidence_missing' },
    });
    const evidence = 'the channel gave it back itself: its letter of 12 May';
    const first = await ops.decide(orderId, { kind: 'close_case', evidence });
    expect(first).toMatchObject({ status: 202, body: { status: 'waiting_second' } });
    expect(await ops.caseStatus(orderId)).toEqual(['open']);
    expect(await ops.confirm(first.body.act_no)).toMatchObject({ status: 201 });
    expect(await ops.caseStatus(orderId)).toEqual(['closed']);
    const [row] = await saga.rows<{ settled: number[] }>(
      `select decision->'settled_differences' as settled from cases where order_id = $1::text`,
      orderId,
    );
    expect(row!.settled).toHaveLength(1);
    await expectAlwaysTrue(saga, orderId);
  });

  it('keeps the case open when the money that is here has gone back', async () => {
    const day = daysAgo(saga, 3);
    const { orderId, outTradeNo } = await paidOn(saga, CHANNEL, day);
    await saga.mock.addFault({
      match: { operation: 'refund', outTradeNo },
      times: 1,
      do: { refund: 'refuse' },
    });
    await saga.mock.capture({ outTradeNo, at: instantOf(saga, day) });
    const held = await ops.openCase(orderId);
    const surplus = held.captures.find((c: { held: number }) => c.held > 0);
    await inBill(day, outTradeNo);
    const stands = standing(await reconcile(saga, CHANNEL, day));
    expect(stands).toEqual(['duplicate_payment case', 'duplicate_payment case']);

    const giveBack = { kind: 'refund_money', capture_id: surplus.capture_id };
    const given = await ops.decide(orderId, giveBack);
    expect(given).toMatchObject({ status: 201, body: { result: { case_status: 'open' } } });
    await saga.untilRefund(orderId, given.body.result.refund_nos[0], 'succeeded');
    await expectAlwaysTrue(saga, orderId);
    expect(await ops.caseStatus(orderId)).toEqual(['open']);
    expect(await ops.decide(orderId, { kind: 'close_case' })).toMatchObject({
      status: 422,
      body: { code: 'evidence_missing' },
    });
  });
});
