/** Settlement of what a channel says about a refund; the other half of settlement.ts. */
import type { RefundFact } from './channel-facts';
import { isUndelivered } from './fulfilment';
import type { Capture, Order, Refund } from './orders';
import { OPEN_REFUND } from './states';
import type { RefundState } from './states';
import { misdirected, NO_EFFECT } from './verdicts';
import type { Change, Settlement, SettlementState } from './verdicts';

export function settleRefundFact(state: SettlementState, fact: RefundFact): Settlement {
  const refund = state.refunds.find((r) => r.outRefundNo === fact.outRefundNo);
  if (!refund) return settleForeignRefund(state, fact);
  const capture = state.captures.find((c) => c.captureId === refund.captureId);
  if (!capture || refund.channel !== fact.channel) return misdirected(fact);
  if (fact.outTradeNo !== null) {
    const record = state.records.find((r) => r.payRecordId === capture.payRecordId);
    if (record && record.outTradeNo !== fact.outTradeNo) return misdirected(fact);
  }
  const isOpen = OPEN_REFUND.includes(refund.status);
  switch (fact.state) {
    case 'unknown':
      return {
        verdict: 'unknown_state',
        changes: [
          { change: 'warn', subject: 'refund', subjectId: refund.refundId, word: fact.word },
        ],
        next: 'none',
      };
    case 'not_found':
      if (!isOpen) return NO_EFFECT;
      // Refused at the only send and unknown to a query: the refusal is confirmed and final.
      if (refund.refusalCode !== null && refund.sends === 1 && fact.learntFrom === 'query') {
        return failRefund(state.order, refund, capture, refund.refusalCode);
      }
      return { verdict: 'refund_pending', changes: [], next: 'none' };
    case 'processing':
    case 'not_enough_balance':
      if (!isOpen && refund.status !== 'abnormal') return NO_EFFECT;
      if (refund.status === 'abnormal') {
        // A new send begins with another status: the answer to the old one was overtaken by worse news.
        if (fact.learntFrom === 'submit') return NO_EFFECT;
        // It may be older too, and must not take the refund out of a person's sight.
        if (fact.learntFrom === 'callback') {
          return { verdict: 'refund_pending', changes: [], next: 'query' };
        }
      }
      if (refund.status === 'processing') {
        return fact.learntFrom === 'callback'
          ? NO_EFFECT
          : { verdict: 'refund_pending', changes: [], next: 'none' };
      }
      return {
        verdict: 'refund_pending',
        changes: [moveRefund(refund, 'processing', fact.state === 'processing' ? null : fact.word)],
        next: 'none',
      };
    case 'abnormal':
      if (!isOpen) return NO_EFFECT;
      return {
        verdict: 'refund_abnormal',
        changes: [
          moveRefund(refund, 'abnormal', fact.word),
          refundCase(refund, 'refund_abnormal', `the channel wants a person to act: ${fact.word}`),
        ],
        next: 'none',
      };
    case 'failed':
      if (!isOpen && refund.status !== 'abnormal') return NO_EFFECT;
      // A failed refund releases money: only a query's word is believed.
      if (fact.learntFrom !== 'query' && fact.learntFrom !== 'trade_bill') {
        return { verdict: 'refund_pending', changes: [], next: 'query' };
      }
      return failRefund(state.order, refund, capture, fact.refusalCode ?? fact.word);
    case 'succeeded':
      return succeedRefund(refund, capture, fact);
    case 'returned':
      return returnRefund(refund, capture, fact);
  }
}

function succeedRefund(refund: Refund, capture: Capture, fact: RefundFact): Settlement {
  if (refund.status === 'succeeded' || refund.status === 'returned') return NO_EFFECT;
  const refundedMinor = fact.amountMinor ?? refund.amountMinor;
  const stillReserved = refund.status !== 'failed';
  const changes: Change[] = [
    moveRefund(refund, 'succeeded', null),
    {
      change: 'book_refund',
      refundId: refund.refundId,
      captureId: capture.captureId,
      releaseMinor: stillReserved ? refund.amountMinor : 0,
      refundedMinor,
    },
  ];
  if (
    refundedMinor !== refund.amountMinor ||
    (fact.currency ?? refund.currency) !== refund.currency
  ) {
    changes.push(
      refundCase(
        refund,
        'refund_amount',
        `the channel paid ${refundedMinor} ${fact.currency ?? refund.currency}, we asked for ${refund.amountMinor} ${refund.currency} (minor units)`,
      ),
    );
  }
  if (!stillReserved) {
    changes.push(
      refundCase(refund, 'refund_revived', 'a refund held as failed was paid after all'),
    );
  }
  changes.push({
    change: 'notify',
    event: isOfSurplus(refund, capture) ? 'payment.surplus_refunded' : 'refund.succeeded',
    subjectNo: refund.refundNo,
  });
  return { verdict: 'refund_succeeded', changes, next: 'none' };
}

/** Money that paid nothing went back: by rule, or by an operator's act. */
function isOfSurplus(refund: Refund, capture: Capture): boolean {
  return refund.origin === 'surplus' || (refund.origin === 'operator' && !capture.settles);
}

function failRefund(order: Order, refund: Refund, capture: Capture, reason: string): Settlement {
  const changes: Change[] = [
    moveRefund(refund, 'failed', reason),
    {
      change: 'release_reservation',
      captureId: capture.captureId,
      amountMinor: refund.amountMinor,
    },
  ];
  if (refund.origin !== 'merchant') {
    // Nobody asked for it who could ask again: the money must not be lost from sight.
    changes.push(refundCase(refund, 'refund_failed', `an automatic refund was refused: ${reason}`));
  } else if (capture.settles && isUndelivered(order)) {
    // The merchant may ask again, but owes this payer the money whether it does or not.
    changes.push(
      refundCase(
        refund,
        'refund_failed',
        `money of an order that was not delivered was not given back: ${reason}`,
      ),
    );
  }
  // Surplus money is no affair of the merchant's order before it has gone back.
  if (refund.origin !== 'surplus') {
    changes.push({ change: 'notify', event: 'refund.failed', subjectNo: refund.refundNo });
  }
  return { verdict: 'refund_failed', changes, next: 'none' };
}

function returnRefund(refund: Refund, capture: Capture, fact: RefundFact): Settlement {
  if (refund.status === 'returned') return NO_EFFECT;
  // Learnt before the success was: book the success first, then its return, in one go.
  const changes: Change[] = [];
  let from = refund.status;
  const amountMinor = fact.amountMinor ?? refund.amountMinor;
  // What is booked is the channel's figure of the success, which may be less than we asked for: no
  // more than that can come back, and the sum never falls below nothing.
  let bookedMinor = capture.refundedMinor;
  if (from !== 'succeeded') {
    const success = succeedRefund(refund, capture, fact);
    changes.push(...success.changes.filter((c) => c.change !== 'notify'));
    from = 'succeeded';
    bookedMinor += amountMinor;
  }
  changes.push(
    { change: 'move_refund', refundId: refund.refundId, from, to: 'returned', reason: fact.word },
    {
      change: 'unbook_refund',
      captureId: capture.captureId,
      amountMinor: Math.min(amountMinor, bookedMinor),
    },
    refundCase(refund, 'refund_returned', 'the money of a refund came back to us'),
    { change: 'notify', event: 'refund.returned', subjectNo: refund.refundNo },
  );
  return { verdict: 'refund_returned', changes, next: 'none' };
}

/** A refund we never made: booked when it moved money of one of our captures, and a case. */
function settleForeignRefund(state: SettlementState, fact: RefundFact): Settlement {
  const capture = state.captures.find(
    (c) =>
      c.channel === fact.channel &&
      (c.channelTradeNo === fact.channelTradeNo ||
        state.records.some(
          (r) => r.payRecordId === c.payRecordId && r.outTradeNo === fact.outTradeNo,
        )),
  );
  if (!capture || fact.amountMinor === null) return misdirected(fact);
  if (fact.state !== 'succeeded') return NO_EFFECT;
  return {
    verdict: 'refund_external',
    changes: [
      {
        change: 'insert_external_refund',
        captureId: capture.captureId,
        outRefundNo: fact.outRefundNo,
        amountMinor: fact.amountMinor,
        currency: fact.currency ?? capture.currency,
        channelRefundNo: fact.channelRefundNo,
      },
      {
        change: 'open_case',
        kind: 'refund_external',
        summary: `${fact.channel} paid back ${fact.amountMinor} (minor units) under ${fact.outRefundNo}, which we never asked for`,
      },
      { change: 'notify', event: 'refund.succeeded', subjectNo: `external:${fact.outRefundNo}` },
    ],
    next: 'none',
  };
}

function moveRefund(refund: Refund, to: RefundState, reason: string | null): Change {
  return { change: 'move_refund', refundId: refund.refundId, from: refund.status, to, reason };
}

function refundCase(refund: Refund, kind: string, what: string): Change {
  return { change: 'open_case', kind, summary: `refund ${refund.refundNo}: ${what}` };
}
