import type { StoredAct } from '../db/act-rows';
import type { ActRefusal } from '../domain/operator-acts';
import { actView } from './ops-answers';
import { Problem } from './problems';
import type { ProblemCode } from './problems';
import type { ApiAnswer } from './route';

/** The act as it stands; what was refused is refused with the same words whenever it is asked again. */
export function answerAct(act: StoredAct, isNew: boolean): ApiAnswer {
  if (act.status === 'refused') {
    throw refusedAct(act.result?.reason ?? 'not_bookable', act.actNo, act);
  }
  const isDone = act.status === 'done';
  return {
    status: isDone ? (isNew ? 201 : 200) : 202,
    body: actView(act),
    headers: {
      Location: `/ops/acts/${act.actNo}`,
      ...(act.status === 'accepted' ? { 'Retry-After': '2' } : {}),
    },
  };
}

/** The first content of an act number wins for ever. @throws Problem act_no_reused */
export function requireSameAct(act: StoredAct, fingerprint: Buffer): void {
  if (act.fingerprint.equals(fingerprint)) return;
  throw new Problem(
    'act_no_reused',
    `act_no ${act.actNo} was used with other content: use a new number for another act`,
  );
}

const REFUSALS: Record<ActRefusal, [ProblemCode, string]> = {
  no_open_case: ['no_open_case', 'no case of it is open: there is nothing to decide'],
  case_version_outdated: [
    'case_version_outdated',
    'the case has another version by now: read it again, and decide on what it says',
  ],
  order_not_in_review: [
    'order_not_in_review',
    'money can be accepted only for an order under review',
  ],
  capture_unknown: ['capture_unknown', 'capture_id: the order has no such capture to decide about'],
  capture_reversed: ['capture_reversed', 'the channel has taken this money back'],
  nothing_left: ['nothing_left', 'all of this money is given back, or on its way'],
  over_the_rest: ['over_the_rest', 'amount: more than is left of the capture'],
  refunds_disabled: ['refunds_disabled', 'the channel makes no refunds now'],
  too_old: ['too_old', 'the channel refunds this payment no more: pay the payer another way'],
  too_many: ['too_many', 'the channel allows no more refunds of this payment'],
  refund_unknown: ['refund_not_found', 'refund_no: the order has no such refund'],
  refund_not_waiting: ['refund_not_waiting', 'only an abnormal refund is sent again by hand'],
  callback_unknown: ['callback_not_found', 'callback_id: the order has no such callback'],
  callback_not_settled: [
    'callback_not_settled',
    'the callback names a number nobody knows: it is matched by itself when the number appears',
  ],
  evidence_missing: [
    'evidence_missing',
    'the case holds money: accept it, refund it, or say in evidence what proves that it is not ours',
  ],
  second_person_needed: [
    'second_person_needed',
    'a second person must confirm it: use a new act_no',
  ],
  not_bookable: ['not_bookable', 'the order is another by now: read it again, use a new act_no'],
};

/** @param act as it is stored; absent: it was not, and its number is free */
export function refusedAct(reason: ActRefusal, actNo: string, act: StoredAct | undefined): Problem {
  const [code, detail] = REFUSALS[reason];
  return new Problem(code, `act ${actNo}: ${detail}`, act ? { extra: { act: actView(act) } } : {});
}
