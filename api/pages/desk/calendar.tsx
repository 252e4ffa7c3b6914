import { addDays } from '../../../domain/business-day';
import { standingOf } from './glance';
import { DESK } from './guard';
import type { ReportHead } from './shapes';

const WEEKDAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];
const MONTH = /^\d{4}-(?:0[1-9]|1[0-2])$/;

export function isMonth(text: string | undefined): text is string {
  return text !== undefined && MONTH.test(text) && text >= '2000-01' && text <= '2999-12';
}

/** The month so many months later. */
export function addMonths(month: string, months: number): string {
  const [year = 0, number = 1] = month.split('-').map(Number);
  return new Date(Date.UTC(year, number - 1 + months, 1)).toISOString().slice(0, 7);
}

/** The dates of the month, in weeks that begin on Monday; null outside of it. */
export function weeksOf(month: string): (string | null)[][] {
  const first = `${month}-01`;
  const before = (new Date(`${first}T00:00:00Z`).getUTCDay() + 6) % 7;
  const days: (string | null)[] = Array.from({ length: before }, () => null);
  for (let day = first; day.startsWith(month); day = addDays(day, 1)) days.push(day);
  while (days.length % 7 !== 0) days.push(null);
  return Array.from({ length: days.length / 7 }, (_, week) => days.slice(week * 7, week * 7 + 7));
}

/** What one date came to, in words and in a tone: the colour only repeats the words. */
export function verdictOf(report: ReportHead): { tone: string; says: string } {
  const standing = standingOf(report);
  switch (report.status) {
    case 'done':
      if (standing > 0) return { tone: 'bad', says: `${standing} diff.` };
      return { tone: 'good', says: report.differences_total > 0 ? 'resolved' : 'agrees' };
    case 'running':
      return { tone: 'warn', says: 'running' };
    case 'waiting_bill':
      return { tone: 'warn', says: 'waits for bill' };
    case 'rejected':
      return { tone: 'bad', says: 'bad bill' };
    case 'no_bill':
      return { tone: 'bad', says: 'no bill' };
  }
}

/** A month of one channel; every date with a report leads to it. */
export function Calendar({
  channel,
  month,
  reports,
}: {
  channel: string;
  month: string;
  reports: readonly ReportHead[];
}) {
  const byDay = new Map(
    reports.filter((one) => one.channel === channel).map((report) => [report.day, report]),
  );
  return (
    <section aria-labelledby={`of-${channel}`}>
      <h2 id={`of-${channel}`}>
        <bdi>{channel}</bdi>
      </h2>
      <table class="calendar">
        <caption>
          Business dates of {month} at <bdi>{channel}</bdi>
        </caption>
        <thead>
          <tr>
            {WEEKDAYS.map((name) => (
              <th scope="col">{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {weeksOf(month).map((week) => (
            <tr>
              {week.map((day) => (
                <Day day={day} report={day === null ? undefined : byDay.get(day)} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Day({ day, report }: { day: string | null; report: ReportHead | undefined }) {
  if (day === null) return <td></td>;
  const number = Number(day.slice(8));
  if (!report) return <td class="soft">{number}</td>;
  const { tone, says } = verdictOf(report);
  const query = new URLSearchParams({ channel: report.channel });
  return (
    <td class={tone} data-day={day}>
      <a href={`${DESK}/reconciliation/${day}?${query.toString()}`}>
        {number} <span>{says}</span>
        {report.dry_run && <span>dry run</span>}
      </a>
    </td>
  );
}
