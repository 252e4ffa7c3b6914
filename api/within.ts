import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { Outstanding } from './outstanding';

/** Temporal did not answer in time: the outcome is unknown. */
export class NoAnswerInTime extends Error {
  override readonly name = 'NoAnswerInTime';
  constructor(ms: number) {
    super(`no answer from Temporal within ${ms} ms`);
  }
}

/** Rejects in time, also while the SDK is still busy connecting and does not hear the abort. */
export async function within<T>(
  ms: number,
  { client, outstanding }: { client: Client; outstanding: Outstanding },
  fn: () => Promise<T>,
): Promise<T> {
  const abort = new AbortController();
  const timer = new AbortController();
  const late = delay(ms, undefined, { signal: timer.signal }).then((): never => {
    abort.abort();
    throw new NoAnswerInTime(ms);
  });
  // The deadline ends the SDK's own retries; the abort ends a call that is under way.
  const call = outstanding.track(
    client.withDeadline(Date.now() + ms, () => client.withAbortSignal(abort.signal, fn)),
  );
  call.catch(() => undefined);
  late.catch(() => undefined);
  try {
    return await Promise.race([call, late]);
  } finally {
    timer.abort();
  }
}
