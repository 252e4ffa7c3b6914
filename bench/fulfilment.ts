/**
 * Orders fulfilled in three steps while their worker is killed again and again and the merchant's answers
 * get lost after their effect: what it proves is counted by the merchant and the channel, not by us.
 */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { lineOf } from '../scripts/books/findings';
import type { Behaviour, SeenCall } from '../scripts/merchant-steps';
import { stepKey } from '../domain/fulfilment';
import { inParallel } from '../test/support/in-parallel';
import { SagaProcesses } from '../test/support/processes-saga';
import { Saga } from '../test/support/saga';
import startServers from '../test/support/servers-start';
import stopServers from '../test/support/servers-stop';
import { waitFor } from '../test/support/wait';

export interface FulfilmentResult {
  orders: number;
  kills: number;
  violations: number;
  lost_notifications: number;
}

const STEPS = ['reserve', 'grant', 'ship'];
/** Orders that are not over yet, at most. */
const UNDER_WAY_MAX = 150;
const AT_ONCE = 40;
/** One answer in so many comes after the caller has gone, its effect done. */
const LATE_ANSWER_IN = 5;
/** One order in so many has a step that the shop refuses. */
const REFUSED_ORDER_IN = 8;
/** One event in so many is not taken the first time. */
const EVENT_NOT_TAKEN_IN = 10;
const STEP_TIMEOUT_MS = 1_000;
/** After the last order was placed. */
const END_WITHIN_MS = 600_000;
const VIOLATIONS_TOLD = 20;
/** Fewer kills prove nothing about a worker that dies. */
const KILLS_MIN = 3;

/** A number below `sides`, the same for the same words: the run's dice without a seed. */
function die(sides: number, ...words: (string | number)[]): number {
  return createHash('sha256').update(JSON.stringify(words)).digest().readUInt32BE() % sides;
}

/** The step that the shop refuses of this order, if any: never the first, so that something is undone. */
function refusedStep(orderId: string): string | undefined {
  if (die(REFUSED_ORDER_IN, 'refused', orderId) !== 0) return undefined;
  return STEPS[1 + die(STEPS.length - 1, 'which', orderId)];
}

function behave({ orderId, step, call, key, copy }: SeenCall): Behaviour {
  return {
    ...(call === 'do' && step === refusedStep(orderId) ? { status: 422 } : {}),
    ...(die(LATE_ANSWER_IN, 'late', key, copy) === 0 ? { holdMs: 3 * STEP_TIMEOUT_MS } : {}),
  };
}

export async function fulfilment(args: readonly string[]): Promise<FulfilmentResult> {
  const { values } = parseArgs({
    args: [...args],
    options: { orders: { type: 'string' }, 'kill-every': { type: 'string' } },
  });
  const orders = Number(values.orders ?? '1000');
  if (!Number.isSafeInteger(orders) || orders < 1) throw new Error('--orders wants a whole number');
  const [, seconds] = /^([0-9]+)s$/.exec(values['kill-every'] ?? '10s') ?? [];
  if (seconds === undefined) throw new Error('--kill-every wants seconds, as 10s');
  await startServers();
  const saga = await Saga.start({
    workers: 0,
    steps: STEPS,
    policy: { maxCallsPerSecond: 1_000, maxConcurrentCalls: 200 },
    env: {
      FULFIL_TIMEOUT_MS: String(STEP_TIMEOUT_MS),
      // A worker that dies with a call uses a try up: none of these must be given up for that.
      FULFIL_UNDO_TRIES_MAX: '100',
      FULFIL_CASE_AFTER_MS: '600000',
    },
  });
  const processes = new SagaProcesses(saga);
  const taken = new Map<string, number>();
  saga.merchant.steps.behave = behave;
  saga.merchant.answer = ({ id }) => {
    const copy = (taken.get(id) ?? 0) + 1;
    taken.set(id, copy);
    return copy === 1 && die(EVENT_NOT_TAKEN_IN, 'event', id) === 0 ? 503 : 200;
  };
  let result: FulfilmentResult | undefined;
  try {
    const ids = Array.from({ length: orders }, (_, i) => `b${i + 1}`);
    const startedAt = performance.now();
    const kills = await underKills(processes, Number(seconds) * 1_000, async () => {
      await place(saga, ids);
      await waitFor('every order to be over', () => isOver(saga, orders), END_WITHIN_MS);
    });
    const tookS = (performance.now() - startedAt) / 1_000;
    const violations = await violationsOf(saga, ids);
    const lost = await lostNotifications(saga, ids);
    for (const line of [...violations, ...lost].slice(0, VIOLATIONS_TOLD)) console.log(line);
    if (kills < KILLS_MIN) console.log(`only ${kills} kills: more orders would prove more`);
    print(saga, ids, tookS);
    result = {
      orders,
      kills,
      violations: violations.length,
      lost_notifications: lost.length,
    };
    saga.final.skip('checked above, and counted');
    return result;
  } finally {
    if (!result) saga.final.skip('the run has failed already');
    await saga.stop().finally(() => processes.end());
    await stopServers();
  }
}

/** Kills the one worker every so often while `work` is under way, and starts the next at once. */
async function underKills(
  processes: SagaProcesses,
  everyMs: number,
  work: () => Promise<void>,
): Promise<number> {
  let kills = 0;
  let worker = await processes.startWorker();
  const over = new AbortController();
  const killing = (async () => {
    while (!over.signal.aborted) {
      await delay(everyMs, undefined, { signal: over.signal }).catch(() => undefined);
      if (over.signal.aborted) return;
      await worker.kill();
      kills++;
      worker = await processes.startWorker();
    }
  })();
  try {
    await work();
  } finally {
    over.abort();
    await killing;
  }
  return kills;
}

/** Orders, pays and approves, as a shop and its payers do; whatever is not answered is asked again. */
async function place(saga: Saga, ids: readonly string[]): Promise<void> {
  let begun = 0;
  await saga.outage(() =>
    inParallel(ids, AT_ONCE, async (orderId) => {
      begun++;
      await waitFor(
        'room for another order',
        async () => begun - (await over(saga)) < UNDER_WAY_MAX,
        END_WITHIN_MS,
      );
      await patiently(`${orderId} ordered`, () => saga.createOrder({ order_id: orderId }));
      await patiently(`${orderId} asked to be paid`, async () => {
        const { status } = await saga.pay(orderId);
        if (status !== 200 && status !== 201) throw new Error(`answered ${status}`);
      });
      const outTradeNo = await saga.outTradeNo(orderId);
      await patiently(`${orderId} paid`, () => saga.mock.approve(outTradeNo));
    }),
  );
}

async function patiently(what: string, act: () => Promise<unknown>): Promise<void> {
  await waitFor(what, async () => (await act(), true), END_WITHIN_MS);
}

async function over(saga: Saga): Promise<number> {
  const [row] = await saga.rows<{ count: number }>(
    `select count(*) from orders where fulfilment_status in ('done', 'failed')`,
  );
  return row?.count ?? 0;
}

async function isOver(saga: Saga, orders: number): Promise<boolean> {
  await delay(1_000);
  if ((await over(saga)) < orders) return false;
  return (await saga.rows('select 1 from orders_with_work limit 1')).length === 0;
}

/** What must never be, each a line: by the merchant's log, the channel's books and the books checker. */
async function violationsOf(saga: Saga, ids: readonly string[]): Promise<string[]> {
  const { effects, badSignatures } = saga.merchant.steps;
  const faults = badSignatures > 0 ? [`${badSignatures} calls were badly signed`] : [];
  const seen = new Set<string>();
  for (const { key, call, orderId, step } of effects) {
    if (seen.has(key)) faults.push(`${key} had its effect twice`);
    seen.add(key);
    const ref = { merchantId: saga.merchantId, orderId };
    if (key !== stepKey(ref, step, call)) faults.push(`${call} ${step} of ${orderId} under ${key}`);
  }
  const status = new Map(
    (
      await saga.rows<{ order_id: string; fulfilment_status: string; refund_status: string }>(
        `select order_id, fulfilment_status, refund_status from orders`,
      )
    ).map((row) => [row.order_id, row]),
  );
  await inParallel(ids, AT_ONCE, async (orderId) => {
    const refused = refusedStep(orderId);
    const row = status.get(orderId);
    const ended = `${row?.fulfilment_status} ${row?.refund_status}`;
    const standing = saga.merchant.steps.standing(orderId).join();
    const { refunds, refundNumbers, captures } = await saga.books(orderId);
    const is = [ended, standing, captures.count, refunds.count, refundNumbers.length];
    const right = refused ? ['failed full', '', 1, 1, 1] : ['done none', STEPS.join(), 1, 0, 0];
    if (JSON.stringify(is) !== JSON.stringify(right)) {
      faults.push(`${orderId} ended as ${JSON.stringify(is)}, right is ${JSON.stringify(right)}`);
    }
  });
  const { violations } = await saga.checkBooks();
  return [...faults, ...violations.map(lineOf)];
}

/** Events that the merchant has not taken, in their order. */
async function lostNotifications(saga: Saga, ids: readonly string[]): Promise<string[]> {
  const told = new Map<string, string[]>();
  for (const { orderId, type } of saga.merchant.received) {
    const types = told.get(orderId) ?? [];
    // A repeat of the last one is no other event.
    if (types.at(-1) !== type) told.set(orderId, [...types, type]);
  }
  const unsent = await saga.rows<{ order_id: string; event_type: string }>(
    `select order_id, event_type from notifications where status <> 'sent'`,
  );
  return [
    ...unsent.map((row) => `${row.event_type} of ${row.order_id} was not sent`),
    ...ids.flatMap((orderId) => {
      const right = refusedStep(orderId)
        ? ['order.paid', 'order.fulfilment_failed', 'refund.succeeded']
        : ['order.paid', 'order.fulfilled'];
      const is = told.get(orderId) ?? [];
      return is.join() === right.join() ? [] : [`${orderId} was told ${is.join()}`];
    }),
  ];
}

function print(saga: Saga, ids: readonly string[], tookS: number): void {
  const { calls, effects } = saga.merchant.steps;
  const count = (call: string) => effects.filter((effect) => effect.call === call).length;
  const refused = ids.filter((orderId) => refusedStep(orderId) !== undefined).length;
  console.log(
    `${ids.length} orders in ${tookS.toFixed(0)} s, ${refused} of them refused\n` +
      `${calls.length} calls of the merchant, ${calls.filter(({ copy }) => copy > 1).length} of them repeats\n` +
      `${count('do')} effects, ${count('undo')} undone\n` +
      `${saga.merchant.received.length} deliveries taken`,
  );
}
