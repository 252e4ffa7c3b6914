import type { Compared } from '../http';
import { judged, ms, table, unmeasured } from './markdown';
import { provenance } from './results-read';
import type { Results } from './results-read';
import { lineChart } from './svg';

export function httpSection({ http: kept }: Results, plots: Map<string, string>): string {
  const title = 'The API beside a plain insert';
  if (!kept) return unmeasured(title, 'http');
  const kinds: [string, Compared][] = [
    ['POST orders', kept.create],
    ['POST payments', kept.payments],
    ['callbacks', kept.callbacks],
  ];
  plots.set(
    'http-latency.svg',
    lineChart(
      'Latency by rate, 99th percentile from the planned send',
      { x: 'requests per second', y: 'p99, ms', logarithmic: true },
      [
        ...kinds.map(([name, { knee }]) => ({ name, knee })),
        { name: 'plain', knee: kept.plain_knee },
      ]
        .map(({ name, knee }) => ({
          name,
          points: knee.steps.map((step) => ({ x: step.rate, y: step.p99_ms })),
        }))
        .filter(({ points }) => points.length > 0),
    ),
  );
  const { duplicates } = kept;
  return [
    `## ${title}`,
    'The API as a process of its own with its default configuration, PostgreSQL with fsync on, beside an app of the same ' +
      `framework with one prepared insert, both with pools of ${kept.pool_size}. Open model: latencies count from the planned send. Each kind ` +
      'of request has its own knee and is compared at half of it. An order has the start of its run at Temporal in it, a ' +
      `payment the run's two database steps and the channel's ${kept.channel_delay_ms} ms, and a worker carries all of them on the same ` +
      `cores meanwhile; each callback is delivered ${kept.copies} times.`,
    table(
      [
        '',
        'knee/s',
        'measured at/s',
        'p50 ms',
        'plain p50',
        'ratio',
        'p99 ms',
        'plain p99',
        'ratio',
      ],
      kinds.map(([name, one]) => [
        name,
        `${one.knee.found ? '' : '≥ '}${one.knee.per_second}`,
        one.rate,
        ms(one.p50_ms),
        ms(one.plain_p50_ms),
        one.p50_ratio,
        ms(one.p99_ms),
        ms(one.plain_p99_ms),
        one.p99_ratio,
      ]),
    ),
    provenance(kept),
    '![Latency by rate](benchmarks/http-latency.svg)',
    [
      `- An order, p50: ${judged(kept.create.p50_ratio, { atMost: 8 })}; p99: ${judged(kept.create.p99_ratio, { atMost: 12 })}`,
      `- A callback's acknowledgement, p50: ${judged(kept.callbacks.p50_ratio, { atMost: 5 })}; p99: ${kept.callbacks.p99_ratio}`,
      `- Copies of callbacks, ${duplicates.callback_copies_per_s}/s beside ${duplicates.plain_conflicts_per_s} plain conflicts/s: ` +
        judged(duplicates.ratio, { atLeast: 0.7 }),
      `- Repeated orders, ${duplicates.order_repeats_per_s}/s: ${duplicates.order_repeats_ratio} of the plain conflicts`,
    ].join('\n'),
  ].join('\n\n');
}
