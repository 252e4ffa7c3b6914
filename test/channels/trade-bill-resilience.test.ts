import { MOCK_POLICY } from '../../channels/adapter';
import type { PaymentChannel, TradeBillAnswer, TradeBillRequest } from '../../channels/contract';
import { withResilience } from '../../channels/resilience';
import type { ResilienceHooks } from '../../channels/resilience';
import type { ChannelPolicy } from '../../domain/channel-policy';
import { anAccount, anAdapter } from './mock-callback-writer';

type Open = (request: TradeBillRequest) => Promise<TradeBillAnswer>;

function wrapped(
  openTradeBill: Open,
  policy: Partial<ChannelPolicy> = {},
  hooks?: ResilienceHooks,
) {
  const bare: PaymentChannel = { ...anAdapter(anAccount('mock-a')), openTradeBill };
  return withResilience(bare, 'ch', { ...MOCK_POLICY, callTimeoutMs: 100, ...policy }, hooks);
}

/** A bill whose lines take `lineMs` each and stop when the signal does. */
function slowBill(signal: AbortSignal | undefined, lines: number, lineMs: number): TradeBillAnswer {
  return {
    outcome: 'ready',
    bill: {
      fileName: 'slow.csv',
      async *lines() {
        for (let line = 0; line < lines; line += 1) {
          await new Promise((resolve) => setTimeout(resolve, lineMs));
          if (signal?.aborted) throw new DOMException('ended', 'AbortError');
          yield [];
        }
      },
      end: () => ({ sha256: '', bytes: 0, totals: null }),
    },
  };
}

async function count(answer: TradeBillAnswer, each = () => undefined as void): Promise<number> {
  if (answer.outcome !== 'ready') throw new Error(JSON.stringify(answer));
  let batches = 0;
  for await (const _ of answer.bill.lines()) {
    batches += 1;
    each();
  }
  return batches;
}

describe('a trade bill with resilience around it', () => {
  it('is opened within the time limit, and may take longer to read', async () => {
    const channel = wrapped(({ signal }) => Promise.resolve(slowBill(signal, 5, 60)));
    expect(await count(await channel.openTradeBill({ day: '2026-05-01' }))).toBe(5);
  });

  it('that is not opened in time is unknown, and its adapter is told', async () => {
    let told: AbortSignal | undefined;
    const channel = wrapped(({ signal }) => {
      told = signal;
      return new Promise((resolve) =>
        signal?.addEventListener('abort', () =>
          resolve({ outcome: 'unknown', reason: 'time_limit', retryAfterMs: null, trouble: true }),
        ),
      );
    });
    const answer = await channel.openTradeBill({ day: '2026-05-01' });
    expect(answer).toMatchObject({ outcome: 'unknown', reason: 'time_limit' });
    expect(told?.aborted).toBe(true);
  });

  it('ends with the caller’s signal also while it is read', async () => {
    const channel = wrapped(({ signal }) => Promise.resolve(slowBill(signal, 50, 5)));
    const ending = new AbortController();
    const answer = await channel.openTradeBill({ day: '2026-05-01', signal: ending.signal });
    await expect(count(answer, () => ending.abort())).rejects.toMatchObject({
      name: 'AbortError',
    });
  });

  it('holds no place of the bulkhead while it is read', async () => {
    const channel = wrapped(({ signal }) => Promise.resolve(slowBill(signal, 5, 20)), {
      maxConcurrentCalls: 1,
    });
    const first = await channel.openTradeBill({ day: '2026-05-01' });
    const reading = count(first);
    expect(await channel.openTradeBill({ day: '2026-05-02' })).toMatchObject({ outcome: 'ready' });
    expect(await reading).toBe(5);
  });

  it('is reported like any call; not ready is no trouble of the channel', async () => {
    const onCall = jest.fn();
    const notReady: TradeBillAnswer = {
      outcome: 'not_ready',
      reason: 'BILL_NOT_EXIST',
      retryAfterMs: null,
    };
    const channel = wrapped(() => Promise.resolve(notReady), { breakerFailures: 1 }, { onCall });
    for (let time = 0; time < 3; time += 1) {
      expect(await channel.openTradeBill({ day: '2026-05-01' })).toEqual(notReady);
    }
    expect(onCall).toHaveBeenCalledTimes(3);
    expect(onCall).toHaveBeenLastCalledWith(
      expect.objectContaining({
        operation: 'openTradeBill',
        result: 'not_ready',
        detail: 'BILL_NOT_EXIST',
      }),
    );
  });

  it('opens the breaker by trouble, and is held back by it', async () => {
    const channel = wrapped(
      () =>
        Promise.resolve({
          outcome: 'unknown',
          reason: 'http_503',
          retryAfterMs: null,
          trouble: true,
        }),
      { breakerFailures: 1 },
    );
    await channel.openTradeBill({ day: '2026-05-01' });
    expect(await channel.openTradeBill({ day: '2026-05-01' })).toMatchObject({
      outcome: 'never_left',
      reason: 'breaker_open',
    });
  });
});
