import { randomUUID } from 'node:crypto';
import type { ActKind } from '../../../domain/operator-acts';
import { ACT_KINDS } from '../../../domain/operator-acts';
import { Problem } from '../../problems';
import type { Form, Refused } from './frame';
import { typedAmount } from './money';

/** What operators read for each kind of act. */
export const ACT_WORDS: Record<ActKind, string> = {
  accept_money: 'Accept this money: the order is paid',
  refund_money: 'Give this money back',
  resend_refund: 'Send the refund again',
  close_case: 'Close the case',
  note: 'Add a note',
  query_now: 'Ask the channel now',
  resend_callback: 'Apply a callback again',
  restart_run: 'Start the order’s run again',
};

export function actWords(kind: string): string {
  return ACT_WORDS[kind as ActKind] ?? kind;
}

const CASE = ['case_id', 'case_version'] as const;
const FIELDS: Record<ActKind, readonly string[]> = {
  accept_money: [...CASE, 'capture_id'],
  refund_money: [...CASE, 'capture_id', 'amount'],
  resend_refund: [...CASE, 'refund_no'],
  close_case: [...CASE, 'evidence'],
  note: [],
  query_now: [],
  resend_callback: ['callback_id'],
  restart_run: [],
};

/**
 * The body that the API's route takes, of what a form sent; the route checks it.
 * @param currency of the capture, for the amount that was typed
 * @throws Problem when the form names no act, or holds no amount
 */
export function actBody(form: Form, currency: string | undefined): Record<string, unknown> {
  const kind = form['kind'] as ActKind;
  if (!ACT_KINDS.includes(kind)) throw new Problem('invalid_request', 'kind: there is no such act');
  const body: Record<string, unknown> = {};
  for (const name of ['kind', 'act_no', 'name', 'reason', ...FIELDS[kind]]) {
    const value = form[name];
    if (value === undefined) continue;
    body[name] = name === 'case_version' ? Number(value) : value;
  }
  const { amount } = form;
  if (kind === 'refund_money' && amount !== undefined) {
    // Without the capture nobody can tell what was typed, and no amount would mean all of it.
    if (currency === undefined)
      throw new Problem('capture_unknown', 'the order has no such capture');
    body['amount'] = typedAmount(amount, currency);
  }
  return body;
}

/** Made with the form, so that sending it twice is one act. */
export function newActNo(): string {
  return `desk-${randomUUID()}`;
}

/**
 * The number for a form that is shown again. One that is stored with what was refused is spent; any
 * other stays, so that an act that did get through is not done a second time.
 */
export function actNoAfter({ problem, form }: Refused): string {
  const isSpent = problem.options.extra?.['act'] !== undefined || problem.code === 'act_no_reused';
  return (isSpent ? undefined : form['act_no']) ?? newActNo();
}
