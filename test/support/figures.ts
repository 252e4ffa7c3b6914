import type { WorkflowHandle } from '@temporalio/client';
import { deriveNumber } from '../../db/numbers';
import type { Saga } from './saga';
import { waitFor } from './wait';

/** Activities that are calls to a channel. */
const CHANNEL_CALLS = ['submitPayment', 'queryPayment', 'closePayment'];

/**
 * Causes of failed workflow tasks (WORKFLOW_TASK_FAILED_CAUSE_… of Temporal's API) that are the
 * server's way to have a task done once more: news while a task closes the run, a hundred events
 * while one is open.
 */
const DONE_ONCE_MORE = { UNHANDLED_COMMAND: 1, FORCE_CLOSE_COMMAND: 17 };
/** …_RESET_WORKFLOW: the mark of a reset, in the tests that reset at random. */
export const RESET_WORKFLOW = 20;

/** The number that an attempt will have at its channel, so that faults can name it beforehand. */
export function outTradeNoOf(
  saga: Saga,
  orderId: string,
  requestNo = 'K1',
  channel = 'mock-a',
): string {
  const parts = ['pay', saga.merchantId, orderId, channel, requestNo];
  return deriveNumber(String(saga.env['NUMBER_SECRET']), parts, 0);
}

/**
 * The figures that the scenarios speak of, from the channel's own books and the database; never from
 * the product's log.
 */
export async function figuresOf(saga: Saga, orderId: string) {
  const books = await saga.books(orderId);
  const captures = await saga.captures(orderId);
  const histories = await historiesOf(saga, orderId);
  return {
    status: (await saga.order(orderId)).status,
    /** Trades opened at the channel. */
    trades: books.trades,
    /** Captures and executed refunds at the channel: how many, and their sums by currency. */
    cap: books.captures,
    ref: books.refunds,
    /** Create calls received, and the different numbers they carried. */
    calls: books.calls.create,
    numbers: books.createNumbers,
    queries: books.calls.query,
    /** Pay records paid, and captures that settle the order. */
    rows: (await saga.records(orderId)).filter((record) => record.status === 'paid').length,
    settling: captures.filter((capture) => capture.settles).length,
    /** Distinct "order paid" events that the merchant received. */
    evt: saga.merchant.effects(orderId, 'order.paid').length,
    /** Runs of the order's workflow that called a channel. */
    runs: histories.filter((events) => events.some(isChannelCall)).length,
    resend: books.callbacks.resent,
    review: (await saga.openCases(orderId)).length,
  };
}

/** Sums of one movement: `sum(1, 10_000)` is one of 100.00 CNY. */
export function money(count: number, sumMinor: number, currency = 'CNY') {
  return { count, sums: count === 0 ? {} : { [currency]: sumMinor } };
}

/**
 * What must hold at the end of every scenario: the channel's net is the order's net, at most one
 * "paid" effect, refunds within captures, nothing left to do, no failing workflow task and no activity
 * that is repeated without end.
 */
export async function expectAlwaysTrue(saga: Saga, orderId: string): Promise<void> {
  await saga.untilSettled(orderId);
  const books = await saga.books(orderId);
  const [ours] = await saga.rows<{ net: number | null }>(
    `select sum(amount_minor - refunded_minor - reversed_minor)::bigint as net from captures
     where merchant_id = $1::text and order_id = $2::text`,
    saga.merchantId,
    orderId,
  );
  const net = Object.values(books.netMinor).reduce((sum, minor) => sum + minor, 0);
  expect({ orderId, net: ours?.net ?? 0 }).toEqual({ orderId, net });
  expect(net).toBeGreaterThanOrEqual(0);
  expect(saga.merchant.effects(orderId, 'order.paid').length).toBeLessThanOrEqual(1);
  for (const events of await historiesOf(saga, orderId)) {
    expect(taskFailures(events)).toEqual([]);
  }
  await waitFor(`no activity of ${orderId} is under way`, async () => {
    const { raw } = await saga.handle(orderId).describe();
    return (raw.pendingActivities ?? []).length === 0;
  });
}

type Events = NonNullable<Awaited<ReturnType<WorkflowHandle['fetchHistory']>>['events']>;

/** The history of every run of the order, once the server lists its current one. */
export async function historiesOf(saga: Saga, orderId: string): Promise<Events[]> {
  const { runId } = await saga.handle(orderId).describe();
  const runs = await waitFor(`run ${runId} is listed`, async () => {
    const listed = await saga.runs(orderId);
    return listed.some((run) => run.runId === runId) && listed;
  });
  return Promise.all(
    runs.map(async (run) => {
      const handle = saga.client.workflow.getHandle(run.workflowId, run.runId);
      return (await handle.fetchHistory()).events ?? [];
    }),
  );
}

/** Why workflow tasks failed, without those that were only to be done once more (or `expected`). */
export function taskFailures(events: Events | null | undefined, expected?: number): string[] {
  const harmless = [...Object.values(DONE_ONCE_MORE), expected];
  return (events ?? []).flatMap(({ workflowTaskFailedEventAttributes: failed }) => {
    if (!failed || harmless.includes(Number(failed.cause))) return [];
    return [`${String(failed.cause)}: ${failed.failure?.message}`];
  });
}

function isChannelCall(event: Events[number]): boolean {
  const name = event.activityTaskScheduledEventAttributes?.activityType?.name;
  return name != null && CHANNEL_CALLS.includes(name);
}
