import {
  addDays,
  billDeadline,
  dayAt,
  isDay,
  noonOf,
  waitForBill,
} from '../../domain/business-day';

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

describe('the wait for a bill that did not come', () => {
  it.each([
    ['the first rung', 'not_ready', 1, null, 60_000, 100],
    ['the second rung', 'unavailable', 2, null, 60_000, 300],
    ['as long as the channel asks for', 'not_ready', 1, 5_000, 60_000, 5_000],
    ['not past the deadline', 'not_ready', 2, 5_000, 250, 250],
    ['past it, “not there” is believed', 'not_ready', 1, 5_000, 0, null],
    ['past it, a connection that broke says nothing', 'unavailable', 1, 5_000, -1, 100],
    ['nor does a second', 'unavailable', 2, null, -1, 100],
    ['a third ends it', 'unavailable', 3, null, -1, null],
    ['however often it was not there before', 'unavailable', 31, null, -1, 100, 1],
  ] as [
    string,
    'not_ready' | 'unavailable',
    number,
    number | null,
    number,
    number | null,
    number?,
  ][])('%s', (_, outcome, tries, retryAfterMs, leftMs, waitMs, brokenInARow = tries) => {
    const missing = { outcome, tries, brokenInARow, retryAfterMs };
    expect(waitForBill(missing, leftMs, [100, 300])).toBe(waitMs);
  });
});
