/**
 * The real API under an open-model load beside a plain app of the same make: what an order, a payment,
 * a callback and a duplicate cost over one insert.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CallbackLoad } from './http/callbacks';
import { POOL_SIZE, startPlain } from './http/plain';
import type { Plain } from './http/plain';
import { printHttp } from './http/print';
import { closedLoad, openLoad } from './open-load';
import type { LoadResult } from './open-load';
import { assertKeepable, describeRig, describeSource, keepResult, rigLine } from './results';
import { topStatements } from './saga/database-counts';
import { median } from './saga/history-cost';
import { findKnee, lineOfStep, rounded } from './saga/knee';
import type { Knee } from './saga/knee';
import { readOptions } from './saga/options';
import { ShopOrders } from './saga/orders';
import { startBenchServers } from './saga/servers';
import { CHANNEL_DELAY_MS, startBenchStack } from './saga/stack';
import type { BenchStack } from './saga/stack';

/** One kind of request beside the plain insert, both at half of the kind's own knee. */
export interface Compared {
  knee: Knee;
  rate: number;
  /** Medians of the rounds, in milliseconds from the planned send. */
  p50_ms: number;
  p99_ms: number;
  plain_p50_ms: number;
  plain_p99_ms: number;
  p50_ratio: number;
  p99_ratio: number;
  failed: number;
}

export interface HttpResult {
  pool_size: number;
  channel_delay_ms: number;
  copies: number;
  /** Requests sent in all of the run. */
  requests: number;
  plain_knee: Knee;
  create: Compared;
  /** The order's run, its two database steps and the channel's delay are in it. */
  payments: Compared;
  callbacks: Compared;
  /** As fast as they go, requests per second: medians of the rounds. */
  duplicates: {
    clients: number;
    callback_copies_per_s: number;
    order_repeats_per_s: number;
    plain_conflicts_per_s: number;
    /** Copies of callbacks through plain conflicts. */
    ratio: number;
    order_repeats_ratio: number;
  };
}

const NUMBERS = {
  /** Of each step and of each round. */
  seconds: 10,
  rounds: 5,
  steps: 16,
  /** Deliveries of each callback. */
  copies: 10,
  clients: 32,
  /** First steps, requests per second. */
  'from-create': 20,
  'from-payments': 5,
  'from-callbacks': 50,
  'from-plain': 200,
};
const SWITCHES = ['temporal-postgres', 'statements', 'test-servers', 'write'] as const;
const STEP_FACTOR = 1.35;
const P99_MS_MAX = 1_000;
const IN_FLIGHT_MAX = 1_000;
const HALF = 0.5;
const PREPARED_AT_ONCE = 16;

type Options = typeof NUMBERS & Record<(typeof SWITCHES)[number], boolean>;

export async function http(args: readonly string[]): Promise<HttpResult> {
  const options = readOptions(args, NUMBERS, SWITCHES);
  const { seconds, rounds, steps, copies } = options;
  const fullSize =
    seconds >= NUMBERS.seconds &&
    rounds >= NUMBERS.rounds &&
    steps >= NUMBERS.steps &&
    copies >= NUMBERS.copies;
  const keeping = { fullSize, write: options.write };
  const source = describeSource();
  assertKeepable(keeping, source);
  const folder = mkdtempSync(join(tmpdir(), 'payment-saga-bench-logs-'));
  const servers = await startBenchServers({
    temporalPostgres: options['temporal-postgres'],
    statements: options.statements,
    testServers: options['test-servers'],
  });
  const ends: (() => Promise<unknown>)[] = [() => servers.end()];
  try {
    const stack = await startBenchStack(servers, {
      payersPay: false,
      env: { API_POOL_SIZE: String(POOL_SIZE) },
    });
    ends.unshift(() => stack.end());
    const plain = await startPlain(stack.saga, folder);
    ends.unshift(() => plain.end());
    const result = await measure(stack, plain, options);
    const rig = describeRig(servers.versions);
    printHttp(result, rigLine(rig, source));
    if (options.statements) console.table(await topStatements(stack.saga.pool));
    const name = options['temporal-postgres'] ? 'http-postgres' : 'http';
    const kept = keepResult(name, result, { rig, source, keeping });
    if (kept !== undefined) console.log(`kept as ${kept}`);
    return result;
  } finally {
    for (const end of ends) await end().catch((error: unknown) => console.error(error));
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure(stack: BenchStack, plain: Plain, options: Options): Promise<HttpResult> {
  const bench = new HttpBench(stack, plain, options);
  try {
    await bench.warmUp();
    const plainKnee = await bench.plainKnee();
    const create = await bench.create();
    const payments = await bench.payments();
    const callbacks = await bench.callbacks();
    const duplicates = await bench.duplicates();
    return {
      pool_size: POOL_SIZE,
      channel_delay_ms: CHANNEL_DELAY_MS,
      copies: options.copies,
      requests: bench.requests,
      plain_knee: plainKnee,
      create,
      payments,
      callbacks,
      duplicates,
    };
  } finally {
    bench.close();
  }
}

type Send = (index: number) => Promise<void>;

class HttpBench {
  requests = 0;
  private readonly shop: ShopOrders;
  private readonly told: CallbackLoad;
  /** Orders that nobody has asked to pay. */
  private readonly unpaid: string[] = [];
  /** Orders with an attempt that the channel has not told of. */
  private readonly paying: string[] = [];
  private toldOf = 0;

  constructor(
    stack: BenchStack,
    private readonly plain: Plain,
    private readonly options: Options,
  ) {
    this.shop = new ShopOrders(stack.saga, 'h');
    this.told = new CallbackLoad(stack.saga, this.shop);
  }

  async warmUp(): Promise<void> {
    console.log('warming up');
    const forMs = Math.min(5_000, this.options.seconds * 1_000);
    await this.closed(() => this.plain.insert(), forMs);
    await this.closed(this.createOne, forMs);
    await this.told.prepare(20);
    await Promise.all(Array.from({ length: 40 }, (_, i) => this.told.send(i)));
    this.toldOf = this.told.size;
  }

  plainKnee(): Promise<Knee> {
    console.log('plain insert, requests per second');
    return this.knee(
      this.options['from-plain'],
      this.open(() => this.plain.insert()),
    );
  }

  async create(): Promise<Compared> {
    console.log('POST /v1/orders, requests per second');
    return this.compare(this.options['from-create'], this.open(this.createOne));
  }

  async payments(): Promise<Compared> {
    console.log('POST /v1/orders/{order_id}/payments, requests per second');
    return this.compare(this.options['from-payments'], async (rate) => {
      await this.orders(this.countOf(rate));
      return this.openAt(rate, async () => {
        const orderId = this.unpaid.shift();
        if (orderId === undefined) throw new Error('no order is left to pay');
        await this.shop.pay(orderId);
        this.paying.push(orderId);
      });
    });
  }

  /** Each payment is told of in so many copies one after the other, at the rate of all of them. */
  async callbacks(): Promise<Compared> {
    console.log(`POST /callbacks/mock-a, ${this.options.copies} copies each, requests per second`);
    const { copies } = this.options;
    return this.compare(this.options['from-callbacks'], async (rate) => {
      await this.news(Math.ceil(this.countOf(rate) / copies));
      const first = this.toldOf;
      const load = await this.openAt(rate, (i) => this.told.send(first + Math.floor(i / copies)));
      this.toldOf = Math.min(this.told.size, first + Math.ceil(load.sent / copies));
      return load;
    });
  }

  /** All of what they repeat is known: callbacks of paid orders, orders, rows. */
  async duplicates(): Promise<HttpResult['duplicates']> {
    console.log('duplicates, as fast as they go');
    const known = Math.max(1, this.toldOf);
    const again = this.shop.nextId();
    await this.shop.create(again);
    const forMs = this.options.seconds * 1_000;
    const rates = { callbacks: [] as number[], orders: [] as number[], plain: [] as number[] };
    for (let round = 0; round < this.options.rounds; round++) {
      rates.callbacks.push(await this.closed((i) => this.told.send(i % known), forMs));
      rates.plain.push(await this.closed((i) => this.plain.insertAgain(i), forMs));
      rates.orders.push(await this.closed(() => this.shop.createAgain(again), forMs));
    }
    const [callbacks, orders, plain] = [rates.callbacks, rates.orders, rates.plain].map(median);
    return {
      clients: this.options.clients,
      callback_copies_per_s: rounded(callbacks ?? 0),
      order_repeats_per_s: rounded(orders ?? 0),
      plain_conflicts_per_s: rounded(plain ?? 0),
      ratio: ratioOf(callbacks ?? 0, plain ?? 0),
      order_repeats_ratio: ratioOf(orders ?? 0, plain ?? 0),
    };
  }

  close(): void {
    this.shop.close();
    this.told.close();
  }

  private readonly createOne: Send = async () => {
    const orderId = this.shop.nextId();
    await this.shop.create(orderId);
    this.unpaid.push(orderId);
  };

  /** The knee of this kind, then its latency and the plain route's in turn, at half of it. */
  private async compare(
    from: number,
    run: (rate: number) => Promise<LoadResult>,
  ): Promise<Compared> {
    const knee = await this.knee(from, run);
    const rate = Math.max(1, rounded(knee.per_second * HALF));
    const rounds: { ours: LoadResult; plain: LoadResult }[] = [];
    for (let round = 0; round < this.options.rounds; round++) {
      const ours = await run(rate);
      rounds.push({ ours, plain: await this.openAt(rate, () => this.plain.insert()) });
    }
    const of = (side: 'ours' | 'plain', what: 'p50_ms' | 'p99_ms') =>
      median(rounds.map((one) => one[side].latency[what]));
    const compared = {
      knee,
      rate,
      p50_ms: of('ours', 'p50_ms'),
      p99_ms: of('ours', 'p99_ms'),
      plain_p50_ms: of('plain', 'p50_ms'),
      plain_p99_ms: of('plain', 'p99_ms'),
      failed: rounds.reduce((sum, { ours }) => sum + ours.failed, 0),
    };
    return {
      ...compared,
      p50_ratio: ratioOf(compared.p50_ms, compared.plain_p50_ms),
      p99_ratio: ratioOf(compared.p99_ms, compared.plain_p99_ms),
    };
  }

  private knee(from: number, run: (rate: number) => Promise<LoadResult>): Promise<Knee> {
    return findKnee({
      from,
      factor: STEP_FACTOR,
      stepsMax: this.options.steps,
      p99MsMax: P99_MS_MAX,
      run,
      onStep: (step) => console.log(`  ${lineOfStep(step)}`),
    });
  }

  private open(act: Send): (rate: number) => Promise<LoadResult> {
    return (rate) => this.openAt(rate, act);
  }

  private async openAt(perSecond: number, act: Send): Promise<LoadResult> {
    const load = await openLoad({
      act,
      perSecond,
      count: this.countOf(perSecond),
      inFlightMax: IN_FLIGHT_MAX,
    });
    this.requests += load.sent;
    return load;
  }

  private async closed(act: Send, forMsMax: number): Promise<number> {
    const { clients } = this.options;
    const load = await closedLoad({ act, clients, count: 10_000_000, forMsMax });
    if (load.failed > 0) console.log(load.errors);
    this.requests += load.sent;
    return load.per_second;
  }

  private countOf(rate: number): number {
    return Math.max(1, Math.round(rate * this.options.seconds));
  }

  /** So many orders that nobody has asked to pay. */
  private async orders(count: number): Promise<void> {
    await closedLoad({
      act: this.createOne,
      count: count - this.unpaid.length,
      clients: PREPARED_AT_ONCE,
    });
  }

  /** So many payments that nobody was told of. */
  private async news(count: number): Promise<void> {
    const missing = count - (this.told.size - this.toldOf);
    if (missing <= 0) return;
    const paying = this.paying.splice(0, missing);
    await this.told.take(paying);
    if (paying.length < missing) await this.told.prepare(missing - paying.length);
  }
}

function ratioOf(ours: number, floor: number): number {
  return floor === 0 ? 0 : Math.round((ours / floor) * 1_000) / 1_000;
}
