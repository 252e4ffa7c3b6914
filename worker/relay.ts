import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import { tellRuns } from '../activities/order-runs';
import type { ChannelRegistry } from '../channels/registry';
import { matchLateNumbers, takeWaitingCallbacks } from '../db/callbacks';
import { openMissingReportCases } from '../db/reconciliation';
import type { Pool } from '../db/transaction';
import { closeAnsweredOrphanCases, openOrphanCases } from '../db/work';
import { channelNewsSignal } from '../workflows/messages';

export interface RelayOptions {
  pool: Pool;
  client: Client;
  channels: ChannelRegistry;
  taskQueue: string;
  log: Logger;
  everyMs: number;
  /** How many days back a business date without a report is looked for. */
  reconcileDaysBack: number;
}

/** Orders rung in one round at most; the next round takes the rest. */
const RINGS_MAX = 200;
/** A rung order is left alone for this long before it is rung again. */
const RING_AGAIN_MS = 5_000;
/** Numbers nobody knows are looked after once in so many rounds. */
const ROUNDS_PER_ORPHAN_ROUND = 10;

/**
 * Rings for callbacks that are stored and that nobody has read in time: the API died between commit
 * and signal, or Temporal was away. Rows are taken with `skip locked`, so workers share the work; the
 * relay stops ringing when the run has settled them. It also looks after what needs no Temporal to be put
 * before a person: numbers nobody knows, and business dates without a report.
 */
export function startRelay(options: RelayOptions): { stop(): Promise<void> } {
  const { pool, channels, log } = options;
  let stopped = false;
  let wake: () => void = () => undefined;
  let orphansAt = 0;

  async function ring(): Promise<void> {
    const refs = await takeWaitingCallbacks(pool, {
      limit: RINGS_MAX,
      againAfterMs: RING_AGAIN_MS,
    });
    await tellRuns(options, refs, channelNewsSignal, ({ orderId }, error) =>
      log.warn({ err: error, orderId }, 'the run of an order with news could not be told'),
    );
    if (refs.length > 0)
      log.info({ orders: refs.length }, 'rang again for callbacks nobody had read');
  }

  async function lookAfterOrphans(): Promise<void> {
    if (Date.now() < orphansAt) return;
    orphansAt = Date.now() + ROUNDS_PER_ORPHAN_ROUND * options.everyMs;
    await matchLateNumbers(pool, RINGS_MAX);
    await closeAnsweredOrphanCases(pool);
    for (const { row, policy } of await channels.all()) {
      await openOrphanCases(pool, {
        channel: row.channel,
        olderThanMs: policy.unmatchedCaseAfterMs,
      });
    }
    await openMissingReportCases(pool, { daysBack: options.reconcileDaysBack });
  }

  async function round(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      // Nothing is lost: the rows stay where they are, the next round finds them.
      log.warn({ err: error }, 'the relay could not finish its round');
    }
  }

  async function loop(): Promise<void> {
    while (!stopped) {
      await round(ring);
      await round(lookAfterOrphans);
      if (stopped) return;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, options.everyMs);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  const running = loop();
  return {
    async stop() {
      stopped = true;
      wake();
      await running;
    },
  };
}
