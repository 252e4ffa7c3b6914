/**
 * The states of everything that moves, and the only moves allowed. The schema holds the same table
 * (`allowed_moves`, checked by a trigger), so a hand-typed update cannot leave it either.
 */

export type OrderStatus = 'created' | 'paying' | 'paid' | 'closed' | 'review';
export type PayRecordStatus = 'created' | 'submitting' | 'pending' | 'paid' | 'failed' | 'closed';
export type CaptureStatus = 'captured' | 'reversed';
export type RefundState =
  'created' | 'submitting' | 'processing' | 'succeeded' | 'failed' | 'returned' | 'abnormal';
export type RefundStatusOfOrder = 'none' | 'pending' | 'partial' | 'full';
/**
 * Of the reconciliation of a channel's business date. `waiting_bill`: the channel has not made its bill
 * yet. `done`: compared, and there is a report. `rejected`: the file cannot be used. `no_bill`: not there
 * in time; it is looked for again later.
 */
export type RunStatus = 'running' | 'waiting_bill' | 'done' | 'rejected' | 'no_bill';
/**
 * `open`: something is wrong and nothing explains it yet. `waiting`: nothing is wrong yet, it is being
 * settled (a surplus that is being refunded, a refund under way on both sides). `suspense`: waits for the
 * other side across dates. `case`: before a person. `resolved`: gone when compared again, or explained.
 */
export type DifferenceStatus = 'open' | 'waiting' | 'suspense' | 'case' | 'resolved';
export type FulfilmentStatus = 'none' | 'running' | 'done' | 'compensating' | 'failed';
export type FulfilmentStepStatus =
  'waiting' | 'running' | 'done' | 'refused' | 'undoing' | 'undone' | 'undo_failed' | 'skipped';
export type CloseReason = 'expired' | 'cancelled';

/** Attempts that may still take money; at most one per order. */
export const LIVE_ATTEMPT: readonly PayRecordStatus[] = ['created', 'submitting', 'pending'];
/** Refunds whose outcome is still open. `abnormal` waits for a person and is listed in a case. */
export const OPEN_REFUND: readonly RefundState[] = ['created', 'submitting', 'processing'];

type Moves<S extends string> = Readonly<Record<S, readonly S[]>>;

const order: Moves<OrderStatus> = {
  created: ['paying', 'closed', 'review'],
  paying: ['paid', 'closed', 'review'],
  paid: ['review'],
  closed: ['review', 'paid'],
  review: ['paid', 'closed'],
};

const payRecord: Moves<PayRecordStatus> = {
  created: ['submitting', 'pending', 'paid', 'failed', 'closed'],
  submitting: ['pending', 'paid', 'failed', 'closed'],
  pending: ['paid', 'failed', 'closed'],
  // Money that arrives is a fact, whatever we believed before.
  failed: ['paid'],
  closed: ['paid'],
  paid: [],
};

const capture: Moves<CaptureStatus> = { captured: ['reversed'], reversed: ['captured'] };

const refund: Moves<RefundState> = {
  created: ['submitting', 'processing', 'succeeded', 'failed', 'abnormal'],
  submitting: ['processing', 'succeeded', 'failed', 'abnormal'],
  processing: ['succeeded', 'failed', 'abnormal'],
  abnormal: ['submitting', 'processing', 'succeeded', 'failed'],
  failed: ['succeeded'],
  succeeded: ['returned'],
  returned: [],
};

const case_ = { open: ['closed'], closed: [] } as const;
const callback = {
  stored: ['applied', 'no_effect', 'unmatched'],
  unmatched: ['stored'],
  // The same news again, after the state it speaks of has changed, is news again.
  applied: ['stored'],
  no_effect: ['stored'],
} as const;
const notification = {
  pending: ['sent', 'dead'],
  // A person may have both sent after all.
  dead: ['pending'],
  kept: ['pending'],
  sent: [],
} as const;

const fulfilment: Moves<FulfilmentStatus> = {
  none: ['running'],
  running: ['done', 'compensating'],
  // What is delivered is the shop's own affair from then on: it stays done whatever becomes of the money.
  done: [],
  compensating: ['failed'],
  failed: [],
};

const fulfilmentStep: Moves<FulfilmentStepStatus> = {
  waiting: ['running', 'skipped'],
  running: ['done', 'refused', 'undoing', 'undone'],
  done: ['undoing', 'undone'],
  // Undone when an earlier try may have worked.
  refused: ['undoing', 'undone'],
  undoing: ['undone', 'undo_failed'],
  undone: [],
  undo_failed: [],
  skipped: [],
};

/** Acts wait for a second person, then for the order's run; what became of them never changes. */
const operatorAct = {
  waiting_second: ['accepted'],
  accepted: ['done', 'refused'],
  done: [],
  refused: [],
} as const;

/** A bill that was refused is never any other; of the loaded ones of a date the newest counts. */
const tradeBill = { loaded: ['superseded'], superseded: [], rejected: [] } as const;

/** A run starts over from wherever an earlier one ended. */
const reconciliationRun: Moves<RunStatus> = {
  running: ['waiting_bill', 'done', 'rejected', 'no_bill'],
  waiting_bill: ['running', 'rejected', 'no_bill'],
  done: ['running'],
  rejected: ['running'],
  no_bill: ['running'],
};

/** What is before a person stays there until it is gone; what was gone may come back. */
const difference: Moves<DifferenceStatus> = {
  open: ['waiting', 'suspense', 'case', 'resolved'],
  waiting: ['open', 'case', 'resolved'],
  suspense: ['open', 'case', 'resolved'],
  case: ['open', 'resolved'],
  resolved: ['open', 'waiting', 'suspense'],
};

/** Every allowed move by subject; the subject's name is the trigger's argument in the schema. */
export const MOVES = {
  order,
  pay_record: payRecord,
  capture,
  refund,
  case: case_,
  callback,
  notification,
  trade_bill: tradeBill,
  reconciliation_run: reconciliationRun,
  difference,
  fulfilment,
  fulfilment_step: fulfilmentStep,
  operator_act: operatorAct,
};

/** Whether the table allows the move. Staying where one is is no move and always allowed. */
export function mayMove(subject: keyof typeof MOVES, from: string, to: string): boolean {
  if (from === to) return true;
  const moves = MOVES[subject] as Record<string, readonly string[]>;
  return moves[from]?.includes(to) ?? false;
}
