/**
 * Settlement: one fact applied to one order. A pure function decides; db/settlement.ts applies what
 * it decided in one transaction under the order's row lock. Every way a fact arrives ends here.
 *
 * Promises are checked, facts are never refused: whatever the channel says is stored, and what does
 * not fit becomes a case.
 */
import { isLive, notFoundIsFinal } from './attempts';
import { settlePaid, settleReinstated, settleReversed } from './capture-settlement';
import type { ChannelFact, PaymentFact } from './channel-facts';
import type { PayRecord } from './orders';
import { settleRefundFact } from './refund-settlement';
import { misdirected, moveRecord, NO_EFFECT, warn } from './verdicts';
import type { Change, Settlement, SettlementContext, SettlementState } from './verdicts';

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
      return { verdict: 'unknown_state', changes: [warn(record, fact)], next: 'none' };
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
    state.refunds.some(
      (r) =>
        r.sends > 0 && r.status !== 'failed' && captures.some((c) => c.captureId === r.captureId),
    );
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
