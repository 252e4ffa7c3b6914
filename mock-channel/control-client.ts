import type {
  BillExtraRow,
  BillFileDefects,
  BillKey,
  BillNotReady,
  BillRowChange,
  BillSetup,
  GeneratedRows,
  MadeBill,
} from './bill-types';
import type { BillPlan } from './bills';
import type { BookRecord, Dialect } from './books';
import type {
  CaptureOrder,
  Delivery,
  FaultRule,
  FinishRefund,
  HeldCallback,
  ReleaseCallbacks,
  ReplayCallback,
  ResendCallback,
  Reversal,
  SendCallback,
  Settings,
  SettingsChange,
  SummaryRequest,
} from './control-types';
import type { StoredFault } from './faults';
import type { Summary } from './figures';
import type { Capture, Refund, Trade } from './ledger';

/** The control interface refused a call; `status` as in PROTOCOL.md section 3. */
export class MockChannelControlError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
    this.name = 'MockChannelControlError';
  }
}

type Target = string | { outTradeNo: string; dialect?: Dialect };

/**
 * The mock channel's control interface for tests and scripts. Every method throws
 * MockChannelControlError on a refusal; amounts are minor units, waits milliseconds.
 */
export class MockChannelControl {
  /** @param url address of the control port, e.g. `http://127.0.0.1:4010` */
  constructor(private readonly url: string) {}

  health(): Promise<{ control: string; a: string; b: string; upSeconds: number }> {
    return this.call('GET', '/health');
  }

  settings(): Promise<Settings> {
    return this.call('GET', '/settings');
  }

  /** Changes the named settings and leaves the others. */
  configure(change: SettingsChange): Promise<Settings> {
    return this.call('PATCH', '/settings', change);
  }

  /** @returns the rule's id */
  async addFault(rule: FaultRule): Promise<string> {
    return (await this.call<{ id: string }>('POST', '/faults', rule)).id;
  }

  faults(): Promise<StoredFault[]> {
    return this.call('GET', '/faults');
  }

  clearFaults(): Promise<void> {
    return this.call('DELETE', '/faults');
  }

  removeFault(id: string): Promise<void> {
    return this.call('DELETE', `/faults/${id}`);
  }

  /** The payer pays; refused (409) when the trade is paid, closed, failed or expired. */
  approve(trade: Target): Promise<Trade> {
    return this.call('POST', '/payer/approve', target(trade));
  }

  decline(trade: Target): Promise<Trade> {
    return this.call('POST', '/payer/decline', target(trade));
  }

  /** The channel holds the payment under review until it is approved or declined. */
  review(trade: Target): Promise<Trade> {
    return this.call('POST', '/payer/review', target(trade));
  }

  /** The channel takes money whatever the trade's state: again, after a close, another amount. */
  capture(order: CaptureOrder): Promise<Capture> {
    return this.call('POST', '/payer/capture', order);
  }

  reverse(order: Reversal): Promise<Trade> {
    return this.call('POST', '/reverse', order);
  }

  reinstate(order: Reversal): Promise<Trade> {
    return this.call('POST', '/reinstate', order);
  }

  finishRefund(order: FinishRefund): Promise<Refund> {
    return this.call('POST', '/refunds/finish', order);
  }

  /** Sends a callback once (or `copies` of it in parallel) and waits for the answers. */
  sendCallback(callback: SendCallback): Promise<Delivery[]> {
    return this.call('POST', '/callbacks/send', callback);
  }

  /** The recorded bytes and headers again, exactly. */
  replayCallback(order: ReplayCallback): Promise<Delivery[]> {
    return this.call('POST', '/callbacks/replay', order);
  }

  /** A stored notice again, freshly signed. */
  resendCallback(order: ResendCallback): Promise<Delivery[]> {
    return this.call('POST', '/callbacks/resend', order);
  }

  heldCallbacks(): Promise<HeldCallback[]> {
    return this.call('GET', '/callbacks/held');
  }

  releaseCallbacks(order: ReleaseCallbacks): Promise<Delivery[]> {
    return this.call('POST', '/callbacks/release', order);
  }

  deliveries(filter: { outTradeNo?: string } = {}): Promise<Delivery[]> {
    const query = new URLSearchParams(filter as Record<string, string>);
    return this.call('GET', `/deliveries?${query.toString()}`);
  }

  /** Closes the dialect's port: connections are refused until accepted again. */
  refuseConnections(order: { dialect: Dialect; forMs?: number }): Promise<void> {
    return this.call('POST', '/connections/refuse', order);
  }

  acceptConnections(order: { dialect: Dialect }): Promise<void> {
    return this.call('POST', '/connections/accept', order);
  }

  /** Figures of the numbers named, of the trades with the tag, or of everything. */
  summary(request: SummaryRequest = {}): Promise<Summary> {
    return this.call('POST', '/summary', request);
  }

  trade(outTradeNo: string, dialect?: Dialect): Promise<Trade> {
    const query = dialect ? `?dialect=${dialect}` : '';
    return this.call('GET', `/trades/${encodeURIComponent(outTradeNo)}${query}`);
  }

  trades(filter: { tag?: string; dialect?: Dialect } = {}): Promise<Trade[]> {
    const query = new URLSearchParams(filter as Record<string, string>);
    return this.call('GET', `/trades?${query.toString()}`);
  }

  /** The books' records after the given `seq`. */
  books(filter: { after?: number } = {}): Promise<BookRecord[]> {
    return this.call('GET', `/books?after=${filter.after ?? 0}`);
  }

  /** Resolves when no delivery, resend, refund or automatic payment is due; 409 after the bound. */
  waitUntilIdle(bound: { timeoutMs?: number } = {}): Promise<void> {
    return this.call('POST', '/idle', bound);
  }

  /** What is set for a bill. */
  bill({ dialect, day }: BillKey): Promise<BillPlan> {
    return this.call('GET', `/bills?dialect=${dialect}&day=${day}`);
  }

  /** Sets what is named for one bill and leaves the rest; the methods below are shorthands of it. */
  setBill(setup: BillSetup): Promise<BillPlan> {
    return this.call('POST', '/bills', setup);
  }

  /** The bill is as the books have it again. */
  resetBill({ dialect, day }: BillKey): Promise<void> {
    return this.call('DELETE', `/bills?dialect=${dialect}&day=${day}`);
  }

  /** There is no bill yet: for so many questions, or until released. */
  holdBill(bill: BillKey, how: BillNotReady = {}): Promise<BillPlan> {
    return this.setBill({ ...keyOf(bill), notReady: how });
  }

  releaseBill(bill: BillKey): Promise<BillPlan> {
    return this.setBill({ ...keyOf(bill), notReady: null });
  }

  /** The file differs from a right one as said; repeated calls add up. */
  spoilBill(bill: BillKey, file: BillFileDefects): Promise<BillPlan> {
    return this.setBill({ ...keyOf(bill), file });
  }

  dropBillRow(bill: BillKey, match: BillRowChange['match']): Promise<BillPlan> {
    return this.setBill({ ...keyOf(bill), rows: [{ match, do: 'drop' }] });
  }

  duplicateBillRow(bill: BillKey, match: BillRowChange['match']): Promise<BillPlan> {
    return this.setBill({ ...keyOf(bill), rows: [{ match, do: 'duplicate' }] });
  }

  /** The row stands in the next day's bill instead. */
  postponeBillRow(bill: BillKey, match: BillRowChange['match']): Promise<BillPlan> {
    return this.setBill({ ...keyOf(bill), rows: [{ match, do: 'next_day' }] });
  }

  changeBillRow(
    bill: BillKey,
    match: BillRowChange['match'],
    set: NonNullable<BillRowChange['set']>,
  ): Promise<BillPlan> {
    return this.setBill({ ...keyOf(bill), rows: [{ match, do: 'change', set }] });
  }

  /** A row that the books do not have. */
  addBillRow(bill: BillKey, row: BillExtraRow): Promise<BillPlan> {
    return this.setBill({ ...keyOf(bill), extraRows: [row] });
  }

  /** Every refund of the bill stands as processing. */
  freezeBillRefunds(bill: BillKey): Promise<BillPlan> {
    return this.setBill({ ...keyOf(bill), refundsProcessing: true });
  }

  /** Adds rows made by arithmetic (PROTOCOL.md section 3); count 0: none. */
  generateBillRows({ dialect, day, ...generated }: BillKey & GeneratedRows): Promise<BillPlan> {
    return this.setBill({ dialect, day, generated: generated.count === 0 ? null : generated });
  }

  /** Makes the bill's file now, so that a question for it is answered at once. */
  prepareBill(bill: BillKey): Promise<MadeBill> {
    return this.call('POST', '/bills/prepare', keyOf(bill));
  }

  private async call<Result>(method: string, path: string, body?: unknown): Promise<Result> {
    const response = await fetch(`${this.url}/control${path}`, {
      method,
      headers: { 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) {
      throw new MockChannelControlError(response.status, `${method} ${path}: ${text}`);
    }
    return (text === '' ? undefined : JSON.parse(text)) as Result;
  }
}

function target(trade: Target): { outTradeNo: string; dialect?: Dialect } {
  return typeof trade === 'string' ? { outTradeNo: trade } : trade;
}

function keyOf({ dialect, day }: BillKey): BillKey {
  return { dialect, day };
}
