import {
  CURRENCY,
  aRefund,
  anAttempt,
  eventually,
  queryOf,
  tradeNoOf,
} from './conformance-harness';
import type { ChannelFault, ConformanceChannel, FaultedOperation } from './conformance-harness';
import type { PaymentAttempt, PaymentQuery } from './contract';

/** The conformance kit's part about calls: payments, outcomes, refunds. */
export function describeCalls(running: () => ConformanceChannel): void {
  const create = (attempt: PaymentAttempt) => running().channel.createPayment(attempt);
  const query = (attempt: PaymentQuery) => running().channel.queryPayment(queryOf(attempt));

  async function paidAttempt(amountMinor = 10_000): Promise<PaymentAttempt & { tradeNo: string }> {
    const attempt = anAttempt({ amountMinor });
    await create(attempt);
    await running().pay(attempt.outTradeNo);
    const answer = await query(attempt);
    const tradeNo = answer.outcome === 'answered' ? answer.fact.channelTradeNo : null;
    expect(tradeNo).toEqual(expect.any(String));
    return { ...attempt, tradeNo: tradeNo ?? '' };
  }

  describe('payments', () => {
    it('opens a payment, hands out pay parameters and answers pending', async () => {
      const attempt = anAttempt();
      const answer = await create(attempt);
      expect(answer).toMatchObject({
        outcome: 'answered',
        fact: {
          kind: 'payment',
          state: 'pending',
          outTradeNo: attempt.outTradeNo,
          amountMinor: attempt.amountMinor,
          currency: CURRENCY,
          accountId: running().accountId,
          appId: running().appId,
          learntFrom: 'submit',
        },
      });
      expect(answer.payParameters?.value).toBeTruthy();
    });

    it('is the same payment when the same number is sent again, also when paid', async () => {
      const attempt = anAttempt();
      const first = await create(attempt);
      const again = await create(attempt);
      expect(tradeNoOf(again)).toBe(tradeNoOf(first));
      await running().pay(attempt.outTradeNo);
      const late = await create(attempt);
      const tells =
        (late.outcome === 'answered' && late.fact.state === 'paid') ||
        (late.outcome === 'refused' && late.alreadyKnown);
      expect(tells).toBe(true);
      expect(await running().capturedMinor(attempt.outTradeNo)).toBe(attempt.amountMinor);
    });

    it('never takes another amount under the same number for a success', async () => {
      const attempt = anAttempt({ amountMinor: 10_000 });
      await create(attempt);
      const other = await create({ ...attempt, amountMinor: 10_001 });
      expect(other).toMatchObject({ outcome: 'refused', alreadyKnown: true });
    });

    it('reports a paid payment with number, amount, currency and time', async () => {
      const attempt = await paidAttempt(1_999);
      expect(await query(attempt)).toMatchObject({
        outcome: 'answered',
        fact: { state: 'paid', amountMinor: 1_999, currency: CURRENCY, learntFrom: 'query' },
      });
      const answer = await query(attempt);
      const paidAt = answer.outcome === 'answered' ? answer.fact.paidAt : null;
      expect(paidAt).toBe(new Date(paidAt ?? '').toISOString());
    });

    it('B16: answers not_found for a number the channel has never heard of', async () => {
      const answer = await query(anAttempt());
      expect(answer).toMatchObject({ outcome: 'answered', fact: { state: 'not_found' } });
    });

    it('closes an unpaid payment, and again', async () => {
      const attempt = anAttempt();
      await create(attempt);
      for (let time = 0; time < 2; time += 1) {
        const answer = await running().channel.closePayment(queryOf(attempt));
        expect(answer).toMatchObject({ outcome: 'answered', fact: { state: 'closed' } });
      }
    });

    it('never closes a paid payment', async () => {
      const attempt = await paidAttempt();
      const answer = await running().channel.closePayment(queryOf(attempt));
      const tells =
        (answer.outcome === 'answered' && answer.fact.state === 'paid') ||
        (answer.outcome === 'refused' && answer.alreadyKnown);
      expect(tells).toBe(true);
      expect(await query(attempt)).toMatchObject({ fact: { state: 'paid' } });
    });

    it.each([
      ['JPY', 2_000],
      ['KWD', 1_234],
      ['CNY', 1],
      ['CNY', 9_007_199_254_740_991],
    ])('B41: carries %s %d minor units to the channel and back', async (currency, amountMinor) => {
      const attempt = anAttempt({ currency, amountMinor });
      expect(await create(attempt)).toMatchObject({ fact: { currency, amountMinor } });
      await running().pay(attempt.outTradeNo);
      expect(await query(attempt)).toMatchObject({
        fact: { state: 'paid', currency, amountMinor },
      });
      expect(await running().capturedMinor(attempt.outTradeNo)).toBe(amountMinor);
    });
  });

  describe('outcomes', () => {
    it('says never_left when the connection is refused', async () => {
      await running().refuseConnections();
      try {
        const attempt = anAttempt();
        expect(await create(attempt)).toMatchObject({ outcome: 'never_left' });
        expect(await query(attempt)).toMatchObject({ outcome: 'never_left' });
      } finally {
        await running().acceptConnections();
      }
      expect(await create(anAttempt())).toMatchObject({ outcome: 'answered' });
    });

    it('says never_left when its own time limit passed before sending', async () => {
      const attempt = anAttempt();
      const answer = await create({ ...attempt, signal: AbortSignal.abort() });
      expect(answer).toMatchObject({ outcome: 'never_left' });
      expect(await query(attempt)).toMatchObject({ fact: { state: 'not_found' } });
    });

    it.each<ChannelFault>([
      'drop',
      'http_500',
      'http_429',
      'html',
      'empty',
      'cut_off',
      'missing_amount',
      'missing_trade_number',
    ])('B17: after a create answered by %s nothing is known, and a query tells', async (fault) => {
      const attempt = anAttempt();
      await running().fault('create', attempt.outTradeNo, fault);
      expect(await create(attempt)).toMatchObject({ outcome: 'unknown' });
      expect(await query(attempt)).toMatchObject({ outcome: 'answered' });
    });

    it('B10: a capture whose answer is lost is unknown, then paid by query', async () => {
      const attempt = anAttempt();
      await running().fault('create', attempt.outTradeNo, 'capture_and_drop');
      expect(await create(attempt)).toMatchObject({ outcome: 'unknown', trouble: true });
      expect(await query(attempt)).toMatchObject({
        fact: { state: 'paid', amountMinor: attempt.amountMinor },
      });
      expect(await running().capturedMinor(attempt.outTradeNo)).toBe(attempt.amountMinor);
    });

    it('says unknown, and that the channel is in trouble, when an answer takes too long', async () => {
      const attempt = anAttempt();
      await running().fault('create', attempt.outTradeNo, 'hang');
      const answer = await create({ ...attempt, signal: AbortSignal.timeout(200) });
      expect(answer).toMatchObject({ outcome: 'unknown', trouble: true });
    });

    it('B20: hands on how long the channel asks to wait, without calling it trouble', async () => {
      const attempt = anAttempt();
      await create(attempt);
      await running().fault('query', attempt.outTradeNo, 'http_429');
      const answer = await query(attempt);
      expect(answer).toMatchObject({ outcome: 'unknown', retryAfterMs: 1_000 });
      expect(answer).not.toMatchObject({ trouble: true });
    });

    it('counts a server error as trouble', async () => {
      const attempt = anAttempt();
      await running().fault('query', attempt.outTradeNo, 'http_500');
      expect(await query(attempt)).toMatchObject({ outcome: 'unknown', trouble: true });
    });

    it('reports a definite refusal as such', async () => {
      const attempt = anAttempt();
      await running().fault('create', attempt.outTradeNo, 'refuse');
      const answer = await create(attempt);
      expect(answer).toMatchObject({ outcome: 'refused', alreadyKnown: false });
      expect(answer.outcome === 'refused' && answer.code).toBeTruthy();
    });

    it.each<ChannelFault>(['already_paid', 'already_processed'])(
      'B14: a create refused by %s is known to the channel, not failed',
      async (fault) => {
        const attempt = anAttempt();
        await running().fault('create', attempt.outTradeNo, fault);
        expect(await create(attempt)).toMatchObject({ outcome: 'refused', alreadyKnown: true });
      },
    );

    it.each<FaultedOperation>(['create', 'query'])(
      'B86: keeps the status word FROZEN of a %s as an unknown state',
      async (operation) => {
        const attempt = anAttempt();
        if (operation === 'query') await create(attempt);
        await running().fault(operation, attempt.outTradeNo, 'unknown_word');
        const answer = operation === 'create' ? await create(attempt) : await query(attempt);
        expect(answer).toMatchObject({
          outcome: 'answered',
          fact: { state: 'unknown', word: 'FROZEN', outTradeNo: attempt.outTradeNo },
        });
        expect(await query(attempt)).toMatchObject({ fact: { state: 'pending' } });
      },
    );

    it('B76: keeps every digit of a trade number beyond 2^53', async () => {
      if (running().hugeTradeNumber === null) return;
      const attempt = anAttempt();
      await running().fault('create', attempt.outTradeNo, 'huge_trade_number');
      expect(tradeNoOf(await create(attempt))).toBe(running().hugeTradeNumber);
      await running().pay(attempt.outTradeNo);
      expect(tradeNoOf(await query(attempt))).toBe(running().hugeTradeNumber);
    });
  });

  describe('refunds', () => {
    it('refunds a part, the same number again is the same refund', async () => {
      const attempt = await paidAttempt(10_000);
      const refund = aRefund(attempt, { amountMinor: 3_000 });
      const first = await running().channel.createRefund(refund);
      expect(first).toMatchObject({
        outcome: 'answered',
        fact: {
          kind: 'refund',
          outRefundNo: refund.outRefundNo,
          amountMinor: 3_000,
          currency: CURRENCY,
          accountId: running().accountId,
        },
      });
      const again = await running().channel.createRefund(refund);
      expect(again).toMatchObject({ outcome: 'answered' });
      await eventually(async () => {
        const answer = await running().channel.queryRefund(refund);
        return answer.outcome === 'answered' && answer.fact.state === 'succeeded';
      });
      expect(await running().refundedMinor(attempt.outTradeNo)).toBe(3_000);
    });

    it('answers not_found for an unknown refund, and refuses more than was captured', async () => {
      const attempt = await paidAttempt(10_000);
      const refund = aRefund(attempt, { amountMinor: 10_001 });
      expect(await running().channel.createRefund(refund)).toMatchObject({ outcome: 'refused' });
      expect(await running().channel.queryRefund(refund)).toMatchObject({
        outcome: 'answered',
        fact: { state: 'not_found', outRefundNo: refund.outRefundNo },
      });
      expect(await running().refundedMinor(attempt.outTradeNo)).toBe(0);
    });

    it.each<ChannelFault>(['drop', 'http_500', 'html', 'empty', 'cut_off'])(
      'after a refund answered by %s nothing is known',
      async (fault) => {
        const attempt = await paidAttempt();
        const refund = aRefund(attempt);
        await running().fault('refund', attempt.outTradeNo, fault);
        const answer = await running().channel.createRefund(refund);
        expect(answer).toMatchObject({ outcome: 'unknown' });
      },
    );
  });
}
