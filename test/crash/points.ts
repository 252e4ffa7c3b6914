import { outTradeNoOf } from '../support/figures';
import type { SagaProcesses } from '../support/processes-saga';
import { refundRows } from '../support/refund-books';
import type { Saga } from '../support/saga';
import { waitFor } from '../support/wait';
import type { WorkerProcess } from '../../scripts/servers/processes';

/** A place in the life of an order at which its worker ends. */
export interface CrashPoint {
  title: string;
  failpoint: string;
  at: 'mock-a' | 'mock-b';
  /** What the shop waits for when it happens. */
  during: 'pay' | 'callback' | 'poll' | 'refund';
  /** Times that the channel is sent the number; a repeat fetches lost pay parameters only. */
  sends: number;
}

const point = (
  title: string,
  failpoint: string,
  during: CrashPoint['during'] = 'pay',
  sends = 1,
) => ({ title, failpoint, during, sends });

/** Before and after each step that matters to the money. */
export const CRASH_POINTS: CrashPoint[] = [
  point('before the insert', 'insert:before'),
  point('after the insert', 'insert:after'),
  point('before the submit', 'submit:before'),
  point('between the mark and the call', 'submit:marked'),
  point('after the channel took the attempt', 'submit:answered', 'pay', 2),
  point('before the answer is settled', 'settle:before'),
  point('after the answer is settled', 'settle:after'),
  point('before a callback is settled', 'settle-news:before', 'callback'),
  point('after a callback is settled', 'settle-news:after', 'callback'),
  point('before a "paid" learnt by asking is settled', 'settle:before@2', 'poll'),
  point('after a "paid" learnt by asking is settled', 'settle:after@2', 'poll'),
  point('before the refund is promised', 'refund-insert:before', 'refund'),
  point('after the refund is promised', 'refund-insert:after', 'refund'),
  point('before the refund is submitted', 'refund-submit:before', 'refund'),
  point('between the mark and the call of a refund', 'refund-submit:marked', 'refund'),
  point('after the channel took the refund', 'refund-submit:answered', 'refund'),
  point('before the refund is settled', 'refund-settle:before', 'refund'),
  point('after the refund is settled', 'refund-settle:after', 'refund'),
].map((p, i) => ({ ...p, at: i % 2 === 0 ? 'mock-a' : 'mock-b' }));

export const AMOUNT_MINOR = 10_000;
export const REFUND_MINOR = 3_000;

export function orderAt(p: CrashPoint): string {
  return `at-${p.failpoint.replace(/[:@]/g, '-')}`;
}

/** `submit:before#order` and, with `holdMs`, let go again after that. */
function entryOf(p: CrashPoint, holdMs: number | undefined): string {
  const [name, arrival] = p.failpoint.split('@');
  return [
    `${name}#${orderAt(p)}`,
    arrival === undefined ? '' : `@${arrival}`,
    holdMs === undefined ? '' : `~${holdMs}`,
  ].join('');
}

/**
 * Brings one order to each point, all in one worker, and returns the worker while every one of them
 * is held there. So one kill ends them all, and they come back together.
 */
export async function bringToPoints(
  saga: Saga,
  processes: SagaProcesses,
  holdMs?: number,
): Promise<WorkerProcess> {
  const worker = await processes.startWorker(CRASH_POINTS.map((p) => entryOf(p, holdMs)));
  await Promise.all(CRASH_POINTS.map((p) => prepare(saga, p)));
  await Promise.all(
    CRASH_POINTS.map(async (p) => {
      // Whoever waits here may wait in vain: the shop repeats its request later.
      void proceed(saga, p).catch(() => undefined);
      await processes.untilAt(worker, p.failpoint.replace(/@.*/, ''), orderAt(p));
    }),
  );
  return worker;
}

/** Everything up to the request in which it happens. */
async function prepare(saga: Saga, p: CrashPoint): Promise<void> {
  const orderId = await saga.createOrder({ order_id: orderAt(p) });
  const outTradeNo = outTradeNoOf(saga, orderId, 'K1', p.at);
  if (p.during === 'poll') {
    await saga.mock.addFault({ match: { operation: 'callback', outTradeNo }, do: { drop: true } });
    await saga.mock.addFault({
      match: { operation: 'query', outTradeNo },
      times: 1,
      do: { captureNow: true },
    });
  }
  if (p.during === 'callback') {
    // What is asked meanwhile is answered late: the callback is the first to tell.
    await saga.mock.addFault({
      match: { operation: 'query', outTradeNo },
      do: { delayBeforeAnswerMs: 800 },
    });
  }
  if (p.during === 'pay' || p.during === 'poll') return;
  // On a busy machine the call's own limit may pass first: then its repeat is the answer.
  await untilPayAnswered(saga, p);
  if (p.during === 'refund') {
    await saga.mock.approve(outTradeNo);
    await saga.untilSettled(orderId);
  }
}

async function proceed(saga: Saga, p: CrashPoint): Promise<unknown> {
  const orderId = orderAt(p);
  switch (p.during) {
    case 'pay':
    case 'poll':
      return saga.pay(orderId, 'K1', { channel: p.at });
    case 'callback':
      return saga.mock.approve(outTradeNoOf(saga, orderId, 'K1', p.at));
    case 'refund':
      return saga.refund(orderId, 'R1', REFUND_MINOR);
  }
}

/**
 * What the shop and the payer do once a worker is back: the shop repeats its request under the same
 * number until it is told how it stands, and the payer pays if nothing was paid yet.
 */
export async function goOnAfter(saga: Saga, p: CrashPoint): Promise<void> {
  const orderId = orderAt(p);
  const outTradeNo = outTradeNoOf(saga, orderId, 'K1', p.at);
  await untilPayAnswered(saga, p);
  if (p.during === 'pay') await saga.mock.approve(outTradeNo);
  await saga.untilOrder(orderId, 'paid');
  if (p.during === 'refund') {
    await waitFor(`the refund of ${orderId} answered`, async () => {
      const { status } = await saga.refund(orderId, 'R1', REFUND_MINOR);
      return status === 200 || status === 201;
    });
    await saga.untilRefund(orderId, 'R1', 'succeeded');
  }
  await saga.untilSettled(orderId);
}

async function untilPayAnswered(saga: Saga, p: CrashPoint): Promise<void> {
  await waitFor(`the pay request of ${orderAt(p)} answered`, async () => {
    const { status } = await saga.pay(orderAt(p), 'K1', { channel: p.at });
    return status === 200 || status === 201;
  });
}

/** The order's end by every book: the channel's, ours and the merchant's. */
export async function endOf(saga: Saga, p: CrashPoint) {
  const orderId = orderAt(p);
  const books = await saga.books(orderId);
  const refunds = await refundRows(saga, orderId);
  return {
    status: (await saga.order(orderId)).status,
    moves: (await saga.moves(orderId)).filter((move) => !move.includes('refund:')),
    records: (await saga.records(orderId)).map((r) => [r.out_trade_no, r.status]),
    trades: books.trades,
    captures: books.captures,
    creates: { numbers: books.createNumbers, atMost: books.calls.create <= p.sends },
    settling: (await saga.captures(orderId)).map((c) => [c.amount_minor, c.settles]),
    refundRows: refunds.map((r) => [r.refund_no, r.amount_minor, r.status]),
    refunds: books.refunds,
    refundNumbers: books.refundNumbers.length,
    refundCalls: books.calls.refund,
    told: saga.merchant.effects(orderId, 'order.paid').length,
    cases: (await saga.openCases(orderId)).length,
  };
}

/** One capture, one refund where one was asked for, one number each, the order final. */
export function rightEnd(saga: Saga, p: CrashPoint): Awaited<ReturnType<typeof endOf>> {
  const outTradeNo = outTradeNoOf(saga, orderAt(p), 'K1', p.at);
  const refunded = p.during === 'refund';
  return {
    status: 'paid',
    moves: ['null>created', 'created>paying', 'paying>paid'],
    records: [[outTradeNo, 'paid']],
    trades: 1,
    captures: { count: 1, sums: { CNY: AMOUNT_MINOR } },
    creates: { numbers: [outTradeNo], atMost: true },
    settling: [[AMOUNT_MINOR, true]],
    refundRows: refunded ? [['R1', REFUND_MINOR, 'succeeded']] : [],
    refunds: { count: refunded ? 1 : 0, sums: refunded ? { CNY: REFUND_MINOR } : {} },
    refundNumbers: refunded ? 1 : 0,
    refundCalls: refunded ? 1 : 0,
    told: 1,
    cases: 0,
  };
}

/** Every number that any call to the channel carried: `out_trade_no`s and `out_refund_no`s. */
export async function numbersAtChannel(saga: Saga): Promise<string[]> {
  const numbers = (await saga.mock.books()).flatMap((record) =>
    record.type === 'request' ? [record.outTradeNo, record.outRefundNo] : [],
  );
  return [...new Set(numbers.filter((number) => number !== null))].sort();
}

/** The numbers of our pay records and refunds. */
export async function numbersOfOurs(saga: Saga): Promise<string[]> {
  const rows = await saga.rows<{ number: string }>(
    `select out_trade_no as number from pay_records union select out_refund_no from refunds`,
  );
  return rows.map(({ number }) => number).sort();
}
