import { anAttempt, queryOf } from '../../channels/conformance-harness';
import { createChannelRegistry } from '../../channels/registry';
import type { ChannelPolicy } from '../../domain/channel-policy';
import { aRow, anAccount } from './mock-callback-writer';
import { startMockHarness } from './mock-harness';

type Harness = Awaited<ReturnType<typeof startMockHarness>>;

describe('a configured channel against its server', () => {
  let harness: Harness;
  beforeAll(async () => {
    harness = await startMockHarness('mock-a');
  });
  afterAll(() => harness.stop());

  async function configured(policy: Partial<ChannelPolicy>) {
    const account = anAccount('mock-a');
    const row = aRow(account, { gatewayUrl: harness.gatewayUrl, policy });
    const registry = createChannelRegistry({
      readRows: () => Promise.resolve([row]),
      env: { CURRENT: account.keys.current, PREVIOUS: account.keys.previous ?? '' },
      refreshAfterMs: 60_000,
    });
    const found = await registry.get('mock-a');
    if (!found) throw new Error('the channel is not configured');
    return found.channel;
  }

  const requests = async () =>
    (await harness.control.books()).filter((record) => record.type === 'request');

  it('B20: a crowd of polls stays under the channel’s limit and every one is answered', async () => {
    const attempt = anAttempt();
    const channel = await configured({ maxCallsPerSecond: 40 });
    await channel.createPayment(attempt);
    await harness.control.configure({ queryRateLimitPerSecond: 50 });
    try {
      let rounds = 0;
      const poll = async (): Promise<string> => {
        for (;;) {
          rounds += 1;
          const answer = await channel.queryPayment(queryOf(attempt));
          if (answer.outcome !== 'never_left' && answer.outcome !== 'unknown')
            return answer.outcome;
          if (rounds > 2_000) return 'no end';
          await new Promise((resolve) => setTimeout(resolve, answer.retryAfterMs ?? 0));
        }
      };
      const outcomes = await Promise.all(Array.from({ length: 150 }, poll));
      expect(outcomes.filter((outcome) => outcome === 'answered')).toHaveLength(150);
      const limited = (await requests()).filter(({ httpStatus }) => httpStatus === 429);
      // Without the brake a hundred of the first wave. On a busy machine calls sent in two seconds
      // may arrive in one, so a few are no fault of the brake.
      expect(limited.length).toBeLessThan(50);
      // Sent away with a spread hint, a poll comes back a few times, not all the time.
      expect(rounds).toBeLessThan(150 * 5);
    } finally {
      await harness.control.configure({ queryRateLimitPerSecond: null });
    }
  });

  it('a channel that answers nothing but errors is left alone until it may be tried again', async () => {
    const channel = await configured({ breakerFailures: 3, breakerResetMs: 3_000 });
    const fault = await harness.control.addFault({
      match: { dialect: 'mock-a', operation: 'any' },
      do: { answer: 'http', status: 503 },
    });
    const before = (await requests()).length;
    const outcomes: string[] = [];
    for (let call = 0; call < 20; call += 1) {
      outcomes.push((await channel.queryPayment(queryOf(anAttempt()))).outcome);
    }
    expect(outcomes.slice(0, 3)).toEqual(['unknown', 'unknown', 'unknown']);
    expect(new Set(outcomes.slice(3))).toEqual(new Set(['never_left']));
    expect((await requests()).length - before).toBe(3);

    await harness.control.removeFault(fault);
    const until = Date.now() + 10_000;
    let answer = await channel.queryPayment(queryOf(anAttempt()));
    while (answer.outcome === 'never_left' && Date.now() < until) {
      await new Promise((resolve) =>
        setTimeout(resolve, answer.outcome === 'never_left' ? (answer.retryAfterMs ?? 10) : 0),
      );
      answer = await channel.queryPayment(queryOf(anAttempt()));
    }
    expect(answer).toMatchObject({ outcome: 'answered', fact: { state: 'not_found' } });
  });

  it('a dead port is trouble too, though nothing ever left', async () => {
    const channel = await configured({ breakerFailures: 2, breakerResetMs: 60_000 });
    await harness.refuseConnections();
    try {
      const reasons: string[] = [];
      for (let call = 0; call < 3; call += 1) {
        const answer = await channel.createPayment(anAttempt());
        reasons.push(answer.outcome === 'never_left' ? answer.reason : answer.outcome);
      }
      expect(reasons).toEqual([
        'connection: ECONNREFUSED',
        'connection: ECONNREFUSED',
        'breaker_open',
      ]);
    } finally {
      await harness.acceptConnections();
    }
  });
});
