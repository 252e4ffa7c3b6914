import { log } from '@temporalio/activity';
import { setTimeout as delay } from 'node:timers/promises';
import { readChannelRows } from '../db/channels';
import {
  beginRun,
  closeRun,
  compareDay,
  dueDays,
  noteNoBill,
  noteRejected,
  noteWaiting,
  openMissingReportCases,
  openQuestions,
  reviseSuspense,
} from '../db/reconciliation';
import { failpoint } from '../db/failpoint';
import { billDeadline, waitForBill } from '../domain/business-day';
import type { BillMissing } from '../domain/business-day';
import { rung } from '../domain/ladders';
import type { BillFault } from '../domain/trade-bill';
import { reconciliationWorkflowId } from '../workflows/ids';
import type { DayInput } from '../workflows/messages';
import type { ActivityDeps } from './deps';
import { configuredChannel } from './deps';
import { whileBeating } from './heartbeats';

/** A channel and its business date. */
export interface Day {
  channel: string;
  day: string;
}

/** A date without a report, and the id that its run has. */
export interface DueDay extends Day {
  workflowId: string;
}

/** The waits that a day's run keeps, as the channel's policy and this worker have them. */
export interface ReconciliationPlan {
  heartbeatMs: number;
  fetchAgainMs: number;
  askMs: number;
}

/** What a comparison found, in counts. */
export interface ComparedDay {
  open: number;
  waiting: number;
  suspense: number;
}

/** Days started by one round at most, the oldest first; the next round takes the rest. */
const DUE_MAX = 50;
/** So long a round waits for what is overdue, far below what its step may take. */
const OVERDUE_WAIT_MS = 1_500;

/** The database steps of reconciliation: short ones, and those that may take minutes. */
export function createReconciliationSteps(deps: ActivityDeps) {
  // Only what reads or writes a whole bill uses the connections for long statements: a download that
  // hangs there must never hold up the short steps of other dates.
  const { pool } = deps;
  /** Channels whose overdue work is still under way, perhaps since an earlier round. */
  const revising = new Set<string>();

  /** Puts what is overdue of the channel before a person; what fails is tried again by the next round. */
  async function lookAfterOverdue(channel: string, daysBack: number): Promise<void> {
    if (revising.has(channel)) return;
    revising.add(channel);
    const works = [
      () => openMissingReportCases(pool, { channel, daysBack }),
      () => reviseSuspense(pool, channel),
    ];
    for (const work of works) {
      await work().catch((error: unknown) =>
        log.warn('what is overdue in a channel could not be looked after', { channel, error }),
      );
    }
    revising.delete(channel);
  }

  return {
    /**
     * What is overdue becomes a case first, whatever else hangs: dates without a report, and what waits
     * for the other side for too long. Then the dates that are due. A channel in which that fails or
     * takes long keeps neither the others' from being done nor any date from being started.
     */
    async listDueReconciliations(input: { daysBack: number }): Promise<{ due: DueDay[] }> {
      const channels = await readChannelRows(pool);
      const works = channels.map(({ channel }) => lookAfterOverdue(channel, input.daysBack));
      const waited = new AbortController();
      await Promise.race([
        Promise.all(works),
        delay(OVERDUE_WAIT_MS, undefined, { signal: waited.signal }).catch(() => undefined),
      ]);
      waited.abort();
      const due = await dueDays(pool, { daysBack: input.daysBack, limit: DUE_MAX });
      await failpoint('recon-list:after');
      return {
        due: due.map(({ channel, day }) => ({
          channel,
          day,
          workflowId: reconciliationWorkflowId({ channel, day }, deps.taskQueue),
        })),
      };
    },

    async beginReconciliation(input: DayInput): Promise<ReconciliationPlan> {
      await failpoint('recon-begin:before', input.day);
      const { policy } = await configuredChannel(deps, input.channel);
      await beginRun(pool, input);
      await failpoint('recon-begin:after', input.day);
      return {
        heartbeatMs: deps.reconciliation.heartbeatMs,
        fetchAgainMs: rung(policy.tradeBillLadderMs, 0),
        askMs: policy.reconcileAskMs,
      };
    },

    /** How long to wait for the bill, or null when its deadline has passed: then a person is told. */
    async noteBillMissing(
      input: Day & BillMissing & { dryRun: boolean; reason: string },
    ): Promise<{ waitMs: number | null }> {
      const { channel, day, dryRun, reason } = input;
      const { row, policy } = await configuredChannel(deps, channel);
      const leftMs = billDeadline(day, row.timeZone).getTime() - Date.now();
      const waitMs = waitForBill(input, leftMs, policy.tradeBillLadderMs);
      if (waitMs === null) {
        await failpoint('recon-no-bill:before', day);
        await noteNoBill(pool, { channel, day, dryRun, reason });
        await failpoint('recon-no-bill:after', day);
      } else {
        await noteWaiting(pool, { channel, day, reason, nextTryInMs: waitMs });
      }
      return { waitMs };
    },

    /** A file that cannot be used: nothing of it is compared, a person is told why. */
    async noteBillRejected(
      input: Day & { dryRun: boolean; fault: BillFault; message: string },
    ): Promise<void> {
      await failpoint('recon-rejected:before', input.day);
      await noteRejected(pool, input);
      await failpoint('recon-rejected:after', input.day);
    },

    /** Compares the loaded bill with our books as both stand now. */
    compareWithBill: (input: Day): Promise<ComparedDay> =>
      whileBeating(async () => {
        await failpoint('recon-compare:before', input.day);
        const { policy } = await configuredChannel(deps, input.channel);
        const { open, waiting, suspense } = await compareDay(deps.reconciliation.pool, {
          ...input,
          feeBasisPoints: policy.feeBasisPoints,
        });
        await failpoint('recon-compare:after', input.day);
        return { open, waiting, suspense };
      }),

    /** How many of the questions asked at `askedAt` and later have no answer that is settled. */
    async countOpenQuestions(input: Day & { askedAt: string }): Promise<{ unanswered: number }> {
      return { unanswered: await openQuestions(pool, input) };
    },

    /** Puts what remains before a person (not after a dry run), and the report is there. */
    closeReconciliation: (input: Day & { dryRun: boolean }): Promise<{ cases: number }> =>
      whileBeating(async () => {
        await failpoint('recon-close:before', input.day);
        const counts = await closeRun(deps.reconciliation.pool, input);
        await failpoint('recon-close:after', input.day);
        return { cases: counts.case };
      }),
  };
}
