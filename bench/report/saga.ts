import type { SagaResult } from '../saga';
import { median } from '../saga/history-cost';
import { judged, ms, table, unmeasured } from './markdown';
import { provenance } from './results-read';
import type { Kept, Results } from './results-read';
import { barChart, lineChart } from './svg';

export function sagaSection({ saga, sagaPostgres }: Results, plots: Map<string, string>): string {
  const title = 'The saga beside an empty workflow';
  if (!saga && !sagaPostgres) return unmeasured(title, 'saga');
  const runs = [
    ...(saga ? [{ words: 'Temporal development server', name: 'saga', kept: saga }] : []),
    ...(sagaPostgres
      ? [{ words: 'Temporal on PostgreSQL', name: 'saga-postgres', kept: sagaPostgres }]
      : []),
  ];
  plots.set(
    'saga-latency.svg',
    lineChart(
      'From order to paid, by rate',
      { x: 'orders per second', y: 'ms from the planned send', logarithmic: true },
      runs.flatMap(({ words, kept }) =>
        (['p50_ms', 'p99_ms'] as const).map((which) => ({
          name: `${which.slice(0, 3)}, ${words.replace('Temporal ', '')}`,
          points: kept.knee.steps.map((step) => ({ x: step.rate, y: step[which] })),
        })),
      ),
    ),
  );
  const missing = [
    ...(saga ? [] : [unmeasured('On the development server', 'saga').replace('##', '###')]),
    ...(sagaPostgres
      ? []
      : [unmeasured('Temporal on PostgreSQL', 'saga --temporal-postgres').replace('##', '###')]),
  ];
  return [
    `## ${title}`,
    'Orders through everything: API, workflow, mock channel, callback, notification. The control asks as much of Temporal (the ' +
      'same activities, local activities, timers, update and signal, in the same places, over a front of three HTTP routes) and does ' +
      'nothing. Rounds of both in turn, as fast as a fixed number of clients goes; latency by open-model load.',
    ...runs.map(({ words, name, kept }) => sectionOf(words, name, kept, plots)),
    '![From order to paid, by rate](benchmarks/saga-latency.svg)',
    ...missing,
  ].join('\n\n');
}

function sectionOf(
  words: string,
  name: string,
  kept: Kept<SagaResult>,
  plots: Map<string, string>,
): string {
  const { at_70_percent: at, per_order: each, worker_cpu_ms_per_start: start } = kept;
  const rounds = (of: 'saga_per_s' | 'control_per_s') => median(kept.rounds.map((one) => one[of]));
  const cpu = Object.entries(at.cpu_ms_per_order);
  plots.set(
    `${name}-processors.svg`,
    barChart(
      `Processor time of one order at ${at.rate} orders per second (${words})`,
      cpu.map(([process, used]) => ({ label: process, value: used, says: `${used} ms` })),
    ),
  );
  return [
    `### ${words}`,
    `The channel answers after ${kept.channel_delay_ms} ms, payers pay ${kept.payer_delay_ms} ms after that. Kept up with: ` +
      `${kept.knee.found ? '' : 'at least '}${kept.knee.per_second} orders per second.`,
    table(
      ['', 'saga', 'control'],
      [
        ['orders/s, median of the rounds', rounds('saga_per_s'), rounds('control_per_s')],
        ['transitions per order', each.saga.transitions, each.control.transitions],
        ['events per order', each.saga.events, each.control.events],
        ['worker ms per start, and of a bare run', start.order, start.bare],
        [`until paid at ${at.rate}/s, p50 ms`, ms(at.paid.p50_ms), ''],
        [`until paid at ${at.rate}/s, p99 ms`, ms(at.paid.p99_ms), ''],
        ['database commits per order', at.commits_per_order.all, ''],
        ['of them writing', at.commits_per_order.writing, ''],
        ['orders per core-second, load included', at.orders_per_core_second, ''],
      ],
    ),
    provenance(kept),
    [
      `- Orders per second through the control's: ${judged(kept.ratio, { atLeast: 0.85 })}`,
      `- A start through a bare one: ${judged(kept.start_ratio, { atMost: 1.25 })}; a bare start with one empty local ` +
        `activity takes ${start.bare_with_step} ms`,
    ].join('\n'),
    `![Processor time of one order](benchmarks/${name}-processors.svg)`,
  ].join('\n\n');
}
