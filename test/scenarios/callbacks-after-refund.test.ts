import { ageOrder } from '../support/age-order';
import { inbox, untilDelivered, WORDS } from '../support/callback-waits';
import { watchCommits } from '../support/commit-watch';
import { expectAlwaysTrue, figuresOf, money } from '../support/figures';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';
import { refundWorkflowId } from '../../workflows/ids';

const PAID_MOVES = ['null>created', 'created>paying', 'paying>paid'];
/** Moves of the order's own status, without those of what is refunded. */
const ownMoves = (moves: string[]) => moves.filter((move) => !move.includes('refund:'));

/** 100.00 taken, all of it given back, told once. */
const REFUNDED = {
  status: 'paid',
  cap: money(1, 10_000),
  ref: money(1, 10_000),
  settling: 1,
  evt: 1,
  review: 0,
};

/** Paid and said to be not refunded, while nothing of its captures is left. */
const PAID_WITH_NOTHING_LEFT = `o.status = 'paid' and o.refund_status <> 'full' and (
  select sum(c.amount_minor - c.refunded_minor - c.reversed_minor) from captures c
  where c.merchant_id = o.merchant_id and c.order_id = o.order_id) = 0`;

describe('callbacks about an order whose money went back', () => {
  let saga: Saga;
  beforeAll(async () => {
    // A refund that is not told of is asked about late: its callback comes first.
    saga = await Saga.start({ policy: { refundLadderMs: [60_000] } });
  });
  afterAll(() => saga?.stop());

  async function refundedOrder(channel: 'mock-a' | 'mock-b', amount?: number) {
    const { orderId, outTradeNo } = await saga.paidOrder({}, channel);
    expect((await saga.refund(orderId, 'R1', amount)).status).toBe(201);
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await saga.untilSettled(orderId);
    await untilRunEnded(orderId);
    return { orderId, outTradeNo };
  }

  /** The order's run and its refund's: the refund's last word may wake the order once more. */
  async function untilRunEnded(orderId: string) {
    const ref = { merchantId: saga.merchantId, orderId };
    await saga.client.workflow.getHandle(refundWorkflowId(ref, 'R1')).result();
    return waitFor(`the run of ${orderId} has ended`, async () => {
      const { status } = await saga.handle(orderId).describe();
      return status.name === 'COMPLETED';
    });
  }

  it.each(['mock-a', 'mock-b'] as const)(
    'B27: "paid" again after a full refund at %s, as sent before or two days later, changes nothing',
    async (channel) => {
      const { orderId, outTradeNo } = await refundedOrder(channel);
      const before = await saga.order(orderId);
      expect(before).toMatchObject({ status: 'paid', refund_status: 'full' });
      const { runId } = await saga.handle(orderId).describe();

      const [first] = await untilDelivered(saga, outTradeNo);
      const resent = await saga.mock.replayCallback({ deliveryId: first?.deliveryId ?? '' });
      await ageOrder(saga, orderId, '2 days');
      const later = await saga.mock.sendCallback({
        outTradeNo,
        word: WORDS[channel].paid,
        notifyId: 'new',
      });
      for (const delivery of [...resent, ...later]) {
        expect(delivery).toMatchObject({
          word: WORDS[channel].paid,
          httpStatus: 200,
          acknowledged: true,
        });
      }

      await expectAlwaysTrue(saga, orderId);
      expect(await saga.order(orderId)).toMatchObject({ status: 'paid', refund_status: 'full' });
      expect(ownMoves(await saga.moves(orderId))).toEqual(PAID_MOVES);
      expect(await figuresOf(saga, orderId)).toMatchObject(REFUNDED);
      // Nobody was even woken for it.
      expect((await saga.handle(orderId).describe()).runId).toBe(runId);
      expect((await inbox(saga, orderId)).filter(({ status }) => status === 'stored')).toEqual([]);
    },
  );

  it('B27: the refund told before the payment ends refunded, and never shows paid with nothing left', async () => {
    const shown = await watchCommits(saga, PAID_WITH_NOTHING_LEFT);
    await saga.mock.addFault({
      match: { operation: 'callback', tag: 'b27' },
      do: { hold: true },
    });
    const orderId = await saga.createOrder({ subject: 'Told backwards #b27' });
    await saga.pay(orderId);
    const outTradeNo = await saga.outTradeNo(orderId);
    await saga.mock.approve(outTradeNo);
    // Known by asking; the channel's own word is still on its way.
    await saga.untilOrder(orderId, 'paid');
    expect((await saga.refund(orderId, 'R1')).status).toBe(201);
    const held = await waitFor('both callbacks are held', async () => {
      const all = await saga.mock.heldCallbacks();
      const own = all.filter((one) => one.outTradeNo === outTradeNo);
      return own.length === 2 && own;
    });
    expect(held.map(({ kind }) => kind)).toEqual(['payment', 'refund']);
    const told = await saga.mock.releaseCallbacks({ order: 'lifo', outTradeNo });
    expect(told).toMatchObject([
      { kind: 'refund', httpStatus: 200, acknowledged: true },
      { kind: 'payment', httpStatus: 200, acknowledged: true },
    ]);

    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await expectAlwaysTrue(saga, orderId);
    expect(await saga.order(orderId)).toMatchObject({ status: 'paid', refund_status: 'full' });
    expect(ownMoves(await saga.moves(orderId))).toEqual(PAID_MOVES);
    expect(await figuresOf(saga, orderId)).toMatchObject(REFUNDED);
    const { commits, bad } = await shown.seen(orderId);
    expect(bad).toBe(0);
    expect(commits).toBeGreaterThan(0);
  });

  it.each([
    ['mock-a', 'full', 10_000],
    ['mock-b', 'full', 10_000],
    ['mock-a', 'partial', 3_000],
    ['mock-b', 'partial', 3_000],
  ] as const)(
    'B32: "closed" from %s after a %s refund leaves the order refunded',
    async (channel, refundStatus, refunded) => {
      const amount = refundStatus === 'full' ? undefined : refunded;
      const { orderId, outTradeNo } = await refundedOrder(channel, amount);
      const deliveries = await saga.mock.sendCallback({
        outTradeNo,
        word: WORDS[channel].closed,
        notifyId: 'new',
      });
      expect(deliveries).toMatchObject([{ httpStatus: 200, acknowledged: true }]);

      await expectAlwaysTrue(saga, orderId);
      expect(await saga.order(orderId)).toMatchObject({
        status: 'paid',
        refund_status: refundStatus,
        closed_at: null,
      });
      for (const subject of ['order', 'pay_record']) {
        const moves = await saga.moves(orderId, subject);
        expect(moves.filter((move) => move.endsWith('>closed'))).toEqual([]);
      }
      expect(await saga.records(orderId)).toMatchObject([{ status: 'paid' }]);
      expect(await inbox(saga, orderId)).toContainEqual({
        status: 'no_effect',
        verdict: 'no_effect',
        copies: 1,
      });
      expect(await figuresOf(saga, orderId)).toMatchObject({
        ...REFUNDED,
        ref: money(1, refunded),
      });
    },
  );
});
