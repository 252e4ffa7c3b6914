import { addDays, dayAt } from '../../../domain/business-day';
import { readCallbackLag, readGlance, readSuccess } from '../../../db/desk';
import type { GlanceFigure, LagBucket, Span, SuccessBucket } from '../../../db/desk';
import { listReconciliations } from '../../routes/reconciliations';
import type { Bar } from './chart';
import { Chart } from './chart';
import type { Desk, DeskApp } from './frame';
import { DESK } from './guard';
import { money } from './money';
import { Choice } from './parts';
import type { ReportHead, ReportList } from './shapes';

const HOURS = 24;
const DAYS = 14;

const FIGURES: readonly [GlanceFigure['what'], string, string, string][] = [
  ['paid', 'Paid', 'payments of this day', '/search?status=paid'],
  ['refunded', 'Refunded', 'refunds sent this day that arrived', '/search'],
  ['open', 'Open', 'orders that wait for their payer, now', '/search?status=paying'],
  ['review', 'In review', 'orders that a person must decide, now', '/cases'],
];

/** Today at a glance: what came, what went, what waits, and whether it goes as it should. */
export function addGlance(app: DeskApp, desk: Desk): void {
  const { pool, channels } = desk.deps;
  app.get('/', async (c) => {
    const zones = [...new Set(['UTC', ...(await channels.all()).map(({ row }) => row.timeZone)])];
    const wanted = c.req.query('zone') ?? '';
    const zone = zones.includes(wanted) ? wanted : 'UTC';
    const span: Span =
      c.req.query('by') === 'day'
        ? { unit: 'day', count: DAYS, zone }
        : { unit: 'hour', count: HOURS, zone };
    const date = dayAt(new Date(), zone);
    const [figures, success, lag, { reports }] = await Promise.all([
      readGlance(pool, { date, zone }),
      readSuccess(pool, span),
      readCallbackLag(pool, span),
      desk.ask<ReportList>(c, listReconciliations, {
        query: { from: addDays(date, 1 - DAYS), to: date },
      }),
    ]);
    const label = (at: string) => labelOf(at, span);
    return desk.show(c, {
      title: 'Today at a glance',
      at: '',
      children: (
        <>
          <form method="get" class="filters">
            <Choice
              id="zone"
              name="zone"
              label="Day of"
              value={zone}
              options={zones.map((one) => [one, one] as const)}
            />
            <Choice
              id="by"
              name="by"
              label="Charts"
              value={span.unit}
              options={[
                ['hour', `the last ${HOURS} hours`],
                ['day', `the last ${DAYS} days`],
              ]}
            />
            <button class="button">Show</button>
          </form>
          <h2>
            {date} in {zone}
          </h2>
          <ul class="figures">
            {FIGURES.map(([what, name, hint, path]) => (
              <Figure
                name={name}
                hint={hint}
                path={path}
                figures={figures.filter((one) => one.what === what)}
              />
            ))}
          </ul>
          <h2>How it goes</h2>
          <div class="charts">
            <SuccessChart buckets={success} label={label} unit={span.unit} />
            <LagChart buckets={lag} label={label} unit={span.unit} />
            <DifferenceChart reports={reports} to={date} />
          </div>
        </>
      ),
    });
  });
}

function Figure({
  name,
  hint,
  path,
  figures,
}: {
  name: string;
  hint: string;
  path: string;
  figures: readonly GlanceFigure[];
}) {
  const count = figures.reduce((sum, figure) => sum + figure.count, 0);
  return (
    <li class="card" data-figure={name}>
      <h3>
        <a href={DESK + path}>{name}</a>
      </h3>
      <p class="count">{count}</p>
      {figures.map(({ currency, sumMinor }) => (
        <p class="sum">{money(sumMinor, currency)}</p>
      ))}
      <p class="soft">{hint}</p>
    </li>
  );
}

interface ChartOf<T> {
  buckets: readonly T[];
  label: (at: string) => string;
  unit: Span['unit'];
}

function SuccessChart({ buckets, label, unit }: ChartOf<SuccessBucket>) {
  const [orders, paid] = [total(buckets, 'orders'), total(buckets, 'paid')];
  const bars = buckets.map(({ at, orders, paid }): Bar => ({
    label: label(at),
    value: orders === 0 ? null : paid / orders,
    says: orders === 0 ? 'no orders' : `${percent(paid, orders)}: ${paid} of ${orders} paid`,
  }));
  return (
    <Chart
      title={`Success by ${unit}`}
      summary={
        orders === 0 ? 'no orders' : `${percent(paid, orders)} of ${orders} orders created are paid`
      }
      bars={bars}
      max={1}
      heads={[unit === 'hour' ? 'Hour' : 'Day', 'Paid of those created']}
    />
  );
}

function LagChart({ buckets, label, unit }: ChartOf<LagBucket>) {
  const callbacks = total(buckets, 'callbacks');
  const worst = Math.max(0, ...buckets.map(({ p95S }) => p95S ?? 0));
  const bars = buckets.map(({ at, callbacks, medianS, p95S }): Bar => ({
    label: label(at),
    value: p95S,
    says:
      callbacks === 0
        ? 'no callbacks'
        : `95 of 100 within ${seconds(p95S)}, half within ${seconds(medianS)}; ${callbacks} callbacks`,
  }));
  return (
    <Chart
      title={`Callback lag by ${unit}`}
      summary={
        callbacks === 0
          ? 'no callbacks'
          : `${callbacks} callbacks; in the slowest ${unit} 95 of 100 were applied within ${seconds(worst)}`
      }
      bars={bars}
      heads={[unit === 'hour' ? 'Hour' : 'Day', 'From arrival to settlement']}
    />
  );
}

function DifferenceChart({ reports, to }: { reports: readonly ReportHead[]; to: string }) {
  const bars = Array.from({ length: DAYS }, (_, i): Bar => {
    const day = addDays(to, i + 1 - DAYS);
    const ofDay = reports.filter((report) => report.day === day);
    const standing = ofDay.reduce((sum, report) => sum + standingOf(report), 0);
    return {
      label: day,
      value: ofDay.length === 0 ? null : standing,
      says: ofDay.length === 0 ? 'no report' : `${standing} differences, ${ofDay.length} reports`,
    };
  });
  const standing = reports.reduce((sum, report) => sum + standingOf(report), 0);
  return (
    <Chart
      title="Differences by business date"
      summary={`${standing} stand in ${reports.length} reports of ${DAYS} days`}
      bars={bars}
      heads={['Date', 'Differences that stand']}
    />
  );
}

/** Differences that are not resolved. */
export function standingOf({ by_kind: byKind }: Pick<ReportHead, 'by_kind'>): number {
  return Object.values(byKind).reduce((sum, count) => sum + (count ?? 0), 0);
}

function total<K extends string>(buckets: readonly Record<K, number>[], name: K): number {
  return buckets.reduce((sum, bucket) => sum + bucket[name], 0);
}

function percent(part: number, whole: number): string {
  return `${Math.floor((part * 1000) / whole) / 10} %`;
}

function seconds(value: number | null): string {
  return value === null ? '–' : `${value < 10 ? value.toFixed(2) : Math.round(value)} s`;
}

function labelOf(at: string, { unit, zone }: Span): string {
  if (unit === 'day') return dayAt(new Date(at), zone);
  return new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  }).format(new Date(at));
}
