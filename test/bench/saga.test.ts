import { saga } from '../../bench/saga';
import { findKnee } from '../../bench/saga/knee';
import type { LoadResult, Percentiles } from '../../bench/open-load';

beforeEach(() => {
  jest.spyOn(console, 'log').mockImplementation(() => undefined);
});
afterEach(() => jest.restoreAllMocks());

it('measures orders from the API to the notification beside the control', async () => {
  const result = await saga(
    '--test-servers --seconds 1 --rounds 1 --from 3 --steps 1 --clients 4 --starts 10'.split(' '),
  );
  expect(result.knee.steps).toHaveLength(1);
  expect(result.at_70_percent.failed).toBe(0);
  expect(result.at_70_percent.paid.count).toBeGreaterThan(0);
  expect(result.at_70_percent.commits_per_order.writing).toBeGreaterThan(0);
  expect(result.rounds).toHaveLength(1);
  expect(result.rounds[0]).toMatchObject({
    saga_per_s: expect.any(Number),
    control_per_s: expect.any(Number),
    ratio: expect.any(Number),
  });
  expect(result.orders).toBeGreaterThan(0);
  // 13 and 36 where nothing waits; on a busy machine a run does two things in one task.
  for (const { transitions, events } of Object.values(result.per_order)) {
    expect(transitions).toBeGreaterThanOrEqual(9);
    expect(transitions).toBeLessThanOrEqual(14);
    expect(events).toBeGreaterThanOrEqual(25);
    expect(events).toBeLessThanOrEqual(40);
  }
  expect(Object.keys(result.worker_cpu_ms_per_start)).toEqual(['order', 'bare', 'bare_with_step']);
}, 300_000);

describe('the knee', () => {
  it('is the last rate that was kept up with', async () => {
    const knee = await findKnee({
      from: 10,
      factor: 2,
      stepsMax: 9,
      p99MsMax: 100,
      run: (rate) => Promise.resolve(aLoad({ rate, perSecond: Math.min(rate, 45) })),
    });
    expect(knee).toMatchObject({ per_second: 40, found: true });
    expect(knee.steps.map(({ rate, kept_up: keptUp }) => [rate, keptUp])).toEqual([
      [10, true],
      [20, true],
      [40, true],
      [80, false],
    ]);
  });

  it.each<[string, Partial<Parameters<typeof aLoad>[0]>]>([
    ['a send that failed', { failed: 1 }],
    ['an answer that comes too late', { p99Ms: 101 }],
    ['sends that never left', { sent: 99 }],
  ])('is passed by %s', async (_, fault) => {
    const knee = await findKnee({
      from: 10,
      factor: 2,
      stepsMax: 9,
      p99MsMax: 100,
      run: (rate) => Promise.resolve(aLoad({ rate, perSecond: rate, ...fault })),
    });
    expect(knee).toMatchObject({ per_second: 0, found: true });
  });

  it('is not found when every step was kept up with', async () => {
    const knee = await findKnee({
      from: 10,
      factor: 2,
      stepsMax: 3,
      p99MsMax: 100,
      run: (rate) => Promise.resolve(aLoad({ rate, perSecond: rate })),
    });
    expect(knee).toMatchObject({ per_second: 40, found: false });
  });
});

function aLoad(of: {
  rate: number;
  perSecond: number;
  failed?: number;
  sent?: number;
  p99Ms?: number;
}): LoadResult {
  const latency: Percentiles = {
    count: 100,
    mean_ms: 5,
    p50_ms: 5,
    p95_ms: 20,
    p99_ms: of.p99Ms ?? 50,
    max_ms: 60,
  };
  return {
    planned: 100,
    sent: of.sent ?? 100,
    succeeded: 100 - (of.failed ?? 0),
    failed: of.failed ?? 0,
    took_ms: 10_000,
    per_second: of.perSecond,
    latency,
    late: latency,
    in_flight_max: 1,
    held_back: 0,
    errors: {},
  };
}
