import { ChannelConfigurationError } from '../channels/adapter';
import { isDatabaseUnavailable } from '../db/transaction';
import type { ApiDeps } from './deps';
import { Problem } from './problems';

const UNAVAILABLE_RETRY_MS = 2_000;

/** One place turns whatever was thrown into an answer; what nobody foresaw is logged. */
export function problemOf(
  error: unknown,
  { method, path }: { method: string; path: string },
  deps: ApiDeps,
): Problem {
  if (error instanceof Problem) return error;
  if (isDatabaseUnavailable(error)) {
    deps.log.warn({ err: error, path }, 'the database is away');
    return new Problem(
      'unavailable',
      'the database is away or busy; the outcome is not known: repeat under the same number',
      { retryAfterMs: UNAVAILABLE_RETRY_MS },
    );
  }
  if (error instanceof ChannelConfigurationError) {
    deps.log.error({ err: error, path }, 'a channel cannot be used as configured');
    return new Problem('unavailable', 'the channel is not configured well: repeat later', {
      retryAfterMs: UNAVAILABLE_RETRY_MS,
    });
  }
  deps.log.error({ err: error, method, path }, 'a request failed');
  return new Problem('internal_error', 'repeat under the same number; if it stays, tell us');
}
