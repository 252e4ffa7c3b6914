import { setTimeout as delay } from 'node:timers/promises';
import type { WorkflowExecutionDescription } from '@temporalio/client';
import { MOCK_POLICY } from '../../channels/adapter';
import { refundWorkflowId } from '../../workflows/ids';
import { nudgeSignal } from '../../workflows/messages';
import { ageOrder } from '../support/age-order';
import { expectAlwaysTrue, figuresOf, money } from '../support/figures';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

const ONCE = money(1, 10_000);
const DAY_MS = 86_400_000;
const WEEK_S = 7 * 86_400;
/** Polls in a row that the test waits for; a run continues as new about every 20. */
const POLLS = process.env['FULL'] ? 200 : 60;
const NUDGE_EVERY_MS = 30;
const EVENTS_MAX = 1_000;
const BYTES_MAX = 400_000;

jest.setTimeout(120_000);

describe('B107: a wait of seven days', () => {
  let saga: Saga;
  beforeAll(async () => {
    // The channel's ladder with every wait a ten-thousandth: a week passes in a minute.
    saga = await Saga.start({
      policy: {
        pollLadderMs: MOCK_POLICY.pollLadderMs.map((wait) => Math.ceil(wait / 10_000)),
        refundLadderMs: [1, 3, 6, 30],
        maxCallsPerSecond: 1_000,
      },
    });
  });
  afterAll(() => saga?.stop());

  const queriesOf = async (orderId: string) => (await saga.books(orderId)).calls.query;
  /** Nudges the run, some thirty times a second at most, until the condition holds. */
  const nudgedUntil = (what: string, workflowId: string, holds: () => Promise<boolean>) =>
    waitFor(
      what,
      async () => {
        for (let nudge = 0; nudge < 4; nudge++) {
          await saga.client.workflow.getHandle(workflowId).signal(nudgeSignal);
          await delay(NUDGE_EVERY_MS);
        }
        return holds();
      },
      90_000,
    );
  /**
   * Waits until a run has asked often enough. The server's timers are up to a second late whatever
   * their length; a nudge makes the run look at once at what is due by then.
   */
  const hurry = (workflowId: string, asked: () => Promise<number>) =>
    nudgedUntil(`${POLLS} questions of ${workflowId}`, workflowId, async () => {
      return (await asked()) >= POLLS;
    });
  /** Every run of a workflow id, the oldest first, each within the bounds of a history. */
  async function boundedRuns(workflowId: string) {
    const { runId } = await saga.client.workflow.getHandle(workflowId).describe();
    const runs = await waitFor(`the runs of ${workflowId} are listed`, async () => {
      const found: WorkflowExecutionDescription[] = [];
      const query = `WorkflowId = '${workflowId}'`;
      for await (const run of saga.client.workflow.list({ query })) {
        found.push(await saga.client.workflow.getHandle(workflowId, run.runId).describe());
      }
      return found.some((run) => run.runId === runId) && found;
    });
    for (const run of runs) {
      expect(run.historyLength).toBeLessThan(EVENTS_MAX);
      expect(Number(run.historySize)).toBeLessThan(BYTES_MAX);
    }
    return runs.sort((a, b) => a.startTime.getTime() - b.startTime.getTime());
  }
  const continuedAsNew = (runs: WorkflowExecutionDescription[]) =>
    runs.filter(({ status }) => status.name === 'CONTINUED_AS_NEW').length;
  /** The attempt and the deadline as the row has them; a new run must not begin them again. */
  async function cursorOf(orderId: string) {
    const [row] = await saga.rows<{ expires_at: string; out_trade_no: string; polls: number }>(
      `select o.expires_at, r.out_trade_no, r.polls from orders o
       join pay_records r using (merchant_id, order_id) where order_id = $1::text`,
      orderId,
    );
    if (!row) throw new Error(`no attempt of ${orderId}`);
    return row;
  }
  async function pendingForAWeek(subject = 'a week') {
    const orderId = await saga.createOrder({ expires_in: WEEK_S, subject });
    const outTradeNo = (await saga.pay(orderId)).body.out_trade_no as string;
    const before = await cursorOf(orderId);
    await hurry(saga.handle(orderId).workflowId, () => queriesOf(orderId));
    await waitFor('the run has continued as new', async () =>
      (await saga.runs(orderId)).some(({ status }) => status.name === 'CONTINUED_AS_NEW'),
    );
    const after = await cursorOf(orderId);
    expect(after).toMatchObject({ out_trade_no: outTradeNo, expires_at: before.expires_at });
    // Counted on over all runs, so that the ladder is not climbed again from below.
    expect(after.polls).toBeGreaterThan(POLLS * 0.8);
    return { orderId, outTradeNo };
  }

  it('B107: the poll interval grows and stays bounded, in the policy and in a run', async () => {
    const ladder = MOCK_POLICY.pollLadderMs;
    for (const [rung, wait] of ladder.entries()) {
      if (rung > 0) expect(wait).toBeGreaterThan(ladder[rung - 1] ?? 0);
    }
    const climbing = ladder.reduce((sum, wait) => sum + wait, 0);
    const polls = ladder.length + (7 * DAY_MS - climbing) / (ladder.at(-1) ?? 1);
    expect(polls).toBeLessThan(2_100);

    await saga.configureChannels({ pollLadderMs: [200, 400, 800, 1_600] });
    await waitFor(
      'the waits of a new order grow',
      async () => {
        const orderId = await saga.createOrder();
        await saga.pay(orderId);
        const waits = await waitFor('four waits for a poll', async () => {
          const events = (await saga.handle(orderId).fetchHistory()).events ?? [];
          const all = events.flatMap((event) => {
            const wait = event.timerStartedEventAttributes?.startToFireTimeout;
            return wait ? [Number(wait.seconds) * 1_000 + (wait.nanos ?? 0) / 1e6] : [];
          });
          // The wait for the deadline, begun before there was an attempt, is none of them.
          const polls = all.filter((ms) => ms < 60_000);
          return polls.length >= 4 && polls.slice(0, 4);
        });
        await saga.mock.approve(await saga.outTradeNo(orderId));
        await saga.untilOrder(orderId, 'paid');
        // Until the changed policy has reached the worker the waits are those of before.
        const growth = waits.slice(1).map((wait, i) => wait / (waits[i] ?? 1));
        return growth.every((factor) => factor > 1.3);
      },
      60_000,
    );
    await saga.configureChannels({
      pollLadderMs: ladder.map((wait) => Math.ceil(wait / 10_000)),
      refundLadderMs: [1, 3, 6, 30],
      maxCallsPerSecond: 1_000,
    });
  });

  it.concurrent(
    'B107: keeps histories small and the order is paid when the channel says so',
    async () => {
      const { orderId, outTradeNo } = await pendingForAWeek();
      await ageOrder(saga, orderId, '6 days 23 hours');
      await saga.mock.approve(outTradeNo);
      await saga.untilOrder(orderId, 'paid');
      await expectAlwaysTrue(saga, orderId);
      const runs = await boundedRuns(saga.handle(orderId).workflowId);
      expect(continuedAsNew(runs)).toBeGreaterThanOrEqual(2);
      const events = runs.reduce((sum, run) => sum + run.historyLength, 0);
      const bytes = runs.reduce((sum, run) => sum + Number(run.historySize), 0);
      expect(events).toBeLessThan(10_000);
      expect(bytes).toBeLessThan(5_000_000);
      expect(await figuresOf(saga, orderId)).toMatchObject({
        status: 'paid',
        trades: 1,
        cap: ONCE,
        calls: 1,
        numbers: [outTradeNo],
        rows: 1,
        settling: 1,
        evt: 1,
        review: 0,
      });
    },
  );

  it.concurrent('B107: a run that continued as new still keeps the deadline', async () => {
    const { orderId, outTradeNo } = await pendingForAWeek();
    await ageOrder(saga, orderId, '7 days');
    expect(await saga.untilOrder(orderId, 'closed')).toMatchObject({ status_reason: 'expired' });
    await expectAlwaysTrue(saga, orderId);
    expect((await saga.mock.trade(outTradeNo)).status).toBe('closed');
    expect(continuedAsNew(await boundedRuns(saga.handle(orderId).workflowId))).toBeGreaterThan(1);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      cap: money(0, 0),
      calls: 1,
      rows: 0,
      evt: 0,
    });
  });

  it.concurrent('B107: a refund that is asked about for days is given back once', async () => {
    const { orderId } = await saga.paidOrder({ subject: 'a slow refund #slow' });
    await saga.mock.addFault({
      match: { operation: 'refund', tag: 'slow' },
      do: { refund: 'hold' },
    });
    expect((await saga.refund(orderId, 'R1', 3_000)).status).toBe(201);
    const asked = async () => (await saga.books(orderId)).calls.refund_query;
    const ref = { merchantId: saga.merchantId, orderId };
    await hurry(refundWorkflowId(ref, 'R1'), asked);
    // The order's own run goes on as well: told again and again, it begins anew beside the child.
    await nudgedUntil('the run has continued as new', saga.handle(orderId).workflowId, async () =>
      (await saga.runs(orderId)).some(({ status }) => status.name === 'CONTINUED_AS_NEW'),
    );
    const [refund] = await saga.rows<{ status: string; out_refund_no: string; polls: number }>(
      `select status, out_refund_no, polls from refunds where order_id = $1::text`,
      orderId,
    );
    expect(refund?.status).toBe('processing');
    expect(refund?.polls).toBeGreaterThan(POLLS * 0.8);
    await saga.mock.finishRefund({ outRefundNo: refund?.out_refund_no ?? '', result: 'succeed' });
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await expectAlwaysTrue(saga, orderId);
    expect(continuedAsNew(await boundedRuns(refundWorkflowId(ref, 'R1')))).toBeGreaterThan(1);
    await boundedRuns(saga.handle(orderId).workflowId);
    expect((await saga.books(orderId)).calls.refund).toBe(1);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'paid',
      cap: ONCE,
      ref: money(1, 3_000),
      evt: 1,
    });
  });
});
