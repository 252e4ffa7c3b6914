import { MOVES, mayMove } from '../../domain/states';
import type { Findings } from './findings';
import { inspect, together } from './findings';
import type { EventRow, Snapshot } from './snapshot';
import { orderKey } from './snapshot';

type Subject =
  'order' | 'pay_record' | 'capture' | 'refund' | 'case' | 'fulfilment' | 'fulfilment_step';

interface StoredState {
  subject: Subject;
  name: string;
  status: string;
  /** In which state such a row begins when no event tells otherwise. */
  initial: string;
  events: EventRow[];
}

/**
 * I5: no stored state moved outside the table of moves. The history of every order, pay record,
 * capture, refund, case and fulfilment is replayed: each move starts where the last one ended, is in the table,
 * and the last one ends in the state that the row has now. The schema's copy of the table is the
 * code's.
 */
export function checkMoves(snapshot: Snapshot): Findings {
  const replayed = inspect('I5', storedStates(snapshot), ({ name }) => name, replay);
  const codeMoves = new Set(
    Object.entries(MOVES).flatMap(([subject, moves]) =>
      Object.entries(moves as Record<string, readonly string[]>).flatMap(([from, tos]) =>
        tos.map((to) => `${subject} ${from}>${to}`),
      ),
    ),
  );
  const moves = new Set([...codeMoves, ...snapshot.schemaMoves]);
  const tables = inspect(
    'I5',
    moves,
    (move) => `move ${move}`,
    function* (move) {
      if (!codeMoves.has(move)) yield 'the schema allows it, the table of moves does not';
      if (!snapshot.schemaMoves.has(move))
        yield 'the table of moves allows it, the schema does not';
    },
  );
  return together([replayed, tables]);
}

function* replay({ subject, status, initial, events }: StoredState): Iterable<string> {
  let at: string | null = null;
  for (const { from, to } of events) {
    if (from === null) {
      if (at !== null) yield `its history begins twice (${at}, then ${to})`;
    } else {
      // A part that comes back to a capture that stood all along is told like a whole one.
      if (subject === 'capture' && to === 'captured' && at === 'captured') continue;
      if (from !== (at ?? initial)) yield `it moved from ${from} while it was ${at ?? initial}`;
      if (!mayMove(subject, from, to)) yield `it moved from ${from} to ${to}, which no rule allows`;
    }
    at = to;
  }
  at ??= initial;
  if (at !== status) yield `its history ends in ${at}, the row says ${status}`;
}

function* storedStates(snapshot: Snapshot): Iterable<StoredState> {
  const histories = new Map<string, EventRow[]>();
  for (const told of snapshot.events) {
    if (!isMove(told)) continue;
    const event = ofFulfilment(told) ?? told;
    const key = historyKey(event, event.subject, event.subjectId);
    histories.set(key, [...(histories.get(key) ?? []), event]);
  }
  const state = (
    row: { merchantId: string; orderId: string; status: string },
    subject: Subject,
    id: string | number,
    initial: string,
  ): StoredState => ({
    subject,
    name: subject === 'order' ? `order ${orderKey(row)}` : `${subject} ${orderKey(row)}/${id}`,
    status: row.status,
    initial,
    events: histories.get(historyKey(row, subject, String(id))) ?? [],
  });
  for (const order of snapshot.orders) {
    yield state(order, 'order', order.orderId, 'created');
    const { fulfilmentStatus: status, ...ref } = order;
    yield state({ ...ref, status }, 'fulfilment', order.orderId, 'none');
  }
  for (const step of snapshot.steps) yield state(step, 'fulfilment_step', step.stepNo, 'waiting');
  for (const row of snapshot.records) yield state(row, 'pay_record', row.payRecordId, 'created');
  for (const row of snapshot.captures) yield state(row, 'capture', row.captureId, 'captured');
  for (const row of snapshot.refunds) {
    // A refund that the channel made by itself is told under its number, as it had no row before.
    const byNumber = row.refundNo.startsWith('external:');
    const first = state(row, 'refund', byNumber ? row.refundNo : row.refundId, 'created');
    const later = byNumber ? state(row, 'refund', row.refundId, 'created').events : [];
    yield { ...first, events: [...first.events, ...later] };
  }
  for (const { merchantId, orderId, caseId, status } of snapshot.cases) {
    if (merchantId === null || orderId === null) continue;
    yield state({ merchantId, orderId, status }, 'case', caseId, 'open');
  }
}

/**
 * Events also tell what is no move of the status: the refund status that follows from the refunds, a
 * word nobody knows, a corrected figure, and the return of a part of a capture that stood all along.
 */
function isMove({ subject, from, to, cause }: EventRow): boolean {
  if (cause === 'unknown_state' || to === 'corrected') return false;
  return !(subject === 'order' && from?.startsWith('refund:'));
}

/** The fulfilment of an order moves beside its status; its events are told of the order. */
function ofFulfilment(event: EventRow): EventRow | undefined {
  const of = /^fulfilment:/;
  if (event.subject !== 'order' || event.from === null || !of.test(event.from)) return undefined;
  const [from, to] = [event.from.replace(of, ''), event.to.replace(of, '')];
  return { ...event, subject: 'fulfilment', from, to };
}

function historyKey(
  row: { merchantId: string; orderId: string },
  subject: string,
  id: string,
): string {
  return `${orderKey(row)} ${subject} ${id}`;
}
