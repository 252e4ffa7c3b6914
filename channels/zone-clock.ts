/**
 * Reads times of day that a channel writes without a zone.
 *
 * @param timeZone IANA zone the channel writes in
 * @returns a reader of `2026-05-01 16:00:00` (also with a `T`): the instant as ISO 8601 in UTC, or
 *   undefined when the text is no such time. A time that the zone's clock shows twice is its first;
 *   one that it skips is read as if it had not been put forward.
 * @throws RangeError when there is no such zone
 */
export function zoneClockReader(timeZone: string): (text: string) => string | undefined {
  const clock = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  /** What the zone's clock is ahead of UTC by at an instant. */
  function aheadMs(at: number): number {
    const parts = new Map(clock.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
    const part = (type: string) => parts.get(type as Intl.DateTimeFormatPartTypes) ?? 0;
    const shown = Date.UTC(
      part('year'),
      part('month') - 1,
      part('day'),
      part('hour'),
      part('minute'),
      part('second'),
    );
    return shown - Math.floor(at / 1_000) * 1_000;
  }
  function findAheadMs(wallMs: number): number {
    // Around a change of the clock both offsets may fit; the larger one gives the earlier instant.
    const candidates = [aheadMs(wallMs - DAY_MS), aheadMs(wallMs + DAY_MS)];
    const fitting = candidates.filter((ahead) => aheadMs(wallMs - ahead) === ahead);
    return Math.max(...(fitting.length > 0 ? fitting : [candidates[0] ?? 0]));
  }

  return byMinute((text) => {
    const match = CLOCK.exec(text);
    if (!match) return undefined;
    const [year, month, day, hour, minute, second] = match.slice(1).map(Number) as Six;
    const wallMs = Date.UTC(year, month - 1, day, hour, minute, second);
    const date = new Date(wallMs);
    const isReal = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
    if (!isReal || hour > 23 || minute > 59 || second > 59) return undefined;
    return new Date(wallMs - findAheadMs(wallMs)).toISOString();
  });
}

/**
 * The same reader of instants, quicker for the rows of a file, which share few minutes: a minute is
 * read once, the seconds are put in. Text without seconds at their usual place goes to the reader.
 */
export function byMinute(
  read: (text: string) => string | undefined,
): (text: string) => string | undefined {
  const known = new Map<string, string>();
  return (text) => {
    const seconds = text.slice(17, 19);
    if (text.charAt(16) !== ':' || !SECONDS.test(seconds)) return read(text);
    const minute = `${text.slice(0, 17)}00${text.slice(19)}`;
    let instant = known.get(minute);
    if (instant === undefined) {
      instant = read(minute);
      // An offset of odd seconds, or a fraction: nothing that minutes could share.
      if (!instant?.endsWith(':00.000Z')) return read(text);
      if (known.size > MAX_KEPT) known.clear();
      known.set(minute, instant);
    }
    return instant.slice(0, 17) + seconds + instant.slice(19);
  };
}

type Six = [number, number, number, number, number, number];
const CLOCK = /^(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)$/;
const SECONDS = /^[0-5][0-9]$/;
const DAY_MS = 86_400_000;
/** A bill has 1,440 minutes; this bounds what odd rows can make us keep. */
const MAX_KEPT = 5_000;
