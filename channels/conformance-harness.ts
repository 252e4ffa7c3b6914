import type { PaymentFactState, RefundFactState } from '../domain/channel-facts';
import type {
  CallbackHeaders,
  ChannelAnswer,
  PaymentAttempt,
  PaymentChannel,
  PaymentQuery,
  RefundAttempt,
} from './contract';

/*
 * What the conformance kit needs of a plug-in author: a running server of the channel's protocol,
 * and a way to make it misbehave.
 */

/** What the server does to the next call about one payment number. */
export type ChannelFault =
  | 'drop'
  | 'capture_and_drop'
  | 'hang'
  | 'http_500'
  | 'http_429'
  | 'html'
  | 'empty'
  | 'cut_off'
  | 'missing_amount'
  | 'missing_trade_number'
  | 'unknown_word'
  | 'refuse'
  | 'no_such_payment'
  | 'already_paid'
  | 'already_processed'
  | 'huge_trade_number';

export type FaultedOperation = 'create' | 'query' | 'close' | 'refund' | 'refund_query';

/** How the server spoils the bill of one day. `bomb`: more bytes than the adapter may read. */
export type BillSpoiling =
  | 'zero_bytes'
  | 'cut_off'
  | 'connection_lost'
  | 'column_missing'
  | 'wrong_encoding'
  | 'wrong_day'
  | 'bomb'
  | 'row_unreadable';

/** A callback as the channel would send it, and how it differs from a right one. */
export interface CallbackOrder {
  outTradeNo: string;
  channelTradeNo: string;
  amountMinor: number;
  currency: string;
  /** For a refund callback; absent: about the payment. */
  outRefundNo?: string;
  state: PaymentFactState | RefundFactState;
  /** Unix seconds as the channel writes them; null leaves it out. */
  timestamp: string | null;
  key?: 'current' | 'previous' | 'unknown';
  signature?: 'valid' | 'absent' | 'empty' | 'null' | 'truncated' | 'other_body';
  signatureType?: string | null;
  withoutStatus?: boolean;
  /** The status word FROZEN, which no channel has. */
  frozen?: boolean;
}

export interface WrittenCallback {
  rawBody: Buffer;
  headers: CallbackHeaders;
}

/** One running channel server and an adapter bound to it, without resilience around it. */
export interface ConformanceChannel {
  channel: PaymentChannel;
  /** The account and app its callbacks and answers name; null where the protocol names none. */
  accountId: string | null;
  appId: string | null;
  /** A trade number beyond 2^53 that the fault `huge_trade_number` answers with; null: cannot. */
  hugeTradeNumber: string | null;
  /** The payer pays. */
  pay(outTradeNo: string): Promise<void>;
  /** The payer pays on that business date, `2026-05-01`. */
  payOn(outTradeNo: string, day: string): Promise<void>;
  /** The refund is sent to the channel on that business date. */
  refundOn(refund: RefundAttempt, day: string): Promise<void>;
  /** The bill of the day is not there for so many questions. */
  holdBill(day: string, times: number): Promise<void>;
  spoilBill(day: string, spoiling: BillSpoiling): Promise<void>;
  /** The bill of the day has so many rows more. */
  fillBill(day: string, rows: number): Promise<void>;
  /** Sums the channel really took under this number, from its own books. */
  capturedMinor(outTradeNo: string): Promise<number>;
  /** Sums the channel really paid back under this payment number. */
  refundedMinor(outTradeNo: string): Promise<number>;
  /** The next call of this operation about the payment number meets the fault, once. */
  fault(operation: FaultedOperation, outTradeNo: string, fault: ChannelFault): Promise<void>;
  refuseConnections(): Promise<void>;
  acceptConnections(): Promise<void>;
  writeCallback(order: CallbackOrder): WrittenCallback;
  /** The reader of another channel of the same protocol, with other keys and another account. */
  otherChannel: PaymentChannel;
  stop(): Promise<void>;
}

export interface ConformanceHarness {
  start(): Promise<ConformanceChannel>;
}

/** The currency of the kit's ordinary payments. */
export const CURRENCY = 'CNY';
const WAIT_STEP_MS = 25;
const WAIT_BOUND_MS = 5_000;

/** A right attempt under a fresh number. */
export function anAttempt(overrides: Partial<PaymentAttempt> = {}): PaymentAttempt {
  return {
    outTradeNo: freshNumber(),
    amountMinor: 10_000,
    currency: CURRENCY,
    subject: '测试订单 & test=1',
    expiresAt: new Date(Date.now() + 30 * 60_000).toISOString(),
    method: null,
    returnUrl: null,
    clientIp: null,
    payer: null,
    ...overrides,
  };
}

export function aRefund(
  attempt: PaymentAttempt & { tradeNo: string },
  overrides: Partial<RefundAttempt> = {},
): RefundAttempt {
  return {
    outRefundNo: freshNumber(),
    outTradeNo: attempt.outTradeNo,
    channelTradeNo: attempt.tradeNo,
    amountMinor: 100,
    captureAmountMinor: attempt.amountMinor,
    currency: attempt.currency,
    reason: 'changed their mind',
    ...overrides,
  };
}

let numbers = 0;

/** At most 32 letters and digits, as ours are; unlike any made by another run. */
export function freshNumber(): string {
  numbers += 1;
  return `C${Date.now()}P${process.pid}N${String(numbers).padStart(6, '0')}`;
}

export function queryOf({ outTradeNo, currency }: PaymentQuery): PaymentQuery {
  return { outTradeNo, currency };
}

export function tradeNoOf(answer: ChannelAnswer<{ channelTradeNo: string | null }>): string | null {
  expect(answer.outcome).toBe('answered');
  return answer.outcome === 'answered' ? answer.fact.channelTradeNo : null;
}

/** Waits for a condition, at most five seconds. */
export async function eventually(condition: () => Promise<boolean>): Promise<void> {
  const until = Date.now() + WAIT_BOUND_MS;
  while (!(await condition())) {
    if (Date.now() > until) throw new Error('the condition did not come true');
    await new Promise((resolve) => setTimeout(resolve, WAIT_STEP_MS));
  }
}
