import type { FulfilmentState, FulfilmentStep } from '../../domain/fulfilment';
import { nextFulfilmentAct, stepAnswerOf, stepKey, undoPlan } from '../../domain/fulfilment';
import type { FulfilmentStatus, FulfilmentStepStatus } from '../../domain/states';
import { mayMove, MOVES } from '../../domain/states';
import { aCapture, anOrder, at } from '../support/builders';

function aStep(said: Partial<FulfilmentStep> = {}): FulfilmentStep {
  const stepNo = said.stepNo ?? 1;
  return {
    merchantId: 'shop',
    orderId: 'o-1',
    stepNo,
    name: `step-${stepNo}`,
    url: 'https://shop.example/do',
    undoUrl: 'https://shop.example/undo',
    timeoutMs: null,
    status: 'waiting',
    tries: 0,
    undoTries: 0,
    outcomeUnknown: false,
    lastError: null,
    nextDueAt: null,
    firstSentAt: null,
    lastSentAt: null,
    finishedAt: null,
    undoneAt: null,
    createdAt: at('12:02'),
    ...said,
  };
}

/** `done running waiting`: one step each. */
const steps = (states: string): FulfilmentStep[] =>
  states
    .split(' ')
    .map((status, i) => aStep({ stepNo: i + 1, status: status as FulfilmentStepStatus }));

function aFulfilment(
  fulfilmentStatus: FulfilmentStatus,
  states: string,
  said: Partial<FulfilmentState> = {},
): FulfilmentState {
  return {
    order: anOrder({ status: 'paid', fulfilmentStatus }),
    captures: [aCapture()],
    steps: steps(states),
    ...said,
  };
}

describe('what comes next in a fulfilment', () => {
  it.each<[FulfilmentStatus, string, ReturnType<typeof nextFulfilmentAct>]>([
    ['none', 'waiting', { act: 'rest' }],
    ['done', 'done done', { act: 'rest' }],
    ['failed', 'undone refused', { act: 'rest' }],
    ['running', 'waiting waiting', { act: 'call', call: 'do', stepNo: 1 }],
    ['running', 'running waiting', { act: 'call', call: 'do', stepNo: 1 }],
    ['running', 'done waiting', { act: 'call', call: 'do', stepNo: 2 }],
    ['running', 'done running waiting', { act: 'call', call: 'do', stepNo: 2 }],
    ['running', 'done done', { act: 'finish', as: 'done' }],
    ['running', 'done refused waiting', { act: 'compensate', why: 'step_refused' }],
    ['compensating', 'undoing undoing refused', { act: 'call', call: 'undo', stepNo: 2 }],
    ['compensating', 'undoing undone refused', { act: 'call', call: 'undo', stepNo: 1 }],
    ['compensating', 'undoing undo_failed refused', { act: 'call', call: 'undo', stepNo: 1 }],
    ['compensating', 'undone undone refused', { act: 'finish', as: 'failed' }],
    ['compensating', 'undo_failed skipped', { act: 'finish', as: 'failed' }],
  ])('%s with %s', (status, states, act) => {
    expect(nextFulfilmentAct(aFulfilment(status, states))).toEqual(act);
  });

  it.each([
    ['refunded in full', { refundedMinor: 10_000 }, 'refunded'],
    ['with a full refund promised', { reservedMinor: 10_000 }, 'refunded'],
    [
      'refunded and promised in parts that are all',
      { refundedMinor: 4_000, reservedMinor: 6_000 },
      'refunded',
    ],
    ['refunded in part', { refundedMinor: 9_999 }, undefined],
  ])('stops an order %s', (_, capture, why) => {
    const state = aFulfilment('running', 'done waiting', { captures: [aCapture(capture)] });
    expect(nextFulfilmentAct(state)).toEqual(
      why ? { act: 'compensate', why } : { act: 'call', call: 'do', stepNo: 2 },
    );
  });

  it('stops an order in review, and leaves the money to the person who decides', () => {
    const order = anOrder({ status: 'review', fulfilmentStatus: 'running' });
    for (const states of ['done waiting', 'done refused', 'done done'])
      expect(nextFulfilmentAct(aFulfilment('running', states, { order }))).toEqual({
        act: 'compensate',
        why: 'review',
      });
  });

  it('gives back the rest when a step was refused, though a part was asked back before', () => {
    const captures = [aCapture({ refundedMinor: 3_000 })];
    expect(nextFulfilmentAct(aFulfilment('running', 'refused', { captures }))).toEqual({
      act: 'compensate',
      why: 'step_refused',
    });
  });

  it('never sends a step of a fulfilment that is being undone', () => {
    const states = Object.keys(MOVES.fulfilment_step) as FulfilmentStepStatus[];
    for (const a of states)
      for (const b of states) {
        const act = nextFulfilmentAct(aFulfilment('compensating', `${a} ${b}`));
        expect(act.act === 'call' && act.call === 'do').toBe(false);
      }
  });
});

describe('the plan of undoing', () => {
  const after = (own: FulfilmentStep[]) => {
    const plan = new Map(undoPlan(own).map(({ stepNo, to }) => [stepNo, to]));
    return own.map(({ stepNo, status }) => plan.get(stepNo) ?? status).join(' ');
  };

  it.each([
    ['done running waiting', 'undoing undoing skipped'],
    ['done refused waiting', 'undoing refused skipped'],
    ['undone undo_failed skipped', 'undone undo_failed skipped'],
  ])('turns %s into %s', (before, then) => {
    expect(after(steps(before))).toBe(then);
  });

  it('undoes a refused step when an earlier try of it may have worked', () => {
    expect(after([aStep({ status: 'refused', outcomeUnknown: true })])).toBe('undoing');
  });

  it.each(['done', 'running'] as const)(
    'has nothing to do for a %s step without an undo',
    (status) => {
      expect(after([aStep({ status, undoUrl: null })])).toBe('undone');
    },
  );

  it('makes only moves of the table, and leaves nothing that may still be sent', () => {
    for (const status of Object.keys(MOVES.fulfilment_step) as FulfilmentStepStatus[])
      for (const outcomeUnknown of [false, true])
        for (const undoUrl of [null, 'https://shop.example/undo']) {
          const own = [aStep({ status, outcomeUnknown, undoUrl })];
          for (const { from, to } of undoPlan(own))
            expect(mayMove('fulfilment_step', from, to)).toBe(true);
          expect(['waiting', 'running', 'done']).not.toContain(after(own));
        }
  });
});

describe('what an HTTP status says of a step', () => {
  it.each([200, 201, 202, 204, 299])('%i is a yes', (status) => {
    expect(stepAnswerOf(status, null)).toEqual({ outcome: 'done' });
  });
  it.each([400, 401, 403, 404, 405, 410, 422, 451, 499])('%i is a no', (status) => {
    expect(stepAnswerOf(status, 5)).toEqual({
      outcome: 'refused',
      reason: `the merchant answered ${status}`,
    });
  });
  it.each([100, 199, 301, 302, 308, 408, 409, 425, 429, 500, 502, 503, 504, 599])(
    '%i says nothing',
    (status) => {
      expect(stepAnswerOf(status, 7_000)).toEqual({
        outcome: 'unknown',
        reason: `the merchant answered ${status}`,
        retryAfterMs: 7_000,
      });
    },
  );
});

it('names a step by the order and its own name, the same on every try', () => {
  const ref = { merchantId: 'shop', orderId: 'o-1' };
  expect(stepKey(ref, 'grant', 'do')).toBe('ful:shop:o-1:grant');
  expect(stepKey(ref, 'grant', 'undo')).toBe('ful:shop:o-1:grant:undo');
});
