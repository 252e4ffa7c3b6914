import { isUseless, nextCall, notFoundIsFinal } from '../../domain/attempts';
import type { PayRecord } from '../../domain/orders';
import { anOrder, aPayRecord, aPolicy, at, NOW } from '../support/builders';

const live = aPayRecord();

describe('the next call to the channel', () => {
  const fresh = aPayRecord({
    status: 'created',
    sends: 0,
    firstSentAt: null,
    lastSentAt: null,
    lastCall: null,
    lastCallAt: null,
    lastFactState: null,
    payParameters: null,
  });
  const sent = aPayRecord({ status: 'submitting', payParameters: null, outcomeUnknown: true });
  const answered = (lastFactState: string, said: Partial<PayRecord> = {}) => ({
    ...sent,
    lastCall: 'query' as const,
    lastFactState,
    ...said,
  });

  const rows: [string, PayRecord, 'submit' | 'query' | 'close'][] = [
    ['a new attempt is sent', fresh, 'submit'],
    [
      'a send that a crash left without an answer is queried',
      {
        ...sent,
        outcomeUnknown: false,
        lastCall: null,
        lastFactState: null,
      },
      'query',
    ],
    ['B10: a send of unknown outcome is queried before any retry', sent, 'query'],
    ['a refused re-send is queried', { ...sent, lastFactState: 'failed' }, 'query'],
    ['B16: a number the channel does not know is sent again', answered('not_found'), 'submit'],
    [
      '... also when the first query found it missing after many sends',
      answered('not_found', { sends: 9 }),
      'submit',
    ],
    ['an unknown word is asked about again', answered('unknown'), 'query'],
    [
      'a pending attempt with its parameters is polled',
      answered('pending', {
        status: 'pending',
        payParameters: live.payParameters,
      }),
      'query',
    ],
    [
      'a pending attempt that never had an unknown outcome is polled',
      answered('pending', {
        status: 'pending',
        outcomeUnknown: false,
      }),
      'query',
    ],
    [
      'B13: one that exists without our having its parameters is sent again',
      answered('pending', {
        status: 'pending',
      }),
      'submit',
    ],
    [
      '... but not on the word of a query that nobody answered',
      answered('pending', { status: 'pending', lastFactState: null }),
      'query',
    ],
    [
      'B13: ... but only as often as the policy allows',
      answered('pending', {
        status: 'pending',
        sends: 3,
      }),
      'query',
    ],
    [
      'nothing is sent again once the channel may have forgotten the number',
      answered('not_found', { firstSentAt: '2026-02-28T12:05:00.000Z' }),
      'query',
    ],
    [
      '... to the millisecond',
      answered('not_found', {
        firstSentAt: '2026-02-28T12:05:00.001Z',
      }),
      'submit',
    ],
    [
      '... nor to fetch parameters',
      answered('pending', {
        status: 'pending',
        firstSentAt: '2026-02-28T12:05:00.000Z',
      }),
      'query',
    ],
  ];
  it.each(rows)('%s', (_, record, call) => {
    expect(nextCall(anOrder(), record, aPolicy(), NOW)).toBe(call);
  });

  const leaving = (lastCall: 'submit' | 'query' | 'close', state: string, clock: string) =>
    aPayRecord({
      closeRequestedAt: at('12:04'),
      lastCall,
      lastFactState: state,
      lastCallAt: at(clock),
    });
  const closing: [string, PayRecord, 'query' | 'close'][] = [
    ['first a query', leaving('submit', 'pending', '12:01'), 'query'],
    [
      'an answer from before the wish to close is too old',
      leaving('query', 'pending', '12:03'),
      'query',
    ],
    ['a fresh "pending" → close', leaving('query', 'pending', '12:04:01'), 'close'],
    [
      'after the close a query, whatever the close said',
      leaving('close', 'closed', '12:04:02'),
      'query',
    ],
    ['after a close that failed a query too', leaving('close', 'failed', '12:04:02'), 'query'],
    [
      'still pending after the close → close again',
      leaving('query', 'pending', '12:04:03'),
      'close',
    ],
    ['"not found" has nothing to close', leaving('query', 'not_found', '12:04:01'), 'query'],
    ['an unknown word has nothing to close', leaving('query', 'unknown', '12:04:01'), 'query'],
    ['never sent: not sent now either', { ...fresh, closeRequestedAt: at('12:04') }, 'query'],
  ];
  it.each(closing)('B37: on the way out: %s', (_, record, call) => {
    expect(nextCall(anOrder(), record, aPolicy(), NOW)).toBe(call);
  });

  it('takes the same way out when the order is to be closed', () => {
    const order = anOrder({ closeRequestedAt: at('12:04') });
    const asked = (clock: string) => ({
      ...leaving('query', 'pending', clock),
      closeRequestedAt: null,
    });
    expect(nextCall(order, asked('12:03'), aPolicy(), NOW)).toBe('query');
    expect(nextCall(order, asked('12:04:01'), aPolicy(), NOW)).toBe('close');
  });

  it.each(['paid', 'closed', 'review'] as const)(
    'never sends for an order that is %s',
    (status) => {
      for (const record of [fresh, sent, answered('not_found'), answered('pending')]) {
        expect(nextCall(anOrder({ status }), record, aPolicy(), NOW)).not.toBe('submit');
      }
    },
  );

  it('never sends or closes without a query since the last call, in every state', () => {
    for (const status of ['created', 'submitting', 'pending'] as const)
      for (const lastCall of [null, 'submit', 'close'] as const)
        for (const lastFactState of [null, 'pending', 'not_found', 'failed', 'closed', 'unknown'])
          for (const closeRequestedAt of [null, at('12:04')])
            for (const outcomeUnknown of [true, false]) {
              const record = aPayRecord({
                status,
                lastCall,
                lastFactState,
                closeRequestedAt,
                outcomeUnknown,
                payParameters: null,
                lastCallAt: at('12:04:30'),
              });
              expect(nextCall(anOrder(), record, aPolicy(), NOW)).toBe('query');
            }
  });
});

describe('B13: an attempt is given up', () => {
  const useless = aPayRecord({
    status: 'pending',
    outcomeUnknown: true,
    payParameters: null,
    sends: 3,
    lastCall: 'query',
    lastFactState: 'pending',
  });

  it('when a query says it exists, unpaid, and every send allowed has been made', () => {
    expect(isUseless(useless, aPolicy(), NOW)).toBe(true);
  });

  it('when the channel no longer keeps the number, so that it may not be sent again', () => {
    const forgotten = { ...useless, sends: 1, firstSentAt: '2020-01-01T00:00:00.000Z' };
    expect(isUseless(forgotten, aPolicy(), NOW)).toBe(true);
  });

  it.each([
    ['a send is left', { sends: 2 }],
    ['its parameters are here', { payParameters: live.payParameters }],
    ['no outcome was ever unknown', { outcomeUnknown: false }],
    ['the channel may not know it', { lastFactState: 'not_found' }],
    ["the last word is a send's", { lastCall: 'submit' as const }],
    ['the channel has not confirmed it', { status: 'submitting' as const }],
  ])('but not while %s', (_, said) => {
    expect(isUseless({ ...useless, ...said }, aPolicy(), NOW)).toBe(false);
  });

  it('goes send → query → send … → query → given up, then query → close → query', () => {
    const calls: string[] = [];
    let record = aPayRecord({
      status: 'created',
      sends: 0,
      firstSentAt: null,
      payParameters: null,
      lastCall: null,
      lastCallAt: null,
      lastFactState: null,
    });
    for (let second = 0; second < 12; second += 1) {
      const now = at(`12:05:${String(second).padStart(2, '0')}`);
      if (isUseless(record, aPolicy(), now))
        record = { ...record, closeRequestedAt: record.closeRequestedAt ?? now };
      const call = nextCall(anOrder(), record, aPolicy(), now);
      calls.push(call);
      record = { ...record, lastCall: call, lastCallAt: now };
      // The channel answers every send with 500, every query with "exists, unpaid".
      if (call === 'submit')
        record = {
          ...record,
          status: record.status === 'created' ? 'submitting' : record.status,
          sends: record.sends + 1,
          outcomeUnknown: true,
          firstSentAt: record.firstSentAt ?? now,
          lastFactState: null,
        };
      if (call === 'query') record = { ...record, status: 'pending', lastFactState: 'pending' };
      if (call === 'close') break;
    }
    // The answer from before the decision to give it up is no reason to close: query → close.
    const sends = ['submit', 'query', 'submit', 'query', 'submit', 'query'];
    expect(calls).toEqual([...sends, 'query', 'close']);
  });
});

describe('"no such order"', () => {
  const order = anOrder({ closeRequestedAt: at('12:30') });
  const policy = aPolicy({ notFoundGraceMs: 60_000 });
  const rows: [string, boolean, Parameters<typeof notFoundIsFinal>[0], PayRecord, string][] = [
    [
      'is not final while the attempt may still be sent',
      false,
      anOrder(),
      aPayRecord(),
      at('13:00'),
    ],
    [
      'is final at once for a number never sent',
      true,
      order,
      aPayRecord({ sends: 0 }),
      at('12:05'),
    ],
    ['is not final before the deadline', false, order, aPayRecord(), at('12:29')],
    ['is not final within the grace', false, order, aPayRecord(), at('12:31')],
    ['is final after the grace', true, order, aPayRecord(), at('12:31:01')],
    [
      'counts the grace from a send after the deadline',
      false,
      order,
      aPayRecord({ lastSentAt: at('12:30:30') }),
      at('12:31:01'),
    ],
    [
      '... and ends it then',
      true,
      order,
      aPayRecord({ lastSentAt: at('12:30:30') }),
      at('12:31:31'),
    ],
    [
      'is not final when the time of the last send is not known',
      false,
      order,
      aPayRecord({ lastSentAt: null }),
      at('13:00'),
    ],
    [
      'B37: is not final early because the order was cancelled',
      false,
      anOrder({ closeRequestedAt: at('12:04'), closeReason: 'cancelled' }),
      aPayRecord(),
      at('12:10'),
    ],
    [
      'is not final early because another payment settled the order',
      false,
      anOrder({ status: 'paid' }),
      aPayRecord(),
      at('12:10'),
    ],
  ];
  it.each(rows)('%s: %p', (_, final, theOrder, record, now) => {
    expect(notFoundIsFinal(theOrder, record, policy, now)).toBe(final);
  });
});
