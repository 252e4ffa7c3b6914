import { soak } from '../../bench/soak';

it('keeps orders coming, looks at what may grow, and ends with right books', async () => {
  jest.spyOn(console, 'log').mockImplementation(() => undefined);
  const result = await soak('--test-servers --minutes 0.1 --rate 3 --window-seconds 1'.split(' '));
  jest.restoreAllMocks();
  expect(result.orders).toEqual({ sent: 18, paid: 18, failed: 0, errors: {} });
  expect(result.violations).toBe(0);
  expect(result.checked).toBeGreaterThan(0);
  for (const [name, samples] of Object.entries(result.series)) {
    expect([name, samples.length]).toEqual([name, expect.any(Number)]);
    expect(samples.length).toBeGreaterThanOrEqual(2);
    expect(result.growth).toHaveProperty(
      name,
      expect.objectContaining({ grows: expect.any(Boolean) }),
    );
  }
}, 300_000);
