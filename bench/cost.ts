/**
 * What an order costs on Temporal: state transitions and history events, from the server's own
 * description of every run that the order caused (its own runs, its refunds' runs), summed.
 */
import { parseArgs } from 'node:util';
import { Saga } from '../test/support/saga';
import startServers from '../test/support/servers-start';
import stopServers from '../test/support/servers-stop';
import { waitFor } from '../test/support/wait';

interface Spread {
  median: number;
  max: number;
}

interface Cost {
  transitions: Spread;
  events: Spread;
}

export interface CostResult {
  orders: number;
  paid_by_callback: Cost;
  paid_by_poll: Cost;
  refunded: Cost;
  duplicate_callbacks: { extra_transitions: Spread };
}

/** Orders under way at once: enough to be quick, few enough that no order waits for another. */
const AT_ONCE = 4;

interface Used {
  transitions: number;
  events: number;
}

export async function cost(args: readonly string[]): Promise<CostResult> {
  const { values } = parseArgs({ args: [...args], options: { orders: { type: 'string' } } });
  const orders = Number(values.orders ?? '200');
  if (!Number.isSafeInteger(orders) || orders < 1) throw new Error('--orders wants a whole number');
  await startServers();
  // No rung of the ladder passes while a callback is on its way; a poll is asked for by name below.
  const saga = await Saga.start({ policy: { pollLadderMs: [60_000] } });
  try {
    const byCallback = await each(orders, () => paidByCallback(saga));
    const duplicates = await each(orders, () => paidWithDuplicates(saga));
    const refunded = await each(orders, () => refundedOrder(saga));
    await saga.configureChannels({ pollLadderMs: [400] });
    await saga.mock.configure({ callbackUrls: { 'mock-a': [], 'mock-b': [] } });
    const byPoll = await each(orders, () => paidByPoll(saga));
    const base = spread(byCallback.map((used) => used.transitions)).median;
    const result: CostResult = {
      orders,
      paid_by_callback: costOf(byCallback),
      paid_by_poll: costOf(byPoll),
      refunded: costOf(refunded),
      duplicate_callbacks: {
        extra_transitions: spread(duplicates.map((used) => used.transitions - base)),
      },
    };
    printTable(result);
    return result;
  } finally {
    await saga.stop();
    await stopServers();
  }
}

async function paidByCallback(saga: Saga): Promise<Used> {
  const { orderId } = await saga.paidOrder();
  return usedBy(saga, orderId);
}

/** Five copies together with the first callback, five more once the order is paid. */
async function paidWithDuplicates(saga: Saga): Promise<Used> {
  const orderId = await saga.createOrder({
    subject: `duplicates #d${Math.random().toString(36).slice(2)}`,
  });
  await saga.pay(orderId);
  const outTradeNo = await saga.outTradeNo(orderId);
  await saga.mock.addFault({
    match: { operation: 'callback', outTradeNo },
    times: 1,
    do: { copies: 6 },
  });
  await saga.mock.approve(outTradeNo);
  await saga.untilOrder(orderId, 'paid');
  await saga.mock.sendCallback({ outTradeNo, copies: 5 });
  const used = await usedBy(saga, orderId);
  const [copies] = await saga.rows<{ copies: number }>(
    `select sum(copies)::int as copies from channel_callbacks where our_no = $1::text`,
    outTradeNo,
  );
  if (copies?.copies !== 11) throw new Error(`11 callbacks were sent, ${copies?.copies} counted`);
  return used;
}

async function paidByPoll(saga: Saga): Promise<Used> {
  const { orderId } = await saga.paidOrder();
  return usedBy(saga, orderId);
}

async function refundedOrder(saga: Saga): Promise<Used> {
  const { orderId } = await saga.paidOrder();
  await saga.refund(orderId, 'R1');
  await saga.untilRefund(orderId, 'R1', 'succeeded');
  return usedBy(saga, orderId);
}

/** Waits until nothing is left to do and every run has ended, then sums what the server counted. */
async function usedBy(saga: Saga, orderId: string): Promise<Used> {
  await saga.untilSettled(orderId);
  await saga.handle(orderId).result();
  const query = `MerchantId = '${saga.merchantId}' and OrderId = '${orderId}'`;
  const runs = await waitFor('every run of the order to be listed as ended', async () => {
    const found = [];
    for await (const run of saga.client.workflow.list({ query })) found.push(run);
    return found.length > 0 && found.every((run) => run.status.name !== 'RUNNING') && found;
  });
  const used: Used = { transitions: 0, events: 0 };
  for (const run of runs) {
    const { raw, historyLength } = await saga.client.workflow
      .getHandle(run.workflowId, run.runId)
      .describe();
    used.transitions += Number(raw.workflowExecutionInfo?.stateTransitionCount ?? 0);
    used.events += historyLength;
  }
  return used;
}

async function each(count: number, make: () => Promise<Used>): Promise<Used[]> {
  const used: Used[] = [];
  let left = count;
  await Promise.all(
    Array.from({ length: Math.min(AT_ONCE, count) }, async () => {
      while (left-- > 0) used.push(await make());
    }),
  );
  return used;
}

function costOf(used: readonly Used[]): Cost {
  return {
    transitions: spread(used.map((u) => u.transitions)),
    events: spread(used.map((u) => u.events)),
  };
}

function spread(figures: readonly number[]): Spread {
  const sorted = [...figures].sort((a, b) => a - b);
  return { median: sorted[Math.floor((sorted.length - 1) / 2)] ?? 0, max: sorted.at(-1) ?? 0 };
}

function printTable(result: CostResult): void {
  const row = (name: string, { transitions, events }: Cost) =>
    console.log(
      `${name.padEnd(18)}${String(transitions.median).padStart(12)}${String(transitions.max).padStart(8)}` +
        `${String(events.median).padStart(12)}${String(events.max).padStart(8)}`,
    );
  console.log(`${result.orders} orders of each kind; every run that an order caused is summed\n`);
  console.log(
    `${''.padEnd(18)}${'transitions'.padStart(12)}${'max'.padStart(8)}${'events'.padStart(12)}${'max'.padStart(8)}`,
  );
  row('paid by callback', result.paid_by_callback);
  row('paid by poll', result.paid_by_poll);
  row('refunded', result.refunded);
  const { median, max } = result.duplicate_callbacks.extra_transitions;
  console.log(`\n10 duplicate callbacks add ${median} transitions (median), ${max} at most`);
}
