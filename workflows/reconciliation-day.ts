/**
 * One business date of one channel: its trade bill beside our books, down to a report.
 *
 * Trigger: the parent `reconciliation`, or POST /ops/reconciliations. Messages: signal nudge (try now);
 * query progress. Children: none; it asks through the orders' own runs.
 * Ends: with a report, with a bill that cannot be used, or without one past its deadline; each leaves a
 * word in `reconciliation_runs` and what remains in cases. Cancelled, it stops at a safe point and the
 * parent starts the next one. PostgreSQL decides: it may run twice without a second effect.
 */
import {
  CancellationScope,
  CancelledFailure,
  condition,
  continueAsNew,
  isCancellation,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { ComparedDay, ReconciliationPlan } from '../activities/reconciliation';
import type { BillOutcome } from '../activities/trade-bills';
import { longStep, step } from './activities';
import { nudgeSignal, reconciliationProgressQuery } from './messages';
import type { DayInput } from './messages';
import { NEEDS_REVIEW } from './search-attributes';

/** How the date ended; counts only. */
export interface DayResult {
  status: string;
  open: number;
  cases: number;
}

/** A bill may be waited for through very many tries; its history stays readable. */
const EVENTS_PER_RUN = 250;

interface DayRun {
  input: DayInput;
  plan: ReconciliationPlan;
  nudged: boolean;
  stopping: boolean;
  /** What ends a download when the run is cancelled. */
  loading: CancellationScope | null;
  line: string;
}

export async function reconcileDay(input: DayInput): Promise<DayResult> {
  const plan: ReconciliationPlan = { heartbeatMs: 30_000, fetchAgainMs: 1_000, askMs: 0 };
  const run: DayRun = {
    input,
    plan,
    nudged: false,
    stopping: false,
    loading: null,
    line: 'beginning',
  };
  setHandler(nudgeSignal, () => void (run.nudged = true));
  setHandler(reconciliationProgressQuery, () => run.line);
  CancellationScope.current().cancelRequested.catch(() => {
    run.stopping = true;
    run.loading?.cancel();
  });

  return CancellationScope.nonCancellable(async () => {
    show(run, `beginning${input.dryRun ? ', dry run' : ''}`);
    run.plan = await step('beginReconciliation', input, 'begin, and learn the channel’s policy');
    const bill = await fetchBill(run);
    if (bill.outcome === 'none') return ended(run, 'no_bill', { open: 0, cases: 1 });
    if (bill.outcome === 'rejected') return ended(run, 'rejected', { open: 0, cases: 1 });
    let compared = await compare(run);
    if (!input.dryRun && compared.open > 0 && (await repair(run))) compared = await compare(run);
    stopHere(run);
    const { cases } = await close(run);
    return ended(run, 'done', { open: compared.open, cases });
  });
}

/** Fetches and loads the bill; waits by timer while the channel has none, until the deadline. */
async function fetchBill(
  run: DayRun,
): Promise<Exclude<BillOutcome, Missing> | { outcome: 'none' }> {
  const day = dayOf(run);
  const { dryRun } = run.input;
  let spoilt = 0;
  let brokenInARow = 0;
  for (let tries = (run.input.tries ?? 0) + 1; ; tries++) {
    const outcome = await load(run);
    stopHere(run);
    if (isThere(outcome)) return outcome;
    if (outcome.outcome === 'rejected') {
      const { fault, message } = outcome;
      if (MAY_BE_THE_WAY.includes(fault) && ++spoilt < SPOILT_TRIES_MAX) {
        show(run, `the bill arrived ${fault}, fetching it again`);
        await condition(() => run.stopping, run.plan.fetchAgainMs, { summary: run.line });
        stopHere(run);
        continue;
      }
      await step(
        'noteBillRejected',
        { ...day, dryRun, fault, message },
        `the bill is no good: ${fault}`,
      );
      return outcome;
    }
    const { reason } = outcome;
    brokenInARow = outcome.outcome === 'unavailable' ? brokenInARow + 1 : 0;
    const { waitMs } = await step(
      'noteBillMissing',
      { ...day, ...outcome, dryRun, tries, brokenInARow },
      `no bill yet (${outcome.outcome}): until when is it waited for?`,
    );
    if (waitMs === null) return { outcome: 'none' };
    show(run, `no bill yet (${reason}), try ${tries + 1} in ${Math.ceil(waitMs / 1000)} s`);
    run.nudged = false;
    await condition(() => run.nudged || run.stopping, waitMs, { summary: run.line });
    stopHere(run);
    if (workflowInfo().historyLength > EVENTS_PER_RUN) {
      await continueAsNew<typeof reconcileDay>({ ...run.input, tries });
    }
  }
}

/** Faults that the way here may have made: only a file that keeps arriving like that is the channel's. */
const MAY_BE_THE_WAY: readonly string[] = ['cut_off', 'wrong_hash'];
const SPOILT_TRIES_MAX = 3;

type Missing = Extract<BillOutcome, { reason: string }>;

function isThere(outcome: BillOutcome): outcome is Extract<BillOutcome, { rows: number }> {
  return outcome.outcome === 'loaded' || outcome.outcome === 'unchanged';
}

function dayOf({ input: { channel, day } }: DayRun): { channel: string; day: string } {
  return { channel, day };
}

/** In a scope of its own: a run that is cancelled ends the download too. */
async function load(run: DayRun): Promise<BillOutcome> {
  const day = dayOf(run);
  show(run, 'fetching and loading the trade bill');
  run.loading = new CancellationScope();
  try {
    return await run.loading.run(() =>
      longStep('loadBill', day, run.plan, `fetch and load the bill of ${day.day}`),
    );
  } catch (error) {
    if (run.stopping && isCancellation(error)) stopHere(run);
    throw error;
  } finally {
    run.loading = null;
  }
}

async function compare(run: DayRun): Promise<ComparedDay> {
  show(run, 'comparing');
  return longStep('compareWithBill', dayOf(run), run.plan, 'compare the bill with our books');
}

/** Waits between two looks at what is still unanswered; the last repeats until the time is over. */
const LOOK_LADDER_MS = [500, 1_000, 2_000, 5_000, 10_000];

/**
 * Asks the channel about what differs, through the orders' own runs, and waits until they have settled
 * what it said, or for the channel's bound.
 *
 * @returns whether anything was asked
 */
async function repair(run: DayRun): Promise<boolean> {
  const day = dayOf(run);
  show(run, 'asking the channel about what differs');
  const { asked, askedAt } = await longStep(
    'askAboutDifferences',
    day,
    run.plan,
    'ask the channel about what differs, through the orders’ runs',
  );
  if (asked === 0) return false;
  const until = Date.now() + run.plan.askMs;
  // Where the channel did not answer, it is asked once more.
  let againAt = Date.now() + run.plan.askMs / 2;
  for (let look = 0; Date.now() < until && !run.stopping; look++) {
    const ladderMs = LOOK_LADDER_MS[look] ?? LOOK_LADDER_MS[LOOK_LADDER_MS.length - 1]!;
    show(run, `asked about ${asked}, waiting for the answers`);
    await condition(() => run.stopping, Math.min(ladderMs, until - Date.now()), {
      summary: run.line,
    });
    const { unanswered } = await step(
      'countOpenQuestions',
      { ...day, askedAt },
      'what is still unanswered',
    );
    if (unanswered === 0) break;
    if (Date.now() < againAt) continue;
    againAt = until;
    await longStep('askAboutDifferences', day, run.plan, `ask again: ${unanswered} unanswered`);
  }
  return true;
}

async function close(run: DayRun): Promise<{ cases: number }> {
  const { channel, day, dryRun } = run.input;
  const input = { channel, day, dryRun };
  // A dry run opens no case, so its last word is one short statement.
  if (dryRun) return step('closeReconciliation', input, 'report');
  return longStep(
    'closeReconciliation',
    input,
    run.plan,
    'put what remains before a person, report',
  );
}

function ended(run: DayRun, status: string, counts: Omit<DayResult, 'status'>): DayResult {
  const cases = run.input.dryRun ? 0 : counts.cases;
  show(run, `${status}: ${counts.open} open differences, ${cases} in cases`);
  if (cases > 0) upsertSearchAttributes([{ key: NEEDS_REVIEW, value: true }]);
  return { status, open: counts.open, cases };
}

/** Only between two steps, where the next run finds everything it needs in PostgreSQL. */
function stopHere(run: DayRun): void {
  if (run.stopping) throw new CancelledFailure('stopped; the parent starts the next run');
}

function show(run: DayRun, line: string): void {
  run.line = line.slice(0, 300);
  setCurrentDetails(run.line);
}
