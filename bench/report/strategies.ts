import { judged, ms, table, unmeasured } from './markdown';
import { provenance } from './results-read';
import type { FaultFigures, Results, StrategyFigures } from './results-read';
import { barChart } from './svg';

/** What each strategy is, in the order of the table, and what none of its figures can mend. */
export const STRATEGIES: readonly { name: string; title: string; cannot: string }[] = [
  {
    name: 'unprotected',
    title: 'no protection (control)',
    cannot:
      'stop anything: every repeat is a charge. It is here to show that the load has repeats.',
  },
  {
    name: 'unique_order_number',
    title: '(1) unique order number',
    cannot:
      'tell what became of a charge whose answer was lost: the number says that somebody began, not how it ' +
      'ended, so a crash in between needs a person or a query at the channel. Two orders for one basket are two orders.',
  },
  {
    name: 'redis_token',
    title: '(2) one-time token in Redis',
    cannot:
      'remember longer than Redis does, or answer a repeat with the answer of the first: a client that lost the ' +
      'answer has used its token up and must begin anew, which is a second payment if the first went through. ' +
      'Token and charge are no transaction.',
  },
  {
    name: 'stored_answers',
    title: '(3) table of stored answers',
    cannot:
      'know an outcome that was never stored: a crash between charge and answer leaves a key that is neither open nor ' +
      'done. A client that makes a new key for the same order pays again, and keys have a lifetime.',
  },
  {
    name: 'redis_lock',
    title: '(4) lock in Redis and state machine',
    cannot:
      'hold a lock longer than its lease: who stalls, or whose Redis was killed, goes on without it and does not ' +
      'notice. Without a check in the database (a fence) the lock decides nothing, with one it is only an optimisation.',
  },
  {
    name: 'version_column',
    title: '(5) version column',
    cannot:
      'take back what was done before the conflict was found: it protects the row, not the call to the channel, so the ' +
      'move must be committed before the call. Many writers of one order repeat their work.',
  },
  {
    name: 'attempt_key',
    title: '(6) this project: attempt key, row lock, conditional move',
    cannot:
      'be cheaper than its commits: it records before it calls and after it. It needs a channel that knows an attempt by ' +
      'our number and can be asked about it, and it does not stop a shop from making two orders for one basket.',
  },
];

const FAULTS: readonly (readonly [string, string])[] = [
  ['redis_killed', 'Redis killed'],
  ['stalled_client', 'client stalled'],
  ['postgres_restarted', 'PostgreSQL restarted'],
];

/**
 * Where (6)'s time goes, from pg_stat_statements over 5,000 orders, and what was done about it: a
 * finding of 2026-12-01 that the bench itself does not repeat.
 */
const WHAT_REMAINS =
  'Why the rest: a commit of the floor is one insert into one narrow table with one index, a commit of (6) some six statements. ' +
  'An order leaves ten rows (the order, the request, the attempt, the capture, five or more lines of history, an event for the ' +
  'shop), is moved twice, and keeps the indexes that desk, search, sweep and reconciliation read. By pg_stat_statements an ' +
  'order costs PostgreSQL 3.7 ms of statements: its two moves 0.8 (each writes eight index entries anew), reading where it stands ' +
  'under the lock 0.6, making it 0.3, its history 0.25, its four moves of the attempt 0.8, request, attempt, capture and event 0.8, ' +
  'foreign keys and the triggers that refuse wrong moves 0.15. Mended on the way: statements are prepared (half of ' +
  'the work before), those that do not wait for each other leave together (48 round trips became 14), the time and the rows that ' +
  'an earlier statement had are not read again. What would be left to take is the record itself.';

export function strategiesSection({ strategies: kept }: Results, plots: Map<string, string>) {
  const title = 'Five ways to be idempotent, and ours';
  if (!kept) return unmeasured(title, 'strategies');
  const rows = STRATEGIES.flatMap(({ name, title: words }) => {
    const found = kept.strategies.find((one) => one.name === name);
    return found ? [{ words, found }] : [];
  });
  plots.set(
    'strategies-throughput.svg',
    barChart(
      'Orders per second, as fast as the clients go',
      rows.map(({ words, found }) => ({
        label: words.slice(0, 30),
        value: found.orders_per_s ?? null,
        says: found.orders_per_s === undefined ? 'not run' : `${Math.round(found.orders_per_s)}/s`,
      })),
    ),
  );
  const { floor } = kept;
  const ratio = floor.attempt_key_ratio;
  return [
    `## ${title}`,
    `${count(kept.orders)} orders, a fifth of them delivered twice, ${count(kept.clients)} clients. ` +
      `A double effect is an order that the channel charged more than once, counted in an append-only log.`,
    table(
      ['strategy', 'orders/s', 'p50 ms', 'p95 ms', 'p99 ms', 'errors', 'double effects'],
      rows.map(({ words, found }) =>
        found.not_run !== undefined
          ? [words, `not run: ${found.not_run}`, '', '', '', '', '']
          : [
              words,
              Math.round(found.orders_per_s ?? 0),
              ms(found.p50_ms),
              ms(found.p95_ms),
              ms(found.p99_ms),
              found.errors ?? 0,
              doubles(found.double_effects),
            ],
      ),
    ),
    provenance(kept),
    '![Orders per second of each strategy](benchmarks/strategies-throughput.svg)',
    'Who double-pays when something breaks: orders charged more than once / requests that clients saw fail / orders charged ' +
      'and not booked at the end, where that was counted.',
    table(
      ['strategy', ...FAULTS.map(([, words]) => words), 'two pages, no fault'],
      rows.map(({ words, found }) => [
        words,
        ...FAULTS.map(([name]) => fault(found.faults[name])),
        fault(found.two_pages),
      ]),
    ),
    provenance(kept),
    ...(floor.inserts_per_s === undefined
      ? []
      : [`Floor: ${count(floor.inserts_per_s)} bare inserts per second over the same pool.`]),
    ...(ratio === undefined
      ? []
      : [
          `(6) beside as many bare commits per order (${floor.at_equal_commits?.commits_per_order}): ` +
            judged(ratio, { atLeast: 0.6 }),
          ...(ratio < 0.6 ? [WHAT_REMAINS] : []),
        ]),
  ].join('\n\n');
}

function fault(figures: FaultFigures | undefined): string {
  if (figures === undefined) return 'not measured yet';
  if (figures.not_run !== undefined) return `not run: ${figures.not_run}`;
  return [doubles(figures.double_effects), figures.errors ?? 0, figures.charged_not_booked]
    .filter((figure) => figure !== undefined)
    .join(' / ');
}

function doubles(figure: number | undefined): string {
  if (figure === undefined) return 'not measured yet';
  return figure === 0 ? '0' : `**${figure}**`;
}

/** Every double effect that was counted of it, whatever the fault; undefined where nothing was. */
export function doubleEffectsOf(one: StrategyFigures): number | undefined {
  if (one.double_effects === undefined) return undefined;
  const faults = Object.values(one.faults).map((figures) => figures?.double_effects ?? 0);
  return one.double_effects + faults.reduce((sum, figure) => sum + figure, 0);
}

function count(figure: number): string {
  return Math.round(figure).toLocaleString('en-US');
}
