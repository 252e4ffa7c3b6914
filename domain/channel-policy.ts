/**
 * How long to wait and how often to ask at one channel. Every wait of the saga comes from here, so
 * tests shorten it instead of sleeping. Milliseconds; a ladder's last rung repeats.
 */
export interface ChannelPolicy {
  /** One channel call, connection included. */
  callTimeoutMs: number;
  pollLadderMs: number[];
  refundLadderMs: number[];
  /** After the order's deadline, how long `not_found` still means "not arrived yet". */
  notFoundGraceMs: number;
  /** A close that cannot be confirmed for this long opens a case; the ladder goes on. */
  unconfirmedCloseCaseAfterMs: number;
  /** A callback for a number nobody knows opens a case after this long. */
  unmatchedCaseAfterMs: number;
  /** A refund not final for this long opens a case; its state is not moved. */
  refundCaseAfterMs: number;
  /** How long the channel remembers our number; no re-send of the same number after that. */
  keyLifetimeMs: number;
  /** Sends of one payment number before it is closed for lack of pay parameters. */
  maxSends: number;
  /** Least time between two refunds of one capture. */
  refundSpacingMs: number;
  maxRefundsPerCapture: number;
  /** No refund is accepted this long after the capture. */
  refundMaxAgeMs: number;
  /** Our own brake, per process: queries and other calls per second, at most. */
  maxCallsPerSecond: number;
  maxConcurrentCalls: number;
  /** Opens after this many failures in a row, half-open after breakerResetMs. */
  breakerFailures: number;
  breakerResetMs: number;
  /** What the channel keeps of a payment, in hundredths of a percent; 0: fees are not compared. */
  feeBasisPoints: number;
  /** Bytes of a trade bill, unpacked, above which it is not read on. */
  tradeBillMaxBytes: number;
  /** Waits between two tries to fetch a bill that is not there yet. */
  tradeBillLadderMs: number[];
  /** How long reconciliation waits for answers about what differs before it puts the rest before a person. */
  reconcileAskMs: number;
}

/** One configured account at one payment provider: a row of the table `channels`. */
export interface ChannelRow {
  /** Our name for it, e.g. `mock-a`; part of the callback URL. */
  channel: string;
  /** Which adapter speaks its protocol, e.g. `mock-a`. */
  adapter: string;
  /** The merchant's account and app at the provider. */
  accountId: string;
  appId: string;
  gatewayUrl: string;
  /** IANA zone of its business date. */
  timeZone: string;
  /** What payers read on the page; null: its own name. */
  displayName?: string | null;
  payEnabled: boolean;
  refundEnabled: boolean;
  /**
   * Where the adapter's secrets are, never the secrets: `env:NAME` or `file:/path` by role
   * (`current`, `previous`, …).
   */
  secretRefs: Record<string, string>;
  /** Overrides of the adapter's default policy. */
  policy: Partial<ChannelPolicy>;
}
