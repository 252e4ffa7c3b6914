/** Settlement of money taken, taken back and given back again; the heart of settlement.ts. */
import type { PaymentFact } from './channel-facts';
import type { Capture, CaptureKind, Order, PayRecord } from './orders';
import { moveRecord, NO_EFFECT, warn } from './verdicts';
import type { Change, Settlement, SettlementState } from './verdicts';

export function settlePaid(
  state: SettlementState,
  record: PayRecord,
  fact: PaymentFact,
): Settlement {
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
      {
        change: 'notify',
        event: 'order.review',
        subjectNo: `amount_mismatch:${known.channelTradeNo}:${amountMinor}`,
      },
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

export function settleReversed(
  state: SettlementState,
  record: PayRecord,
  fact: PaymentFact,
): Settlement {
  const { order } = state;
  const known = findCapture(state, record, fact);
  const changes: Change[] = [];
  let sumMinor: number;
  if (known) {
    sumMinor = fact.reversedMinor ?? known.amountMinor;
    if (sumMinor === known.reversedMinor) return NO_EFFECT;
    // A callback may be older than what we hold; an answer to our own question is not. A smaller sum is
    // an old one, or a new one whose reinstatement is still on its way; after a reinstatement any may be a
    // late copy: the channel is asked.
    const isSmaller = fact.learntFrom === 'callback' && sumMinor < known.reversedMinor;
    if (isSmaller || known.reinstatedAt !== null) {
      if (askOrder(record, fact) === 'query')
        return { verdict: 'contradicts_paid', changes: [], next: 'query' };
      if (isSmaller) return NO_EFFECT;
    }
    changes.push({
      change: 'reverse_capture',
      captureId: known.captureId,
      from: known.status,
      to: sumMinor >= known.amountMinor ? 'reversed' : 'captured',
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
  // The same sum after a reinstatement is another reversal, and the merchant is told again.
  const since = known?.reinstatedAt ? `:after ${known.reinstatedAt}` : '';
  const subjectNo = `${fact.channelTradeNo ?? ''}:${sumMinor}${since}`;
  const toReview = order.status !== 'review';
  if (toReview) {
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
    { change: 'notify', event: 'payment.reversed', subjectNo },
  );
  if (toReview) {
    changes.push({ change: 'notify', event: 'order.review', subjectNo: `reversed:${subjectNo}` });
  }
  return { verdict: 'reversed', changes, next: askOrder(record, fact) };
}

/**
 * Reversals and reinstatements take each other's effect back, so a callback that comes late or again
 * would turn the sum to what it was: the channel is asked how it stands. A query speaks of the
 * attempt's own trade number, so of any other there is nobody to ask.
 */
function askOrder(record: PayRecord, fact: PaymentFact): Settlement['next'] {
  if (fact.learntFrom !== 'callback') return 'none';
  const isOwn =
    record.status !== 'paid' ||
    fact.channelTradeNo === null ||
    fact.channelTradeNo === record.channelTradeNo;
  return isOwn ? 'query' : 'none';
}

export function settleReinstated(
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
    next: askOrder(record, fact),
  };
}
