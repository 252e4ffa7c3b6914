import { Client } from '@temporalio/client';
import { readFulfilmentSteps } from '../db/fulfilment-configuration';
import { createPool } from '../db/transaction';
import type { Pool } from '../db/transaction';
import { MockChannelControl } from '../mock-channel/control-client';
import type { Summary } from '../mock-channel/figures';
import { orderWorkflowId, reconciliationWorkflowId } from '../workflows/ids';
import type { JournalLine } from './books/journal';
import { appendToJournal } from './books/journal';
import { MerchantSteps } from './merchant-steps';
import type { Stack } from './servers/stack';
import { connectTemporal } from './servers/temporal';
import { waitFor } from './servers/wait';

/** One answer of the API. */
export interface Answer {
  status: number;
  replayed: boolean;
  body: Record<string, unknown>;
}

/** What is shown; `run` returns what it proved, with the figures, and throws when it did not. */
export interface TourStep {
  title: string;
  run(shop: TourShop): Promise<string>;
}

/** A report of reconciliation, as the API gives it. */
export interface TourReport {
  status: string;
  bill: { rows: number } | null;
  differences: { kind: string; status: string; subject: string }[];
}

/** Longer than a worker's death and its successor's start on a slow machine. */
const WAIT_MS = 60_000;

/**
 * The shop of the tour: it calls the API as a shop does and keeps every request and its answer in
 * the journal; what is true it reads from the database and from the channel's books.
 */
export class TourShop {
  readonly channel: MockChannelControl;
  /** Marks this tour's orders, so that a later tour makes new ones. */
  readonly mark = Date.now().toString(36);

  private constructor(
    readonly stack: Stack,
    readonly pool: Pool,
    readonly temporal: Client,
  ) {
    this.channel = new MockChannelControl(stack.mockChannel.controlUrl);
  }

  static async open(stack: Stack): Promise<TourShop> {
    const connection = await connectTemporal(stack.temporal.address);
    const temporal = new Client({ connection, namespace: stack.temporal.namespace });
    const pool = createPool({
      databaseUrl: stack.databaseUrl,
      max: 2,
      connectionTimeoutMs: 10_000,
      statementTimeoutMs: 10_000,
      applicationName: 'tour',
      onIdleError: (error) => console.error(error.message),
    });
    return new TourShop(stack, pool, temporal);
  }

  async close(): Promise<void> {
    await this.pool.end();
    await this.temporal.connection.close();
  }

  // ---------------------------------------------------------------------------------------------
  // What a shop does

  /** POST with a JSON body, kept in the journal. */
  async post(
    path: string,
    body: object,
    idempotencyKey?: string,
    apiKey = this.stack.demo.apiKey,
  ): Promise<Answer> {
    const { stack } = this;
    const line: JournalLine = {
      at: new Date().toISOString(),
      method: 'POST',
      path,
      key: idempotencyKey ?? null,
      request: body,
      status: null,
      answer: null,
    };
    try {
      const response = await fetch(stack.api.url + path, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${apiKey}`,
          'content-type': 'application/json',
          ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
        },
        body: JSON.stringify(body),
      });
      const answer = (await response.json()) as Record<string, unknown>;
      line.status = response.status;
      line.answer = answer;
      return {
        status: response.status,
        replayed: response.headers.get('idempotency-replayed') === 'true',
        body: answer,
      };
    } finally {
      appendToJournal(stack.journalFile, line);
    }
  }

  /** Orders 100.00 CNY; the name becomes part of the order id and, as `#tag`, of the subject. */
  async createOrder(name: string): Promise<string> {
    const orderId = `${name}-${this.mark}`;
    const { status } = await this.postOrder(orderId);
    if (status !== 201) throw new Error(`POST /v1/orders answered ${status}`);
    return orderId;
  }

  postOrder(orderId: string): Promise<Answer> {
    return this.post('/v1/orders', {
      order_id: orderId,
      amount: 10_000,
      currency: 'CNY',
      subject: `Tour #${orderId}`,
    });
  }

  pay(orderId: string, requestNo: string, channel = 'mock-a'): Promise<Answer> {
    return this.post(`/v1/orders/${orderId}/payments`, { channel, request_no: requestNo });
  }

  refund(orderId: string, refundNo: string, amount?: number): Promise<Answer> {
    const body = {
      refund_no: refundNo,
      reason: 'tour',
      ...(amount === undefined ? {} : { amount }),
    };
    return this.post(`/v1/orders/${orderId}/refunds`, body);
  }

  cancel(orderId: string): Promise<Answer> {
    return this.post(`/v1/orders/${orderId}/cancel`, {});
  }

  /** What an operator does: reconciles the date, waits for its run to end, and reads the report. */
  async reconcile(channel: string, day: string, dryRun: boolean): Promise<TourReport> {
    const { operatorKey } = this.stack.demo;
    const path = '/ops/reconciliations';
    const { status } = await this.post(
      path,
      { channel, day, dry_run: dryRun },
      undefined,
      operatorKey,
    );
    if (status !== 202) throw new Error(`POST ${path} answered ${status}`);
    const id = reconciliationWorkflowId({ channel, day }, this.stack.taskQueue);
    await this.temporal.workflow.getHandle(id).result();
    const response = await fetch(`${this.stack.api.url}${path}/${day}?channel=${channel}`, {
      headers: { authorization: `Bearer ${operatorKey}` },
    });
    const { reports } = (await response.json()) as { reports: TourReport[] };
    if (!reports[0]) throw new Error(`${channel} has no report of ${day}`);
    return reports[0];
  }

  /** From now on the shop fulfils what is paid with these steps; none: it delivers by itself. */
  async fulfilWith(names: readonly string[]): Promise<void> {
    await this.pool.query(
      `update merchants set fulfilment_steps = $2::jsonb where merchant_id = $1::text`,
      [
        this.stack.demo.merchantId,
        JSON.stringify(
          readFulfilmentSteps(MerchantSteps.configured(this.stack.merchant.base, names)),
        ),
      ],
    );
  }

  /** An order that its payer has paid, told and done. */
  async paidOrder(name: string): Promise<{ orderId: string; outTradeNo: string }> {
    const orderId = await this.createOrder(name);
    await this.pay(orderId, 'click-1');
    const outTradeNo = await this.number(orderId);
    await this.channel.approve(outTradeNo);
    await this.until(orderId, 'paid');
    await this.untilDone(orderId);
    return { orderId, outTradeNo };
  }

  // ---------------------------------------------------------------------------------------------
  // What is true

  async rows<Row>(sql: string, orderId: string): Promise<Row[]> {
    const values = [this.stack.demo.merchantId, orderId];
    return (await this.pool.query(sql, values)).rows as Row[];
  }

  attempts(orderId: string): Promise<{ outTradeNo: string; channel: string; status: string }[]> {
    return this.rows(
      `select out_trade_no as "outTradeNo", channel, status from pay_records
       where merchant_id = $1::text and order_id = $2::text order by pay_record_id`,
      orderId,
    );
  }

  refunds(orderId: string): Promise<{ refundNo: string; status: string; amountMinor: number }[]> {
    return this.rows(
      `select refund_no as "refundNo", status, amount_minor as "amountMinor" from refunds
       where merchant_id = $1::text and order_id = $2::text order by refund_id`,
      orderId,
    );
  }

  openCases(orderId: string): Promise<{ summary: string }[]> {
    return this.rows(
      `select summary from cases
       where merchant_id = $1::text and order_id = $2::text and status = 'open'`,
      orderId,
    );
  }

  async fulfilment(orderId: string): Promise<string | undefined> {
    const [order] = await this.rows<{ fulfilmentStatus: string }>(
      `select fulfilment_status as "fulfilmentStatus" from orders
       where merchant_id = $1::text and order_id = $2::text`,
      orderId,
    );
    return order?.fulfilmentStatus;
  }

  async status(orderId: string): Promise<string | undefined> {
    const [order] = await this.rows<{ status: string }>(
      `select status from orders where merchant_id = $1::text and order_id = $2::text`,
      orderId,
    );
    return order?.status;
  }

  /** The number of the newest attempt at its channel. */
  number(orderId: string): Promise<string> {
    return waitFor(`an attempt of ${orderId}`, WAIT_MS, async () => {
      return (await this.attempts(orderId)).at(-1)?.outTradeNo;
    });
  }

  until(orderId: string, status: string): Promise<true> {
    return waitFor(`${orderId} to be ${status}`, WAIT_MS, async () => {
      const now = await this.status(orderId);
      if (now !== status) throw new Error(`it is ${now}`);
      return true;
    });
  }

  /** Until the order has no work left: told, refunded, nothing on its way. */
  untilDone(orderId: string): Promise<true> {
    return waitFor(`${orderId} to have no work left`, WAIT_MS, async () => {
      const work = await this.rows<{ reason: string }>(
        `select reason from orders_with_work where merchant_id = $1::text and order_id = $2::text`,
        orderId,
      );
      if (work.length > 0) throw new Error(work.map(({ reason }) => reason).join(', '));
      return true;
    });
  }

  /** The channel's own figures for the order's numbers. */
  async books(orderId: string): Promise<Summary> {
    const numbers = (await this.attempts(orderId)).map(({ outTradeNo }) => outTradeNo);
    return this.channel.summary({ outTradeNos: numbers });
  }

  /** State transitions of the order's newest run, as Temporal itself counts them. */
  async transitions(orderId: string): Promise<number> {
    const { merchantId } = this.stack.demo;
    const run = this.temporal.workflow.getHandle(orderWorkflowId({ merchantId, orderId }));
    const description = await run.describe();
    return Number(description.raw.workflowExecutionInfo?.stateTransitionCount);
  }
}
