/**
 * Every row of the verdict table over every state: order status × attempt status × fact state ×
 * trade number × amount × way of learning. The expectation is the table itself, written once more.
 */
import type { LearntFrom, PaymentFactState } from '../../domain/channel-facts';
import type { Capture, Order, PayRecord } from '../../domain/orders';
import { settle } from '../../domain/settlement';
import type { Change, Settlement, Verdict } from '../../domain/verdicts';
import type { OrderStatus, PayRecordStatus } from '../../domain/states';
import { mayMove } from '../../domain/states';
import { aCapture, aContext, anOrder, aPaymentFact, aPayRecord } from '../support/builders';

const ORDER_STATUSES: OrderStatus[] = ['created', 'paying', 'paid', 'closed', 'review'];
const RECORD_STATUSES: PayRecordStatus[] = [
  'created',
  'submitting',
  'pending',
  'paid',
  'failed',
  'closed',
];
const FACT_STATES: PaymentFactState[] = [
  'pending',
  'paid',
  'failed',
  'closed',
  'not_found',
  'reversed',
  'reinstated',
  'unknown',
];
const WAYS: LearntFrom[] = ['submit', 'callback', 'query', 'close', 'trade_bill', 'operator'];
/** What we hold when the fact comes: nothing, this trade of this attempt, or another attempt's. */
const HELD = ['nothing', 'same trade', 'other trade'] as const;
/** What becomes of late money matters on closed orders only. */
const POLICIES = ['refund', 'revive'] as const;
/** Whether it is a re-send matters for the answer to a send only. */
const SENDS = [1, 2] as const;
const AMOUNTS = { due: [10_000, 'CNY'], less: [9_999, 'CNY'], foreign: [10_000, 'JPY'] } as const;

interface Situation {
  orderStatus: OrderStatus;
  recordStatus: PayRecordStatus;
  factState: PaymentFactState;
  held: (typeof HELD)[number];
  amount: keyof typeof AMOUNTS;
  learntFrom: LearntFrom;
  latePaymentPolicy: Order['latePaymentPolicy'];
  sends: 1 | 2;
}

/** The table of design section 6, the first that fits. */
function verdictOfTable(s: Situation): Verdict {
  const live = ['created', 'submitting', 'pending'].includes(s.recordStatus);
  switch (s.factState) {
    case 'unknown':
      return 'unknown_state';
    case 'not_found': // Before the deadline it is "not arrived yet".
      return live ? 'still_pending' : 'no_effect';
    case 'pending':
      if (!live || (s.recordStatus === 'pending' && s.learntFrom === 'callback'))
        return 'no_effect';
      return 'still_pending';
    case 'failed':
    case 'closed':
      if (s.recordStatus === 'paid') return 'contradicts_paid';
      if (!live) return 'no_effect';
      if (s.learntFrom === 'close') return 'still_pending';
      // A refusal to send again says nothing of the send before it.
      if (s.learntFrom === 'submit' && s.sends > 1) return 'still_pending';
      return s.factState === 'failed' ? 'attempt_failed' : 'attempt_closed';
    case 'reversed':
      return 'reversed';
    case 'reinstated': // Nothing held is reversed.
      return 'no_effect';
    case 'paid':
      if (s.held === 'same trade') return s.amount === 'due' ? 'no_effect' : 'amount_mismatch';
      switch (s.orderStatus) {
        case 'closed':
          return s.latePaymentPolicy === 'revive' && s.amount === 'due' && s.held === 'nothing'
            ? 'revived'
            : 'surplus_late';
        case 'paid':
          return 'surplus_duplicate';
        case 'review':
          return 'joins_review';
        default:
          return s.amount === 'due' ? 'first_success' : 'amount_mismatch';
      }
  }
}

function stateOf(s: Situation) {
  const order = anOrder({
    status: s.orderStatus,
    latePaymentPolicy: s.latePaymentPolicy,
    closeRequestedAt: null,
  });
  const record = aPayRecord({ status: s.recordStatus, sends: s.sends });
  const records: PayRecord[] = [record];
  const captures: Capture[] = [];
  if (s.held === 'same trade') captures.push(aCapture());
  if (s.held === 'other trade') {
    records.push(aPayRecord({ payRecordId: 2, status: 'paid', channelTradeNo: 'T2' }));
    captures.push(aCapture({ captureId: 2 }));
  }
  return { order, records, captures, refunds: [] };
}

function settleIn(s: Situation): Settlement {
  const [amountMinor, currency] = AMOUNTS[s.amount];
  return settle(
    stateOf(s),
    aPaymentFact({ state: s.factState, learntFrom: s.learntFrom, amountMinor, currency }),
    aContext(),
  );
}

function situationsOf(orderStatus: OrderStatus, factState: PaymentFactState): Situation[] {
  const all: Situation[] = [];
  for (const recordStatus of RECORD_STATUSES)
    for (const held of HELD)
      for (const amount of Object.keys(AMOUNTS) as (keyof typeof AMOUNTS)[])
        for (const learntFrom of WAYS)
          for (const latePaymentPolicy of orderStatus === 'closed'
            ? POLICIES
            : POLICIES.slice(0, 1))
            for (const sends of learntFrom === 'submit' ? SENDS : SENDS.slice(0, 1))
              all.push({
                orderStatus,
                recordStatus,
                factState,
                held,
                amount,
                learntFrom,
                latePaymentPolicy,
                sends,
              });
  return all;
}

const of = <C extends Change['change']>(settlement: Settlement, change: C) =>
  settlement.changes.filter((c): c is Extract<Change, { change: C }> => c.change === change);

/** What must hold of every settlement, whatever its verdict. Returns what does not. */
function broken(s: Situation, settlement: Settlement): string[] {
  const { verdict, changes, next } = settlement;
  const faults: string[] = [];
  const must = (holds: boolean, rule: string) => holds || faults.push(rule);
  const captures = of(settlement, 'insert_capture');
  const paidMoves = of(settlement, 'move_order').filter((m) => m.to === 'paid');
  const events = of(settlement, 'notify').map((n) => n.event);

  // Moves form one chain from where each thing stands, every link in the table.
  let orderAt: string = s.orderStatus;
  for (const move of of(settlement, 'move_order')) {
    must(move.from === orderAt, `order moves from ${move.from}, stands at ${orderAt}`);
    must(mayMove('order', move.from, move.to), `order ${move.from} → ${move.to}`);
    orderAt = move.to;
  }
  let recordAt: string = s.recordStatus;
  for (const move of of(settlement, 'move_record')) {
    must(move.payRecordId === 1, 'another record is moved');
    must(move.from === recordAt, `record moves from ${move.from}, stands at ${recordAt}`);
    must(mayMove('pay_record', move.from, move.to), `record ${move.from} → ${move.to}`);
    must(move.from !== move.to, 'a move to where it stands');
    recordAt = move.to;
  }
  for (const move of of(settlement, 'reverse_capture'))
    must(mayMove('capture', move.from, move.to), `capture ${move.from} → ${move.to}`);

  if (verdict === 'no_effect') must(changes.length === 0 && next === 'none', 'an effect');
  if (verdict === 'still_pending')
    must(
      !changes.some((c) => c.change !== 'move_record' || c.to !== 'pending'),
      'more than pending',
    );
  // Money named for the first time is stored at its real amount; nothing else is.
  const isNewMoney = ['paid', 'reversed'].includes(s.factState) && s.held !== 'same trade';
  must(captures.length === (isNewMoney ? 1 : 0), `${captures.length} captures stored`);
  for (const capture of captures) {
    const [amountMinor, currency] = AMOUNTS[s.amount];
    must(capture.amountMinor === amountMinor && capture.currency === currency, 'another amount');
    must(recordAt === 'paid', 'money arrived, and the record is not paid');
  }
  // The order becomes paid only through the right amount, with a capture that settles, told once.
  must(paidMoves.length === 0 || s.amount === 'due', 'paid through a wrong amount');
  const settling = captures.filter((c) => c.kind === 'settling');
  must(settling.length === paidMoves.length, 'paid without, or settled without paid');
  must(settling.length === 0 || s.orderStatus !== 'paid', 'a second settling capture');
  must(events.filter((e) => e === 'order.paid').length === paidMoves.length, 'order.paid');
  // Surplus goes back by itself, exactly once; what is held has a case.
  const surplus = captures.filter((c) => c.kind.startsWith('surplus'));
  const back = of(settlement, 'refund_capture');
  must(back.length === surplus.length && back.every((b) => b.channelTradeNo === 'T1'), 'surplus');
  const held = captures.some((c) => c.kind === 'held' || c.kind === 'early_reversal');
  must(!held || of(settlement, 'open_case').length === 1, 'held without a case');
  // Once an order is paid or goes to review, every other attempt is taken to its end.
  const leaves = of(settlement, 'move_order').some((m) => m.to === 'paid' || m.to === 'review');
  const isCorrection = changes.some((c) => c.change === 'correct_capture');
  must(!leaves || isCorrection || of(settlement, 'close_other_attempts').length === 1, 'others');
  // Only a query's or a bill's word, or a person's, makes a contradiction of a callback a case. Money
  // taken back counts at once, and is asked about because the news may be old.
  if (next === 'query' && settlement.verdict !== 'reversed')
    must(orderAt === s.orderStatus, 'moved though the answer is still asked');
  return faults;
}

describe.each(ORDER_STATUSES)('with an order that is %s', (orderStatus) => {
  it.each(FACT_STATES)(
    'a fact "%s" has the verdict of the table in every situation',
    (factState) => {
      const wrong = situationsOf(orderStatus, factState).flatMap((s) => {
        const { verdict } = settleIn(s);
        const expected = verdictOfTable(s);
        return verdict === expected ? [] : [{ ...s, verdict, expected }];
      });
      expect(wrong).toEqual([]);
    },
  );

  it.each(FACT_STATES)('a fact "%s" keeps every rule about changes', (factState) => {
    const wrong = situationsOf(orderStatus, factState).flatMap((s) => {
      const faults = broken(s, settleIn(s));
      return faults.length === 0 ? [] : [{ ...s, faults }];
    });
    expect(wrong.slice(0, 5)).toEqual([]);
  });
});

describe('whatever the situation', () => {
  const everything = ORDER_STATUSES.flatMap((o) => FACT_STATES.flatMap((f) => situationsOf(o, f)));

  it('counts as many situations as the table has', () => {
    expect(everything).toHaveLength((4 + 2) * 8 * 6 * 3 * 3 * (5 + 2));
  });

  it.each([
    ['another account', { accountId: 'acc-b' }, {}],
    ['another app', { appId: 'app-b' }, {}],
    ['another channel', { channel: 'ch-b' }, {}],
    ['a number of no attempt of this order', { outTradeNo: 'OUT9' }, {}],
    ['a trade number of another order', {}, { tradeNoTakenElsewhere: true }],
  ])('a fact with %s is misdirected: nothing moves, a person looks', (_, fact, context) => {
    const outcomes = everything.map((s) => {
      const { verdict, changes, next } = settle(
        stateOf(s),
        aPaymentFact({ state: s.factState, learntFrom: s.learntFrom, ...fact }),
        aContext(context),
      );
      return [verdict, next, ...changes.map((c) => c.change)].join(' ');
    });
    expect([...new Set(outcomes)]).toEqual(['misdirected none open_case']);
  });

  it('a fact that names no account or app is taken as this channel’s', () => {
    const fact = aPaymentFact({ accountId: null, appId: null });
    const state = { order: anOrder(), records: [aPayRecord()], captures: [], refunds: [] };
    expect(settle(state, fact, aContext()).verdict).toBe('first_success');
  });
});
