import type { ChannelAnswer, PaymentChannel, PaymentQuery } from '../../channels/contract';
import { MOCK_POLICY } from '../../channels/adapter';
import { anAttempt } from '../../channels/conformance-harness';
import { withResilience } from '../../channels/resilience';
import type { BreakerState, ResilienceHooks } from '../../channels/resilience';
import type { PaymentFact } from '../../domain/channel-facts';
import type { ChannelPolicy } from '../../domain/channel-policy';
import { anAccount, anAdapter } from './mock-callback-writer';

type Query = (query: PaymentQuery) => Promise<ChannelAnswer<PaymentFact>>;

const aQuery: PaymentQuery = { outTradeNo: 'OUT1', currency: 'CNY' };
const trouble: ChannelAnswer<never> = {
  outcome: 'unknown',
  reason: 'http_503',
  retryAfterMs: null,
  trouble: true,
};
const refusal: ChannelAnswer<never> = { outcome: 'refused', code: 'NO', alreadyKnown: false };
const unreadable: ChannelAnswer<never> = {
  outcome: 'unknown',
  reason: 'answer_not_json',
  retryAfterMs: null,
};

/** A channel of which every call is answered by `answer`, wrapped. */
function aChannel(answer: Query, policy: Partial<ChannelPolicy> = {}, hooks?: ResilienceHooks) {
  const bare: PaymentChannel = {
    ...anAdapter(anAccount('mock-a')),
    queryPayment: answer,
    createPayment: answer,
  };
  const quick = { ...MOCK_POLICY, callTimeoutMs: 200, maxCallsPerSecond: 10_000, ...policy };
  return withResilience(bare, 'ch', quick, hooks);
}

async function until(condition: () => boolean): Promise<void> {
  const bound = Date.now() + 5_000;
  while (!condition()) {
    if (Date.now() > bound) throw new Error('the condition did not come true');
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

describe('a channel with resilience around it', () => {
  it('passes answers through and reports each call', async () => {
    const onCall = jest.fn();
    const channel = aChannel(() => Promise.resolve(refusal), {}, { onCall });
    expect(await channel.queryPayment(aQuery)).toEqual(refusal);
    expect(onCall).toHaveBeenCalledWith({
      channel: 'ch',
      operation: 'queryPayment',
      result: 'refused',
      detail: 'NO',
      durationMs: expect.any(Number) as number,
    });
  });

  it('a hook that throws does not change the answer', async () => {
    const onCall = () => {
      throw new Error('metrics are broken');
    };
    const channel = aChannel(() => Promise.resolve(refusal), {}, { onCall });
    expect(await channel.queryPayment(aQuery)).toEqual(refusal);
  });

  it('opens after so many troubles in a row, lets one trial through, closes on its success', async () => {
    const states: BreakerState[] = [];
    let calls = 0;
    let answer: ChannelAnswer<never> = trouble;
    const channel = aChannel(
      () => {
        calls += 1;
        return Promise.resolve(answer);
      },
      { breakerFailures: 3, breakerResetMs: 100 },
      { onBreakerState: ({ state }) => states.push(state) },
    );
    for (let call = 0; call < 3; call += 1) {
      expect(await channel.queryPayment(aQuery)).toEqual(trouble);
    }
    const held = await channel.queryPayment(aQuery);
    expect(held).toMatchObject({ outcome: 'never_left', reason: 'breaker_open' });
    const retryAfterMs = held.outcome === 'never_left' ? (held.retryAfterMs ?? 0) : 0;
    expect(retryAfterMs).toBeGreaterThan(0);
    expect(retryAfterMs).toBeLessThanOrEqual(100);
    expect(calls).toBe(3);

    answer = refusal;
    let last: ChannelAnswer<PaymentFact> = held;
    const bound = Date.now() + 5_000;
    while (last.outcome === 'never_left' && Date.now() < bound) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      last = await channel.queryPayment(aQuery);
    }
    expect(last).toEqual(refusal);
    expect(calls).toBe(4);
    expect(states).toEqual(['open', 'half_open', 'closed']);
  });

  it('holds the others back while the trial call is out', async () => {
    let finish: ((answer: ChannelAnswer<never>) => void) | undefined;
    let calls = 0;
    const channel = aChannel(
      () => {
        calls += 1;
        return calls === 1
          ? Promise.resolve(trouble)
          : new Promise((resolve) => (finish = resolve));
      },
      { breakerFailures: 1, breakerResetMs: 20 },
    );
    expect(await channel.queryPayment(aQuery)).toEqual(trouble);
    const openUntil = performance.now() + 25;
    await until(() => performance.now() > openUntil);

    const trial = channel.queryPayment(aQuery);
    await until(() => finish !== undefined);
    expect(await channel.queryPayment(aQuery)).toMatchObject({
      outcome: 'never_left',
      reason: 'breaker_half_open',
    });
    finish?.(refusal);
    expect(await trial).toEqual(refusal);
    expect(calls).toBe(2);
  });

  it.each<[string, ChannelAnswer<never>]>([
    ['refusals', refusal],
    ['unreadable answers', unreadable],
    ['429', { ...unreadable, reason: 'rate_limited', retryAfterMs: 0 }],
  ])('is not opened by %s', async (_, answer) => {
    let calls = 0;
    const channel = aChannel(
      () => {
        calls += 1;
        return Promise.resolve(answer);
      },
      { breakerFailures: 2 },
    );
    for (let call = 0; call < 10; call += 1) await channel.queryPayment(aQuery);
    expect(calls).toBe(10);
  });

  it('B110: gives up a call at its time limit as unknown, also when the adapter ignores the signal', async () => {
    const onCall = jest.fn();
    const never: Query = () => new Promise(() => undefined);
    const channel = aChannel(never, { callTimeoutMs: 50, breakerFailures: 1 }, { onCall });
    expect(await channel.queryPayment(aQuery)).toEqual({
      outcome: 'unknown',
      reason: 'time_limit',
      retryAfterMs: null,
      trouble: true,
    });
    expect(onCall).toHaveBeenCalledTimes(1);
    expect(await channel.queryPayment(aQuery)).toMatchObject({ reason: 'breaker_open' });
  });

  it('takes an adapter that throws after being called for unknown, never for unsent', async () => {
    const channel = aChannel(() => Promise.reject(new Error('a defect')));
    expect(await channel.queryPayment(aQuery)).toMatchObject({
      outcome: 'unknown',
      reason: 'adapter_error: a defect',
    });
  });

  it('sends a call past a full bulkhead away at once, unsent', async () => {
    const waiting: (() => void)[] = [];
    const hold: Query = () => new Promise((resolve) => waiting.push(() => resolve(refusal)));
    const channel = aChannel(hold, { maxConcurrentCalls: 2 });
    const inside = [channel.queryPayment(aQuery), channel.queryPayment(aQuery)];
    await until(() => waiting.length === 2);
    expect(await channel.queryPayment(aQuery)).toMatchObject({
      outcome: 'never_left',
      reason: 'bulkhead_full',
      retryAfterMs: 1_000,
    });
    for (const release of waiting) release();
    expect(await Promise.all(inside)).toEqual([refusal, refusal]);
  });

  it('one dead channel does not slow another', async () => {
    const dead = aChannel(() => new Promise(() => undefined), { maxConcurrentCalls: 5 });
    const lively = aChannel(() => Promise.resolve(refusal));
    const stuck = Array.from({ length: 50 }, () => dead.queryPayment(aQuery));
    const startedAt = performance.now();
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => lively.queryPayment(aQuery)),
    );
    expect(answers.every(({ outcome }) => outcome === 'refused')).toBe(true);
    expect(performance.now() - startedAt).toBeLessThan(150);
    await Promise.all(stuck);
  });

  it('B20: after Retry-After no call leaves before its time, and none is lost', async () => {
    const leftAt: number[] = [];
    const channel = aChannel(() => {
      leftAt.push(performance.now());
      const limited = leftAt.length === 1;
      return Promise.resolve(
        limited ? { ...unreadable, reason: 'rate_limited', retryAfterMs: 300 } : refusal,
      );
    });
    await channel.queryPayment(aQuery);
    const held = await channel.queryPayment(aQuery);
    expect(held).toMatchObject({ outcome: 'never_left', reason: 'rate_brake' });
    const waitMs = held.outcome === 'never_left' ? (held.retryAfterMs ?? 0) : 0;
    expect(waitMs).toBeGreaterThan(200);
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    expect(await channel.queryPayment(aQuery)).toEqual(refusal);
    expect((leftAt[1] ?? 0) - (leftAt[0] ?? 0)).toBeGreaterThanOrEqual(299);
  });

  it('lets a payer’s call wait for a place when polls no longer may', async () => {
    const channel = aChannel(() => Promise.resolve(refusal), {
      maxCallsPerSecond: 20,
      callTimeoutMs: 1_000,
    });
    const polls = Array.from({ length: 50 }, () => channel.queryPayment(aQuery));
    const payer = channel.createPayment(anAttempt());
    const answers = await Promise.all(polls);
    expect(answers.filter(({ outcome }) => outcome === 'never_left').length).toBeGreaterThan(40);
    expect(await payer).toEqual(refusal);
  });

  it('a caller who has gone away sends nothing', async () => {
    const called = jest.fn();
    const channel = aChannel(called);
    const answer = await channel.queryPayment({ ...aQuery, signal: AbortSignal.abort() });
    expect(answer).toMatchObject({ outcome: 'never_left', reason: 'cancelled' });
    expect(called).not.toHaveBeenCalled();
  });

  it('leaves reading, acknowledging and the default policy to the adapter', () => {
    const bare = anAdapter(anAccount('mock-b'));
    const channel = withResilience(bare, 'ch', MOCK_POLICY);
    expect(channel.acknowledgement).toEqual(bare.acknowledgement);
    expect(channel.defaultPolicy).toEqual(bare.defaultPolicy);
    expect(channel.callbackContentType).toBe('application/json');
    expect(channel.readCallback(Buffer.from('{}'), {}, new Date())).toMatchObject({ status: 401 });
  });
});
