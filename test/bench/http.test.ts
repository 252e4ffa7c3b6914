import { http } from '../../bench/http';

it('measures each kind of request beside a plain insert', async () => {
  jest.spyOn(console, 'log').mockImplementation(() => undefined);
  const result = await http(
    (
      '--test-servers --seconds 1 --rounds 1 --steps 1 --copies 10 --clients 4 ' +
      '--from-create 5 --from-payments 3 --from-callbacks 20 --from-plain 20'
    ).split(' '),
  );
  jest.restoreAllMocks();
  for (const compared of [result.create, result.payments, result.callbacks]) {
    expect(compared).toMatchObject({ failed: 0, p50_ratio: expect.any(Number) });
    expect(compared.knee.steps).toHaveLength(1);
    expect(compared.knee.steps[0]?.failed).toBe(0);
  }
  expect(result.plain_knee.steps[0]?.failed).toBe(0);
  expect(result).toMatchObject({ copies: 10, pool_size: 10 });
  expect(result.duplicates).toMatchObject({ clients: 4, ratio: expect.any(Number) });
  expect(result.duplicates.callback_copies_per_s).toBeGreaterThan(0);
  expect(result.duplicates.order_repeats_per_s).toBeGreaterThan(0);
  expect(result.requests).toBeGreaterThan(5 + 3 + 20 + 20);
}, 300_000);
