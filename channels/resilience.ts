import {
  BrokenCircuitError,
  BulkheadRejectedError,
  CircuitState,
  ConsecutiveBreaker,
  TimeoutStrategy,
  bulkhead,
  circuitBreaker,
  handleWhenResult,
  timeout,
} from 'cockatiel';
import { setTimeout as sleep } from 'node:timers/promises';
import { RATE_BRAKE } from '../domain/answers';
import type { ChannelPolicy } from '../domain/channel-policy';
import type { ChannelAnswer, PaymentChannel, TradeBillAnswer, TradeBillRequest } from './contract';
import { createRateBrake } from './rate-brake';

/** The calls of a channel that go over the network, as metrics name them. */
export type ChannelOperation =
  | 'createPayment'
  | 'queryPayment'
  | 'closePayment'
  | 'createRefund'
  | 'queryRefund'
  | 'openTradeBill';

export type BreakerState = 'closed' | 'half_open' | 'open';

/** Called synchronously; an error thrown by a hook is the hook's own and never reaches the call. */
export interface ResilienceHooks {
  onCall?: (call: {
    channel: string;
    operation: ChannelOperation;
    result: AnyAnswer['outcome'];
    /**
     * `reason` of an unknown or unsent call or of a bill not ready, `code` of a refusal, state of an
     * answered fact.
     */
    detail: string;
    durationMs: number;
  }) => void;
  onBreakerState?: (change: { channel: string; state: BreakerState }) => void;
}

type AnyAnswer = ChannelAnswer<{ state: string }> | TradeBillAnswer;

/** After this long past its time limit a call that ignored the abort signal is given up. */
const HARD_LIMIT_GRACE_MS = 250;
/** A full bulkhead empties as calls end; a second is many times a healthy call. */
const BULKHEAD_RETRY_MS = 1_000;

/**
 * Wraps a channel so that, sick or slow, it harms nobody else: a time limit per call, a bulkhead
 * (calls at once), a circuit breaker and a rate brake, all of this channel alone and kept in this
 * process. The wrapped channel has the same interface. Calls it holds back come out as
 * `never_left` with the time after which to try again; waiting is bounded by the call's own limit.
 * Of a trade bill all this concerns the opening; the download that follows has its own idle limit
 * and ends with the caller's signal.
 *
 * Timeout, bulkhead and breaker come from cockatiel: it is small, without dependencies, works with
 * AbortSignal, and its half-open handling is tested by more users than ours would be.
 *
 * @param name the channel's name, for the hooks
 */
export function withResilience(
  channel: PaymentChannel,
  name: string,
  policy: ChannelPolicy,
  hooks: ResilienceHooks = {},
): PaymentChannel {
  const brake = createRateBrake(policy.maxCallsPerSecond);
  // No queue: who waits here would only see its own time limit pass. The caller's ladder is better.
  const slots = bulkhead(policy.maxConcurrentCalls, 0);
  const timeLimit = timeout(policy.callTimeoutMs, TimeoutStrategy.Cooperative);
  const hardLimit = timeout(policy.callTimeoutMs + HARD_LIMIT_GRACE_MS, TimeoutStrategy.Aggressive);
  // Refusals, "not found" and unreadable words are answers of a living channel: only trouble counts.
  const breaker = circuitBreaker(
    handleWhenResult((answer) => (answer as { trouble?: boolean }).trouble === true),
    {
      breaker: new ConsecutiveBreaker(policy.breakerFailures),
      halfOpenAfter: policy.breakerResetMs,
    },
  );
  let openedAt = 0;
  breaker.onStateChange((state) => {
    if (state === CircuitState.Open) openedAt = Date.now();
    callHook(hooks.onBreakerState, { channel: name, state: breakerState(state) });
  });

  /** Undefined when a call may pass; while the one trial call is out, the others stay here. */
  function heldByBreaker(): NeverLeft | undefined {
    const leftMs = openedAt + policy.breakerResetMs - Date.now();
    if (breaker.state === CircuitState.Open && leftMs > 0) return neverLeft('breaker_open', leftMs);
    if (breaker.state === CircuitState.HalfOpen) {
      return neverLeft('breaker_half_open', BULKHEAD_RETRY_MS);
    }
    return undefined;
  }

  async function run<Answer extends AnyAnswer>(
    operation: ChannelOperation,
    callerSignal: AbortSignal | undefined,
    call: (signal: AbortSignal) => Promise<Answer>,
  ): Promise<Answer | NeverLeft | Unknown> {
    if (callerSignal?.aborted) return neverLeft('cancelled', null);
    const held = heldByBreaker();
    if (held) return held;
    const place = brake.admit(longestWaitMs(operation, policy.callTimeoutMs));
    if (!place.admitted) return neverLeft(RATE_BRAKE, place.retryAfterMs);

    let handedOver = false;
    try {
      return await timeLimit.execute(async ({ signal }) => {
        if (place.waitMs >= 1) await sleep(place.waitMs, undefined, { signal });
        return await slots.execute(async () => {
          const heldMeanwhile = heldByBreaker();
          if (heldMeanwhile) return heldMeanwhile;
          return await breaker.execute<Answer | Unknown>(async () => {
            handedOver = true;
            try {
              return await hardLimit.execute(() => call(signal));
            } catch (error) {
              // The adapter ignored the abort, or broke its promise not to throw: it may have sent.
              return unknown(signal.aborted ? 'time_limit' : `adapter_error: ${messageOf(error)}`, {
                trouble: signal.aborted,
              });
            }
          });
        });
      }, callerSignal);
    } catch (error) {
      if (handedOver) return unknown(`adapter_error: ${messageOf(error)}`, { trouble: false });
      if (error instanceof BulkheadRejectedError) {
        return neverLeft('bulkhead_full', BULKHEAD_RETRY_MS);
      }
      if (error instanceof BrokenCircuitError) {
        return neverLeft('breaker_open', policy.breakerResetMs);
      }
      return neverLeft('time_limit', null);
    }
  }

  async function guarded<Answer extends AnyAnswer>(
    operation: ChannelOperation,
    callerSignal: AbortSignal | undefined,
    call: (signal: AbortSignal) => Promise<Answer>,
  ): Promise<Answer> {
    const startedAt = performance.now();
    const answer = await run(operation, callerSignal, call);
    if (answer.outcome === 'unknown' && answer.retryAfterMs !== null) {
      brake.pause(answer.retryAfterMs);
    }
    callHook(hooks.onCall, {
      channel: name,
      operation,
      result: answer.outcome,
      detail: detailOf(answer),
      durationMs: performance.now() - startedAt,
    });
    // NeverLeft and Unknown are members of every ChannelAnswer.
    return answer as Answer;
  }

  return {
    createPayment: (attempt) =>
      guarded('createPayment', attempt.signal, (signal) =>
        channel.createPayment({ ...attempt, signal }),
      ),
    queryPayment: (query) =>
      guarded('queryPayment', query.signal, (signal) => channel.queryPayment({ ...query, signal })),
    closePayment: (query) =>
      guarded('closePayment', query.signal, (signal) => channel.closePayment({ ...query, signal })),
    createRefund: (refund) =>
      guarded('createRefund', refund.signal, (signal) =>
        channel.createRefund({ ...refund, signal }),
      ),
    queryRefund: (query) =>
      guarded('queryRefund', query.signal, (signal) => channel.queryRefund({ ...query, signal })),
    openTradeBill: (request) =>
      guarded('openTradeBill', request.signal, (opening) => openBill(channel, request, opening)),
    readCallback: (rawBody, headers, now) => channel.readCallback(rawBody, headers, now),
    acknowledgement: channel.acknowledgement,
    defaultPolicy: channel.defaultPolicy,
    callbackContentType: channel.callbackContentType,
  };
}

/**
 * Opens a bill under two signals: the time limit of the opening counts until the bill is there, the
 * caller's own for the download too.
 */
async function openBill(
  channel: PaymentChannel,
  request: TradeBillRequest,
  opening: AbortSignal,
): Promise<TradeBillAnswer> {
  const ending = new AbortController();
  const endOpening = () => ending.abort();
  opening.addEventListener('abort', endOpening, { once: true });
  request.signal?.addEventListener('abort', () => ending.abort(), { once: true });
  if (opening.aborted) endOpening();
  try {
    return await channel.openTradeBill({ ...request, signal: ending.signal });
  } finally {
    opening.removeEventListener('abort', endOpening);
  }
}

type NeverLeft = Extract<AnyAnswer, { outcome: 'never_left' }>;
type Unknown = Extract<AnyAnswer, { outcome: 'unknown' }>;

function neverLeft(reason: string, retryAfterMs: number | null): NeverLeft {
  return { outcome: 'never_left', reason, retryAfterMs };
}

function unknown(reason: string, { trouble }: { trouble: boolean }): Unknown {
  return { outcome: 'unknown', reason, retryAfterMs: null, trouble };
}

/**
 * Queries and bills wait less for a place than the rest: they come back on a ladder anyway, and a payer who
 * is waiting must not stand behind a thousand polls.
 */
function longestWaitMs(operation: ChannelOperation, callTimeoutMs: number): number {
  const canWait =
    operation === 'queryPayment' || operation === 'queryRefund' || operation === 'openTradeBill';
  return canWait ? callTimeoutMs / 8 : callTimeoutMs / 2;
}

function breakerState(state: CircuitState): BreakerState {
  if (state === CircuitState.Closed) return 'closed';
  return state === CircuitState.HalfOpen ? 'half_open' : 'open';
}

function detailOf(answer: AnyAnswer): string {
  if (answer.outcome === 'answered') return answer.fact.state;
  if (answer.outcome === 'ready') return 'ready';
  return answer.outcome === 'refused' ? answer.code : answer.reason;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function callHook<Argument>(hook: ((argument: Argument) => void) | undefined, argument: Argument) {
  try {
    hook?.(argument);
  } catch {
    // A metric that fails must not change the result of a call that moved money.
  }
}
