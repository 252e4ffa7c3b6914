/**
 * The one small interface that every strategy is built behind, and what all of them get alike. Each is
 * as careful as its idea allows: whoever holds a right for a limited time passes that limit on to the
 * channel's client, which does not send after it. No strategy leans on another one's means.
 */
import type { Pool } from '../../db/transaction';
import type { Channel } from './channel';
import type { RedisClient } from './redis-client';

/** An order as its shop knows it. */
export interface Order {
  /** From 0; the effect log counts by it. */
  index: number;
  orderId: string;
  amountMinor: number;
}

/**
 * What becomes of one delivery of a request to pay. `busy`: another one is at it, or its outcome is
 * unknown, so ask again later. `used`: this very request was seen before and is not answered again.
 */
export type PayOutcome = 'paid' | 'busy' | 'used';

export interface Strategy {
  /** Makes the tables; once per database. */
  setUp(): Promise<void>;
  /**
   * The checkout page opens: what its requests carry from now on, whatever is clicked or repeated. When
   * it is another page of the same order, or the same loaded again, `earlier` is what an earlier one carried.
   */
  openPage(order: Order, earlier?: string): Promise<string>;
  /** Stores the order; a repeat finds it stored. */
  create(order: Order, ticket: string): Promise<void>;
  /** One delivery of the request to pay. It may be repeated, also while another is under way. */
  pay(order: Order, ticket: string): Promise<PayOutcome>;
  /** What the page shows when it is loaded again. */
  isPaid(order: Order): Promise<boolean>;
  /** Ids of the orders that the strategy's own books call paid. */
  paidOrders(): Promise<string[]>;
}

export interface StrategyDeps {
  pool: Pool;
  channel: Channel;
  /** There when the strategy says that it uses Redis. */
  redis: RedisClient | undefined;
  times: Times;
}

/** How long things last in one run, in milliseconds. */
export interface Times {
  /** For how long a lock, a claim or a mark entitles to send. */
  lease: number;
  /** How long a client waits for an answer before it asks again. */
  clientTimeout: number;
  /** After that a client has given its order up. */
  patience: number;
}

export interface StrategyKind {
  /** Its number in the report. */
  number: number;
  usesRedis: boolean;
  /** Its database has the product's own schema, by the real migrations; the others make theirs. */
  usesProductSchema?: boolean;
  make(deps: StrategyDeps): Strategy;
}

/** Text of the rows of one column, as the strategies' `paidOrders` read them. */
export async function idsOf(pool: Pool, sql: string): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(sql);
  return rows.map(({ id }) => id);
}

export function redisOf({ redis }: StrategyDeps): RedisClient {
  if (!redis) throw new Error('this strategy uses Redis, and there is none');
  return redis;
}
