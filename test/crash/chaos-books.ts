import type { WorkflowHandle } from '@temporalio/client';
import { foldBooks } from '../../scripts/books/channel-books';
import { historiesOf, RESET_WORKFLOW, taskFailures } from '../support/figures';
import { refundRows } from '../support/refund-books';
import type { Saga } from '../support/saga';

/** A ring that is older than this and unanswered was lost. */
const RING_MS = 15_000;
/** Everything about one order that is not as it must be, from the channel's own books. */
export async function faultsOfOrder(saga: Saga, orderId: string): Promise<string[]> {
  return [
    ...(await netFaults(saga, orderId)),
    ...(await captureFaults(saga, orderId)),
    ...(await refundFaults(saga, orderId)),
    ...(await doorbellFaults(saga, orderId)),
    ...(await taskFaults(saga, orderId)),
  ].map((fault) => `order ${orderId}: ${fault}`);
}

/** How the order stands by both books, for whoever reads a failure. */
export async function pictureOf(saga: Saga, orderId: string): Promise<string> {
  const rows = (table: string, columns: string) =>
    saga.rows(
      `select ${columns} from ${table} where merchant_id = $1::text and order_id = $2::text`,
      saga.merchantId,
      orderId,
    );
  const records = await saga.records(orderId);
  const trades = await Promise.all(
    records.map(({ out_trade_no }) => saga.mock.trade(out_trade_no).catch(() => 'no such trade')),
  );
  const all = {
    orders: await rows(
      'orders',
      'status, status_reason, expires_at, close_requested_at, doorbell_rung_at',
    ),
    records: await rows(
      'pay_records',
      'out_trade_no, channel, status, status_reason, sends, polls, last_call, last_fact_state, close_requested_at, next_due_at',
    ),
    captures: await rows(
      'captures',
      'capture_id, channel_trade_no, kind, settles, status, amount_minor, reserved_minor, refunded_minor, reversed_minor',
    ),
    refunds: await rows(
      'refunds',
      'refund_no, out_refund_no, capture_id, amount_minor, status, sends, polls, last_call, last_fact_state, refusal_code',
    ),
    cases: await rows('cases', 'kind, status, summary, evidence'),
    callbacks: await rows('channel_callbacks', "fact->>'state' as state, our_no, status, verdict"),
    work: await rows('orders_with_work', 'reason, next_due_at'),
    trades,
  };
  return Object.entries(all)
    .flatMap(([name, list]) => list.map((row) => `${name}: ${JSON.stringify(row)}`))
    .join('\n    ');
}

/** The channel's captured − refunded − reversed (both ways) is the database's, by currency. */
async function netFaults(saga: Saga, orderId: string): Promise<string[]> {
  const { netMinor } = await saga.books(orderId);
  const ours = await saga.rows<{ currency: string; net: number }>(
    `select currency, sum(amount_minor - refunded_minor - reversed_minor)::bigint as net
     from captures where merchant_id = $1::text and order_id = $2::text group by currency`,
    saga.merchantId,
    orderId,
  );
  const net = Object.fromEntries(ours.map((row) => [row.currency, row.net]));
  return [...new Set([...Object.keys(net), ...Object.keys(netMinor)])]
    .filter((currency) => (net[currency] ?? 0) !== (netMinor[currency] ?? 0))
    .map((c) => `net ${netMinor[c] ?? 0} ${c} at the channel, ${net[c] ?? 0} in the database`);
}

/** At most one capture settles; each is kept by the paid order, given back, or before a person. */
async function captureFaults(saga: Saga, orderId: string): Promise<string[]> {
  const { status } = await saga.order(orderId);
  const isHeld = (await saga.openCases(orderId)).length > 0;
  const captures = await saga.rows<{
    channel_trade_no: string;
    settles: boolean;
    rest: number;
    reserved_minor: number;
  }>(
    `select *, amount_minor - refunded_minor - reversed_minor as rest from captures
     where merchant_id = $1::text and order_id = $2::text`,
    saga.merchantId,
    orderId,
  );
  const faults = captures
    .filter((c) => c.rest > 0 && !isHeld && !(c.settles && status === 'paid'))
    .map((c) => `${c.rest} of capture ${c.channel_trade_no} are nowhere`);
  const settling = captures.filter((c) => c.settles).length;
  if (settling > 1) faults.push(`${settling} captures settle it`);
  const reserved = captures.filter((c) => c.reserved_minor > 0 && !isHeld);
  if (reserved.length > 0) faults.push('money is reserved though no refund is under way');
  return faults;
}

/** Each refund number was paid at most once, and exactly those that our rows call paid. */
async function refundFaults(saga: Saga, orderId: string): Promise<string[]> {
  const atChannel = foldBooks(await saga.mock.books()).refunds;
  const byNumber = new Map([...atChannel.values()].map((refund) => [refund.outRefundNo, refund]));
  return (await refundRows(saga, orderId)).flatMap((row) => {
    const executed = byNumber.get(row.out_refund_no)?.executed ?? 0;
    const isPaid = row.status === 'succeeded' || row.status === 'returned';
    if (executed === (isPaid ? 1 : 0)) return [];
    return [`refund ${row.refund_no} is ${row.status}, the channel paid it ${executed} times`];
  });
}

async function doorbellFaults(saga: Saga, orderId: string): Promise<string[]> {
  const { doorbell_rung_at: rungAt } = await saga.order(orderId);
  if (rungAt === null || Date.now() - Date.parse(rungAt) < RING_MS) return [];
  return [`the doorbell rang at ${rungAt} and nobody answered`];
}

type Events = NonNullable<Awaited<ReturnType<WorkflowHandle['fetchHistory']>>['events']>;

/** No run failed, and no workflow task but those that were only to be done once more. */
async function taskFaults(saga: Saga, orderId: string): Promise<string[]> {
  const histories: Events[] = await historiesOf(saga, orderId);
  return histories.flatMap((events) => [
    ...events.flatMap(({ workflowExecutionFailedEventAttributes: failed }) =>
      failed ? [`a run failed: ${failed.failure?.message}`] : [],
    ),
    ...taskFailures(events, RESET_WORKFLOW).map((failure) => `a workflow task failed (${failure})`),
  ]);
}
