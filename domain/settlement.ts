/**
 * Settlement: one fact applied to one order. A pure function decides; db/settlement.ts applies what
 * it decided in one transaction under the order's row lock. Every way a fact arrives ends here.
 *
 * Promises are checked, facts are never refused: whatever the channel says is stored, and what does
 * not fit becomes a case.
 */
import { isLive, notFoundIsFinal } from './attempts';
import type { PaymentFact, ChannelFact } from './channel-facts';
import type { ChannelPolicy } from './channel-policy';
import type { Capture, CaptureKind, Order, PayRecord, Refund } from './orders';
import { settleRefundFact } from './refund-settlement';
import type { CaptureStatus, OrderStatus, PayRecordStatus, RefundState } from './states';

export type Verdict =
  | 'misdirected'
  | 'unknown_state'
  | 'no_effect'
  | 'contradicts_paid'
  | 'reversed'
  | 'reinstated'
  | 'surplus_late'
  | 'surplus_duplicate'
  | 'revived'
  | 'amount_mismatch'
  | 'joins_review'
  | 'first_success'
  | 'still_pending'
  | 'attempt_failed'
  | 'attempt_closed'
  | 'refund_succeeded'
  | 'refund_failed'
  | 'refund_pending'
  | 'refund_abnormal'
  | 'refund_returned'
  | 'refund_external';

/** What a settlement changes, in words the database applies one by one. */
export type Change =
  | {
      change: 'move_record';
      payRecordId: number;
      from: PayRecordStatus;
      to: PayRecordStatus;
      reason: string | null;
      channelTradeNo: string | null;
    }
  | {
      change: 'insert_capture';
      payRecordId: number;
      channelTradeNo: string;
      amountMinor: number;
      currency: string;
      payerTotalMinor: number | null;
      kind: CaptureKind;
      status: CaptureStatus;
      reversedMinor: number;
      paidAt: string | null;
    }
  /** The query's figure counts when a callback named another amount for the same trade number. */
  | { change: 'correct_capture'; captureId: number; amountMinor: number; currency: string }
  | {
      change: 'reverse_capture';
      captureId: number;
      from: CaptureStatus;
      to: CaptureStatus;
      reversedMinor: number;
    }
  | { change: 'reinstate_capture'; captureId: number }
  | { change: 'move_order'; from: OrderStatus; to: OrderStatus; reason: string | null }
  | { change: 'close_other_attempts'; exceptPayRecordId: number; reason: string }
  /** Gives a whole capture back by itself; the reservation is made in the same transaction. */
  | { change: 'refund_capture'; channelTradeNo: string; reason: string }
  | {
      change: 'move_refund';
      refundId: number;
      from: RefundState;
      to: RefundState;
      reason: string | null;
    }
  /** The refund is paid: its reservation ends and `refundedMinor` (the channel's figure) is booked. */
  | {
      change: 'book_refund';
      refundId: number;
      captureId: number;
      releaseMinor: number;
      refundedMinor: number;
    }
  | { change: 'release_reservation'; captureId: number; amountMinor: number }
  | { change: 'unbook_refund'; captureId: number; amountMinor: number }
  | {
      change: 'insert_external_refund';
      captureId: number;
      outRefundNo: string;
      amountMinor: number;
      currency: string;
      channelRefundNo: string | null;
    }
  | { change: 'open_case'; kind: string; summary: string }
  /** One warning in the order's events, written once per subject and word. */
  | { change: 'warn'; subject: 'pay_record' | 'refund'; subjectId: number; word: string }
  | { change: 'notify'; event: NotificationEvent; subjectNo: string };

export type NotificationEvent =
  | 'order.paid'
  | 'order.closed'
  | 'order.review'
  | 'payment.reversed'
  | 'payment.surplus_refunded'
  | 'refund.succeeded'
  | 'refund.failed'
  | 'refund.returned';

export interface Settlement {
  verdict: Verdict;
  changes: Change[];
  /** `query`: ask the channel again before anything is believed. */
  next: 'none' | 'query';
}

export interface SettlementState {
  order: Order;
  records: readonly PayRecord[];
  captures: readonly Capture[];
  refunds: readonly Refund[];
}

export interface SettlementContext {
  /** ISO 8601 UTC. */
  now: string;
  policy: ChannelPolicy;
  /** The account the channel row is configured for; facts that name another are misdirected. */
  account: { accountId: string; appId: string };
  /** The trade number already belongs to a capture of another order. */
  tradeNoTakenElsewhere: boolean;
}

/** Applies the rules of the table in docs/settlement.md, the first that fits. */
export function settle(
  state: SettlementState,
  fact: ChannelFact,
  context: SettlementContext,
): Settlement {
  if (isOtherAccount(fact, context) || context.tradeNoTakenElsewhere) return misdirected(fact);
  if (fact.kind === 'refund') return settleRefundFact(state, fact);
  const record = state.records.find((r) => r.outTradeNo === fact.outTradeNo);
  if (!record || record.channel !== fact.channel) return misdirected(fact);
  switch (fact.state) {
    case 'unknown':
      return {
        verdict: 'unknown_state',
        changes: [
          { change: 'warn', subject: 'pay_record', subjectId: record.payRecordId, word: fact.word },
        ],
        next: 'none',
      };
    case 'not_found':
      return settleNotFound(state, record, context);
    case 'pending':
      return settlePending(record, fact);
    case 'failed':
    case 'closed':
      return settleUnpaid(state, record, fact);
    case 'paid':
      return settlePaid(state, record, fact);
    case 'reversed':
      return settleReversed(state, record, fact);
    case 'reinstated':
      return settleReinstated(state, record, fact);
  }
}

function isOtherAccount(fact: ChannelFact, { account }: SettlementContext): boolean {
  return (
    (fact.accountId !== null && fact.accountId !== account.accountId) ||
    (fact.appId !== null && fact.appId !== account.appId)
  );
}

/** Nothing moves; a person looks at it. */
export function misdirected(fact: ChannelFact): Settlement {
  const number = fact.kind === 'payment' ? fact.outTradeNo : fact.outRefundNo;
  return {
    verdict: 'misdirected',
    changes: [
      {
        change: 'open_case',
        kind: 'misdirected',
        summary: `${fact.channel} says ${fact.word} for ${number}, but number, order, channel and account do not belong together`,
      },
    ],
    next: 'none',
  };
}

export const NO_EFFECT: Settlement = { verdict: 'no_effect', changes: [], next: 'none' };

function settleNotFound(
  state: SettlementState,
  record: PayRecord,
  context: SettlementContext,
): Settlement {
  if (!isLive(record)) return NO_EFFECT;
  if (!notFoundIsFinal(state.order, record, context.policy, context.now)) {
    return { verdict: 'still_pending', changes: [], next: 'none' };
  }
  return endAttempt(state, record, 'closed', 'never_arrived');
}

function settlePending(record: PayRecord, fact: PaymentFact): Settlement {
  if (!isLive(record)) return NO_EFFECT;
  if (record.status === 'pending') {
    // From a callback it is the same news again; from our own call it keeps the ladder going.
    if (fact.learntFrom === 'callback') return NO_EFFECT;
    return { verdict: 'still_pending', changes: [], next: 'none' };
  }
  return {
    verdict: 'still_pending',
    changes: [moveRecord(record, 'pending', null, fact.channelTradeNo)],
    next: 'none',
  };
}

function settleUnpaid(state: SettlementState, record: PayRecord, fact: PaymentFact): Settlement {
  if (record.status === 'paid') return contradiction(state, record, fact);
  if (!isLive(record)) return NO_EFFECT;
  // The word of the close itself is not enough: a capture may have slipped in between, so a query
  // must confirm it. Nor is a refusal to send again: an earlier send may have worked.
  if (fact.learntFrom === 'close' || (fact.learntFrom === 'submit' && record.sends > 1)) {
    return { verdict: 'still_pending', changes: [], next: 'query' };
  }
  return endAttempt(state, record, fact.state === 'failed' ? 'failed' : 'closed', fact.word);
}

/** A "closed" about a paid attempt: explained by our refunds, or asked again, or a case. */
function contradiction(state: SettlementState, record: PayRecord, fact: PaymentFact): Settlement {
  const captures = state.captures.filter((c) => c.payRecordId === record.payRecordId);
  const explained =
    captures.some((c) => c.refundedMinor > 0 || c.reversedMinor > 0) ||
    state.refunds.some((r) => captures.some((c) => c.captureId === r.captureId) && r.sends > 0);
  if (explained) return NO_EFFECT;
  // A refused re-send or a close that came too late say the same of a paid attempt: ask first.
  const isHearsay = ['callback', 'submit', 'close'].includes(fact.learntFrom);
  if (isHearsay) return { verdict: 'contradicts_paid', changes: [], next: 'query' };
  return {
    verdict: 'contradicts_paid',
    changes: [
      {
        change: 'open_case',
        kind: 'contradicts_paid',
        summary: `${fact.channel} says ${fact.word} for ${record.outTradeNo}, which we hold as paid`,
      },
    ],
    next: 'none',
  };
}

/** A definite end without money; an order that waits to be closed closes with its last attempt. */
function endAttempt(
  state: SettlementState,
  record: PayRecord,
  to: 'failed' | 'closed',
  reason: string,
): Settlement {
  const { order } = state;
  const changes: Change[] = [moveRecord(record, to, reason, null)];
  const othersLive = state.records.some((r) => r.payRecordId !== record.payRecordId && isLive(r));
  if (
    order.closeRequestedAt &&
    !othersLive &&
    (order.status === 'created' || order.status === 'paying')
  ) {
    changes.push(
      { change: 'move_order', from: order.status, to: 'closed', reason: order.closeReason },
      { change: 'notify', event: 'order.closed', subjectNo: '' },
    );
  }
  return { verdict: to === 'failed' ? 'attempt_failed' : 'attempt_closed', changes, next: 'none' };
}

function settlePaid(state: SettlementState, record: PayRecord, fact: PaymentFact): Settlement {
  const { order } = state;
  const { channelTradeNo, amountMinor, currency } = fact;
  if (channelTradeNo === null || amountMinor === null || currency === null) {
    // "Paid" without the figures that prove it is no proof: ask.
    return { verdict: 'still_pending', changes: [], next: 'query' };
  }
  const known = state.captures.find(
    (c) => c.channel === fact.channel && c.channelTradeNo === channelTradeNo,
  );
  if (known) return settleKnownCapture(order, known, fact, amountMinor, currency);

  const capture = (kind: CaptureKind): Change => ({
    change: 'insert_capture',
    payRecordId: record.payRecordId,
    channelTradeNo,
    amountMinor,
    currency,
    payerTotalMinor: fact.payerTotalMinor,
    kind,
    status: 'captured',
    reversedMinor: 0,
    paidAt: fact.paidAt,
  });
  const recordPaid: Change[] =
    record.status === 'paid' ? [] : [moveRecord(record, 'paid', null, channelTradeNo)];
  const isDue = amountMinor === order.amountMinor && currency === order.currency;
  const firstMove: Change = {
    change: 'move_order',
    from: 'created',
    to: 'paying',
    reason: null,
  };
  const paysOrder = (verdict: 'first_success' | 'revived'): Settlement => ({
    verdict,
    changes: [
      ...recordPaid,
      capture('settling'),
      // A fact is never refused: money may come before the order was seen to be paying.
      ...(order.status === 'created' ? [firstMove] : []),
      {
        change: 'move_order',
        from: order.status === 'created' ? 'paying' : order.status,
        to: 'paid',
        reason: verdict === 'revived' ? 'revived' : null,
      },
      {
        change: 'close_other_attempts',
        exceptPayRecordId: record.payRecordId,
        reason: 'order_paid',
      },
      { change: 'notify', event: 'order.paid', subjectNo: '' },
    ],
    next: 'none',
  });

  switch (order.status) {
    case 'review':
      return {
        verdict: 'joins_review',
        changes: [
          ...recordPaid,
          capture('held'),
          {
            change: 'open_case',
            kind: 'amount_mismatch',
            summary: receivedAgainstDue(state, fact),
          },
        ],
        next: 'none',
      };
    case 'closed':
      if (order.latePaymentPolicy === 'revive' && isDue && !state.captures.some((c) => c.settles)) {
        return paysOrder('revived');
      }
      return {
        verdict: 'surplus_late',
        changes: [
          ...recordPaid,
          capture('surplus_late'),
          { change: 'refund_capture', channelTradeNo, reason: 'late payment on a closed order' },
        ],
        next: 'none',
      };
    case 'paid':
      return {
        verdict: 'surplus_duplicate',
        changes: [
          ...recordPaid,
          capture('surplus_duplicate'),
          { change: 'refund_capture', channelTradeNo, reason: 'second payment of one order' },
        ],
        next: 'none',
      };
    case 'created':
    case 'paying':
      if (isDue) return paysOrder('first_success');
      return {
        verdict: 'amount_mismatch',
        changes: [
          ...recordPaid,
          capture('held'),
          { change: 'move_order', from: order.status, to: 'review', reason: 'amount_mismatch' },
          {
            change: 'close_other_attempts',
            exceptPayRecordId: record.payRecordId,
            reason: 'order_review',
          },
          {
            change: 'open_case',
            kind: 'amount_mismatch',
            summary: receivedAgainstDue(state, fact),
          },
          { change: 'notify', event: 'order.review', subjectNo: 'amount_mismatch' },
        ],
        next: 'none',
      };
  }
}

/** The same trade number again: the same news, or another amount for money we already hold. */
function settleKnownCapture(
  order: Order,
  known: Capture,
  fact: PaymentFact,
  amountMinor: number,
  currency: string,
): Settlement {
  if (known.status === 'reversed') return NO_EFFECT;
  if (known.amountMinor === amountMinor && known.currency === currency) return NO_EFFECT;
  const changes: Change[] = [
    {
      change: 'open_case',
      kind: 'amount_mismatch',
      summary:
        `${fact.channel} names two amounts for trade ${known.channelTradeNo}: ` +
        `${known.amountMinor} ${known.currency} and ${amountMinor} ${currency} (minor units)`,
    },
  ];
  const fresher = fact.learntFrom === 'query' || fact.learntFrom === 'trade_bill';
  if (fresher)
    changes.push({ change: 'correct_capture', captureId: known.captureId, amountMinor, currency });
  if (fresher && known.settles && order.status === 'paid') {
    changes.push(
      { change: 'move_order', from: 'paid', to: 'review', reason: 'amount_mismatch' },
      { change: 'notify', event: 'order.review', subjectNo: 'amount_mismatch' },
    );
  }
  // A callback's other figure is asked about once; the answer decides.
  return { verdict: 'amount_mismatch', changes, next: fresher ? 'none' : 'query' };
}

function receivedAgainstDue(state: SettlementState, fact: PaymentFact): string {
  const received = new Map<string, number>();
  const add = (currency: string, minor: number) =>
    received.set(currency, (received.get(currency) ?? 0) + minor);
  for (const c of state.captures)
    if (c.status === 'captured') add(c.currency, c.amountMinor - c.reversedMinor);
  if (fact.currency !== null && fact.amountMinor !== null) add(fact.currency, fact.amountMinor);
  const sums = [...received].map(([currency, minor]) => `${minor} ${currency}`).join(' + ');
  return `received ${sums} against ${state.order.amountMinor} ${state.order.currency} due (minor units)`;
}

/** The capture a fact speaks of: by the channel's number, or the attempt's own when it names none. */
function findCapture(
  state: SettlementState,
  record: PayRecord,
  fact: PaymentFact,
): Capture | undefined {
  return state.captures.find(
    (c) =>
      c.channel === fact.channel &&
      (fact.channelTradeNo === null
        ? c.payRecordId === record.payRecordId
        : c.channelTradeNo === fact.channelTradeNo),
  );
}

function settleReversed(state: SettlementState, record: PayRecord, fact: PaymentFact): Settlement {
  const { order } = state;
  const known = findCapture(state, record, fact);
  const changes: Change[] = [];
  let sumMinor: number;
  if (known) {
    sumMinor = fact.reversedMinor ?? known.amountMinor;
    if (sumMinor <= known.reversedMinor) return NO_EFFECT;
    changes.push({
      change: 'reverse_capture',
      captureId: known.captureId,
      from: known.status,
      to: sumMinor >= known.amountMinor ? 'reversed' : known.status,
      reversedMinor: sumMinor,
    });
  } else {
    if (fact.channelTradeNo === null)
      return { verdict: 'unknown_state', changes: [warn(record, fact)], next: 'query' };
    const amountMinor = fact.amountMinor ?? record.amountMinor;
    // As said, also when it is more than the capture: the same news again is then no news.
    sumMinor = fact.reversedMinor ?? amountMinor;
    changes.push(
      // Money came and went before we heard of either: the attempt is over, nothing settles.
      ...(record.status === 'paid'
        ? []
        : [moveRecord(record, 'paid', 'reversed', fact.channelTradeNo)]),
      {
        change: 'insert_capture',
        payRecordId: record.payRecordId,
        channelTradeNo: fact.channelTradeNo,
        amountMinor,
        currency: fact.currency ?? record.currency,
        payerTotalMinor: fact.payerTotalMinor,
        kind: 'early_reversal',
        status: sumMinor >= amountMinor ? 'reversed' : 'captured',
        reversedMinor: sumMinor,
        paidAt: fact.paidAt,
      },
    );
  }
  if (order.status !== 'review') {
    changes.push(
      { change: 'move_order', from: order.status, to: 'review', reason: 'reversed' },
      {
        change: 'close_other_attempts',
        exceptPayRecordId: record.payRecordId,
        reason: 'order_review',
      },
    );
  }
  changes.push(
    {
      change: 'open_case',
      kind: 'reversed',
      summary: `reversed by channel ${fact.channel}: ${sumMinor} ${fact.currency ?? record.currency} (minor units) of trade ${fact.channelTradeNo ?? record.channelTradeNo ?? '?'}`,
    },
    {
      change: 'notify',
      event: 'payment.reversed',
      subjectNo: `${fact.channelTradeNo ?? ''}:${sumMinor}`,
    },
  );
  return { verdict: 'reversed', changes, next: 'none' };
}

function settleReinstated(
  state: SettlementState,
  record: PayRecord,
  fact: PaymentFact,
): Settlement {
  const known = findCapture(state, record, fact);
  if (!known || known.reversedMinor === 0) return NO_EFFECT;
  return {
    verdict: 'reinstated',
    changes: [
      { change: 'reinstate_capture', captureId: known.captureId },
      {
        change: 'open_case',
        kind: 'reversed',
        summary: `reinstated by channel ${fact.channel}: trade ${known.channelTradeNo}`,
      },
    ],
    next: 'none',
  };
}

function warn(record: PayRecord, fact: PaymentFact): Change {
  return { change: 'warn', subject: 'pay_record', subjectId: record.payRecordId, word: fact.word };
}

function moveRecord(
  record: PayRecord,
  to: PayRecordStatus,
  reason: string | null,
  channelTradeNo: string | null,
): Change {
  return {
    change: 'move_record',
    payRecordId: record.payRecordId,
    from: record.status,
    to,
    reason,
    channelTradeNo,
  };
}
