import { randomUUID } from 'node:crypto';
import type { Books, DeliveryCause, Dialect } from './books';
import type { CallbackOverrides, Delivery, HeldCallback, Settings } from './control-types';
import { PostClient, type PostAnswer } from './post-client';
import type { Account, DialectFormat, Notice, WireMessage } from './dialect';
import { drawMs, seededDie, type Faults } from './faults';

/** Deliveries and notices kept for replays and resends; the books keep all, without bytes. */
const MAX_KEPT = 20_000;

export interface CallbackParts {
  formats: Record<Dialect, DialectFormat>;
  accounts: Record<Dialect, Account>;
  books: Books;
  faults: Faults;
  settings: Settings;
}

/**
 * Tells the merchant: each notice is delivered on the ladder, freshly signed every time, until it
 * is answered with exactly the dialect's acknowledgement or the ladder ends.
 */
export class Callbacks {
  readonly notices = new Map<string, Notice>();
  readonly deliveries: Delivery[] = [];
  private readonly held: Notice[] = [];
  private readonly timers = new Map<NodeJS.Timeout, () => void>();
  private readonly client = new PostClient();
  private readonly roll = seededDie(7);
  private turn = 0;
  private busy = 0;
  private closed = false;
  /** First deliveries under way, by trade: what `answerAfterCallback` waits for. */
  private readonly firstDeliveries = new Map<string, Promise<void>>();

  constructor(private readonly parts: CallbackParts) {}

  /** Whether a delivery is under way or due. Held callbacks are not due. */
  get isBusy(): boolean {
    return this.busy > 0;
  }

  /** Starts telling; returns at once. */
  announce(notice: Notice): void {
    this.keep(notice);
    const key = `${notice.dialect}:${notice.outTradeNo}`;
    let first: () => void = () => undefined;
    const told = new Promise<void>((resolve) => (first = resolve));
    const earlier = this.firstDeliveries.get(key) ?? Promise.resolve();
    const all = Promise.all([earlier, told]).then(() => {
      if (this.firstDeliveries.get(key) === all) this.firstDeliveries.delete(key);
    });
    this.firstDeliveries.set(key, all);
    void this.climb(notice, first);
  }

  /** Resolves once all notices of the trade were delivered once (or dropped), or after the bound. */
  async firstDelivered(dialect: Dialect, outTradeNo: string, boundMs: number): Promise<void> {
    const told = this.firstDeliveries.get(`${dialect}:${outTradeNo}`);
    if (told) await Promise.race([told, this.wait(boundMs)]);
  }

  /** Sends copies of a callback once, in parallel, without a ladder. */
  async send(notice: Notice, overrides: CallbackOverrides): Promise<Delivery[]> {
    this.keep(notice);
    const changed =
      overrides.notifyId === 'new' ? { ...overrides, notifyId: randomUUID() } : overrides;
    return Promise.all(
      Array.from({ length: overrides.copies ?? 1 }, () =>
        this.deliver(notice, changed, 1, 'control'),
      ),
    );
  }

  /** The recorded bytes and headers again. */
  async replay(delivery: Delivery, url: string | undefined, copies: number): Promise<Delivery[]> {
    const message: WireMessage = {
      headers: delivery.requestHeaders,
      body: Buffer.from(delivery.requestBodyBase64, 'base64'),
    };
    return Promise.all(
      Array.from({ length: copies }, () =>
        this.post(delivery, message, delivery.word, 1, 'replay', url ?? delivery.url),
      ),
    );
  }

  listHeld(): HeldCallback[] {
    return this.held.map(({ noticeId, dialect, outTradeNo, kind, word }) => ({
      noticeId,
      dialect,
      outTradeNo,
      kind,
      word,
    }));
  }

  /** Delivers held notices one after another in the order given (or together), each once. */
  async release(
    order: 'fifo' | 'lifo' | 'parallel' | string[],
    outTradeNo: string | undefined,
  ): Promise<Delivery[]> {
    let chosen = this.held.filter((one) => !outTradeNo || one.outTradeNo === outTradeNo);
    if (Array.isArray(order)) {
      const all = chosen;
      chosen = order.flatMap((id) => all.filter((one) => one.noticeId === id));
    } else if (order === 'lifo') chosen.reverse();
    for (const notice of chosen) this.held.splice(this.held.indexOf(notice), 1);
    if (order === 'parallel') {
      return Promise.all(chosen.map((notice) => this.deliver(notice, {}, 1, 'natural')));
    }
    const deliveries: Delivery[] = [];
    for (const notice of chosen) deliveries.push(await this.deliver(notice, {}, 1, 'natural'));
    return deliveries;
  }

  close(): void {
    this.closed = true;
    for (const [timer, wake] of this.timers) {
      clearTimeout(timer);
      wake();
    }
    this.client.close();
  }

  private keep(notice: Notice): void {
    this.notices.set(notice.noticeId, notice);
    if (this.notices.size <= MAX_KEPT) return;
    for (const oldest of this.notices.keys()) {
      this.notices.delete(oldest);
      return;
    }
  }

  private async climb(notice: Notice, first: () => void): Promise<void> {
    this.busy += 1;
    try {
      // A delivery lost by fault is no delivery: the next one is not yet a resend.
      let attempt = 1;
      for (let rung = 0; !this.closed; rung += 1) {
        const result = await this.attempt(notice, attempt);
        first();
        const waitMs = this.parts.settings.callbackLadderMs[rung];
        if (result === 'done' || waitMs === undefined) return;
        if (result === 'not_acknowledged') attempt += 1;
        await this.wait(waitMs);
      }
    } finally {
      first();
      this.busy -= 1;
    }
  }

  /** One rung of the ladder. */
  private async attempt(
    notice: Notice,
    attempt: number,
  ): Promise<'done' | 'not_acknowledged' | 'lost'> {
    const { faults, settings } = this.parts;
    if (settings.callbackUrls[notice.dialect].length === 0) return 'done';
    const fault = faults.take({ ...notice, operation: 'callback' });
    if (fault?.hold) {
      this.held.push(notice);
      return 'done';
    }
    // A callback lost on the way: the channel was not answered and tries again.
    if (fault?.drop) return 'lost';
    const delayMs = drawMs(fault?.delayMs, this.roll);
    if (delayMs > 0) await this.wait(delayMs);
    if (this.closed) return 'done';
    const copies = fault?.copies ?? fault?.callback?.copies ?? 1;
    const deliveries = await Promise.all(
      Array.from({ length: copies }, (_, copy) =>
        this.deliver(notice, fault?.callback ?? {}, attempt, copy === 0 ? 'natural' : 'fault_copy'),
      ),
    );
    return deliveries.some((one) => one.acknowledged) ? 'done' : 'not_acknowledged';
  }

  private deliver(
    notice: Notice,
    overrides: CallbackOverrides,
    attempt: number,
    cause: DeliveryCause,
  ): Promise<Delivery> {
    const { formats, accounts } = this.parts;
    const message = formats[notice.dialect].buildCallback(
      accounts[notice.dialect],
      notice,
      overrides,
      new Date(),
    );
    const url = overrides.url ?? this.nextUrl(notice.dialect);
    return this.post(notice, message, overrides.word ?? notice.word, attempt, cause, url);
  }

  private nextUrl(dialect: Dialect): string {
    const urls = this.parts.settings.callbackUrls[dialect];
    const url = urls[this.turn % Math.max(urls.length, 1)];
    this.turn += 1;
    if (url === undefined) throw new RangeError(`no callback address is set for ${dialect}`);
    return url;
  }

  private async post(
    about: Pick<Notice, 'noticeId' | 'dialect' | 'outTradeNo' | 'kind'>,
    message: WireMessage,
    word: string,
    attempt: number,
    cause: DeliveryCause,
    url: string,
  ): Promise<Delivery> {
    const { books, formats, settings } = this.parts;
    const { noticeId, dialect, outTradeNo, kind } = about;
    const deliveryId = randomUUID();
    this.busy += 1;
    const sentAt = new Date().toISOString();
    books.append({
      type: 'callback_sent',
      dialect,
      outTradeNo,
      noticeId,
      deliveryId,
      kind,
      word,
      attempt,
      cause,
      url,
    });
    const answer = await this.client.post(url, message, settings.callbackTimeoutMs);
    const acknowledged = isAcknowledged(formats[dialect], answer);
    this.busy -= 1;
    const delivery: Delivery = {
      deliveryId,
      noticeId,
      dialect,
      outTradeNo,
      kind,
      word,
      attempt,
      cause,
      url,
      sentAt,
      requestHeaders: message.headers,
      requestBodyBase64: message.body.toString('base64'),
      ...answer,
      acknowledged,
    };
    if (this.closed) return delivery;
    this.deliveries.push(delivery);
    if (this.deliveries.length > MAX_KEPT) this.deliveries.shift();
    books.append({
      type: 'callback_answered',
      dialect,
      outTradeNo,
      noticeId,
      deliveryId,
      httpStatus: answer.httpStatus,
      acknowledged,
    });
    return delivery;
  }

  private wait(waitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.timers.delete(timer);
        resolve();
      }, waitMs);
      this.timers.set(timer, resolve);
    });
  }
}

function isAcknowledged(format: DialectFormat, answer: PostAnswer): boolean {
  const mediaType = answer.contentType?.split(';')[0]?.trim().toLowerCase();
  return (
    answer.httpStatus === 200 &&
    mediaType === format.acknowledgement.contentType &&
    answer.body === format.acknowledgement.body
  );
}
