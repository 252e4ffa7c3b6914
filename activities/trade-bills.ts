import { Context } from '@temporalio/activity';
import type { TradeBillSource } from '../channels/contract';
import { failpoint } from '../db/failpoint';
import { loadTradeBill } from '../db/trade-bills';
import type { BillFault, BillLine } from '../domain/trade-bill';
import { TradeBillError } from '../domain/trade-bill';
import type { ActivityDeps } from './deps';
import { configuredChannel } from './deps';
import { whileBeating } from './heartbeats';
import type { Day } from './reconciliation';

/**
 * `loaded`, `unchanged`: the bill that counts is in PostgreSQL. `rejected`: the file cannot be used as a
 * whole. `not_ready`: the channel has not made it yet. `unavailable`: nobody knows, ask again.
 */
export type BillOutcome =
  | { outcome: 'loaded' | 'unchanged'; rows: number; rowErrors: number }
  | { outcome: 'rejected'; fault: BillFault; message: string }
  | { outcome: 'not_ready' | 'unavailable'; reason: string; retryAfterMs: number | null };

const TEXT_MAX = 200;

/** Fetches trade bills and loads them; rows go from the channel to PostgreSQL, counts to the history. */
export function createTradeBillSteps(deps: ActivityDeps) {
  return {
    /**
     * Downloads the bill of a date into PostgreSQL, in one transaction. A worker that dies leaves nothing;
     * a cancelled run ends the download; one from which nothing comes for too long is given up.
     */
    loadBill(input: Day): Promise<BillOutcome> {
      const progress = { rows: 0 };
      return whileBeating(
        async () => {
          await failpoint('recon-load:before', input.day);
          const outcome = await fetchAndLoad(input, progress);
          await failpoint('recon-load:after', input.day);
          return outcome;
        },
        () => progress,
      );
    },
  };

  async function fetchAndLoad(input: Day, progress: { rows: number }): Promise<BillOutcome> {
    const { channel } = await configuredChannel(deps, input.channel);
    const stall = new Stall(deps.reconciliation.stallMs);
    const signal = AbortSignal.any([Context.current().cancellationSignal, stall.signal]);
    try {
      const answer = await channel.openTradeBill({ day: input.day, signal });
      switch (answer.outcome) {
        case 'ready':
          break;
        case 'refused':
          return unavailable(`refused: ${answer.code}`, null);
        case 'not_ready':
          return { ...unavailable(answer.reason, answer.retryAfterMs), outcome: 'not_ready' };
        default:
          return unavailable(answer.reason, answer.retryAfterMs);
      }
      const download = new Download(answer.bill, stall, input.day);
      const loaded = await loadTradeBill(deps.reconciliation.pool, {
        ...input,
        source: download,
        onProgress: (rows) => void (progress.rows = rows),
      }).catch((error: unknown) => {
        // What broke on the channel's side says nothing about the file: it is fetched again.
        if (download.failure === undefined) throw error;
        return undefined;
      });
      if (!loaded) return unavailable(reasonOf(download.failure), null);
      const { status, rows, rowErrors, fault, message } = loaded;
      if (status !== 'rejected') return { outcome: status, rows, rowErrors };
      return {
        outcome: 'rejected',
        fault: fault ?? 'unreadable',
        message: (message ?? '').slice(0, TEXT_MAX),
      };
    } finally {
      stall.end();
    }
  }
}

/** The channel's file on its way: notes what breaks, and that rows still come. */
class Download implements TradeBillSource {
  /** Set when the download broke, as opposed to a file that is no good. */
  failure: unknown;

  constructor(
    private readonly bill: TradeBillSource,
    private readonly stall: Stall,
    private readonly day: string,
  ) {}

  get fileName(): string {
    return this.bill.fileName;
  }

  async *lines(): AsyncIterable<BillLine[]> {
    try {
      for await (const batch of this.bill.lines()) {
        this.stall.goesOn();
        yield batch;
        await failpoint('recon-load:half', this.day);
      }
    } catch (error) {
      if (!(error instanceof TradeBillError)) this.failure = error ?? new Error('broken');
      throw error;
    } finally {
      // What follows is PostgreSQL's work, which has limits of its own.
      this.stall.end();
    }
  }

  end(): ReturnType<TradeBillSource['end']> {
    return this.bill.end();
  }
}

/** Aborts when nothing has come for so long. */
class Stall {
  private readonly controller = new AbortController();
  private timer: NodeJS.Timeout;

  constructor(private readonly afterMs: number) {
    this.timer = this.start();
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  goesOn(): void {
    this.timer.refresh();
  }

  end(): void {
    clearTimeout(this.timer);
  }

  private start(): NodeJS.Timeout {
    return setTimeout(() => {
      this.controller.abort(new Error(`nothing came for ${this.afterMs} ms`));
    }, this.afterMs);
  }
}

function unavailable(
  reason: string,
  retryAfterMs: number | null,
): Extract<BillOutcome, { reason: string }> {
  return { outcome: 'unavailable', reason: reason.slice(0, TEXT_MAX), retryAfterMs };
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
