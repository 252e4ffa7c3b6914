import { heldCaptures, orphanHoldsMoney } from '../../domain/held-money';
import { amountOf, decideAct, decideAfterRefund } from '../../domain/operator-acts';
import type {
  ActContent,
  ActContext,
  ActDecision,
  ActRefusal,
  ActState,
} from '../../domain/operator-acts';
import { needsSecondPerson } from '../../domain/second-person';
import { aCapture, anOrder, aPayRecord, aPolicy, aRefund, at, NOW } from '../support/builders';

const CASE = { caseId: 7, version: 3 };

/** An order in review: 90.00 came instead of 100.00, held by case 7 at version 3. */
function aReview(said: Partial<ActState> = {}): ActState {
  return {
    order: anOrder({ status: 'review', statusReason: 'amount_mismatch' }),
    records: [aPayRecord({ status: 'paid' })],
    captures: [aCapture({ kind: 'held', amountMinor: 9_000 })],
    refunds: [],
    openCase: CASE,
    settledCaptures: [],
    decidedAlone: {},
    channelMoney: [],
    callback: undefined,
    ...said,
  };
}

/** An order paid by capture 1; capture 2 came a second time and is held by case 7. */
function aPaidWithSurplus(said: Partial<ActState> = {}): ActState {
  return aReview({
    order: anOrder({ status: 'paid', paidAt: at('12:02') }),
    captures: [aCapture(), aCapture({ captureId: 2, kind: 'surplus_duplicate' })],
    ...said,
  });
}

function anAct(said: Partial<ActContent> & Pick<ActContent, 'kind'>): ActContent {
  return {
    actNo: 'act-1',
    caseId: CASE.caseId,
    caseVersion: CASE.version,
    captureId: 1,
    amountMinor: null,
    refundNo: null,
    callbackId: null,
    reason: 'because',
    evidence: null,
    ...said,
  };
}

const CONTEXT: ActContext = {
  now: NOW,
  policyOf: () => aPolicy(),
  refundsEnabled: () => true,
  confirmed: false,
};

/** What is done, in short words: `settle 1`, `refund 2 of 10000 as surplus`, `order review>paid`. */
function told(decision: ActDecision): string[] | ActRefusal {
  if (decision.decision === 'refuse') return decision.reason;
  const first = decision.first.map((change) => {
    switch (change.change) {
      case 'give_up_refund':
      case 'send_refund_again':
        return `${change.change} ${change.refund.refundNo}`;
      case 'unsettle_capture':
      case 'settle_capture':
        return `${change.change} ${change.captureId}`;
      case 'open_refund': {
        const { capture, amountMinor, origin, refundNo } = change;
        return `refund ${capture.captureId} of ${amountMinor} as ${origin} ${refundNo}`;
      }
      case 'close_case':
        return change.settledDifferences.length > 0
          ? `close_case [${change.settledCaptures.join()}] [${change.settledDifferences.join()}]`
          : `close_case [${change.settledCaptures.join()}]`;
      case 'await_refunds':
      case 'grow_case':
      case 'add_evidence':
        return change.change;
    }
  });
  const then = decision.then.map((change) => {
    switch (change.change) {
      case 'move_order':
        return `order ${change.from}>${change.to} ${change.reason}`;
      case 'notify':
        return change.event === 'order.review_ended'
          ? `tell ${change.event} ${change.subjectNo}`
          : `tell ${change.event}`;
      default:
        return change.change;
    }
  });
  return [...first, ...then];
}

const PAID = ['order review>paid accepted', 'close_other_attempts', 'tell order.paid'];
const CLOSED = (reason: string) => [`order review>closed ${reason}`, 'tell order.closed'];

const accept = (said: Partial<ActContent> = {}) => anAct({ kind: 'accept_money', ...said });
const giveBack = (said: Partial<ActContent> = {}) => anAct({ kind: 'refund_money', ...said });
const resend = (said: Partial<ActContent> = {}) =>
  anAct({ kind: 'resend_refund', refundNo: 'r-1', ...said });
const close = (said: Partial<ActContent> = {}) => anAct({ kind: 'close_case', ...said });
const two = aCapture({ captureId: 2, kind: 'held', amountMinor: 500, payRecordId: 1 });
const heldRefund = aRefund({ status: 'abnormal', sends: 0, amountMinor: 9_000 });
const sentRefund = aRefund({ status: 'abnormal', sends: 1, amountMinor: 9_000 });
const reserved = aCapture({ kind: 'held', amountMinor: 9_000, reservedMinor: 9_000 });

interface Row {
  name: string;
  state: ActState;
  act: ActContent;
  context?: Partial<ActContext>;
  is: string[] | ActRefusal;
}

const ROWS: Row[] = [
  // ---- accepting: exactly one capture settles, the others go back, the case closes
  {
    name: 'accepts the one capture of a review',
    state: aReview(),
    act: accept(),
    is: ['settle_capture 1', 'close_case []', ...PAID],
  },
  {
    name: 'accepts one of two captures and gives the other back',
    state: aReview({ captures: [aCapture({ kind: 'held', amountMinor: 9_000 }), two] }),
    act: accept(),
    is: ['settle_capture 1', 'refund 2 of 500 as surplus act:act-1:2', 'close_case []', ...PAID],
  },
  {
    name: 'accepts another capture than the one that settled: that one goes back',
    state: aReview({ captures: [aCapture({ reversedMinor: 4_000 }), two] }),
    act: accept({ captureId: 2 }),
    is: [
      'unsettle_capture 1',
      'settle_capture 2',
      'refund 1 of 6000 as surplus act:act-1:1',
      'close_case []',
      ...PAID,
    ],
  },
  {
    name: 'accepts again what settled before, after a reinstatement',
    state: aReview({ captures: [aCapture({ reinstatedAt: NOW })] }),
    act: accept(),
    is: ['close_case []', ...PAID],
  },
  {
    name: 'accepts money of an order that was told paid before: its review has ended, it is not told paid again',
    state: aReview({
      order: anOrder({ status: 'review', statusReason: 'reversed', paidAt: at('12:02') }),
      captures: [aCapture({ reinstatedAt: NOW })],
    }),
    act: accept(),
    is: ['close_case []', ...PAID.slice(0, 2), 'tell order.review_ended case:7'],
  },
  {
    name: 'accepts money whose promised refund is held and was never sent: the promise ends',
    state: aReview({ captures: [reserved], refunds: [heldRefund] }),
    act: accept(),
    is: ['give_up_refund r-1', 'settle_capture 1', 'close_case []', ...PAID],
  },
  {
    name: 'does not accept what is on its way back',
    state: aReview({ captures: [reserved], refunds: [sentRefund] }),
    act: accept(),
    is: 'nothing_left',
  },
  {
    name: 'does not accept what the channel took back',
    state: aReview({ captures: [aCapture({ status: 'reversed', reversedMinor: 10_000 })] }),
    act: accept(),
    is: 'capture_reversed',
  },
  {
    name: 'does not accept a second capture of a paid order',
    state: aPaidWithSurplus(),
    act: accept({ captureId: 2 }),
    is: 'order_not_in_review',
  },
  {
    name: 'knows no capture of others',
    state: aReview(),
    act: accept({ captureId: 99 }),
    is: 'capture_unknown',
  },
  {
    name: 'does not accept what evidence said is no longer here',
    state: aReview({ settledCaptures: [1] }),
    act: accept(),
    is: 'capture_unknown',
  },
  // ---- the version
  {
    name: 'an older version',
    state: aReview(),
    act: accept({ caseVersion: 2 }),
    is: 'case_version_outdated',
  },
  {
    name: 'the same version of another case',
    state: aReview(),
    act: giveBack({ caseId: 6 }),
    is: 'case_version_outdated',
  },
  {
    name: 'no version although a case is open',
    state: aReview(),
    act: giveBack({ caseId: null, caseVersion: null }),
    is: 'case_version_outdated',
  },
  {
    name: 'a version although the case is closed',
    state: aReview({ openCase: undefined }),
    act: accept(),
    is: 'no_open_case',
  },
  {
    name: 'closing without a case',
    state: aReview({ openCase: undefined }),
    act: close({ caseId: null, caseVersion: null }),
    is: 'no_open_case',
  },
  // ---- giving back
  {
    name: 'gives all of a review back: the case closes when it has arrived',
    state: aReview(),
    act: giveBack(),
    is: ['refund 1 of 9000 as operator act:act-1:1', 'await_refunds'],
  },
  {
    name: 'gives a part back: the case stays, at a new version',
    state: aReview(),
    act: giveBack({ amountMinor: 1_000 }),
    is: ['refund 1 of 1000 as operator act:act-1:1', 'grow_case'],
  },
  {
    name: 'gives one of two captures back: the other is still to be decided',
    state: aReview({ captures: [aCapture({ kind: 'held', amountMinor: 9_000 }), two] }),
    act: giveBack({ captureId: 2 }),
    is: ['refund 2 of 500 as operator act:act-1:2', 'grow_case'],
  },
  {
    name: 'gives surplus of a paid order back',
    state: aPaidWithSurplus(),
    act: giveBack({ captureId: 2 }),
    is: ['refund 2 of 10000 as operator act:act-1:2', 'await_refunds'],
  },
  {
    name: 'refunds a paid order that no case is about',
    state: aPaidWithSurplus({ openCase: undefined, captures: [aCapture()] }),
    act: giveBack({ caseId: null, caseVersion: null, amountMinor: 2_500 }),
    is: ['refund 1 of 2500 as operator act:act-1:1'],
  },
  {
    name: 'does not draw on money that no case holds and that pays nothing',
    state: aPaidWithSurplus({ openCase: undefined }),
    act: giveBack({ captureId: 2, caseId: null, caseVersion: null }),
    is: 'no_open_case',
  },
  {
    name: 'does not pay again what evidence said was paid another way',
    state: aReview({ settledCaptures: [1] }),
    act: giveBack(),
    is: 'capture_unknown',
  },
  {
    name: 'not more than is left',
    state: aReview({
      captures: [aCapture({ kind: 'held', refundedMinor: 3_000, reservedMinor: 2_000 })],
    }),
    act: giveBack({ amountMinor: 5_001 }),
    is: 'over_the_rest',
  },
  {
    name: 'exactly what is left',
    state: aReview({
      captures: [aCapture({ kind: 'held', refundedMinor: 3_000, reservedMinor: 2_000 })],
    }),
    act: giveBack({ amountMinor: 5_000 }),
    is: ['refund 1 of 5000 as operator act:act-1:1', 'await_refunds'],
  },
  {
    name: 'nothing of a reversed capture',
    state: aReview({ captures: [aCapture({ status: 'reversed', reversedMinor: 10_000 })] }),
    act: giveBack(),
    is: 'capture_reversed',
  },
  {
    name: 'not while the channel makes no refunds',
    state: aReview(),
    act: giveBack(),
    context: { refundsEnabled: () => false },
    is: 'refunds_disabled',
  },
  {
    name: 'not past the channel’s age',
    state: aReview(),
    act: giveBack(),
    context: { policyOf: () => aPolicy({ refundMaxAgeMs: 1_000 }) },
    is: 'too_old',
  },
  {
    name: 'not more often than the channel allows',
    state: aReview({ refunds: [aRefund({ status: 'succeeded' })] }),
    act: giveBack(),
    context: { policyOf: () => aPolicy({ maxRefundsPerCapture: 1 }) },
    is: 'too_many',
  },
  // ---- sending again
  {
    name: 'sends an abnormal refund again; its success closes the case',
    state: aReview({ captures: [reserved], refunds: [sentRefund] }),
    act: resend(),
    is: ['send_refund_again r-1', 'await_refunds'],
  },
  {
    name: 'sends it again while other money is to be decided',
    state: aReview({ captures: [reserved, two], refunds: [sentRefund] }),
    act: resend(),
    is: ['send_refund_again r-1', 'grow_case'],
  },
  {
    name: 'sends nothing again that goes on by itself',
    state: aReview({ refunds: [aRefund()] }),
    act: resend(),
    is: 'refund_not_waiting',
  },
  { name: 'knows no such refund', state: aReview(), act: resend(), is: 'refund_unknown' },
  // ---- closing
  {
    name: 'closes a case that holds nothing',
    state: aReview({ captures: [aCapture({ kind: 'held', refundedMinor: 10_000 })] }),
    act: close(),
    is: ['close_case []', ...CLOSED('decided')],
  },
  {
    name: 'closes the case of a paid order and leaves the order paid',
    state: aPaidWithSurplus({ captures: [aCapture()] }),
    act: close(),
    is: ['close_case []'],
  },
  {
    name: 'does not close a case that holds money without evidence',
    state: aReview(),
    act: close(),
    context: { confirmed: true },
    is: 'evidence_missing',
  },
  {
    name: 'nor by the evidence of one person',
    state: aReview(),
    act: close({ evidence: 'paid by bank' }),
    is: 'second_person_needed',
  },
  {
    name: 'closes by two persons’ evidence and remembers whose money it was',
    state: aReview(),
    act: close({ evidence: 'paid by bank' }),
    context: { confirmed: true },
    is: ['close_case [1]', ...CLOSED('decided')],
  },
  // ---- money that only the channel has, by its trade bill
  {
    name: 'does not close a case about money at the channel without evidence',
    state: aPaidWithSurplus({ captures: [aCapture()], channelMoney: [31] }),
    act: close(),
    context: { confirmed: true },
    is: 'evidence_missing',
  },
  {
    name: 'nor by the evidence of one person',
    state: aPaidWithSurplus({ captures: [aCapture()], channelMoney: [31] }),
    act: close({ evidence: 'the channel gave it back' }),
    is: 'second_person_needed',
  },
  {
    name: 'closes it by two persons’ evidence and remembers which money it was',
    state: aReview({ channelMoney: [31, 32] }),
    act: close({ evidence: 'the channel gave it back' }),
    context: { confirmed: true },
    is: ['close_case [1] [31,32]', ...CLOSED('decided')],
  },
  {
    name: 'gives all captures back: the case stays for what is at the channel',
    state: aReview({ channelMoney: [31] }),
    act: giveBack(),
    is: ['refund 1 of 9000 as operator act:act-1:1', 'grow_case'],
  },
  {
    name: 'sends the last refund again: the case stays for what is at the channel',
    state: aReview({ captures: [reserved], refunds: [sentRefund], channelMoney: [31] }),
    act: resend(),
    is: ['send_refund_again r-1', 'grow_case'],
  },
  {
    name: 'accepts a capture: the case stays for what is at the channel',
    state: aReview({ channelMoney: [31] }),
    act: accept(),
    is: ['settle_capture 1', 'grow_case', ...PAID],
  },
  {
    name: 'does not close while a refund is on its way',
    state: aReview({ captures: [reserved], refunds: [aRefund({ amountMinor: 9_000 })] }),
    act: close(),
    is: 'evidence_missing',
  },
  {
    name: 'does not lose sight of a refund that waits for a person on a paid order',
    state: aPaidWithSurplus({
      captures: [aCapture({ reservedMinor: 9_000 })],
      refunds: [sentRefund],
    }),
    act: close(),
    is: 'evidence_missing',
  },
  // ---- looking again
  {
    name: 'a note is evidence',
    state: aReview(),
    act: anAct({ kind: 'note' }),
    is: ['add_evidence'],
  },
  {
    name: 'a note without a case stays an act',
    state: aReview({ openCase: undefined }),
    act: anAct({ kind: 'note' }),
    is: [],
  },
  { name: 'asking changes nothing', state: aReview(), act: anAct({ kind: 'query_now' }), is: [] },
  {
    name: 'starting a run changes nothing',
    state: aReview(),
    act: anAct({ kind: 'restart_run' }),
    is: [],
  },
  {
    name: 'a callback of others',
    state: aReview(),
    act: anAct({ kind: 'resend_callback', callbackId: 5 }),
    is: 'callback_unknown',
  },
  {
    name: 'a callback whose number is not known yet',
    state: aReview({ callback: { status: 'unmatched' } }),
    act: anAct({ kind: 'resend_callback', callbackId: 5 }),
    is: 'callback_not_settled',
  },
  {
    name: 'a callback that was settled',
    state: aReview({ callback: { status: 'applied' } }),
    act: anAct({ kind: 'resend_callback', callbackId: 5 }),
    is: [],
  },
];

describe('an operator’s act', () => {
  it.each(ROWS.map((row) => [`${row.act.kind}: ${row.name}`, row] as const))(
    '%s',
    (_name, { state, act, context, is }) => {
      expect(told(decideAct(state, act, { ...CONTEXT, ...context }))).toEqual(is);
    },
  );

  it('asks the channel, or has a callback settled again, and nothing else', () => {
    const asks = (act: ActContent) => {
      const decision = decideAct(aReview({ callback: { status: 'no_effect' } }), act, CONTEXT);
      return decision.decision === 'do' ? decision.asks : undefined;
    };
    expect(asks(anAct({ kind: 'query_now' }))).toEqual({ channel: true, callbackId: null });
    expect(asks(anAct({ kind: 'resend_callback', callbackId: 5 }))).toEqual({
      channel: false,
      callbackId: 5,
    });
    expect(asks(anAct({ kind: 'restart_run' }))).toEqual({ channel: false, callbackId: null });
  });
});

describe('a case that waits for refunds', () => {
  const refunded = aReview({
    captures: [aCapture({ kind: 'held', amountMinor: 9_000, refundedMinor: 9_000 })],
  });

  it('closes when the last of them has arrived, and its order with it', () => {
    expect(decideAfterRefund(refunded, 3)).toMatchObject([
      { change: 'move_order', to: 'closed', reason: 'refunded' },
      { change: 'notify', event: 'order.closed' },
    ]);
  });

  it('leaves a paid order paid', () => {
    const state = aPaidWithSurplus({
      captures: [aCapture(), aCapture({ captureId: 2, kind: 'held', refundedMinor: 10_000 })],
    });
    expect(decideAfterRefund(state, 3)).toEqual([]);
  });

  it('stays open while money is held', () => {
    expect(
      decideAfterRefund(aReview({ captures: [...refunded.captures, two] }), 3),
    ).toBeUndefined();
  });

  it('stays open while other money is at the channel', () => {
    expect(decideAfterRefund({ ...refunded, channelMoney: [31] }, 3)).toBeUndefined();
  });

  it('stays open when it has learnt more since it was decided, or was never decided', () => {
    expect(decideAfterRefund(refunded, 2)).toBeUndefined();
    expect(decideAfterRefund(refunded, null)).toBeUndefined();
  });
});

describe('a second person', () => {
  const upTo = (minor: number) => (currency: string) => (currency === 'CNY' ? minor : 0);

  it.each([
    [
      'accepting counts all the money it moves',
      aReview({ captures: [aCapture({ kind: 'held' }), two] }),
      accept(),
      10_500,
    ],
    ['giving back counts its amount', aReview(), giveBack({ amountMinor: 4_000 }), 4_000],
    ['giving the rest back counts the rest', aReview(), giveBack(), 9_000],
    [
      'sending again counts the refund',
      aReview({ captures: [reserved], refunds: [sentRefund] }),
      resend(),
      9_000,
    ],
  ])('%s', (_name, state, act, minor) => {
    expect(needsSecondPerson(state, act, upTo(minor))).toBe(false);
    expect(needsSecondPerson(state, act, upTo(minor - 1))).toBe(true);
  });

  it.each<[string, ActState['decidedAlone'], number, boolean]>([
    ['nothing yet, exactly the limit', {}, 5_000, false],
    ['nothing yet, one more than the limit', {}, 5_001, true],
    ['some, up to the limit', { CNY: 4_000 }, 1_000, false],
    ['some, one more than the limit', { CNY: 4_000 }, 1_001, true],
    ['the limit: nothing more', { CNY: 5_000 }, 1, true],
    ['the limit in another currency', { USD: 5_000 }, 5_000, false],
  ])('counts what one person decided before: %s', (_name, decidedAlone, amountMinor, needed) => {
    const state = aReview({ decidedAlone });
    expect(needsSecondPerson(state, giveBack({ amountMinor }), upTo(5_000))).toBe(needed);
    // The rest that is accepted after parts of it went back was decided in parts, too.
    const rest = aCapture({ kind: 'held', amountMinor });
    const parts = aReview({ decidedAlone, captures: [rest] });
    expect(needsSecondPerson(parts, accept(), upTo(5_000))).toBe(needed);
  });

  it('is needed for every case that closes while it holds money, whatever the amount', () => {
    expect(needsSecondPerson(aReview(), close(), upTo(1e9))).toBe(true);
    expect(needsSecondPerson(aPaidWithSurplus({ captures: [aCapture()] }), close(), upTo(0))).toBe(
      false,
    );
  });

  it('is needed for a case about money that only the channel has', () => {
    const state = aPaidWithSurplus({ captures: [aCapture()], channelMoney: [31] });
    expect(needsSecondPerson(state, close(), upTo(1e9))).toBe(true);
  });

  it('is not needed to look', () => {
    for (const kind of ['note', 'query_now', 'resend_callback', 'restart_run'] as const) {
      expect(needsSecondPerson(aReview(), anAct({ kind }), upTo(0))).toBe(false);
    }
  });

  it('reads the amount that the first left out', () => {
    expect(amountOf(aReview(), giveBack())).toBe(9_000);
    expect(amountOf(aReview(), giveBack({ amountMinor: 1 }))).toBe(1);
    expect(amountOf(aReview(), accept())).toBeNull();
  });
});

describe('money that a case holds', () => {
  it('is what pays nothing and has not gone back', () => {
    expect(heldCaptures(aPaidWithSurplus()).map((c) => c.captureId)).toEqual([2]);
    expect(heldCaptures(aReview()).map((c) => c.captureId)).toEqual([1]);
    expect(heldCaptures(aReview({ captures: [reserved] }))).toHaveLength(1);
  });

  it('may belong to no order: a paid number that nobody knows', () => {
    expect(orphanHoldsMoney([{ fact: { kind: 'payment', state: 'paid' }, copies: 1 }])).toBe(true);
    expect(orphanHoldsMoney([{ fact: { kind: 'payment', state: 'closed' } }, null, 7])).toBe(false);
    expect(orphanHoldsMoney([])).toBe(false);
    const inBill = (difference: string, reason = '') => ({ difference, reason, line: 7 });
    expect(orphanHoldsMoney([{ evidence: inBill('channel_only') }])).toBe(true);
    expect(orphanHoldsMoney([{ evidence: inBill('channel_only', 'reversal') }])).toBe(false);
    expect(orphanHoldsMoney([{ evidence: inBill('refund_channel_only') }])).toBe(false);
    expect(orphanHoldsMoney([{ evidence: [inBill('channel_only')] }])).toBe(true);
    expect(orphanHoldsMoney([{ evidence: [inBill('row_error')] }])).toBe(false);
  });
});
