/**
 * Applies a settlement's changes to plain objects, as db/changes.ts applies them to rows: for tests
 * that run thousands of sequences. It refuses what the schema refuses: a move outside the table, a
 * second settling capture, a sum below nothing, a reservation over the rest.
 */
import type { ChannelFact } from '../../domain/channel-facts';
import type { Capture, Order, PayRecord, Refund } from '../../domain/orders';
import { refundableMinor } from '../../domain/orders';
import { settle } from '../../domain/settlement';
import type { Change, Settlement, SettlementContext } from '../../domain/verdicts';
import { mayMove } from '../../domain/states';
import { aCapture, aContext, anOrder, aPayRecord, aRefund, NOW } from './builders';

export class BooksInMemory {
  order: Order;
  records: PayRecord[];
  captures: Capture[] = [];
  refunds: Refund[] = [];
  /** Kinds of the evidence in the order's one open case. */
  evidence: string[] = [];
  /** Event and subject, each once for ever. */
  told = new Set<string>();

  constructor(order: Partial<Order> = {}, records: PayRecord[] = [aPayRecord()]) {
    this.order = anOrder(order);
    this.records = records.map((r) => ({ ...r }));
  }

  settle(fact: ChannelFact, context: Partial<SettlementContext> = {}): Settlement {
    const settlement = settle(this, fact, aContext(context));
    for (const change of settlement.changes) this.apply(change, fact);
    return settlement;
  }

  /** Everything that moved, without the case's growing evidence. */
  picture(): string {
    const { order, records, captures, refunds, told } = this;
    return JSON.stringify({ order, records, captures, refunds, told: [...told].sort() });
  }

  private apply(change: Change, fact: ChannelFact): void {
    switch (change.change) {
      case 'move_record': {
        const record = this.find(this.records, (r) => r.payRecordId === change.payRecordId);
        this.move('pay_record', record, change.from, change.to);
        record.channelTradeNo = change.channelTradeNo ?? record.channelTradeNo;
        return;
      }
      case 'move_order':
        return this.move('order', this.order, change.from, change.to);
      case 'move_refund': {
        const refund = this.find(this.refunds, (r) => r.refundId === change.refundId);
        return this.move('refund', refund, change.from, change.to);
      }
      case 'insert_capture': {
        const settles = change.kind === 'settling';
        this.must(!settles || !this.captures.some((c) => c.settles), 'two settling captures');
        const taken = this.captures.some(
          (c) => c.channel === fact.channel && c.channelTradeNo === change.channelTradeNo,
        );
        this.must(!taken, 'one trade number twice');
        const { change: _, ...row } = change;
        const captureId = this.captures.length + 1;
        this.captures.push(aCapture({ ...row, captureId, settles, channel: fact.channel }));
        return;
      }
      case 'correct_capture': {
        const capture = this.capture(change.captureId);
        capture.amountMinor = change.amountMinor;
        capture.currency = change.currency;
        return;
      }
      case 'reverse_capture': {
        const capture = this.capture(change.captureId);
        this.move('capture', capture, change.from, change.to);
        capture.reversedMinor = change.reversedMinor;
        return;
      }
      case 'reinstate_capture': {
        const capture = this.capture(change.captureId);
        this.must(capture.reversedMinor > 0, 'nothing to reinstate');
        capture.status = 'captured';
        capture.reversedMinor = 0;
        capture.reinstatedAt = NOW;
        return;
      }
      case 'close_other_attempts':
        for (const record of this.records)
          if (record.payRecordId !== change.exceptPayRecordId) record.closeRequestedAt ??= NOW;
        return;
      case 'refund_capture': {
        const capture = this.find(
          this.captures,
          (c) => c.channel === fact.channel && c.channelTradeNo === change.channelTradeNo,
        );
        const amountMinor = refundableMinor(capture);
        if (amountMinor > 0) this.openRefund(capture, amountMinor, `auto:${capture.captureId}`);
        return;
      }
      case 'book_refund': {
        const capture = this.capture(change.captureId);
        capture.reservedMinor -= change.releaseMinor;
        capture.refundedMinor += change.refundedMinor;
        return this.mustNotBeNegative(capture);
      }
      case 'release_reservation': {
        const capture = this.capture(change.captureId);
        capture.reservedMinor -= change.amountMinor;
        return this.mustNotBeNegative(capture);
      }
      case 'unbook_refund': {
        const capture = this.capture(change.captureId);
        capture.refundedMinor -= change.amountMinor;
        return this.mustNotBeNegative(capture);
      }
      case 'insert_external_refund': {
        const refundId = this.refunds.length + 1;
        const { outRefundNo, captureId, amountMinor, currency } = change;
        this.refunds.push(
          aRefund({
            refundId,
            refundNo: `external:${outRefundNo}`,
            channel: fact.channel,
            outRefundNo,
            captureId,
            amountMinor,
            currency,
            origin: 'external',
            status: 'succeeded',
          }),
        );
        this.capture(captureId).refundedMinor += amountMinor;
        return;
      }
      case 'open_case':
        this.evidence.push(change.kind);
        return;
      case 'warn':
        return;
      case 'notify':
        this.told.add(`${change.event}:${change.subjectNo}`);
        return;
    }
  }

  /** Reserves and opens a refund of a capture, as an accepted request does. */
  openRefund(capture: Capture, amountMinor: number, refundNo: string): Refund {
    this.must(amountMinor <= refundableMinor(capture), 'a reservation over the rest');
    capture.reservedMinor += amountMinor;
    const refundId = this.refunds.length + 1;
    const { captureId, channel, currency } = capture;
    const origin = refundNo.startsWith('auto:') ? 'surplus' : 'merchant';
    const row = { refundId, refundNo, captureId, channel, currency, amountMinor, origin } as const;
    const refund = aRefund({ ...row, status: 'created', sends: 0, lastCall: null });
    this.refunds.push(refund);
    return refund;
  }

  private capture(captureId: number): Capture {
    return this.find(this.captures, (c) => c.captureId === captureId);
  }

  private find<T>(rows: T[], isIt: (row: T) => boolean): T {
    const row = rows.find(isIt);
    if (!row) throw new Error('a change speaks of a row that is not there');
    return row;
  }

  private move(
    subject: 'order' | 'pay_record' | 'capture' | 'refund',
    row: { status: string },
    from: string,
    to: string,
  ): void {
    this.must(row.status === from, `${subject} expected ${from}, stands at ${row.status}`);
    this.must(mayMove(subject, from, to), `${subject} may not move from ${from} to ${to}`);
    row.status = to;
  }

  private mustNotBeNegative(capture: Capture): void {
    this.must(capture.reservedMinor >= 0 && capture.refundedMinor >= 0, 'a sum below nothing');
  }

  private must(holds: boolean, otherwise: string): void {
    if (!holds) throw new Error(otherwise);
  }
}
