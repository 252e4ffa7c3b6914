import { reconciliationScheduleId } from '../../workflows/ids';
import { Saga } from '../support/saga';
import {
  begin,
  billCases,
  dayHandle,
  daysAgo,
  ended,
  paidOn,
  report,
  untilRun,
  zoneAtHour,
} from '../support/reconciliations';
import { startTcpProxy } from '../support/tcp-proxy';
import { waitFor } from '../support/wait';

const EVERY_MS = 1_000;

/** Every date with a run and its status, oldest first. */
function runsOf(saga: Saga, channel: string) {
  return saga.rows<{ day: string; status: string }>(
    `select business_date::text as day, status from reconciliation_runs
     where channel = $1::text order by business_date`,
    channel,
  );
}

/** The status of every run of the date that the server knows. */
async function runStatuses(saga: Saga, channel: string, day: string): Promise<string[]> {
  const { workflowId } = dayHandle(saga, channel, day);
  const found = [];
  for await (const run of saga.client.workflow.list({ query: `WorkflowId = '${workflowId}'` })) {
    found.push(run.status.name);
  }
  return found;
}

/** One run there ever was, and it has ended well; the server's list lags behind a little. */
function untilOneRun(saga: Saga, channel: string, day: string): Promise<true> {
  return waitFor(`one run of ${channel} ${day}, completed`, async () => {
    const runs = await runStatuses(saga, channel, day);
    if (runs.join() !== 'COMPLETED') throw new Error(`runs: ${runs.join()}`);
    return true;
  });
}

describe('reconciliation by schedule', () => {
  let saga: Saga;
  beforeAll(async () => {
    // Six in the morning: yesterday's bill may come until noon, that of the day before is overdue.
    saga = await Saga.start({
      workers: 2,
      timeZone: zoneAtHour(6),
      env: { RECONCILE_EVERY_MS: String(EVERY_MS) },
    });
  });
  afterAll(async () => {
    delete process.env['FAILPOINT'];
    await saga?.stop();
  });

  it('B95: a bill that does not exist, in several spellings, is waited for by timer: 1 report', async () => {
    const day = daysAgo(saga, 1);
    const bill = { dialect: 'mock-a', day } as const;
    await saga.mock.holdBill(bill, { code: 'BILL_NOT_EXIST' });
    await paidOn(saga, 'mock-a', day);
    const first = await untilRun(saga, 'mock-a', day, 'waiting_bill');
    expect(first.reason).toContain('BILL_NOT_EXIST');
    await saga.mock.holdBill(bill, { code: 'No Bill Exist' });
    await waitFor('the other spelling was heard', async () => {
      return (await untilRun(saga, 'mock-a', day, 'waiting_bill')).reason === 'No Bill Exist';
    });
    const { historyLength } = await dayHandle(saga, 'mock-a', day).describe();
    expect(historyLength).toBeGreaterThan(10);
    await saga.mock.releaseBill(bill);
    await ended(saga, 'mock-a', day);
    expect(await report(saga, 'mock-a', day)).toMatchObject({
      status: 'done',
      bill: { rows: 1 },
      differences: [],
    });
    expect(await billCases(saga, 'mock-a', day)).toEqual([]);
    await untilOneRun(saga, 'mock-a', day);
  });

  it('B95: a bill that never comes is a case after the deadline, and the next day goes on', async () => {
    const [day, next] = [daysAgo(saga, 3), daysAgo(saga, 2)];
    await saga.mock.holdBill({ dialect: 'mock-b', day });
    await paidOn(saga, 'mock-b', day);
    await paidOn(saga, 'mock-b', next);
    await untilRun(saga, 'mock-b', day, 'no_bill');
    await untilRun(saga, 'mock-b', next, 'done');
    const cases = await billCases(saga, 'mock-b', day);
    expect(cases.map((k) => [k.subject_no, k.status])).toEqual([[`bill:${day}:missing`, 'open']]);
    expect(await report(saga, 'mock-b', next)).toMatchObject({ differences: [] });

    // Somebody asks the channel for it; the report comes late, and the case says so.
    await saga.mock.releaseBill({ dialect: 'mock-b', day });
    await begin(saga, 'mock-b', day);
    await untilRun(saga, 'mock-b', day, 'done');
    await ended(saga, 'mock-b', day);
    const [after] = await billCases(saga, 'mock-b', day);
    expect(after?.evidence.length).toBeGreaterThan(1);
  });

  it('B121: a date that hangs for 50 hours makes no other date wait, and is a case itself', async () => {
    // Its business date ended more than 50 hours ago, by the channel's clock.
    const day = daysAgo(saga, 6);
    process.env['FAILPOINT'] = `recon-load:before#${day}~6000`;
    await paidOn(saga, 'mock-a', day);
    await waitFor('the hanging date runs', async () => {
      return (await runStatuses(saga, 'mock-a', day)).includes('RUNNING');
    });
    await waitFor('the others have their reports', async () => {
      const others = (await runsOf(saga, 'mock-a')).filter((run) => run.day !== day);
      return others.length === 5 && others.every(({ status }) => status === 'done');
    });
    expect((await report(saga, 'mock-a', day)).status).toBe('running');
    expect((await billCases(saga, 'mock-a', day)).map((k) => k.subject_no)).toEqual([
      `bill:${day}:missing`,
    ]);
    await untilRun(saga, 'mock-a', day, 'done');
    await ended(saga, 'mock-a', day);
    expect((await report(saga, 'mock-a', day)).differences).toEqual([]);
    await untilOneRun(saga, 'mock-a', day);
    expect((await runsOf(saga, 'mock-a')).map((run) => run.day)).toEqual(
      [6, 5, 4, 3, 2, 1].map((back) => daysAgo(saga, back)),
    );
  });

  it('B118: two for one date at once are one run and one report', async () => {
    const day = daysAgo(saga, 30);
    await paidOn(saga, 'mock-b', day);
    await saga.mock.holdBill({ dialect: 'mock-b', day }, { times: 1 });
    const answers = await Promise.all(
      Array.from({ length: 5 }, () =>
        saga.call('POST', '/ops/reconciliations', { channel: 'mock-b', day }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 202]);
    await ended(saga, 'mock-b', day);
    await untilOneRun(saga, 'mock-b', day);
    const rows = await saga.rows(
      `select from reconciliation_runs where channel = 'mock-b' and business_date = $1::date`,
      day,
    );
    expect(rows).toHaveLength(1);
  });

  it.each(['cancel', 'terminate'] as const)(
    'a date whose run was ended by %s is started again by the next round',
    async (how) => {
      const day = daysAgo(saga, 1);
      const channel = how === 'cancel' ? 'mock-a' : 'mock-b';
      // As if it had no report yet.
      await saga.mock.holdBill({ dialect: channel, day });
      await saga.rows(
        `update reconciliation_runs set reported_at = null, next_try_at = now()
         where channel = $1::text and business_date = $2::date`,
        channel,
        day,
      );
      const handle = dayHandle(saga, channel, day);
      const running = await waitFor('its run is open', async () => {
        const run = await handle.describe();
        return run.status.name === 'RUNNING' && run;
      });
      if (how === 'cancel') await handle.cancel();
      else await handle.terminate('an operator was too quick');
      await waitFor('a new run', async () => {
        const run = await handle.describe();
        return run.runId !== running.runId && run.status.name === 'RUNNING';
      });
      const first = saga.client.workflow.getHandle(handle.workflowId, running.runId);
      expect((await first.describe()).status.name).toBe(
        how === 'cancel' ? 'CANCELLED' : 'TERMINATED',
      );
      await saga.mock.releaseBill({ dialect: channel, day });
      await untilRun(saga, channel, day, 'done');
      expect((await report(saga, channel, day)).differences).toEqual([]);
    },
  );

  it('is one schedule however many workers start it', async () => {
    const id = reconciliationScheduleId(saga.taskQueue);
    const { spec, info, policies } = await saga.client.schedule.getHandle(id).describe();
    expect(spec.intervals).toMatchObject([{ every: EVERY_MS }]);
    expect(policies.overlap).toBe('CANCEL_OTHER');
    const ticks = info.recentActions.map((action) => action.scheduledAt.getTime());
    expect(new Set(ticks).size).toBe(ticks.length);
  });
});

describe('reconciliation after an outage', () => {
  let saga: Saga;
  beforeAll(async () => {
    // Its schedule is paused: nobody reconciled for three days.
    saga = await Saga.start({ timeZone: zoneAtHour(6) });
  });
  afterAll(() => saga?.stop());

  it('B122: three missed days get one report each, and a case said so by noon', async () => {
    const days = [3, 2, 1].map((back) => daysAgo(saga, back));
    for (const day of days) await paidOn(saga, 'mock-a', day);
    // Nothing of Temporal is needed to say that a report is missing.
    const overdue = days.slice(0, 2);
    await waitFor('the cases', async () => {
      const found = await Promise.all(overdue.map((day) => billCases(saga, 'mock-a', day)));
      return found.every((cases) => cases.length === 1);
    });
    // The newest may come until noon.
    expect(await billCases(saga, 'mock-a', days[2] ?? '')).toEqual([]);
    expect(await runsOf(saga, 'mock-a')).toEqual([]);

    await saga.stopWorkers();
    const direct = saga.env['TEMPORAL_ADDRESS'] ?? '';
    const [host = '', port] = direct.split(':');
    const proxy = await startTcpProxy({ host, port: Number(port) });
    saga.env['TEMPORAL_ADDRESS'] = `127.0.0.1:${proxy.port}`;
    saga.env['RECONCILE_EVERY_MS'] = String(EVERY_MS);
    await saga.startWorker();
    // A start sets how often, and leaves it to people whether at all.
    const schedule = saga.client.schedule.getHandle(reconciliationScheduleId(saga.taskQueue));
    expect(await schedule.describe()).toMatchObject({
      spec: { intervals: [{ every: EVERY_MS }] },
      state: { paused: true },
    });
    await schedule.unpause();
    proxy.cut();
    await new Promise((resolve) => setTimeout(resolve, 3 * EVERY_MS));
    proxy.restore();

    await waitFor('a report of each day', async () => {
      const runs = await runsOf(saga, 'mock-a');
      return runs.length === 3 && runs.every(({ status }) => status === 'done');
    });
    for (const day of days) {
      await ended(saga, 'mock-a', day);
      expect(await report(saga, 'mock-a', day)).toMatchObject({
        bill: { rows: 1 },
        differences: [],
      });
      await untilOneRun(saga, 'mock-a', day);
    }
    const cases = await Promise.all(days.map((day) => billCases(saga, 'mock-a', day)));
    expect(cases.map((of) => of.length)).toEqual([1, 1, 0]);
    await saga.stopWorkers();
    saga.env['TEMPORAL_ADDRESS'] = direct;
    await saga.startWorker();
    await proxy.close();
  });
});
