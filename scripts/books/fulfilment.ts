import { stepKey } from '../../domain/fulfilment';
import { refundableMinor } from '../../domain/orders';
import type { MerchantEffect } from '../merchant-steps';
import type { Findings } from './findings';
import { inspect, together } from './findings';
import type { OrderRow, Snapshot, StepRow } from './snapshot';
import { OpenCases, orderKey } from './snapshot';

/**
 * I8, the fulfilment's part. An order's steps stand as its fulfilment says, its end is told once, and
 * one that failed because the merchant refused has given the payment back or is before a person. Of the
 * effects that the merchant logged, each happened once and under its step's own key; what is fulfilled
 * was all done and nothing of it undone; of what failed nothing stands, but what could not be undone.
 *
 * @param effects undefined: the merchant keeps no log that could be compared
 */
export function checkFulfilment(
  snapshot: Snapshot,
  effects: readonly MerchantEffect[] | undefined,
): Findings {
  const steps = new Map<string, StepRow[]>();
  for (const step of snapshot.steps) {
    steps.set(orderKey(step), [...(steps.get(orderKey(step)) ?? []), step]);
  }
  const fulfilled = snapshot.orders.filter(({ fulfilmentStatus }) => fulfilmentStatus !== 'none');
  const told = new Map<string, string[]>();
  for (const row of snapshot.notifications) {
    told.set(orderKey(row), [...(told.get(orderKey(row)) ?? []), row.eventType]);
  }
  const cases = new OpenCases(snapshot.cases);
  const nameOf = (order: OrderRow) => `order ${orderKey(order)}`;
  const rows = inspect('I8', fulfilled, nameOf, function* (order) {
    const key = orderKey(order);
    const own = steps.get(key) ?? [];
    if (own.length === 0) yield `its fulfilment is ${order.fulfilmentStatus}, it has no steps`;
    yield* wrongEvents(order, told.get(key) ?? []);
    yield* wrongSteps(order, own);
    const seen = cases.holds(order) || cases.wasDecided(order);
    if (own.some(({ status }) => status === 'undo_failed') && !seen) {
      yield 'a step could not be undone, no case says so';
    }
    const settling = snapshot.captures.find((c) => c.settles && orderKey(c) === key);
    const isOwed =
      order.fulfilmentStatus === 'failed' && order.fulfilmentFailure === 'step_refused';
    if (isOwed && settling && refundableMinor(settling) > 0 && !seen) {
      yield `could not be fulfilled, and its payment ${settling.channelTradeNo} is not given back`;
    }
  });
  if (effects === undefined) return rows;
  return together([rows, checkLog(fulfilled, steps, effects)]);
}

function* wrongEvents(order: OrderRow, told: readonly string[]): Iterable<string> {
  for (const [event, status] of [
    ['order.fulfilled', 'done'],
    ['order.fulfilment_failed', 'failed'],
  ] as const) {
    const wanted = order.fulfilmentStatus === status ? 1 : 0;
    const count = told.filter((type) => type === event).length;
    if (count !== wanted) {
      yield `its fulfilment is ${order.fulfilmentStatus}, ${event} is written ${count} times`;
    }
  }
}

function* wrongSteps(order: OrderRow, steps: readonly StepRow[]): Iterable<string> {
  const ends: Record<string, readonly string[]> = {
    done: ['done'],
    failed: ['refused', 'undone', 'undo_failed', 'skipped'],
  };
  const allowed = ends[order.fulfilmentStatus];
  for (const { name, status } of steps) {
    if (allowed && !allowed.includes(status)) {
      yield `its fulfilment is ${order.fulfilmentStatus}, step ${name} is ${status}`;
    }
  }
}

function checkLog(
  orders: readonly OrderRow[],
  steps: ReadonlyMap<string, readonly StepRow[]>,
  effects: readonly MerchantEffect[],
): Findings {
  const ofOrder = new Map<string, MerchantEffect[]>();
  for (const effect of effects) {
    ofOrder.set(orderKey(effect), [...(ofOrder.get(orderKey(effect)) ?? []), effect]);
  }
  const log = inspect(
    'I8',
    ofOrder,
    ([key]) => `order ${key}`,
    function* ([key, own]) {
      const counts = new Map<string, number>();
      for (const { call, step } of own) {
        counts.set(`${call} ${step}`, (counts.get(`${call} ${step}`) ?? 0) + 1);
      }
      for (const [what, count] of counts) {
        if (count > 1) yield `the merchant logged ${count} times: ${what}`;
      }
      for (const effect of own) {
        const { call, step } = effect;
        if (!steps.get(key)?.some(({ name }) => name === step)) {
          yield `the merchant logged ${call} ${step}, the order has no such step`;
        }
        if (effect.key !== stepKey(effect, step, call)) {
          yield `the merchant was asked for ${call} ${step} under ${effect.key}`;
        }
      }
    },
  );
  const ends = inspect(
    'I8',
    orders,
    (order) => `order ${orderKey(order)}`,
    function* (order) {
      const own = ofOrder.get(orderKey(order)) ?? [];
      const has = (call: string, step: string) =>
        own.some((effect) => effect.call === call && effect.step === step);
      for (const { name, status, canBeUndone } of steps.get(orderKey(order)) ?? []) {
        if (status === 'done' && !has('do', name)) yield `step ${name} is done, its effect is not`;
        if (status === 'done' && has('undo', name)) yield `step ${name} is done, and was undone`;
        const mayStand = status === 'undo_failed' || !canBeUndone;
        const isOver = order.fulfilmentStatus === 'failed' && !mayStand;
        if (isOver && has('do', name) && !has('undo', name)) {
          yield `its fulfilment failed, the effect of step ${name} stands`;
        }
      }
    },
  );
  return together([log, ends]);
}
