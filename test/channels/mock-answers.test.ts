import { anAttempt, queryOf } from '../../channels/conformance-harness';
import type { RefundAttempt } from '../../channels/contract';
import { anAccount, anAdapter } from './mock-callback-writer';
import type { MockDialect } from './mock-callback-writer';
import { startMockHarness } from './mock-harness';

type Harness = Awaited<ReturnType<typeof startMockHarness>>;

describe.each<MockDialect>(['mock-a', 'mock-b'])('answers of %s', (dialect) => {
  let harness: Harness;
  beforeAll(async () => {
    harness = await startMockHarness(dialect);
  });
  afterAll(() => harness.stop());

  async function created(amountMinor = 10_000) {
    const attempt = anAttempt({ amountMinor });
    await harness.channel.createPayment(attempt);
    return attempt;
  }

  async function refundOfPaid(): Promise<RefundAttempt> {
    const attempt = await created();
    await harness.pay(attempt.outTradeNo);
    const { channelTradeNo } = await harness.control.trade(attempt.outTradeNo, dialect);
    return {
      outRefundNo: attempt.outTradeNo.replace('C', 'R'),
      outTradeNo: attempt.outTradeNo,
      channelTradeNo,
      amountMinor: 3_000,
      captureAmountMinor: 10_000,
      currency: 'CNY',
      reason: '',
    };
  }

  const query = (attempt: { outTradeNo: string; currency: string }) =>
    harness.channel.queryPayment(queryOf(attempt));

  it('a declined payment has failed, one under review is pending', async () => {
    const declined = await created();
    await harness.control.decline({ outTradeNo: declined.outTradeNo, dialect });
    expect(await query(declined)).toMatchObject({ fact: { state: 'failed' } });
    const reviewed = await created();
    await harness.control.review({ outTradeNo: reviewed.outTradeNo, dialect });
    expect(await query(reviewed)).toMatchObject({
      fact: { state: 'pending', word: 'UNDER_REVIEW' },
    });
  });

  it('a reversal tells how much, a reinstatement follows', async () => {
    const { outTradeNo, currency } = await created();
    await harness.pay(outTradeNo);
    await harness.control.reverse({ outTradeNo, dialect, amountMinor: 4_000 });
    expect(await query({ outTradeNo, currency })).toMatchObject({
      fact: { state: 'reversed', reversedMinor: 4_000, amountMinor: 10_000 },
    });
    await harness.control.reinstate({ outTradeNo, dialect });
    expect(await query({ outTradeNo, currency })).toMatchObject({
      fact: { state: 'reinstated', reversedMinor: 0 },
    });
  });

  it('the payer’s own total stands apart from the order’s amount', async () => {
    const { outTradeNo, currency } = await created();
    await harness.control.capture({ outTradeNo, dialect, payerTotalMinor: 9_000 });
    expect(await query({ outTradeNo, currency })).toMatchObject({
      fact: { state: 'paid', amountMinor: 10_000, payerTotalMinor: 9_000 },
    });
  });

  it('B47: a capture of another amount is reported at that amount', async () => {
    const { outTradeNo, currency } = await created(50_000);
    await harness.control.capture({ outTradeNo, dialect, amountMinor: 10, currency: 'USD' });
    expect(await query({ outTradeNo, currency })).toMatchObject({
      fact: { state: 'paid', amountMinor: 10, currency: 'USD' },
    });
  });

  it('a balance too low is repeatable: nothing stored, the same number works later', async () => {
    const refund = await refundOfPaid();
    await harness.control.addFault({
      match: { dialect, operation: 'refund', outRefundNo: refund.outRefundNo },
      times: 1,
      do: { refund: 'not_enough_balance' },
    });
    expect(await harness.channel.createRefund(refund)).toMatchObject({
      outcome: 'answered',
      fact: { state: 'not_enough_balance', refusalCode: 'BALANCE_NOT_ENOUGH' },
    });
    expect(await harness.channel.queryRefund(refund)).toMatchObject({
      fact: { state: 'not_found' },
    });
    expect(await harness.channel.createRefund(refund)).toMatchObject({
      outcome: 'answered',
      fact: { amountMinor: 3_000 },
    });
  });

  it('a final refusal is refused, and the query says failed with its code', async () => {
    const refund = await refundOfPaid();
    await harness.control.addFault({
      match: { dialect, operation: 'refund', outRefundNo: refund.outRefundNo },
      do: { refund: 'refuse' },
    });
    expect(await harness.channel.createRefund(refund)).toMatchObject({
      outcome: 'refused',
      alreadyKnown: false,
    });
    expect(await harness.channel.queryRefund(refund)).toMatchObject({
      fact: { state: 'failed', refusalCode: expect.any(String) as string },
    });
    expect(await harness.refundedMinor(refund.outTradeNo)).toBe(0);
  });

  it.each([
    ['abnormal', 'abnormal'],
    ['succeed', 'succeeded'],
    ['fail', 'failed'],
  ] as const)('a held refund that ends with %s is reported as %s', async (result, state) => {
    const refund = await refundOfPaid();
    await harness.control.addFault({
      match: { dialect, operation: 'refund', outRefundNo: refund.outRefundNo },
      do: { refund: 'hold' },
    });
    expect(await harness.channel.createRefund(refund)).toMatchObject({
      fact: { state: 'processing' },
    });
    await harness.control.finishRefund({ outRefundNo: refund.outRefundNo, dialect, result });
    expect(await harness.channel.queryRefund(refund)).toMatchObject({ fact: { state } });
  });

  it('B54: another amount under a used refund number is known, not failed', async () => {
    const refund = await refundOfPaid();
    await harness.channel.createRefund(refund);
    expect(await harness.channel.createRefund({ ...refund, amountMinor: 2_000 })).toMatchObject({
      outcome: 'refused',
      code: 'REFUND_CONFLICT',
      alreadyKnown: true,
    });
  });

  it('believes no answer that is signed with a key it does not share', async () => {
    const account = anAccount(dialect);
    // The server accepts the request, for its previous key is our current one …
    const rotating = { current: account.keys.previous ?? '', previous: null };
    const stranger = anAdapter({ ...account, keys: rotating }, harness.gatewayUrl);
    const attempt = anAttempt();
    // … but answers with a key that we do not know.
    const answer = await stranger.createPayment(attempt);
    expect(answer).toMatchObject({ outcome: 'unknown' });
    expect(answer.outcome === 'unknown' && answer.reason).toMatch(/^unsigned_answer/);
    const both = { current: account.keys.previous ?? '', previous: account.keys.current };
    const changing = anAdapter({ ...account, keys: both }, harness.gatewayUrl);
    expect(await changing.queryPayment(queryOf(attempt))).toMatchObject({
      outcome: 'answered',
      fact: { state: 'pending' },
    });
  });

  it('B76: numbers that look like numbers stay text, leading zeros too', async () => {
    const attempt = anAttempt({ outTradeNo: `0${Date.now()}00000000000000000` });
    expect(await harness.channel.createPayment(attempt)).toMatchObject({
      fact: { outTradeNo: attempt.outTradeNo },
    });
  });

  it('a subject with half a surrogate pair is sent, not thrown about', async () => {
    const answer = await harness.channel.createPayment(anAttempt({ subject: 'broken \ud83d' }));
    expect(answer).toMatchObject({ outcome: 'answered', fact: { state: 'pending' } });
  });
});
