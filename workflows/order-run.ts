/** What one run of an order remembers between two rounds of its loop. */
import { setCurrentDetails, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import type { PaymentAnswer, RefundAnswer } from '../domain/answers';
import type { ChannelCall, OrderRef } from '../domain/orders';
import type { OrderProgress } from '../domain/progress';
import type { WaitingRequest } from './order-requests';
import { CHANNEL, NEEDS_REVIEW, PAYMENT_STATUS } from './search-attributes';

export interface OrderRun {
  ref: OrderRef;
  /** The order as the last database step returned it, and when that was (workflow time). */
  order: OrderProgress | null;
  asOfMs: number;
  /** Updates whose callers wait for an answer. */
  requests: WaitingRequest[];
  /** The doorbell rang and the inbox has not been read since. */
  rang: boolean;
  nudged: boolean;
  stopping: boolean;
  /** The one call to a channel in flight; its answer, once there, waits to be settled. */
  call: { payRecordId: number; call: ChannelCall; answer: PaymentAnswer | null } | null;
  /** Records to query before what a callback said of them counts. */
  asks: number[];
  /** Refunds to ask the channel about, final ones too, and the one such call in flight. */
  refundAsks: string[];
  refundCall: { refundNo: string; answer: RefundAnswer | null } | null;
  delivering: boolean;
  delivered: boolean;
  /** Somebody wants events told now: a delivery that waits for its next try is begun anew. */
  tellAgain: boolean;
  stopTelling: (() => void) | null;
  /** Refunds whose child this run has started. */
  startedRefunds: Set<string>;
  /** The fulfilment's child was started by this run, and told that the order no longer stands. */
  fulfilmentStarted: boolean;
  fulfilmentTold: boolean;
  shown: string;
}

export function newRun(ref: OrderRef): OrderRun {
  return {
    ref: { merchantId: ref.merchantId, orderId: ref.orderId },
    order: null,
    asOfMs: 0,
    requests: [],
    rang: false,
    nudged: false,
    stopping: false,
    call: null,
    asks: [],
    refundAsks: [],
    refundCall: null,
    delivering: false,
    delivered: false,
    tellAgain: false,
    stopTelling: null,
    startedRefunds: new Set(),
    fulfilmentStarted: false,
    fulfilmentTold: false,
    shown: '',
  };
}

/**
 * The order as a step of the loop found it replaces what the run believed. The steps follow each
 * other, so no clock is asked: the database's may go back when another server takes over, and a run
 * that refused what it reads then would act on the same old picture again and again.
 */
export function take(run: OrderRun, order: OrderProgress): void {
  run.order = order;
  run.asOfMs = Date.now();
}

/**
 * What the delivery of events read beside the loop may be older than what a step found: then it does
 * not count, and when the run still believes that events wait, it looks again before it tells more.
 */
export function takeFromBeside(run: OrderRun, order: OrderProgress): void {
  if (!run.order || order.readAtMs >= run.order.readAtMs) return take(run, order);
  if (run.order.notification) run.nudged = true;
}

/** Whether something that was due `dueInMs` after the order was read is due by now. */
export function isDue(run: OrderRun, dueInMs: number | null | undefined): boolean {
  return dueInMs !== null && dueInMs !== undefined && run.asOfMs + dueInMs <= Date.now();
}

/** How long the run may sleep, or null when only a message can wake it. Milliseconds, at least 1. */
export function wakeInMs(run: OrderRun, childOverdueMs: number): number | null {
  const { order } = run;
  if (!order) return null;
  // A call in flight ends within its own limit and the loop goes on then: no timer of ours beside it.
  const others = run.call
    ? []
    : [
        order.deadlineInMs,
        order.attempt?.dueInMs ?? null,
        ...[...order.refunds, ...(order.fulfilment ? [order.fulfilment] : [])].map(
          (child) => Math.max(0, child.dueInMs) + childOverdueMs,
        ),
      ];
  const dues = [order.news?.dueInMs ?? null, ...others].filter((due) => due !== null);
  if (dues.length === 0) return null;
  return Math.max(1, Math.min(...dues) - (Date.now() - run.asOfMs));
}

/** One line for a person: where the money is and what comes next. */
export function lineOf(run: OrderRun): string {
  const { order } = run;
  if (!order) return 'loading the order';
  const parts: string[] = [
    order.statusReason ? `${order.status} (${order.statusReason})` : order.status,
  ];
  for (const { currency, capturedMinor, refundedMinor, reversedMinor } of order.money ?? []) {
    const gone = [
      ...(refundedMinor > 0 ? [`${refundedMinor} given back`] : []),
      ...(reversedMinor > 0 ? [`${reversedMinor} taken back`] : []),
    ];
    parts.push([`captured ${capturedMinor} ${currency}`, ...gone].join(', '));
  }
  if (order.attempt) {
    const { channel, status, call, polls, dueInMs, closing } = order.attempt;
    const next = run.call
      ? `${run.call.call} under way`
      : `${call} in ${Math.ceil(Math.max(0, dueInMs) / 1000)} s`;
    parts.push(
      `attempt ${status} at ${channel}${closing ? ', closing' : ''}, call ${polls + 1}, ${next}`,
    );
  }
  if (order.refunds.length > 0) {
    parts.push(`refunds ${order.refunds.map((r) => `${r.refundNo} ${r.status}`).join(', ')}`);
  }
  if (order.refundStatus !== 'none') parts.push(`refunded: ${order.refundStatus}`);
  if (order.fulfilment) {
    const { status, name, stepNo, stepsTotal } = order.fulfilment;
    parts.push(`fulfilment ${status}, step ${name} (${stepNo} of ${stepsTotal})`);
  }
  if (order.notification) parts.push('telling the merchant');
  if (order.needsReview) parts.push('a person must decide');
  return parts.join('; ').slice(0, 300);
}

/** Keeps search attributes and the details line true; costs an event only when a status changed. */
export function show(run: OrderRun): void {
  const { order } = run;
  if (!order) return;
  setCurrentDetails(lineOf(run));
  const channel = order.attempt?.channel;
  const shown = JSON.stringify([order.status, order.needsReview, channel ?? null]);
  if (shown === run.shown) return;
  // What the run was started with (or continued with) is shown already.
  const started = workflowInfo().typedSearchAttributes;
  const [status, review, shownChannel] = run.shown
    ? (JSON.parse(run.shown) as [string, boolean, string | null])
    : [started.get(PAYMENT_STATUS), started.get(NEEDS_REVIEW), started.get(CHANNEL) ?? null];
  run.shown = JSON.stringify([order.status, order.needsReview, channel ?? shownChannel]);
  const changed = [
    ...(status === order.status ? [] : [{ key: PAYMENT_STATUS, value: order.status }]),
    ...(review === order.needsReview ? [] : [{ key: NEEDS_REVIEW, value: order.needsReview }]),
    ...(channel === undefined || channel === shownChannel
      ? []
      : [{ key: CHANNEL, value: channel }]),
  ];
  if (changed.length > 0) upsertSearchAttributes(changed);
}
