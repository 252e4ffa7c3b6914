import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { MockChannelControlError } from '../../mock-channel/control-client';
import { seededDie } from '../../mock-channel/faults';
import type { Trade } from '../../mock-channel/ledger';
import { refundWorkflowId } from '../../workflows/ids';
import type { Answer, Saga } from '../support/saga';

const CHANNELS = ['mock-a', 'mock-b'] as const;
const REQUESTS = ['K1', 'K2', 'K3'];
const REFUNDS = ['R1', 'R2', 'R3', 'R4'];
/** Between two acts of one order. */
const PAUSE_MS = 250;

/** The random life of one order: what everybody does to it, drawn from a die of its own. */
export class OrderScript {
  readonly orderId: string;
  /** What was done and what came of it, for whoever reads a failure. */
  readonly trace: string[] = [];
  private readonly die: () => number;
  private readonly startedAt = Date.now();
  readonly amountMinor: number;

  constructor(
    private readonly saga: Saga,
    seed: number,
    index: number,
  ) {
    this.orderId = `c${index}`;
    this.die = seededDie(seed * 100_003 + index);
    this.amountMinor = 100 + this.below(50_000);
  }

  async run(): Promise<void> {
    const isShort = this.die() < 0.3;
    const order = {
      order_id: this.orderId,
      amount: this.amountMinor,
      expires_in: isShort ? 1 + this.below(8) : 900,
    };
    await this.note(`create ${JSON.stringify(order)}`, () => this.createOrder(order));
    await this.pays();
    const acts = 5 + this.below(7);
    for (let i = 0; i < acts; i++) {
      await delay(this.below(PAUSE_MS));
      const beside = this.die() < 0.35 ? [this.act()] : [];
      await Promise.all([this.act(), ...beside]);
    }
  }

  private act(): Promise<unknown> {
    const [, act] = this.weighted<() => Promise<unknown>>([
      [6, () => this.pays()],
      [7, () => this.approves()],
      [1, () => this.declines()],
      [1, () => this.reviews()],
      [2, () => this.cancels()],
      [6, () => this.refunds()],
      [2, () => this.captures()],
      [1, () => this.captures(1 + this.below(this.amountMinor * 2))],
      [1, () => this.reverses()],
      [1, () => this.reinstates()],
      [1, () => this.returnsRefund()],
      [3, () => this.replays()],
      [2, () => this.releases()],
      [3, () => this.operates()],
      [1, () => this.createsAgain()],
    ]);
    return act();
  }

  // What the shop does

  private async createOrder(order: object): Promise<Answer> {
    return this.saga.call('POST', '/v1/orders', {
      currency: 'CNY',
      subject: `Order ${this.orderId}`,
      ...order,
    });
  }

  private createsAgain() {
    return this.note('create again', () =>
      this.createOrder({
        order_id: this.orderId,
        amount: this.amountMinor + (this.die() < 0.5 ? 0 : 1),
      }),
    );
  }

  private pays() {
    const count = 1 + this.below(4);
    return Promise.all(
      Array.from({ length: count }, () => {
        const requestNo = this.one(REQUESTS);
        const channel = this.one(CHANNELS);
        return this.note(`pay ${requestNo} ${channel}`, () =>
          this.saga.pay(this.orderId, requestNo, { channel }),
        );
      }),
    );
  }

  private cancels() {
    return this.note('cancel', () => this.saga.cancel(this.orderId));
  }

  private refunds() {
    const count = 1 + this.below(3);
    return Promise.all(
      Array.from({ length: count }, () => {
        const refundNo = this.one(REFUNDS);
        // Few amounts, so that a number comes both with the same and with another one.
        const amount = this.one([
          undefined,
          1,
          Math.ceil(this.amountMinor / 3),
          Math.ceil(this.amountMinor / 2),
        ]);
        return this.note(`refund ${refundNo} ${amount ?? 'rest'}`, () =>
          this.saga.refund(this.orderId, refundNo, amount),
        );
      }),
    );
  }

  // What the payer and the channel do

  private approves() {
    return this.atTrade('approve', (trade) => this.saga.mock.approve(numberOf(trade)));
  }

  private declines() {
    return this.atTrade('decline', (trade) => this.saga.mock.decline(numberOf(trade)));
  }

  private reviews() {
    return this.atTrade('review', (trade) => this.saga.mock.review(numberOf(trade)));
  }

  /** A first capture, a second one, a late one: whatever state the trade is in. */
  private captures(amountMinor?: number) {
    return this.atTrade(`capture ${amountMinor ?? 'again'}`, (trade) =>
      this.saga.mock.capture({ ...numberOf(trade), ...(amountMinor ? { amountMinor } : {}) }),
    );
  }

  private reverses() {
    const whole = this.die() < 0.5;
    return this.atTrade(`reverse ${whole ? 'all' : 'half'}`, (trade) => {
      const [capture] = trade.captures;
      return this.saga.mock.reverse({
        ...numberOf(trade),
        ...(whole || !capture ? {} : { amountMinor: Math.ceil(capture.amountMinor / 2) }),
      });
    });
  }

  private reinstates() {
    return this.atTrade('reinstate', (trade) => this.saga.mock.reinstate(numberOf(trade)));
  }

  private returnsRefund() {
    return this.atTrade('return a refund', async (trade) => {
      const refund = trade.refunds.find(({ status }) => status === 'succeeded');
      if (!refund) return undefined;
      const { outRefundNo, dialect } = refund;
      return this.saga.mock.finishRefund({ outRefundNo, dialect, result: 'return' });
    });
  }

  private replays() {
    const asNew = this.die() < 0.5;
    const copies = 1 + this.below(5);
    return this.atTrade(asNew ? 'resend under another id' : 'replay', async (trade) => {
      const { outTradeNo } = trade;
      if (asNew) return this.saga.mock.resendCallback({ outTradeNo, newNotifyId: true });
      const deliveries = await this.saga.mock.deliveries({ outTradeNo });
      const delivery = deliveries[this.below(deliveries.length)];
      return delivery && this.saga.mock.replayCallback({ deliveryId: delivery.deliveryId, copies });
    });
  }

  private releases() {
    const order = this.one(['fifo', 'lifo', 'parallel'] as const);
    return this.atTrade(`release ${order}`, ({ outTradeNo }) =>
      this.saga.mock.releaseCallbacks({ order, outTradeNo }),
    );
  }

  /** One of the order's trades, the newest more often. */
  private async atTrade(what: string, act: (trade: Trade) => Promise<unknown>): Promise<void> {
    const trades = [];
    for (const { out_trade_no } of await this.saga.records(this.orderId)) {
      const trade = await this.saga.mock.trade(out_trade_no).catch(() => undefined);
      if (trade) trades.push(trade);
    }
    const trade = this.die() < 0.6 ? trades.at(-1) : trades[this.below(trades.length)];
    if (trade) await this.note(`${what} ${trade.outTradeNo.slice(0, 6)}`, () => act(trade));
  }

  // What an operator of Temporal does

  private operates() {
    const handle =
      this.die() < 0.7
        ? this.saga.handle(this.orderId)
        : this.saga.client.workflow.getHandle(
            refundWorkflowId(
              { merchantId: this.saga.merchantId, orderId: this.orderId },
              this.one(REFUNDS),
            ),
          );
    const [, [name, act]] = this.weighted<[string, () => Promise<unknown>]>([
      [2, ['terminate', () => handle.terminate('chaos')]],
      [2, ['cancel the run', () => handle.cancel()]],
      [2, ['junk signal', () => handle.signal('channelNews', { junk: [null, 1e21] }, 'more')]],
      [1, ['unknown signal', () => handle.signal('noSuchSignal', 'junk')]],
      [1, ['nudge', () => handle.signal('nudge')]],
      [2, ['reset', () => this.reset(handle.workflowId)]],
    ]);
    return this.note(`${name} ${handle.workflowId.split(':')[0]}`, act);
  }

  /** Back to a workflow task of the current run, whichever. */
  private async reset(workflowId: string): Promise<unknown> {
    const { client } = this.saga;
    const handle = client.workflow.getHandle(workflowId);
    const { runId } = await handle.describe();
    const events = (await client.workflow.getHandle(workflowId, runId).fetchHistory()).events ?? [];
    const tasks = events.filter((event) => event.workflowTaskCompletedEventAttributes);
    const task = tasks[this.below(tasks.length)];
    if (!task) return undefined;
    return client.workflowService.resetWorkflowExecution({
      namespace: client.options.namespace,
      workflowExecution: { workflowId, runId },
      reason: 'chaos',
      workflowTaskFinishEventId: task.eventId,
      requestId: randomUUID(),
    });
  }

  // Dice and notes

  below(bound: number): number {
    return Math.floor(this.die() * bound);
  }

  private one<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }

  private weighted<T>(choices: readonly [number, T][]): [number, T] {
    const sum = choices.reduce((total, [weight]) => total + weight, 0);
    let at = this.die() * sum;
    const found = choices.find(([weight]) => (at -= weight) < 0);
    return found ?? (choices[0] as [number, T]);
  }

  /** What Temporal and the channel refuse (no such run, paid already) is part of the game. */
  private async note(what: string, act: () => Promise<unknown>): Promise<void> {
    const since = Date.now() - this.startedAt;
    let result: string;
    try {
      const value = await act();
      result = isAnswer(value)
        ? `${value.status} ${String(value.body?.code ?? value.body?.status ?? '')}`
        : 'done';
    } catch (error) {
      if (!(error instanceof MockChannelControlError) && !isOfTemporal(error)) throw error;
      result = `refused (${error.message.slice(0, 60)})`;
    }
    this.trace.push(`${since} ms: ${what}: ${result} after ${Date.now() - this.startedAt - since}`);
  }
}

function numberOf({ outTradeNo, dialect }: Trade) {
  return { outTradeNo, dialect };
}

function isAnswer(value: unknown): value is Answer {
  return typeof value === 'object' && value !== null && 'headers' in value && 'body' in value;
}

function isOfTemporal(error: unknown): error is Error {
  return (
    error instanceof Error &&
    (error.name === 'WorkflowNotFoundError' || error.name === 'ServiceError' || 'code' in error)
  );
}
