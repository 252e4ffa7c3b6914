import { BillAnswers, billFault } from './bill-answers';
import type { Bills } from './bills';
import type { Books, Dialect, Operation } from './books';
import type { Callbacks } from './callbacks';
import type { FaultAction, Settings } from './control-types';
import type {
  Account,
  Content,
  DialectFormat,
  IncomingRequest,
  BillCall,
  TradeCall,
} from './dialect';
import { withBareNumber } from './dialect-b';
import { drawMs, seededDie, type Faults } from './faults';
import type { Ledger, Trade } from './ledger';
import { RateLimit } from './rate-limit';
import { STATUS_OF_CODE } from './reply';
import type { Reply, WordReply } from './reply';
import { captureOf, type RefundOutcome, type TradeDesk, type TradeOutcome } from './trade-desk';

/** At most this long an answer waits for its own callback. */
const CALLBACK_FIRST_BOUND_MS = 10_000;

interface CallNumbers {
  operation: Operation;
  outTradeNo: string | null;
  outRefundNo: string | null;
  amountMinor: number | null;
  currency: string | null;
}

const NO_NUMBERS = { outTradeNo: null, outRefundNo: null, amountMinor: null, currency: null };

type Outcome = TradeOutcome | RefundOutcome;

/** Answers one dialect's requests: reads, lets faults act, asks the desk, books, signs. */
export class Gateway {
  private readonly limit: RateLimit;
  private readonly roll = seededDie(3);
  private readonly firstReplies = new Map<string, Reply>();
  /** Subjects and trades of calls that had no effect, so that tags fit their numbers too. */
  private readonly subjects = new Map<string, string>();
  private readonly tradeOfRefund = new Map<string, string>();
  private readonly bills: BillAnswers;

  constructor(
    private readonly format: DialectFormat,
    private readonly account: Account,
    private readonly parts: {
      books: Books;
      ledger: Ledger;
      desk: TradeDesk;
      faults: Faults;
      callbacks: Callbacks;
      bills: Bills;
      settings: Settings;
      payUrl: (trade: Trade) => string;
    },
  ) {
    this.bills = new BillAnswers(format, account, parts.bills);
    this.limit = new RateLimit(() => this.parts.settings.queryRateLimitPerSecond);
  }

  async answer(request: IncomingRequest): Promise<Reply> {
    const { settings, faults } = this.parts;
    if (settings.latencyMs > 0) await pause(settings.latencyMs);
    const reading = this.format.readRequest(this.account, request, new Date());
    if (!reading.ok) {
      const numbers = { ...reading, amountMinor: null, currency: null };
      return this.refuse(numbers, reading.code, reading.why);
    }
    const { call } = reading;
    if (call.operation === 'bill' || call.operation === 'bill_file') return this.bill(call);
    const numbers = this.remember(call);
    if (call.operation === 'query' && !this.limit.admit()) {
      return this.refuse(numbers, 'RATE_LIMITED', 'too many queries', { 'retry-after': '1' });
    }
    const fault = faults.take({
      dialect: this.dialect,
      operation: call.operation,
      outTradeNo: numbers.outTradeNo,
      outRefundNo: numbers.outRefundNo,
      subject: this.subjectOf(numbers.outTradeNo),
    });
    const reply = fault
      ? await this.faulty(call, numbers, fault)
      : this.plain(call, numbers, this.perform(call, undefined));
    if (fault?.answerAfterCallback && numbers.outTradeNo) {
      const { callbacks } = this.parts;
      await callbacks.firstDelivered(this.dialect, numbers.outTradeNo, CALLBACK_FIRST_BOUND_MS);
    }
    const delayMs = drawMs(fault?.delayBeforeAnswerMs, this.roll);
    if (delayMs > 0) await pause(delayMs);
    return reply;
  }

  private async bill(call: BillCall): Promise<Reply> {
    const { operation } = call;
    const numbers: CallNumbers = { ...NO_NUMBERS, operation };
    const fault = this.parts.faults.take({
      dialect: this.dialect,
      operation,
      outTradeNo: null,
      outRefundNo: null,
      subject: '',
    });
    const delayMs = drawMs(fault?.delayBeforeAnswerMs, this.roll);
    if (delayMs > 0) await pause(delayMs);
    const spoilt = billFault(fault);
    if (fault && spoilt) {
      return this.spoiled({ operation: 'query', outTradeNo: '' }, numbers, fault, {
        ok: false,
        code: 'SYSTEM_ERROR',
      });
    }
    const answer = await this.bills.answer(call);
    switch (answer.kind) {
      case 'refusal': {
        this.book(numbers, answer.code, answer.status);
        const refusal = this.format.refusal(answer.code, answer.message, {});
        const reply = this.signed(answer.status, refusal);
        return { ...reply, headers: { ...reply.headers, ...answer.headers } };
      }
      case 'content':
        this.book(numbers, 'ok', 200);
        return this.signed(200, answer.content);
      case 'file': {
        const { headers, path, bytes, sendBytes } = answer;
        this.book(numbers, 'ok', 200);
        return { drop: false, status: 200, headers, path, bytes, sendBytes };
      }
    }
  }

  private get dialect(): Dialect {
    return this.format.dialect;
  }

  private async faulty(call: TradeCall, numbers: CallNumbers, fault: FaultAction): Promise<Reply> {
    if (fault.delayBeforeEffectMs) await pause(fault.delayBeforeEffectMs);
    const replayKey = [call.operation, numbers.outTradeNo, numbers.outRefundNo].join(':');
    const stored = fault.answer === 'replay' ? this.firstReplies.get(replayKey) : undefined;
    if (stored) {
      this.book(numbers, 'fault:replay', stored.drop ? null : stored.status);
      return stored;
    }
    const byDefault =
      fault.answer === 'refuse' || fault.answer === 'no_such_order' ? 'none' : 'normal';
    const acts = (fault.effect ?? byDefault) === 'normal';
    if (call.operation !== 'create') this.captureDuring(call, numbers, fault);
    const outcome = acts ? this.perform(call, fault) : this.look(call);
    if (call.operation === 'create') this.captureDuring(call, numbers, fault);
    const reply = this.spoiled(call, numbers, fault, outcome);
    if (fault.answer === 'replay') this.firstReplies.set(replayKey, reply);
    return reply;
  }

  private captureDuring(call: TradeCall, numbers: CallNumbers, fault: FaultAction): void {
    const trade = numbers.outTradeNo
      ? this.parts.ledger.trade(numbers.outTradeNo, this.dialect)
      : undefined;
    if (fault.captureNow && trade && call.operation !== 'refund') this.parts.desk.approve(trade);
  }

  private perform(call: TradeCall, fault: FaultAction | undefined): Outcome {
    const { desk } = this.parts;
    switch (call.operation) {
      case 'create':
        return desk.create({ ...call.order, channelTradeNo: fault?.channelTradeNo });
      case 'query':
        return desk.query(this.dialect, call.outTradeNo);
      case 'close':
        return desk.closeTrade(this.dialect, call.outTradeNo);
      case 'refund':
        return desk.refund(call.order, fault);
      case 'refund_query':
        return desk.queryRefund(this.dialect, call.outRefundNo);
    }
  }

  /** What stands in the books, for an answer to a call that had no effect. */
  private look(call: TradeCall): Outcome {
    const { desk } = this.parts;
    switch (call.operation) {
      case 'create':
        return desk.query(this.dialect, call.order.outTradeNo);
      case 'refund':
        return desk.queryRefund(this.dialect, call.order.outRefundNo);
      case 'close':
        return desk.query(this.dialect, call.outTradeNo);
      default:
        return this.perform(call, undefined);
    }
  }

  private plain(call: TradeCall, numbers: CallNumbers, outcome: Outcome): Reply {
    if (!outcome.ok) return this.refuse(numbers, outcome.code, 'see the code');
    this.book(numbers, 'ok', 200);
    return this.signed(200, this.content(call, outcome));
  }

  private spoiled(
    call: TradeCall,
    numbers: CallNumbers,
    fault: FaultAction,
    outcome: Outcome,
  ): Reply {
    const kind = kindOf(call);
    const content = outcome.ok ? this.content(call, outcome) : undefined;
    const text = (changed: Content | undefined): string =>
      this.bare(fault, this.format.answerText(changed ?? this.refusalOf(outcome, numbers)));
    const status = fault.status ?? 200;
    const send = (
      body: string,
      httpStatus = status,
      headers: Record<string, string> = {},
    ): Reply => {
      this.book(numbers, fault.answer ? `fault:${fault.answer}` : 'ok', httpStatus);
      const message = this.format.signAnswer(this.account, Buffer.from(body, 'utf8'));
      return {
        drop: false,
        status: httpStatus,
        ...message,
        headers: { ...message.headers, ...headers },
      };
    };
    switch (fault.answer) {
      case 'drop':
        this.book(numbers, 'fault:drop', null);
        return { drop: true };
      case 'http': {
        const httpStatus = fault.status ?? 500;
        const headers: Record<string, string> =
          fault.retryAfterSeconds === undefined
            ? {}
            : { 'retry-after': String(fault.retryAfterSeconds) };
        const code = fault.code ?? (httpStatus === 429 ? 'RATE_LIMITED' : 'SYSTEM_ERROR');
        const refusal = this.format.refusal(code, 'as asked for', numbersOf(numbers));
        return send(this.format.answerText(refusal), httpStatus, headers);
      }
      case 'html':
        this.book(numbers, 'fault:html', status);
        return {
          drop: false,
          status,
          headers: { 'content-type': 'text/html' },
          body: Buffer.from('<html><body><h1>Something went wrong</h1></body></html>'),
        };
      case 'empty':
        return send('');
      case 'cut_off': {
        const whole = text(content);
        return send(whole.slice(0, Math.floor(whole.length / 2)));
      }
      case 'odd_fields': {
        if (!content) break;
        const own = kind === 'payment' ? this.format.tradeNoField : this.format.refundNoField;
        const odd: Content = { ...content, new_feature: 'on' };
        delete odd[fault.missingField ?? own];
        return send(text(odd));
      }
      case 'word':
        if (content) return send(text(this.format.setWord(content, kind, fault.word ?? 'FROZEN')));
        break;
      case 'refuse': {
        const code = kind === 'payment' ? 'PAYMENT_REFUSED' : 'REFUND_REFUSED';
        return this.refuse(numbers, fault.code ?? code, 'refused as asked for');
      }
      case 'no_such_order': {
        const code = kind === 'payment' ? 'TRADE_NOT_EXIST' : 'REFUND_NOT_EXIST';
        return this.refuse(numbers, code, 'no such order');
      }
      case 'already_paid':
        return this.refuse(numbers, 'TRADE_ALREADY_PAID', 'already paid');
      case 'already_processed':
        return this.refuse(numbers, 'ALREADY_PROCESSED', 'already processed');
      case 'ok':
        if (content && call.operation === 'close') {
          return send(text(this.format.setWord(content, kind, this.format.closedWord)));
        }
        break;
      case 'replay':
        if (fault.status !== undefined && fault.status >= 500) {
          const refusal = this.format.refusal('SYSTEM_ERROR', 'for ever', numbersOf(numbers));
          return send(this.format.answerText(refusal));
        }
        break;
      case undefined:
        break;
    }
    if (!outcome.ok) return this.refuse(numbers, outcome.code, 'see the code');
    return send(text(content));
  }

  private refusalOf(outcome: Outcome, numbers: CallNumbers): Content {
    const code = outcome.ok ? 'SYSTEM_ERROR' : outcome.code;
    return this.format.refusal(code, 'see the code', numbersOf(numbers));
  }

  private content(call: TradeCall, outcome: Outcome & { ok: true }): Content {
    const { format, account } = this;
    if ('refund' in outcome) return format.refundContent(account, outcome.refund, outcome.trade);
    const { trade } = outcome;
    const content = format.tradeContent(account, trade, captureOf(trade));
    if (call.operation !== 'create' || !this.parts.ledger.payable.has(trade)) return content;
    return { ...content, ...format.payParameters(trade, this.parts.payUrl(trade)) };
  }

  private bare(fault: FaultAction, text: string): string {
    return fault.bareTradeNo ? withBareNumber(text, this.format.tradeNoField) : text;
  }

  private refuse(
    numbers: CallNumbers,
    code: string,
    why: string,
    headers: Record<string, string> = {},
  ): Reply {
    const status = STATUS_OF_CODE[code] ?? 403;
    this.book(numbers, code, status);
    const reply = this.signed(status, this.format.refusal(code, why, numbersOf(numbers)));
    return { ...reply, headers: { ...reply.headers, ...headers } };
  }

  private signed(status: number, content: Content): WordReply {
    const body = Buffer.from(this.format.answerText(content), 'utf8');
    return { drop: false, status, ...this.format.signAnswer(this.account, body) };
  }

  private book(numbers: CallNumbers, outcome: string, httpStatus: number | null): void {
    const { operation, outTradeNo, outRefundNo, amountMinor, currency } = numbers;
    this.parts.books.append({
      type: 'request',
      dialect: this.dialect,
      operation,
      outTradeNo,
      outRefundNo,
      amountMinor,
      currency,
      outcome,
      httpStatus,
    });
  }

  private remember(call: TradeCall): CallNumbers {
    const { operation } = call;
    const none = { outRefundNo: null, amountMinor: null, currency: null };
    if (call.operation === 'create') {
      const { outTradeNo, subject, amountMinor, currency } = call.order;
      if (!this.subjects.has(outTradeNo)) this.subjects.set(outTradeNo, subject);
      return { operation, outTradeNo, outRefundNo: null, amountMinor, currency };
    }
    if (call.operation === 'refund') {
      const { outTradeNo, outRefundNo, amountMinor, currency } = call.order;
      this.tradeOfRefund.set(outRefundNo, outTradeNo);
      return { operation, outTradeNo, outRefundNo, amountMinor, currency };
    }
    if (call.operation === 'refund_query') {
      const outTradeNo =
        this.parts.ledger.refund(call.outRefundNo, this.dialect)?.outTradeNo ??
        this.tradeOfRefund.get(call.outRefundNo) ??
        call.outTradeNo;
      return { ...none, operation, outTradeNo, outRefundNo: call.outRefundNo };
    }
    return { ...none, operation, outTradeNo: call.outTradeNo };
  }

  private subjectOf(outTradeNo: string | null): string {
    if (outTradeNo === null) return '';
    const trade = this.parts.ledger.trade(outTradeNo, this.dialect);
    return trade?.subject ?? this.subjects.get(outTradeNo) ?? '';
  }
}

function kindOf(call: TradeCall): 'payment' | 'refund' {
  return call.operation === 'refund' || call.operation === 'refund_query' ? 'refund' : 'payment';
}

function numbersOf(numbers: CallNumbers): Content {
  return {
    ...(numbers.outTradeNo === null ? {} : { out_trade_no: numbers.outTradeNo }),
    ...(numbers.outRefundNo === null ? {} : { out_refund_no: numbers.outRefundNo }),
  };
}

function pause(waitMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, waitMs));
}
