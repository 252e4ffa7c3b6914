import type { MemoryCurve, MemoryResult } from '../memory';

/** The table of `npm run bench -- memory`. */
export function printMemory(result: MemoryResult, rig: string): void {
  console.log(`\n${rig}\n`);
  const cells = (...cell: (string | number)[]) =>
    console.log(
      `${String(cell[0]).padEnd(28)}${cell
        .slice(1)
        .map((one) => String(one).padStart(16))
        .join('')}`,
    );
  const mib = (bytes: number) => (bytes / 2 ** 20).toFixed(1);
  const kib = (bytes: number) => (bytes / 2 ** 10).toFixed(1);
  const levels = result.orders.points.map(({ open }) => open);
  cells('resident / heap, MiB', ...levels.map((open) => `${open} open`), 'KiB per run');
  const row = (name: string, { points, rss_per_run: rss, heap_per_run: heap }: MemoryCurve) =>
    cells(
      name,
      ...points.map((point) => `${mib(point.rss_bytes)} / ${mib(point.heap_bytes)}`),
      `${kib(rss)} / ${kib(heap)}`,
    );
  row('orders', result.orders);
  row('bare runs', result.bare);
  row(`orders, cache of ${result.cached_runs.capped}`, result.capped);
  console.log(
    `\nan order through a bare run: ${result.heap_ratio} by heap, ${result.rss_ratio} by resident memory (1.15 at most)\n` +
      `with the cache capped: ${result.capped_growth} times the resident memory at ${levels.at(-1)} orders of that at ${levels[1]}\n` +
      `${result.finished.paid} of ${result.finished.opened} orders were paid and told in the end`,
  );
}
