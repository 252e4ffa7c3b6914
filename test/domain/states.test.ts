import type { CallAnswer } from '../../domain/answers';
import { jittered, nextTry, rung } from '../../domain/ladders';
import { isIdentifier } from '../../domain/orders';
import { LIVE_ATTEMPT, MOVES, OPEN_REFUND, mayMove } from '../../domain/states';

/** Design section 4 once more, written out by hand: every move that may be made, and no other. */
const ALLOWED: Record<keyof typeof MOVES, Record<string, string>> = {
  order: {
    created: 'paying closed review',
    paying: 'paid closed review',
    paid: 'review',
    closed: 'paid review',
    review: 'paid closed',
  },
  pay_record: {
    created: 'submitting pending paid failed closed',
    submitting: 'pending paid failed closed',
    pending: 'paid failed closed',
    paid: '',
    failed: 'paid',
    closed: 'paid',
  },
  capture: { captured: 'reversed', reversed: 'captured' },
  refund: {
    created: 'submitting processing succeeded failed abnormal',
    submitting: 'processing succeeded failed abnormal',
    processing: 'succeeded failed abnormal',
    abnormal: 'submitting processing succeeded failed',
    succeeded: 'returned',
    failed: 'succeeded',
    returned: '',
  },
  case: { open: 'closed', closed: '' },
  callback: {
    stored: 'applied no_effect unmatched',
    unmatched: 'stored',
    applied: 'stored',
    no_effect: 'stored',
  },
  trade_bill: { loaded: 'superseded', superseded: '', rejected: '' },
  reconciliation_run: {
    running: 'waiting_bill done rejected no_bill',
    waiting_bill: 'running rejected no_bill',
    done: 'running',
    rejected: 'running',
    no_bill: 'running',
  },
  difference: {
    open: 'waiting suspense case resolved',
    waiting: 'open case resolved',
    suspense: 'open case resolved',
    case: 'open resolved',
    resolved: 'open waiting suspense',
  },
  notification: { pending: 'sent dead', sent: '', dead: 'pending', kept: 'pending' },
  operator_act: { waiting_second: 'accepted', accepted: 'done refused', done: '', refused: '' },
  fulfilment: {
    none: 'running',
    running: 'done compensating',
    done: '',
    compensating: 'failed',
    failed: '',
  },
  fulfilment_step: {
    waiting: 'running skipped',
    running: 'done refused undoing undone',
    done: 'undoing undone',
    refused: 'undoing undone',
    undoing: 'undone undo_failed',
    undone: '',
    undo_failed: '',
    skipped: '',
  },
};

describe.each(Object.keys(ALLOWED) as (keyof typeof MOVES)[])('a move of the %s', (subject) => {
  const states = Object.keys(ALLOWED[subject]);
  const pairs = states.flatMap((from) => states.map((to): [string, string] => [from, to]));

  it.each(pairs)('from %s to %s is allowed exactly if the design says so', (from, to) => {
    const allowed = from === to || (ALLOWED[subject][from] ?? '').split(' ').includes(to);
    expect(mayMove(subject, from, to)).toBe(allowed);
  });

  it('knows no other states', () => {
    expect(Object.keys(MOVES[subject]).sort()).toEqual([...states].sort());
    expect(mayMove(subject, 'elsewhere', states[0] ?? '')).toBe(false);
    expect(mayMove(subject, states[0] ?? '', 'elsewhere')).toBe(false);
  });
});

describe('what the states promise', () => {
  it('money may arrive in every state of an attempt', () => {
    for (const from of Object.keys(MOVES.pay_record))
      expect(mayMove('pay_record', from, 'paid')).toBe(true);
  });

  it('a paid attempt stays paid, whatever is said later', () => {
    expect(MOVES.pay_record.paid).toEqual([]);
  });

  it('a paid order leaves that state only for a review', () => {
    expect(MOVES.order.paid).toEqual(['review']);
  });

  it('an attempt may take money while it is created, submitting or pending', () => {
    expect(LIVE_ATTEMPT).toEqual(['created', 'submitting', 'pending']);
  });

  it('a refund is open while it is created, submitting or processing', () => {
    expect(OPEN_REFUND).toEqual(['created', 'submitting', 'processing']);
  });

  it('a paid-out refund never fails', () => {
    expect(mayMove('refund', 'succeeded', 'failed')).toBe(false);
  });
});

describe('a ladder', () => {
  it.each([
    [-1, 3],
    [0, 3],
    [1, 5],
    [2, 10],
    [3, 10],
    [1_000_000, 10],
  ])('after %d rungs waits %d', (climbed, wait) => expect(rung([3, 5, 10], climbed)).toBe(wait));

  it('needs a rung', () => expect(() => rung([], 0)).toThrow(RangeError));

  it.each([
    [0, 1_000],
    [0.5, 1_100],
    [0.999999, 1_200],
  ])('waits up to a fifth longer: %d → %d ms', (random, wait) =>
    expect(jittered(1_000, random)).toBe(wait),
  );
});

describe('the next try after a call', () => {
  const fact = { state: 'pending' };
  it.each<[CallAnswer<unknown>, number, boolean]>([
    [{ outcome: 'answered', fact }, 5_500, true],
    [{ outcome: 'refused', code: 'X', alreadyKnown: true }, 5_500, true],
    [{ outcome: 'not_sent' }, 5_500, true],
    [{ outcome: 'unknown', reason: 'time_limit', retryAfterMs: null }, 5_500, true],
    [{ outcome: 'unknown', reason: 'http_429', retryAfterMs: 1_000 }, 5_500, true],
    [{ outcome: 'unknown', reason: 'http_429', retryAfterMs: 9_000 }, 9_000, true],
    [{ outcome: 'never_left', reason: 'connection', retryAfterMs: null }, 5_500, true],
    // A channel that is away for hours is asked ever less often.
    [{ outcome: 'never_left', reason: 'breaker_open', retryAfterMs: 9_000 }, 9_000, true],
    [{ outcome: 'never_left', reason: 'bulkhead_full', retryAfterMs: 1_000 }, 5_500, true],
    [{ outcome: 'never_left', reason: 'rate_brake', retryAfterMs: 40 }, 40, false],
    [{ outcome: 'never_left', reason: 'rate_brake', retryAfterMs: 9_000 }, 9_000, false],
    [{ outcome: 'never_left', reason: 'rate_brake', retryAfterMs: null }, 5_500, true],
  ])('%j is in %d ms, a rung: %s', (answer, waitMs, climbs) =>
    expect(nextTry(answer, [3_000, 5_000, 10_000], 1, 0.5)).toEqual({ waitMs, climbs }),
  );
});

describe('an identifier', () => {
  it.each(['a', '0', '007', 'ORDER-1', 'o.1_2-3', 'x'.repeat(64), '1234567890123456789'])(
    'may be %p',
    (text) => expect(isIdentifier(text)).toBe(true),
  );

  it.each([
    '',
    '.',
    '..',
    '-a',
    '_a',
    '.a',
    'a b',
    ' a',
    'a ',
    'a\n',
    '\na',
    'a:b',
    'auto:1',
    'a/b',
    'a%2Fb',
    'a?b',
    'a#b',
    "a'b",
    '中文',
    'é',
    '😀',
    'x'.repeat(65),
    'x'.repeat(1_000),
    1,
    null,
    undefined,
    ['a'],
    {},
  ])('B74: may not be %p', (text) => expect(isIdentifier(text)).toBe(false));

  it('B73: tells upper from lower case and keeps leading zeros', () => {
    expect(new Set(['A1', 'a1', '0a1', '00a1'].filter(isIdentifier)).size).toBe(4);
  });
});
