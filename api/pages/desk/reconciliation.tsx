import { addDays, dayAt } from '../../../domain/business-day';
import {
  listReconciliations,
  readReconciliation,
  startReconciliation,
} from '../../routes/reconciliations';
import { addMonths, Calendar, isMonth } from './calendar';
import { DayReport } from './day-report';
import type { Desk, DeskApp, DeskContext, Form, Refused } from './frame';
import { DESK } from './guard';
import { Choice, Field, Note, ProblemNote } from './parts';
import type { ReportList, Reports } from './shapes';

/** Which business dates agree with the channels' bills, which do not, and in what. */
export function addReconciliation(app: DeskApp, desk: Desk): void {
  app.get('/reconciliation', (c) => showMonth(c));

  app.post('/reconciliation', async (c) => {
    const form = c.get('form');
    const { channel = '', day = '', dry_run: dryRun } = form;
    try {
      const { status } = await desk.answer(c, startReconciliation, {
        body: { channel, day, dry_run: dryRun !== undefined },
      });
      const query = new URLSearchParams({ channel, begun: status === 202 ? 'now' : 'before' });
      return c.redirect(`${DESK}/reconciliation/${day}?${query.toString()}`, 303);
    } catch (error) {
      return showMonth(c, { problem: desk.refusalOf(error), form });
    }
  });

  app.get('/reconciliation/:day', async (c) => {
    const { day } = c.req.param();
    const { channel, begun } = c.req.query();
    const { reports } = await desk.ask<Reports>(c, readReconciliation, {
      params: { day },
      query: { ...(channel && { channel }), format: 'json' },
    });
    const csrf = c.get('session').csrfToken;
    return desk.show(c, {
      title: `Reconciliation of ${day}`,
      at: '/reconciliation',
      children: (
        <>
          {begun !== undefined && (
            <Note tone="warn">
              <p>
                {begun === 'now' ? 'A run has begun.' : 'A run was open already.'} Load the page
                again to see what it found.
              </p>
            </Note>
          )}
          <p>
            <a href={`${DESK}/reconciliation?month=${day.slice(0, 7)}`}>The month</a>
          </p>
          {reports.length === 0 && <p>There is no report of this date yet.</p>}
          {reports.map((report) => (
            <DayReport report={report} csrf={csrf} />
          ))}
        </>
      ),
    });
  });

  /** The same file as the API gives. */
  app.get('/reconciliation/:day/csv', async (c) => {
    const { day } = c.req.param();
    const { channel } = c.req.query();
    const { document, headers } = await desk.answer(c, readReconciliation, {
      params: { day },
      query: { ...(channel && { channel }), format: 'csv' },
    });
    return c.body(document?.text ?? '', 200, {
      ...headers,
      'content-type': document?.contentType ?? 'text/csv; charset=utf-8',
      'cache-control': 'no-store',
    });
  });

  async function showMonth(c: DeskContext, refused?: Refused) {
    const channels = (await desk.deps.channels.all()).map(({ row }) => row);
    const zone = channels[0]?.timeZone ?? 'UTC';
    const today = dayAt(new Date(), zone);
    const asked = c.req.query('month');
    const month = isMonth(asked) ? asked : today.slice(0, 7);
    const chosen = c.req.query('channel') ?? '';
    const names = channels.map(({ channel }) => channel).sort();
    const shown = names.includes(chosen) ? [chosen] : names;
    const { reports } = await desk.ask<ReportList>(c, listReconciliations, {
      query: { from: `${month}-01`, to: addDays(`${addMonths(month, 1)}-01`, -1) },
    });
    const link = (other: string) =>
      `${DESK}/reconciliation?${new URLSearchParams({ month: other, ...(chosen && { channel: chosen }) }).toString()}`;
    return desk.show(c, {
      title: `Reconciliation, ${month}`,
      at: '/reconciliation',
      status: refused?.problem.status ?? 200,
      children: (
        <>
          {refused && <ProblemNote problem={refused.problem} />}
          <nav aria-label="Months" class="months">
            <a href={link(addMonths(month, -1))}>Month before</a>{' '}
            <a href={link(addMonths(month, 1))}>Month after</a>
          </nav>
          <form method="get" class="filters">
            <input type="hidden" name="month" value={month} />
            <Choice
              id="shown"
              name="channel"
              label="Channel"
              value={chosen}
              options={[['', 'all'], ...names.map((name) => [name, name] as const)]}
            />
            <button class="button">Show</button>
          </form>
          {shown.map((name) => (
            <Calendar channel={name} month={month} reports={reports} />
          ))}
          <StartForm
            csrf={c.get('session').csrfToken}
            names={names}
            form={refused?.form ?? { day: addDays(today, -1), channel: shown[0] ?? '' }}
          />
        </>
      ),
    });
  }
}

function StartForm({ csrf, names, form }: { csrf: string; names: readonly string[]; form: Form }) {
  return (
    <section aria-labelledby="start">
      <h2 id="start">Start a run</h2>
      <form method="post" action={`${DESK}/reconciliation`} class="card narrow">
        <input type="hidden" name="csrf" value={csrf} />
        <Choice
          id="channel"
          name="channel"
          label="Channel"
          value={form['channel']}
          options={names.map((name) => [name, name] as const)}
        />
        <Field
          id="day"
          name="day"
          label="Business date"
          type="date"
          value={form['day']}
          required
          hint="In the channel’s own time zone; it must have ended."
        />
        <p class="field">
          <label class="check">
            <input type="checkbox" name="dry_run" value="yes" checked={form['dry_run'] === 'yes'} />{' '}
            Dry run: compare and report; ask nobody, open no case
          </label>
        </p>
        <button type="submit" class="button">
          Start
        </button>
      </form>
    </section>
  );
}
