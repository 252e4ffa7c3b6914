/** Facts in any order, again and again: what must be so after every single one. */
import type { ChannelFact, LearntFrom, PaymentFact } from '../../domain/channel-facts';
import { refundableMinor } from '../../domain/orders';
import type { Verdict } from '../../domain/verdicts';
import { BooksInMemory } from '../support/books-in-memory';
import { aPaymentFact, aPayRecord, aRefundFact, NOW } from '../support/builders';

/** mulberry32: a seed gives the same sequence for ever, so that a failure can be run again. */
function randomOf(seed: number) {
  let a = seed >>> 0;
  const next = () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    chance: (p: number) => next() < p,
    pick: <T>(from: readonly T[]): T => from[Math.floor(next() * from.length)] as T,
  };
}

type Random = ReturnType<typeof randomOf>;

const WAYS: LearntFrom[] = ['submit', 'callback', 'callback', 'query', 'close', 'trade_bill'];

function anyPaymentFact(random: Random): PaymentFact {
  const second = random.chance(0.3);
  return aPaymentFact({
    state: random.pick([
      'paid',
      'paid',
      'paid',
      'pending',
      'failed',
      'closed',
      'not_found',
      'reversed',
      'reinstated',
      'unknown',
    ]),
    channel: second ? 'ch-b' : 'ch-a',
    outTradeNo: second ? 'OUT2' : 'OUT1',
    channelTradeNo: random.chance(0.1) ? null : random.pick(['T1', 'T2', 'T3']),
    amountMinor: random.chance(0.05) ? null : random.pick([10_000, 10_000, 10_000, 9_999, 1]),
    currency: random.chance(0.05) ? 'JPY' : 'CNY',
    reversedMinor: random.pick([null, null, 400, 10_000, 10_001]),
    learntFrom: random.pick(WAYS),
  });
}

function anyRefundFact(random: Random, books: BooksInMemory): ChannelFact | undefined {
  const refund = random.pick(books.refunds);
  const capture = books.captures.find((c) => c.captureId === refund?.captureId);
  if (!refund || !capture) return undefined;
  const isForeign = random.chance(0.05);
  return aRefundFact({
    state: random.pick([
      'processing',
      'succeeded',
      'succeeded',
      'failed',
      'not_enough_balance',
      'abnormal',
      'returned',
      'not_found',
    ]),
    channel: refund.channel,
    outRefundNo: isForeign ? 'THEIRS' : refund.outRefundNo,
    outTradeNo: null,
    channelTradeNo: capture.channelTradeNo,
    amountMinor: random.chance(0.2) ? random.pick([null, 1, 12_000]) : refund.amountMinor,
    learntFrom: random.pick(['callback', 'query', 'submit', 'trade_bill']),
  });
}

function anyOrder(random: Random): BooksInMemory {
  const isClosed = random.chance(0.2);
  const status = isClosed ? 'closed' : random.pick(['created', 'paying', 'paying'] as const);
  return new BooksInMemory(
    {
      status,
      latePaymentPolicy: random.pick(['refund', 'revive']),
      closeRequestedAt: isClosed || random.chance(0.2) ? NOW : null,
      closeReason: 'expired',
    },
    [
      aPayRecord({ status: isClosed ? 'closed' : random.pick(['failed', 'closed']) }),
      aPayRecord({
        payRecordId: 2,
        channel: 'ch-b',
        status: isClosed ? 'failed' : random.pick(['created', 'submitting', 'pending']),
      }),
    ],
  );
}

/** What must be so of any order at any time. Returns what is not. */
function violated(books: BooksInMemory): string[] {
  const faults: string[] = [];
  const must = (holds: boolean, rule: string) => holds || faults.push(rule);
  const { order, captures, refunds } = books;
  const settling = captures.filter((c) => c.settles);
  must(settling.length <= 1, 'two captures settle one order');
  if (order.status === 'paid') {
    const [one] = settling;
    must(one !== undefined && one.status === 'captured', 'paid by no capture that stands');
    must(
      one?.amountMinor === order.amountMinor && one.currency === order.currency,
      'paid through a wrong amount',
    );
  }
  must(!books.told.has('order.paid:') || settling.length === 1, 'told "paid" without a payment');
  for (const c of captures) {
    must(Math.min(c.reservedMinor, c.refundedMinor, c.reversedMinor) >= 0, 'a sum below nothing');
    const open = refunds.filter(
      (r) =>
        r.captureId === c.captureId &&
        ['created', 'submitting', 'processing', 'abnormal'].includes(r.status),
    );
    must(
      c.reservedMinor === open.reduce((sum, r) => sum + r.amountMinor, 0),
      'reserved is not what open refunds want',
    );
    // No captured amount is out of sight: it pays the order, goes back, went back, or is in a case.
    const inSight =
      (c.settles && order.status === 'paid') ||
      refundableMinor(c) === 0 ||
      books.evidence.length > 0;
    must(inSight, `capture ${c.captureId} (${c.kind}) is out of sight`);
  }
  if (order.status === 'review') must(books.evidence.length > 0, 'in review without a case');
  if (order.status === 'closed')
    must(
      !books.records.some((r) => ['created', 'submitting', 'pending'].includes(r.status)),
      'closed while an attempt lives',
    );
  return faults;
}

/** Verdicts that settled something: the same news again must then have none. */
const FINAL: Verdict[] = [
  'first_success',
  'revived',
  'surplus_late',
  'surplus_duplicate',
  'joins_review',
  'reversed',
  'reinstated',
  'attempt_failed',
  'attempt_closed',
  'refund_succeeded',
  'refund_returned',
  'refund_external',
  'refund_abnormal',
  'no_effect',
];

describe('any sequence of facts', () => {
  const SEQUENCES = 3_000;
  const seen = new Map<Verdict, number>();

  it(`leaves the books right after every fact, in ${SEQUENCES} sequences`, () => {
    for (let seed = 1; seed <= SEQUENCES; seed += 1) {
      const random = randomOf(seed);
      const books = anyOrder(random);
      const story: string[] = [];
      for (let step = 0; step < 20; step += 1) {
        const settling = books.captures.find((c) => c.settles);
        if (settling && books.order.status === 'paid' && random.chance(0.15)) {
          const rest = refundableMinor(settling);
          if (rest > 0) books.openRefund(settling, random.pick([1, rest]), `r-${step}`);
        }
        for (const refund of books.refunds) if (random.chance(0.5)) refund.sends += 1;
        const fact = (random.chance(0.4) && anyRefundFact(random, books)) || anyPaymentFact(random);
        let told: string;
        try {
          const { verdict } = books.settle(fact);
          seen.set(verdict, (seen.get(verdict) ?? 0) + 1);
          told = `${fact.kind} ${fact.state} ${fact.channelTradeNo ?? '-'} ${fact.amountMinor ?? '-'} by ${fact.learntFrom}: ${verdict}`;
          const before = books.picture();
          const again = books.settle({ ...fact, eventId: 'another' });
          if (books.picture() !== before)
            throw new Error(`the same again: ${again.verdict} moved something`);
          if (
            FINAL.includes(verdict) &&
            !['no_effect', 'contradicts_paid', 'amount_mismatch'].includes(again.verdict)
          )
            throw new Error(`the same again: ${again.verdict}`);
        } catch (error) {
          throw new Error(
            `seed ${seed}: ${[...story, JSON.stringify(fact), String(error)].join('\n')}`,
            { cause: error },
          );
        }
        story.push(told);
        const faults = violated(books);
        if (faults.length > 0) throw new Error(`seed ${seed}: ${[...story, ...faults].join('\n')}`);
      }
    }
  });

  it('met every verdict but the one for strangers', () => {
    const all: Verdict[] = [
      ...FINAL,
      'unknown_state',
      'contradicts_paid',
      'amount_mismatch',
      'still_pending',
      'refund_failed',
      'refund_pending',
    ];
    expect(all.filter((verdict) => !seen.has(verdict))).toEqual([]);
  });
});

function permutations<T>(of: T[]): T[][] {
  if (of.length < 2) return [of];
  return of.flatMap((first, i) =>
    permutations(of.filter((_, j) => j !== i)).map((rest) => [first, ...rest]),
  );
}

describe('the order of arrival', () => {
  const success = aPaymentFact();

  it.each([
    ['the whole sum', { reversedMinor: null }],
    ['the whole sum, named', { reversedMinor: 10_000 }],
    ['a part', { reversedMinor: 400 }],
  ])('B40: of success and reversal of %s does not matter', (_, said) => {
    const reversal = aPaymentFact({ state: 'reversed', ...said });
    const ends = permutations([success, reversal]).map((facts) => {
      const books = new BooksInMemory();
      for (const fact of facts) books.settle(fact);
      const net = books.captures.map((c) => c.amountMinor - c.reversedMinor);
      return {
        status: books.order.status,
        record: books.records[0]?.status,
        net,
        refunds: books.refunds.length,
        evidence: books.evidence,
      };
    });
    expect(ends[0]).toMatchObject({
      status: 'review',
      record: 'paid',
      refunds: 0,
      evidence: ['reversed'],
    });
    expect(ends[1]).toEqual(ends[0]);
  });

  it.each(permutations(['T1', 'T2', 'T3']).map((trades) => [trades]))(
    'B03: of three payments leaves one that pays and two that go back: %j',
    (trades) => {
      const books = new BooksInMemory();
      const verdicts = trades.map(
        (channelTradeNo) => books.settle(aPaymentFact({ channelTradeNo })).verdict,
      );
      expect(verdicts).toEqual(['first_success', 'surplus_duplicate', 'surplus_duplicate']);
      expect(books.refunds.map((r) => r.amountMinor)).toEqual([10_000, 10_000]);
      expect(books.captures.filter((c) => c.settles).map((c) => c.channelTradeNo)).toEqual([
        trades[0],
      ]);
    },
  );

  it('B38: of two wrong amounts does not matter: both held, one case, nobody told "paid"', () => {
    for (const amounts of [
      [6_000, 5_000],
      [5_000, 6_000],
    ]) {
      const books = new BooksInMemory();
      amounts.forEach((amountMinor, i) =>
        books.settle(aPaymentFact({ channelTradeNo: `T${i}`, amountMinor })),
      );
      expect(books.order.status).toBe('review');
      expect(books.captures.map((c) => c.kind)).toEqual(['held', 'held']);
      expect(books.told).toEqual(new Set(['order.review:amount_mismatch']));
    }
  });

  const mixed = [
    success,
    aPaymentFact({ state: 'pending' }),
    aPaymentFact({ state: 'closed', learntFrom: 'close' }),
    aPaymentFact({ state: 'not_found', learntFrom: 'query' }),
  ];
  it.each(
    permutations(mixed).map((facts) => [facts.map((f) => f.state).join(', '), facts] as const),
  )('of news about one payment ends paid, once: %s', (_, facts) => {
    const books = new BooksInMemory();
    for (const fact of [...facts, ...facts]) books.settle(fact);
    expect(books.order.status).toBe('paid');
    expect(books.captures).toHaveLength(1);
    expect(books.refunds).toEqual([]);
  });

  it('B35: of an old attempt’s end and a new attempt’s success does not matter', () => {
    const expired = aPaymentFact({ state: 'closed', channelTradeNo: null });
    const paid = aPaymentFact({ outTradeNo: 'OUT2', channelTradeNo: 'T2' });
    for (const facts of [
      [expired, paid],
      [paid, expired],
    ]) {
      const books = new BooksInMemory({}, [
        aPayRecord({ status: 'failed' }),
        aPayRecord({ payRecordId: 2 }),
      ]);
      for (const fact of facts) books.settle(fact);
      expect(books.order.status).toBe('paid');
      expect([...books.told]).toEqual(['order.paid:']);
    }
  });

  it('B27: of a refund’s success and the payment’s success again never makes a refunded order paid anew', () => {
    const books = new BooksInMemory();
    books.settle(success);
    const [capture] = books.captures;
    if (!capture) throw new Error('no capture');
    books.openRefund(capture, 10_000, 'r-1');
    books.settle(aRefundFact({ amountMinor: 10_000 }));
    const before = books.picture();
    for (const eventId of ['a', 'b'])
      expect(books.settle({ ...success, eventId }).verdict).toBe('no_effect');
    expect(books.settle(aPaymentFact({ state: 'closed' })).verdict).toBe('no_effect');
    expect(books.picture()).toBe(before);
  });
});
