import { byMinute, zoneClockReader } from '../../channels/zone-clock';

describe('times of day without a zone', () => {
  it.each<[string, string, string | undefined]>([
    ['Asia/Shanghai', '2026-05-01 00:00:00', '2026-04-30T16:00:00.000Z'],
    ['Asia/Shanghai', '2026-05-01T23:59:59', '2026-05-01T15:59:59.000Z'],
    ['UTC', '2024-02-29 12:00:01', '2024-02-29T12:00:01.000Z'],
    ['America/New_York', '2026-07-01 12:00:00', '2026-07-01T16:00:00.000Z'],
    ['America/New_York', '2026-01-01 12:00:00', '2026-01-01T17:00:00.000Z'],
    // The clock shows this hour twice: the first one.
    ['America/New_York', '2026-11-01 01:30:00', '2026-11-01T05:30:00.000Z'],
    ['America/New_York', '2026-11-01 00:59:59', '2026-11-01T04:59:59.000Z'],
    ['America/New_York', '2026-11-01 02:00:00', '2026-11-01T07:00:00.000Z'],
    ['America/New_York', '2026-03-08 03:00:00', '2026-03-08T07:00:00.000Z'],
    ['Australia/Lord_Howe', '2026-04-05 12:00:00', '2026-04-05T01:30:00.000Z'],
    ['Asia/Kathmandu', '2026-05-01 05:45:30', '2026-05-01T00:00:30.000Z'],
    ['UTC', '2026-02-30 12:00:00', undefined],
    ['UTC', '2026-05-01 24:00:00', undefined],
    ['UTC', '2026-05-01 12:60:00', undefined],
    ['UTC', '2026-05-01 12:00:60', undefined],
    ['UTC', '2026-05-01', undefined],
    ['UTC', '01/05/2026 12:00:00', undefined],
    ['UTC', '', undefined],
  ])('%s: %j is %p', (zone, text, instant) => {
    const read = zoneClockReader(zone);
    expect(read(text)).toBe(instant);
    expect(read(text)).toBe(instant);
  });

  it('refuses a zone that there is not', () => {
    expect(() => zoneClockReader('Mars/Olympus')).toThrow(RangeError);
  });

  it('reads a minute once, and what does not fit it by itself', () => {
    const read = jest.fn((text: string) => {
      const at = Date.parse(text);
      return Number.isNaN(at) ? undefined : new Date(at).toISOString();
    });
    const quick = byMinute(read);
    expect(quick('2026-05-01T16:00:07+08:00')).toBe('2026-05-01T08:00:07.000Z');
    expect(quick('2026-05-01T16:00:59+08:00')).toBe('2026-05-01T08:00:59.000Z');
    expect(read).toHaveBeenCalledTimes(1);
    expect(quick('2026-05-01T16:00:07.250+08:00')).toBe('2026-05-01T08:00:07.250Z');
    expect(quick('nonsense')).toBeUndefined();
  });
});
