/**
 * Builders: a whole, plausible row or fact, with what the test speaks of said by the test. Defaults
 * tell one story: order `o-1` of 100.00 CNY at channel `ch-a`, made at 12:00, due at 12:30, looked at
 * at 12:05.
 */
import type { PaymentFact, RefundFact } from '../../domain/channel-facts';
import type { ChannelPolicy } from '../../domain/channel-policy';
import type { Capture, Order, PayRecord, Refund } from '../../domain/orders';
import type { SettlementContext, SettlementState } from '../../domain/verdicts';

/** An instant of the builders' day. */
export function at(clock: string): string {
  return new Date(`2026-03-01T${clock.length === 5 ? `${clock}:00` : clock}Z`).toISOString();
}

export const NOW = at('12:05');

export function anOrder(said: Partial<Order> = {}): Order {
  return {
    merchantId: 'shop',
    orderId: 'o-1',
    amountMinor: 10_000,
    currency: 'CNY',
    subject: 'two cups',
    metadata: {},
    status: 'paying',
    statusReason: null,
    refundStatus: 'none',
    fulfilmentStatus: 'none',
    fulfilmentFailure: null,
    expiresAt: at('12:30'),
    closeRequestedAt: null,
    closeReason: null,
    version: 1,
    createdAt: at('12:00'),
    paidAt: null,
    closedAt: null,
    payToken: 'a'.repeat(64),
    returnUrl: null,
    latePaymentPolicy: 'refund',
    ...said,
  };
}

/** An attempt that was sent once and is known to the channel; number n has out_trade_no `OUTn`. */
export function aPayRecord(said: Partial<PayRecord> = {}): PayRecord {
  const payRecordId = said.payRecordId ?? 1;
  return {
    merchantId: 'shop',
    orderId: 'o-1',
    payRecordId,
    channel: 'ch-a',
    requestNo: `k-${payRecordId}`,
    outTradeNo: `OUT${payRecordId}`,
    amountMinor: 10_000,
    currency: 'CNY',
    status: 'pending',
    statusReason: null,
    channelTradeNo: null,
    method: null,
    returnUrl: null,
    clientIp: null,
    payer: null,
    payParameters: { type: 'redirect', value: 'https://pay.example/1', expiresAt: null },
    sends: 1,
    outcomeUnknown: false,
    firstSentAt: at('12:01'),
    lastSentAt: at('12:01'),
    polls: 0,
    closeRequestedAt: null,
    closeReason: null,
    lastCall: 'submit',
    lastCallAt: at('12:01'),
    lastFactState: 'pending',
    nextDueAt: at('12:02'),
    createdAt: at('12:01'),
    ...said,
  };
}

/** A capture of record 1 that settles the order; number n has channel_trade_no `Tn`. */
export function aCapture(said: Partial<Capture> = {}): Capture {
  const captureId = said.captureId ?? 1;
  const kind = said.kind ?? 'settling';
  return {
    merchantId: 'shop',
    orderId: 'o-1',
    captureId,
    channel: 'ch-a',
    channelTradeNo: `T${captureId}`,
    payRecordId: captureId,
    amountMinor: 10_000,
    currency: 'CNY',
    payerTotalMinor: null,
    settles: kind === 'settling',
    kind,
    status: 'captured',
    reservedMinor: 0,
    refundedMinor: 0,
    reversedMinor: 0,
    reinstatedAt: null,
    paidAt: at('12:02'),
    learntFrom: 'callback',
    learntAt: at('12:02'),
    ...said,
  };
}

/** A merchant's refund of 30.00 of capture 1, accepted by the channel; `OUTRn` at the channel. */
export function aRefund(said: Partial<Refund> = {}): Refund {
  const refundId = said.refundId ?? 1;
  return {
    merchantId: 'shop',
    orderId: 'o-1',
    refundId,
    refundNo: `r-${refundId}`,
    captureId: 1,
    channel: 'ch-a',
    outRefundNo: `OUTR${refundId}`,
    amountMinor: 3_000,
    currency: 'CNY',
    reason: 'too cold',
    origin: 'merchant',
    status: 'processing',
    statusReason: null,
    channelRefundNo: null,
    sends: 1,
    outcomeUnknown: false,
    firstSentAt: at('12:03'),
    lastSentAt: at('12:03'),
    polls: 0,
    lastCall: 'submit',
    lastCallAt: at('12:03'),
    lastFactState: 'processing',
    refusalCode: null,
    nextDueAt: at('12:04'),
    createdAt: at('12:03'),
    finishedAt: null,
    ...said,
  };
}

/** The channel's callback that record 1 was paid in full as trade T1. */
export function aPaymentFact(said: Partial<PaymentFact> = {}): PaymentFact {
  const state = said.state ?? 'paid';
  return {
    kind: 'payment',
    channel: 'ch-a',
    accountId: 'acc-a',
    appId: 'app-a',
    learntFrom: 'callback',
    learntAt: NOW,
    word: state.toUpperCase(),
    eventId: null,
    state,
    outTradeNo: 'OUT1',
    channelTradeNo: 'T1',
    amountMinor: 10_000,
    currency: 'CNY',
    payerTotalMinor: null,
    reversedMinor: null,
    paidAt: at('12:02'),
    ...said,
  };
}

/** The channel's callback that refund 1 was paid out. */
export function aRefundFact(said: Partial<RefundFact> = {}): RefundFact {
  const state = said.state ?? 'succeeded';
  return {
    kind: 'refund',
    channel: 'ch-a',
    accountId: 'acc-a',
    appId: 'app-a',
    learntFrom: 'callback',
    learntAt: NOW,
    word: state.toUpperCase(),
    eventId: null,
    state,
    outRefundNo: 'OUTR1',
    channelRefundNo: 'CR1',
    outTradeNo: 'OUT1',
    channelTradeNo: 'T1',
    amountMinor: 3_000,
    currency: 'CNY',
    refusalCode: null,
    ...said,
  };
}

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

export function aPolicy(said: Partial<ChannelPolicy> = {}): ChannelPolicy {
  return {
    callTimeoutMs: 8_000,
    pollLadderMs: [3_000, 5_000, 10_000],
    refundLadderMs: [10_000, 30_000],
    notFoundGraceMs: MINUTE,
    unconfirmedCloseCaseAfterMs: 30 * MINUTE,
    unmatchedCaseAfterMs: 10 * MINUTE,
    refundCaseAfterMs: 3 * DAY,
    keyLifetimeMs: DAY,
    maxSends: 3,
    refundSpacingMs: 1_000,
    maxRefundsPerCapture: 50,
    refundMaxAgeMs: 365 * DAY,
    maxCallsPerSecond: 50,
    maxConcurrentCalls: 20,
    breakerFailures: 5,
    breakerResetMs: 10_000,
    feeBasisPoints: 60,
    tradeBillMaxBytes: 100_000_000,
    tradeBillLadderMs: [MINUTE],
    reconcileAskMs: 2 * MINUTE,
    ...said,
  };
}

export function aContext(said: Partial<SettlementContext> = {}): SettlementContext {
  return {
    now: NOW,
    policy: aPolicy(),
    account: { accountId: 'acc-a', appId: 'app-a' },
    tradeNoTakenElsewhere: false,
    ...said,
  };
}

/** An order being paid: one pending attempt, nothing captured. */
export function aState(said: Partial<SettlementState> = {}): SettlementState {
  return { order: anOrder(), records: [aPayRecord()], captures: [], refunds: [], ...said };
}

/** An order paid by trade T1 of record 1. */
export function aPaidState(said: Partial<SettlementState> = {}): SettlementState {
  return aState({
    order: anOrder({ status: 'paid', paidAt: at('12:02') }),
    records: [aPayRecord({ status: 'paid', channelTradeNo: 'T1' })],
    captures: [aCapture()],
    ...said,
  });
}
