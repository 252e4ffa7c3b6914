import type { MemoryCurve } from '../memory';
import { judged, table, unmeasured } from './markdown';
import { provenance } from './results-read';
import type { Results } from './results-read';
import { lineChart } from './svg';

const MIB = 2 ** 20;

export function memorySection({ memory: kept }: Results, plots: Map<string, string>): string {
  const title = 'Memory of open orders';
  if (!kept) return unmeasured(title, 'memory');
  const curves: [string, MemoryCurve][] = [
    ['orders', kept.orders],
    ['bare runs', kept.bare],
    [`orders, cache of ${kept.cached_runs.capped}`, kept.capped],
  ];
  plots.set(
    'memory.svg',
    lineChart(
      'Heap of a worker by open runs, after garbage collection',
      { x: 'open runs', y: 'MiB' },
      curves.map(([name, { points }]) => ({
        name,
        points: points.map((point) => ({ x: point.open, y: point.heap_bytes / MIB })),
      })),
    ),
  );
  const levels = kept.orders.points.map(({ open }) => open);
  return [
    `## ${title}`,
    'Orders that wait for their payers, all kept in the memory of one worker, beside runs that only wait, and with the cache ' +
      'capped as it is by default. Resident memory / heap after a garbage collection in every thread.',
    table(
      ['MiB', ...levels.map((open) => `${open} open`), 'KiB per run'],
      curves.map(([name, curve]) => [
        name,
        ...curve.points.map(
          (point) =>
            `${(point.rss_bytes / MIB).toFixed(0)} / ${(point.heap_bytes / MIB).toFixed(0)}`,
        ),
        `${(curve.rss_per_run / 1024).toFixed(1)} / ${(curve.heap_per_run / 1024).toFixed(1)}`,
      ]),
    ),
    provenance(kept),
    '![Heap by open runs](benchmarks/memory.svg)',
    [
      `- An order through a bare run, by heap: ${judged(kept.heap_ratio, { atMost: 1.15 })}; by resident memory: ${kept.rss_ratio}`,
      `- With the cache capped, resident memory at ${levels.at(-1)} open orders is ${kept.capped_growth} times that at ${levels[1]}`,
      `- ${kept.finished.paid} of ${kept.finished.opened} orders were paid and told in the end`,
    ].join('\n'),
  ].join('\n\n');
}

export function soakSection({ soak: kept }: Results, plots: Map<string, string>): string {
  const title = 'Half an hour at 70 % of the knee';
  if (!kept) return unmeasured(title, 'soak');
  const points = (name: keyof typeof kept.series) =>
    kept.series[name].map(({ at_s: x, value: y }) => ({ x: x / 60, y }));
  plots.set(
    'soak-memory.svg',
    lineChart('Memory over the soak', { x: 'minutes', y: 'MiB' }, [
      { name: 'worker, resident', points: points('worker_rss_mib') },
      { name: 'worker, heap', points: points('worker_heap_mib') },
      { name: 'API, resident', points: points('api_rss_mib') },
    ]),
  );
  plots.set(
    'soak-latency.svg',
    lineChart('From order to paid over the soak', { x: 'minutes', y: 'ms', logarithmic: true }, [
      { name: 'p50', points: points('p50_ms') },
      { name: 'p99', points: points('p99_ms') },
    ]),
  );
  return [
    `## ${title}`,
    `${kept.minutes} minutes at ${kept.rate} orders per second: ${kept.orders.sent} sent, ${kept.orders.paid} paid, ${kept.orders.failed} failed. ` +
      'Growth is what the straight line through the second half rises by; below its bound it is none.',
    table(
      ['second half', 'middle', 'rise', 'bound', 'grows'],
      Object.entries(kept.growth).map(([name, { middle, rise, bound, grows }]) => [
        name.replaceAll('_', ' '),
        middle,
        rise,
        bound,
        grows ? '**yes**' : 'no',
      ]),
    ),
    provenance(kept),
    '![Memory over the soak](benchmarks/soak-memory.svg)',
    '![Latency over the soak](benchmarks/soak-latency.svg)',
    `Books: ${kept.checked} checked, ${kept.violations === 0 ? '0' : `**${kept.violations}**`} violated.`,
  ].join('\n\n');
}
