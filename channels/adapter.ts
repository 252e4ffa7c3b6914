import type { ChannelPolicy, ChannelRow } from '../domain/channel-policy';
import type { PaymentChannel } from './contract';
import type { HttpClient } from './http-client';
import type { HttpDownload } from './http-download';
import type { SharedKeys } from './message-authenticity';

/** What the registry gives an adapter besides its row and secrets. */
export interface AdapterDeps {
  /** Already bound to this channel: its own connection pool. */
  http: HttpClient;
  /** For trade bills: apart from `http`, so that a long download holds up no payment. */
  download: HttpDownload;
  now: () => Date;
}

/** An adapter: makes a channel of a row. Secrets come by role, resolved from the row's references. */
export interface ChannelAdapter {
  defaultPolicy: ChannelPolicy;
  /** @throws ChannelConfigurationError when the row or a secret is not what it needs */
  create(row: ChannelRow, secrets: Record<string, string>, deps: AdapterDeps): PaymentChannel;
}

/** A channel's row cannot be used as it is. The message names references and fields, no secret. */
export class ChannelConfigurationError extends Error {
  override name = 'ChannelConfigurationError';
}

/**
 * The roles `current` (required) and `previous` (while a key is being changed).
 * @throws ChannelConfigurationError when `current` is missing
 */
export function sharedKeysOf(row: ChannelRow, secrets: Record<string, string>): SharedKeys {
  const current = secrets.current;
  if (!current) {
    throw new ChannelConfigurationError(
      `channel ${row.channel}: adapter ${row.adapter} needs a secret with the role "current"`,
    );
  }
  return { current, previous: secrets.previous };
}

/**
 * The address of the channel's server, from the row.
 * @throws ChannelConfigurationError when it is not an http(s) URL
 */
export function gatewayOf(row: ChannelRow): URL {
  const url = URL.canParse(row.gatewayUrl) ? new URL(row.gatewayUrl) : undefined;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  throw new ChannelConfigurationError(`channel ${row.channel}: gatewayUrl is not an http(s) URL`);
}

/** Both keys, the current one first. */
export function keyList({ current, previous }: SharedKeys): string[] {
  return previous === undefined ? [current] : [current, previous];
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Waits and limits that suit both mock dialects; ladders as in design, sections 5 and 8. */
export const MOCK_POLICY: ChannelPolicy = {
  // Inside the 8 s that one submit may take in an update, waiting for the brake included.
  callTimeoutMs: 5 * SECOND_MS,
  pollLadderMs: [3, 5, 10, 20, 30, 60, 120, 300].map((seconds) => seconds * SECOND_MS),
  refundLadderMs: [
    10 * SECOND_MS,
    30 * SECOND_MS,
    MINUTE_MS,
    5 * MINUTE_MS,
    30 * MINUTE_MS,
    2 * HOUR_MS,
    6 * HOUR_MS,
    DAY_MS,
  ],
  // Must outlast a call that is still on its way.
  notFoundGraceMs: MINUTE_MS,
  unconfirmedCloseCaseAfterMs: HOUR_MS,
  unmatchedCaseAfterMs: 10 * MINUTE_MS,
  refundCaseAfterMs: 7 * DAY_MS,
  // The mock channel never forgets a number; real channels of this kind keep them for long.
  keyLifetimeMs: 365 * DAY_MS,
  maxSends: 5,
  refundSpacingMs: 0,
  maxRefundsPerCapture: 50,
  refundMaxAgeMs: 365 * DAY_MS,
  maxCallsPerSecond: 200,
  maxConcurrentCalls: 64,
  breakerFailures: 10,
  breakerResetMs: 10 * SECOND_MS,
  feeBasisPoints: 60,
  // Some ten million rows.
  tradeBillMaxBytes: 2 * 1024 ** 3,
  tradeBillLadderMs: [1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS),
  reconcileAskMs: 2 * MINUTE_MS,
};
