import { addDays, billDeadline, dayAt, isDay, noonOf } from '../../domain/business-day';

describe('a business date', () => {
  it.each([
    ['2026-11-29', true],
    ['2028-02-29', true],
    ['2026-02-29', false],
    ['2026-13-01', false],
    ['2026-1-1', false],
    ['2026-11-29T00:00', false],
    ['', false],
  ])('%s is one: %s', (text, is) => {
    expect(isDay(text)).toBe(is);
  });

  it('is counted on and back over months and years', () => {
    expect([addDays('2026-12-31', 1), addDays('2026-03-01', -1), addDays('2026-05-05', 0)]).toEqual(
      ['2027-01-01', '2026-02-28', '2026-05-05'],
    );
  });

  it.each([
    ['UTC', '2026-11-29'],
    ['Asia/Shanghai', '2026-11-30'],
    ['America/New_York', '2026-11-29'],
    ['Pacific/Kiritimati', '2026-11-30'],
  ])('at 16:00 UTC is in %s %s', (zone, day) => {
    expect(dayAt(new Date('2026-11-29T16:00:00Z'), zone)).toBe(day);
  });

  it.each([
    ['UTC', '2026-11-30T12:00:00.000Z'],
    ['Asia/Shanghai', '2026-11-30T04:00:00.000Z'],
    ['America/New_York', '2026-11-30T17:00:00.000Z'],
    ['Asia/Kolkata', '2026-11-30T06:30:00.000Z'],
  ])('has its bill in %s by %s', (zone, at) => {
    expect(billDeadline('2026-11-29', zone).toISOString()).toBe(at);
  });

  it('has its noon on the days on which clocks are changed, too', () => {
    expect(noonOf('2026-03-08', 'America/New_York').toISOString()).toBe('2026-03-08T16:00:00.000Z');
    expect(noonOf('2026-11-01', 'America/New_York').toISOString()).toBe('2026-11-01T17:00:00.000Z');
  });
});
