/**
 * What an operator may do about an order, and what it changes. A pure rule: db/operator-acts.ts asks it
 * under the order's lock and applies what it says. An act that decides names the version of the case
 * it was decided on; the database may know more by now, and then it is refused.
 */
import type { ChannelPolicy } from './channel-policy';
import { isAmountMinor } from './money';
import type { Capture, Refund } from './orders';
import { refundableMinor } from './orders';
import { heldCaptures, isUnsent } from './held-money';
import type { Change, SettlementState } from './verdicts';

/**
 * - `accept_money`: one capture of an order in review pays it, all other money goes back
 * - `refund_money`: money of one capture goes back, in whole or in part
 * - `resend_refund`: a refund that waits for a person is sent again, under its number
 * - `close_case`: nothing is left to decide; while the case holds money, by two persons' written evidence
 * - `note`: evidence for whoever decides
 * - `query_now`, `resend_callback`, `restart_run`: look again; they decide nothing
 */
export const ACT_KINDS = [
  'accept_money',
  'refund_money',
  'resend_refund',
  'close_case',
  'note',
  'query_now',
  'resend_callback',
  'restart_run',
] as const;
export type ActKind = (typeof ACT_KINDS)[number];

/** Acts that can move money, or let money out of sight: they carry an act number. */
export const DECIDING_ACTS: readonly ActKind[] = [
  'accept_money',
  'refund_money',
  'resend_refund',
  'close_case',
];

/** What an act says, whoever said it. */
export interface ActContent {
  kind: ActKind;
  actNo: string;
  /** The case that was open, and its version then; null: there was none. */
  caseId: number | null;
  caseVersion: number | null;
  captureId: number | null;
  /** Of a refund; null: the rest. Minor units. */
  amountMinor: number | null;
  refundNo: string | null;
  callbackId: number | null;
  reason: string;
  /** What proves that held money is not ours any more. */
  evidence: string | null;
}

export type ActRefusal =
  | 'no_open_case'
  | 'case_version_outdated'
  | 'order_not_in_review'
  | 'capture_unknown'
  | 'capture_reversed'
  | 'nothing_left'
  | 'over_the_rest'
  | 'refunds_disabled'
  | 'too_old'
  | 'too_many'
  | 'refund_unknown'
  | 'refund_not_waiting'
  | 'callback_unknown'
  | 'callback_not_settled'
  | 'evidence_missing'
  | 'second_person_needed'
  | 'not_bookable';

/** What an act changes beside what settlement can change; applied in this order, before the others. */
export type ActChange =
  /** A refund that was never sent, and is held, is given up: its reservation ends. */
  | { change: 'give_up_refund'; refund: Refund }
  | { change: 'unsettle_capture'; captureId: number }
  | { change: 'settle_capture'; captureId: number }
  | {
      change: 'open_refund';
      capture: Capture;
      refundNo: string;
      amountMinor: number;
      origin: 'operator' | 'surplus';
    }
  | { change: 'send_refund_again'; refund: Refund }
  | { change: 'close_case'; settledCaptures: number[]; settledDifferences: readonly number[] }
  /** The case is decided, and closes once the refunds under way have succeeded. */
  | { change: 'await_refunds' }
  /** The case is decided in part: its version grows, so that nobody decides on an older picture. */
  | { change: 'grow_case' }
  | { change: 'add_evidence' };

export type ActDecision =
  | { decision: 'do'; first: ActChange[]; then: Change[]; asks: Asks }
  | { decision: 'refuse'; reason: ActRefusal };

/** What the order's run does next for the act. */
export interface Asks {
  /** The channel is asked about the order's attempts and open refunds. */
  channel: boolean;
  /** A callback is settled again. */
  callbackId: number | null;
}

export interface ActState extends SettlementState {
  openCase: { caseId: number; version: number } | undefined;
  /** Captures that two persons' evidence took care of before: their money is no longer here. */
  settledCaptures: readonly number[];
  /**
   * Differences of trade bills about payments of the order that only the channel knows: the case holds
   * that money too, though no capture can be given back. Not those that evidence took care of before.
   */
  channelMoney: readonly number[];
  /** What acts without a second person gave back of the order, by currency, minor units. */
  decidedAlone: Readonly<Record<string, number>>;
  /** The callback that the act names, when it is the order's. */
  callback: { status: string } | undefined;
}

export interface ActContext {
  /** ISO 8601 UTC. */
  now: string;
  policyOf: (channel: string) => ChannelPolicy;
  /** Whether the channel makes refunds now. */
  refundsEnabled: (channel: string) => boolean;
  /** Somebody else, with another key, has confirmed the act. */
  confirmed: boolean;
}

const NOTHING_ASKED: Asks = { channel: false, callbackId: null };

/** Decides an act on the order as it stands; the first reason against it counts. */
export function decideAct(state: ActState, act: ActContent, context: ActContext): ActDecision {
  const outdated = DECIDING_ACTS.includes(act.kind) ? versionFault(state, act) : undefined;
  if (outdated) return refuse(outdated);
  switch (act.kind) {
    case 'accept_money':
      return acceptMoney(state, act);
    case 'refund_money':
      return refundMoney(state, act, context);
    case 'resend_refund':
      return resendRefund(state, act, context);
    case 'close_case':
      return closeCase(state, act, context);
    case 'note':
      return perform(state.openCase ? [{ change: 'add_evidence' }] : []);
    case 'query_now':
      return perform([], [], { channel: true, callbackId: null });
    case 'resend_callback':
      if (!state.callback || act.callbackId === null) return refuse('callback_unknown');
      if (state.callback.status === 'unmatched') return refuse('callback_not_settled');
      return perform([], [], { channel: false, callbackId: act.callbackId });
    case 'restart_run':
      return perform([]);
  }
}

/** A decision is about the case as it is now; without a case there is none to name. */
function versionFault({ openCase }: ActState, act: ActContent): ActRefusal | undefined {
  if (openCase) {
    const isSame = act.caseId === openCase.caseId && act.caseVersion === openCase.version;
    return isSame ? undefined : 'case_version_outdated';
  }
  if (act.caseId !== null || act.kind === 'accept_money' || act.kind === 'close_case') {
    return 'no_open_case';
  }
  return undefined;
}

function acceptMoney(state: ActState, act: ActContent): ActDecision {
  if (state.order.status !== 'review') return refuse('order_not_in_review');
  const capture = captureOf(state, act.captureId);
  if (!capture) return refuse('capture_unknown');
  if (capture.status !== 'captured') return refuse('capture_reversed');
  if (restWithoutHeld(state, capture) === 0) return refuse('nothing_left');
  const settling = state.captures.find((c) => c.settles);
  const others = state.captures.filter(
    (c) => c.captureId !== capture.captureId && isHere(state, c) && restWithoutHeld(state, c) > 0,
  );
  return perform(
    [
      ...giveUpHeld(state, capture),
      ...(settling && settling.captureId !== capture.captureId
        ? [{ change: 'unsettle_capture', captureId: settling.captureId } as const]
        : []),
      ...(capture.settles
        ? []
        : [{ change: 'settle_capture', captureId: capture.captureId } as const]),
      ...others.flatMap((other): ActChange[] => [
        ...giveUpHeld(state, other),
        {
          change: 'open_refund',
          capture: other,
          refundNo: refundNoOf(act, other),
          amountMinor: restWithoutHeld(state, other),
          // Checked again before it is sent: the accepted capture must still stand then.
          origin: 'surplus',
        },
      ]),
      state.channelMoney.length > 0
        ? GROW_CASE
        : { change: 'close_case', settledCaptures: [], settledDifferences: [] },
    ],
    [
      { change: 'move_order', from: 'review', to: 'paid', reason: 'accepted' },
      {
        change: 'close_other_attempts',
        exceptPayRecordId: capture.payRecordId,
        reason: 'order_paid',
      },
      // Told paid before: the shop hears how the review ended, and ships nothing twice.
      state.order.paidAt === null
        ? { change: 'notify', event: 'order.paid', subjectNo: '' }
        : { change: 'notify', event: 'order.review_ended', subjectNo: caseSubject(state) },
    ],
  );
}

function refundMoney(state: ActState, act: ActContent, context: ActContext): ActDecision {
  const capture = captureOf(state, act.captureId);
  if (!capture) return refuse('capture_unknown');
  const paysOrder = capture.settles && state.order.status === 'paid';
  // Money that no case holds and that pays nothing is on its way already, or was taken care of.
  if (!paysOrder && !state.openCase) return refuse('no_open_case');
  if (capture.status !== 'captured') return refuse('capture_reversed');
  const restMinor = restWithoutHeld(state, capture);
  const amountMinor = act.amountMinor ?? restMinor;
  if (restMinor === 0) return refuse('nothing_left');
  if (!isAmountMinor(amountMinor) || amountMinor > restMinor) return refuse('over_the_rest');
  const fault = channelFault(state, capture, context);
  if (fault) return refuse(fault);
  // The last free money of the case: when what is on its way has arrived, nothing is left to decide.
  const isLast = !paysOrder && amountMinor === freeMinor(state) && state.channelMoney.length === 0;
  return perform([
    ...giveUpHeld(state, capture),
    {
      change: 'open_refund',
      capture,
      refundNo: refundNoOf(act, capture),
      amountMinor,
      origin: 'operator',
    },
    ...(state.openCase ? [isLast ? AWAIT_REFUNDS : GROW_CASE] : []),
  ]);
}

const GROW_CASE: ActChange = { change: 'grow_case' };
const AWAIT_REFUNDS: ActChange = { change: 'await_refunds' };

/** Held money that is not on its way back yet. */
function freeMinor(state: ActState): number {
  return heldHere(state)
    .filter((c) => !(c.settles && state.order.status === 'paid'))
    .reduce((sum, c) => sum + restWithoutHeld(state, c), 0);
}

/** Whether the case holds any money, here or at the channel. */
export function holdsMoney(state: ActState): boolean {
  return heldHere(state).length > 0 || state.channelMoney.length > 0;
}

export function heldHere(state: ActState): Capture[] {
  return heldCaptures(state).filter((capture) => isHere(state, capture));
}

/** What the channel's own limits and switches forbid, as for a merchant's refund. */
function channelFault(
  state: ActState,
  capture: Capture,
  { now, policyOf, refundsEnabled }: ActContext,
): ActRefusal | undefined {
  const policy = policyOf(capture.channel);
  if (!refundsEnabled(capture.channel)) return 'refunds_disabled';
  const capturedAt = Date.parse(capture.paidAt ?? capture.learntAt);
  if (Date.parse(now) - capturedAt > policy.refundMaxAgeMs) return 'too_old';
  const counted = state.refunds.filter(
    (r) => r.captureId === capture.captureId && r.status !== 'failed' && !isUnsent(r),
  );
  return counted.length >= policy.maxRefundsPerCapture ? 'too_many' : undefined;
}

function resendRefund(state: ActState, act: ActContent, context: ActContext): ActDecision {
  const refund = state.refunds.find((r) => r.refundNo === act.refundNo);
  if (!refund) return refuse('refund_unknown');
  if (refund.status !== 'abnormal') return refuse('refund_not_waiting');
  if (!context.refundsEnabled(refund.channel)) return refuse('refunds_disabled');
  return perform([
    { change: 'send_refund_again', refund },
    ...(state.openCase ? [afterResend(state, refund)] : []),
  ]);
}

/** When this refund's money is all that the case holds, its success closes the case. */
function afterResend(state: ActState, refund: Refund): ActChange {
  const others = heldHere(state).filter(
    (c) => c.captureId !== refund.captureId || (refundableMinor(c) > 0 && !c.settles),
  );
  return others.length + state.channelMoney.length === 0 ? AWAIT_REFUNDS : GROW_CASE;
}

function closeCase(state: ActState, act: ActContent, context: ActContext): ActDecision {
  if (holdsMoney(state)) {
    if (!act.evidence) return refuse('evidence_missing');
    if (!context.confirmed) return refuse('second_person_needed');
  }
  return perform(
    [
      {
        change: 'close_case',
        settledCaptures: heldHere(state).map((c) => c.captureId),
        settledDifferences: state.channelMoney,
      },
    ],
    closingOf(state, 'decided'),
  );
}

/** What becomes of an order whose case closes without its being paid. */
function closingOf(state: ActState, reason: string): Change[] {
  if (state.order.status !== 'review') return [];
  // It may have been closed, and told so, before it came under review.
  const subjectNo = caseSubject(state);
  return [
    { change: 'move_order', from: 'review', to: 'closed', reason },
    { change: 'notify', event: 'order.closed', subjectNo },
  ];
}

/** Of an event that a decision causes: one order may come under review again, and end it again. */
function caseSubject({ openCase }: ActState): string {
  return openCase ? `case:${openCase.caseId}` : '';
}

/**
 * After a refund succeeded: whether the case that waited for it closes by itself, and what becomes of
 * the order. Undefined while money is still held, or when the case knows more than was decided on.
 *
 * @param awaitsVersion the case's version when the last refund it waits for was decided
 */
export function decideAfterRefund(
  state: ActState,
  awaitsVersion: number | null,
): Change[] | undefined {
  if (!state.openCase || state.openCase.version !== awaitsVersion) return undefined;
  return holdsMoney(state) ? undefined : closingOf(state, 'refunded');
}

/** The amount that an act left out, as it is now: what is stored is what the second person reads. */
export function amountOf(state: ActState, act: ActContent): number | null {
  if (act.kind !== 'refund_money' || act.amountMinor !== null) return act.amountMinor;
  const capture = captureOf(state, act.captureId);
  const restMinor = capture ? restWithoutHeld(state, capture) : 0;
  return restMinor > 0 ? restMinor : null;
}

/** A capture whose money may still be here: not one that evidence took care of before. */
export function captureOf(state: ActState, captureId: number | null): Capture | undefined {
  const capture = state.captures.find((c) => c.captureId === captureId);
  return capture && isHere(state, capture) ? capture : undefined;
}

export function isHere({ settledCaptures }: ActState, capture: Capture): boolean {
  return !settledCaptures.includes(capture.captureId);
}

/** What is free once the refunds that were promised, never sent, and are held have been given up. */
export function restWithoutHeld(state: ActState, capture: Capture): number {
  if (capture.status !== 'captured') return 0;
  const unsent = state.refunds
    .filter((r) => r.captureId === capture.captureId && isUnsent(r))
    .reduce((sum, r) => sum + r.amountMinor, 0);
  return refundableMinor({ ...capture, reservedMinor: capture.reservedMinor - unsent });
}

function giveUpHeld(state: ActState, capture: Capture): ActChange[] {
  return state.refunds
    .filter((r) => r.captureId === capture.captureId && isUnsent(r))
    .map((refund) => ({ change: 'give_up_refund', refund }));
}

/** No merchant can choose such a number, and no other act has this one. */
function refundNoOf(act: ActContent, capture: Capture): string {
  return `act:${act.actNo}:${capture.captureId}`;
}

function refuse(reason: ActRefusal): ActDecision {
  return { decision: 'refuse', reason };
}

function perform(first: ActChange[], then: Change[] = [], asks: Asks = NOTHING_ASKED): ActDecision {
  return { decision: 'do', first, then, asks };
}
