import { createRateBrake } from '../../channels/rate-brake';

function aBrake(maxCallsPerSecond: number) {
  const clock = { ms: 0 };
  return { clock, brake: createRateBrake(maxCallsPerSecond, () => clock.ms) };
}

describe('the rate brake', () => {
  it('B20: lets at most the rate and a tenth of it pass in any second', () => {
    const { brake, clock } = aBrake(50);
    const leaving: number[] = [];
    for (clock.ms = 0; clock.ms < 5_000; clock.ms += 1) {
      for (let call = 0; call < 3; call += 1) {
        const place = brake.admit(100);
        if (place.admitted) leaving.push(clock.ms + place.waitMs);
      }
    }
    for (let from = 0; from < 5_000; from += 10) {
      const inWindow = leaving.filter((at) => at >= from && at < from + 1_000).length;
      expect(inWindow).toBeLessThanOrEqual(55);
    }
    expect(leaving.length).toBeGreaterThanOrEqual(250);
  });

  it('sends the rest away with times spread like the calls themselves', () => {
    const { brake } = aBrake(50);
    const places = Array.from({ length: 1_000 }, () => brake.admit(0));
    const hints = places.flatMap((place) => (place.admitted ? [] : [place.retryAfterMs]));
    expect(hints.length).toBeGreaterThan(990);
    expect(new Set(hints).size).toBe(hints.length);
    expect(Math.max(...hints)).toBeGreaterThanOrEqual(19_000);
    expect(Math.max(...hints)).toBeLessThanOrEqual(21_000);
  });

  it('spreads a queue of many minutes too, and lets nobody sleep longer than ten', () => {
    const clock = { ms: 0 };
    const brake = createRateBrake(20, () => clock.ms);
    const hintsOf = (count: number) =>
      Array.from({ length: count }, () => brake.admit(0)).flatMap((place) =>
        place.admitted ? [] : [place.retryAfterMs],
      );
    const tenMinutes = hintsOf(12_000);
    expect(new Set(tenMinutes).size).toBe(tenMinutes.length);
    expect(Math.max(...tenMinutes)).toBeGreaterThan(595_000);
    expect(Math.max(...tenMinutes, ...hintsOf(5_000))).toBeLessThanOrEqual(601_000);
  });

  it('lets nothing leave before the pause a channel asked for is over', () => {
    const { brake, clock } = aBrake(50);
    brake.pause(1_000);
    expect(brake.admit(500)).toEqual({ admitted: false, retryAfterMs: 1_020 });
    expect(brake.admit(5_000)).toEqual({ admitted: true, waitMs: 1_000 });
    expect(brake.admit(5_000)).toEqual({ admitted: true, waitMs: 1_020 });
    clock.ms = 3_000;
    expect(brake.admit(0)).toEqual({ admitted: true, waitMs: 0 });
  });

  it('bounds a pause that a channel mistyped', () => {
    const { brake, clock } = aBrake(50);
    brake.pause(10 ** 12);
    clock.ms = 5 * 60_000;
    expect(brake.admit(0).admitted).toBe(true);
  });
});
