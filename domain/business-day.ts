/**
 * Business dates: the channel's day in the channel's own zone, as text `YYYY-MM-DD`. Never a JavaScript
 * date of some midnight, which is another day elsewhere.
 */

import { rung } from './ladders';

const DAY = /^(\d{4})-(\d{2})-(\d{2})$/;
const DAY_MS = 86_400_000;

/** Whether the text is a date of the calendar, written `YYYY-MM-DD`. */
export function isDay(text: unknown): text is string {
  return typeof text === 'string' && DAY.test(text) && addDays(text, 0) === text;
}

/** The date so many days later (negative: earlier). */
export function addDays(day: string, days: number): string {
  const date = new Date(Date.parse(`${day}T00:00:00Z`) + days * DAY_MS);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString().slice(0, 10);
}

/** The date that the clocks of the zone show at this instant. @throws RangeError for no IANA zone */
export function dayAt(instant: Date, timeZone: string): string {
  return clockAt(instant, timeZone).slice(0, 10);
}

/**
 * The first instant at which the zone's clocks show noon of the date. Noon exists once on every date in
 * every zone we know; midnight does not.
 */
export function noonOf(day: string, timeZone: string): Date {
  const wanted = Date.parse(`${day}T12:00:00Z`);
  let at = wanted;
  // The zone's offset at the guess corrects the guess; a second round is needed beside a change of it.
  for (let round = 0; round < 2; round++) {
    at += wanted - Date.parse(`${clockAt(new Date(at), timeZone)}Z`);
  }
  return new Date(at);
}

/** A trade bill is due by noon of the day after its date, by the channel's own clocks. */
export function billDeadline(day: string, timeZone: string): Date {
  return noonOf(addDays(day, 1), timeZone);
}

/** So many tries in a row may find nobody before a bill that is overdue is taken for missing. */
const UNREACHED_TRIES = 3;

/**
 * How long to wait for a bill that did not come, in milliseconds; null when it is to be taken for
 * missing. A channel that says "not there" past the deadline is believed; a connection that broke
 * says nothing about the bill, so it is tried again also then.
 *
 * @param missing with `tries`, how often it has been asked for, this time included, and how many of the
 *   last tries in a row found nobody
 * @param leftMs until the deadline; zero and less: past it
 */
export function waitForBill(
  missing: BillMissing,
  leftMs: number,
  ladderMs: readonly number[],
): number | null {
  const { outcome, tries, brokenInARow, retryAfterMs } = missing;
  if (leftMs > 0) return Math.min(Math.max(rung(ladderMs, tries - 1), retryAfterMs ?? 0), leftMs);
  if (outcome === 'unavailable' && brokenInARow < UNREACHED_TRIES) return rung(ladderMs, 0);
  return null;
}

export interface BillMissing {
  /** `not_ready`: the channel says so. `unavailable`: nobody knows. */
  outcome: 'not_ready' | 'unavailable';
  tries: number;
  brokenInARow: number;
  retryAfterMs: number | null;
}

function clockAt(instant: Date, timeZone: string): string {
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  }).formatToParts(instant);
  const part = (type: string) => parts.find((p) => p.type === type)?.value ?? '';
  const date = `${part('year').padStart(4, '0')}-${part('month')}-${part('day')}`;
  return `${date}T${part('hour')}:${part('minute')}:${part('second')}`;
}
