import { curveOf, memory } from '../../bench/memory';

it('measures open orders beside bare runs, and all are paid in the end', async () => {
  jest.spyOn(console, 'log').mockImplementation(() => undefined);
  const result = await memory(
    '--test-servers --orders 12 --fewer 6 --cap 3 --settle-ms 100'.split(' '),
  );
  jest.restoreAllMocks();
  for (const { points } of [result.orders, result.bare, result.capped]) {
    expect(points.map(({ open }) => open)).toEqual([0, 6, 12]);
    for (const point of points) {
      // Every thread told its heap: workflows live in those of the SDK.
      expect(point.heap_bytes).toBeGreaterThan(10 * 2 ** 20);
      expect(point.rss_bytes).toBeGreaterThan(point.heap_bytes);
    }
  }
  expect(result.cached_runs.capped).toBe(3);
  expect(result.finished).toEqual({ opened: 24, paid: 24 });
}, 300_000);

it('reads what one more run costs from the line through the points', () => {
  const points = [0, 100, 300].map((open) => ({
    open,
    rss_bytes: 5_000 + 70 * open,
    heap_bytes: 1_000 + 40 * open,
  }));
  expect(curveOf(points)).toMatchObject({ rss_per_run: 70, heap_per_run: 40 });
});
