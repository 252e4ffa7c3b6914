import { sentenceOf } from '../../../domain/difference-words';
import { verdictOf } from './calendar';
import { DESK } from './guard';
import { money } from './money';
import { Data, Facts, OrderLink, Status, Table, Text, words } from './parts';
import type { Difference, Report } from './shapes';

/** One channel's report of a date: what was compared, and every difference by its kind. */
export function DayReport({ report, csrf }: { report: Report; csrf: string }) {
  const { channel, day } = report;
  const query = new URLSearchParams({ channel });
  const { says } = verdictOf(report);
  const id = `report-${channel}`;
  return (
    <section aria-labelledby={id} data-channel={channel}>
      <h2 id={id}>
        <bdi>{channel}</bdi>: {says}
      </h2>
      <Facts
        of={[
          ['Run', <Status of={report.status} />],
          ['Time zone', report.time_zone],
          ['Dry run', report.dry_run ? 'yes: nobody was asked, no case was opened' : 'no'],
          ...(report.reason === null
            ? []
            : [['Because', <Text of={words(report.reason)} />] as [string, unknown]]),
          [
            'Bill',
            report.bill ? (
              <>
                <Text of={report.bill.file_name} />, {report.bill.rows} rows,{' '}
                {report.bill.row_errors} of them cannot be read
              </>
            ) : (
              'none'
            ),
          ],
          ...(report.rejected
            ? [
                [
                  'Rejected',
                  <>
                    <Text of={report.rejected.file_name} />: <Text of={report.rejected.message} />
                  </>,
                ] as [string, unknown],
              ]
            : []),
        ].map(([name, value]) => [name as string, value as never])}
      />
      <Totals report={report} />
      <h3>Differences by kind</h3>
      <Table
        caption="Differences that stand, by kind"
        heads={['Kind', 'Number']}
        rows={Object.entries(report.by_kind).map(([kind, count]) => [words(kind), count ?? 0])}
        empty="None stands: the bill and our books agree."
      />
      {report.differences.length > 0 && <Differences report={report} />}
      <div class="buttons">
        <a class="button" href={`${DESK}/reconciliation/${day}/csv?${query.toString()}`}>
          Differences as CSV
        </a>
        <form method="post" action={`${DESK}/reconciliation`}>
          <input type="hidden" name="csrf" value={csrf} />
          <input type="hidden" name="channel" value={channel} />
          <input type="hidden" name="day" value={day} />
          <button type="submit" class="button">
            Run it again
          </button>
        </form>
      </div>
    </section>
  );
}

function Totals({ report }: { report: Report }) {
  return (
    <Table
      caption="What was compared, net, by currency"
      heads={[
        'Currency',
        'In the bill',
        'Matched',
        'Differences',
        'Unknown rows',
        'Only in our books',
      ]}
      rows={report.totals.map((totals) => [
        totals.currency,
        ...[totals.file, totals.matched, totals.differences, totals.unknown, totals.ours_only].map(
          ({ rows, net_minor: net }) =>
            `${money(net, totals.currency)}, ${rows} ${rows === 1 ? 'row' : 'rows'}`,
        ),
      ])}
      empty="Nothing was compared."
    />
  );
}

function Differences({ report }: { report: Report }) {
  const kinds = [...new Set(report.differences.map(({ kind }) => kind))];
  return (
    <>
      {kinds.map((kind) => (
        <Table
          caption={`Differences: ${words(kind)}`}
          heads={['Subject', 'Status', 'What disagrees', 'Order', 'Both sides']}
          rows={report.differences
            .filter((one) => one.kind === kind)
            .map((one) => [
              <Text of={one.subject} />,
              <Status of={one.status} />,
              <Text of={sayingOf(report, one)} />,
              <OrderLink merchantId={one.merchant_id} orderId={one.order_id} />,
              <details>
                <summary>Show</summary>
                <Data of={{ ours: one.ours, channel_says: one.channel_says }} />
                {one.resolution !== null && <p>Resolved: {words(one.resolution)}</p>}
              </details>,
            ])}
        />
      ))}
      {report.differences_total > report.differences.length && (
        <p>
          These are the first {report.differences.length} of {report.differences_total}: the CSV has
          them all.
        </p>
      )}
    </>
  );
}

function sayingOf({ channel, day }: Report, one: Difference): string {
  const { kind, reason, subject, line_no: lineNo } = one;
  return sentenceOf({ channel, day, kind, reason, subject, lineNo });
}
