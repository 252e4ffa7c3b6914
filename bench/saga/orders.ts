import { setTimeout as delay } from 'node:timers/promises';
import type { Saga } from '../../test/support/saga';
import { HttpClient } from './http-client';

/** Far above what an order takes at any rate that a bench calls bearable. */
const TOLD_WITHIN_MS = 120_000;

/**
 * What a shop does, for load: it orders, asks to be paid, and hears that it was paid. Calls go to the
 * API process of the stack over kept connections.
 */
export class ShopOrders {
  private readonly http = new HttpClient();
  private readonly waiting = new Map<string, () => void>();
  private readonly headers: Record<string, string>;
  /** Orders that got a number until now. */
  made = 0;

  constructor(
    private readonly saga: Saga,
    private readonly prefix: string,
    /** Write every answered call into the saga's journal, for the books checker. */
    private readonly journal = false,
  ) {
    this.headers = {
      authorization: `Bearer ${saga.apiKey}`,
      'content-type': 'application/json',
    };
    const before = saga.merchant.answer;
    saga.merchant.answer = (event) => {
      if (event.type !== 'order.paid') return before(event);
      this.waiting.get(event.orderId)?.();
      return before(event);
    };
  }

  /** A number no order had before. */
  nextId(): string {
    return `${this.prefix}-${++this.made}`;
  }

  async create(orderId: string, expiresInS = 1_800): Promise<void> {
    await this.call([201], '/v1/orders', orderOf(orderId, expiresInS));
  }

  /** Creates the same order again; a shop that did not hear the answer does. */
  async createAgain(orderId: string, expiresInS = 1_800): Promise<void> {
    await this.call([200], '/v1/orders', orderOf(orderId, expiresInS));
  }

  async pay(orderId: string): Promise<void> {
    const path = `/v1/orders/${orderId}/payments`;
    await this.call([201, 200], path, { channel: 'mock-a', request_no: 'K1' });
  }

  /**
   * An order that its payer may pay now. "Unknown, repeat under the same number" is repeated, as a shop
   * does: what is only prepared need not be done at the first try.
   */
  async open(orderId: string, expiresInS = 1_800): Promise<void> {
    const payments = `/v1/orders/${orderId}/payments`;
    await patiently(() => this.call([200, 201], '/v1/orders', orderOf(orderId, expiresInS)));
    await patiently(() => this.call([200, 201], payments, { channel: 'mock-a', request_no: 'K1' }));
  }

  /** Orders, asks to be paid, and waits until the shop is told that it was. */
  async orderUntilPaid(orderId = this.nextId()): Promise<void> {
    const told = this.untilPaid(orderId);
    try {
      await this.create(orderId);
      await this.pay(orderId);
    } catch (error) {
      this.waiting.get(orderId)?.();
      throw error;
    }
    await told;
  }

  /** Resolves when the shop has heard that the order is paid. */
  untilPaid(orderId: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.waiting.delete(orderId);
        reject(new Error(`not told within ${TOLD_WITHIN_MS} ms`));
      }, TOLD_WITHIN_MS);
      this.waiting.set(orderId, () => {
        clearTimeout(timer);
        this.waiting.delete(orderId);
        resolve();
      });
    });
  }

  close(): void {
    this.http.close();
  }

  private async call(statuses: readonly number[], path: string, request: object): Promise<void> {
    const at = new Date().toISOString();
    const body = JSON.stringify(request);
    const answer = await this.http.expect(statuses, this.url + path, body, this.headers);
    if (!this.journal) return;
    const { status } = answer;
    const line = { at, method: 'POST', path, key: null, request, status };
    this.saga.journal.push({ ...line, answer: JSON.parse(answer.body) as unknown });
  }

  private get url(): string {
    const [api] = this.saga.apis;
    if (!api) throw new Error('no API runs');
    return api.url;
  }
}

const REPEATS_MAX = 20;
const REPEAT_AFTER_MS = 500;

async function patiently(call: () => Promise<void>): Promise<void> {
  for (let repeats = 0; ; repeats++) {
    try {
      return await call();
    } catch (error) {
      const isUnknown = /^answered (202|503)/.test((error as Error).message);
      if (!isUnknown || repeats === REPEATS_MAX) throw error;
      await delay(REPEAT_AFTER_MS);
    }
  }
}

function orderOf(orderId: string, expiresInS: number) {
  return {
    order_id: orderId,
    amount: 10_000,
    currency: 'CNY',
    subject: `Order ${orderId}`,
    expires_in: expiresInS,
  };
}
