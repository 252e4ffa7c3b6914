import { MockActivityEnvironment } from '@temporalio/testing';
import type { ActivityDeps } from '../../activities/deps';
import { createReconciliationSteps } from '../../activities/reconciliation';
import { ReconciledChannel } from '../support/reconciled-day';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';
import { waitFor } from '../support/wait';

const D = '2026-05-02';
const NEAR_MIDNIGHT = '2026-05-02T23:00:00Z';
const DAYS_BACK = 2;
/** The round is a short step: it is given up after this. */
const STEP_MS = 3_000;

let database: StatementDatabase;
let channels: ReconciledChannel[];

beforeEach(async () => {
  database = await createStatementDatabase({ bulk: true });
  await database.pool.query(`update channels set created_at = '2099-01-01T00:00:00Z'`);
  channels = [await anOverdueChannel(), await anOverdueChannel()];
});
afterEach(() => database?.end());

/** One date has waited too long for another's bill, and the last two dates have no report. */
async function anOverdueChannel(): Promise<ReconciledChannel> {
  const ch = await ReconciledChannel.make(database.pool, { created_at: '2026-05-01T12:00:00Z' });
  await ch.paid(NEAR_MIDNIGHT);
  await ch.reconcile(D, [], { now: '2026-05-03T02:00:00Z' });
  return ch;
}

function round() {
  const steps = createReconciliationSteps({
    pool: database.pool,
    taskQueue: 'test',
    reconciliation: { pool: database.pool },
  } as ActivityDeps);
  const environment = new MockActivityEnvironment();
  return environment.run(steps.listDueReconciliations, { daysBack: DAYS_BACK }) as Promise<{
    due: { channel: string }[];
  }>;
}

async function failFor(ch: ReconciledChannel, table: string, when: string): Promise<void> {
  await database.pool.query(`
    create function fail_${table}() returns trigger language plpgsql as $$
    begin
      raise exception 'canceling statement due to statement timeout' using errcode = '57014';
    end $$;
    create trigger fail_${table} before ${when} on ${table} for each row
      when (new.channel = '${ch.channel}') execute function fail_${table}()`);
}

const waits = async (ch: ReconciledChannel) => (await ch.report(D)).byStatus;
const missing = async (ch: ReconciledChannel) => (await ch.cases()).length;
const dueOf = (due: { channel: string }[], ch: ReconciledChannel) =>
  due.filter(({ channel }) => channel === ch.channel).length;

describe('what is overdue, in a round of reconciliation', () => {
  it('of every channel becomes a case, and every date without a report is due', async () => {
    const { due } = await round();
    for (const ch of channels) {
      expect(dueOf(due, ch)).toBe(DAYS_BACK);
      expect(await waits(ch)).toMatchObject({ case: 1, suspense: 0 });
      expect(await missing(ch)).toBeGreaterThan(0);
    }
  });

  it.each([0, 1])('fails in channel %i alone: dates start, the other has its cases', async (i) => {
    const [broken, well] = [channels[i]!, channels[1 - i]!];
    await failFor(broken, 'differences', 'update');
    await failFor(broken, 'cases', 'insert');
    const { due } = await round();
    for (const ch of channels) expect(dueOf(due, ch)).toBe(DAYS_BACK);
    expect(await waits(broken)).toMatchObject({ case: 0, suspense: 1 });
    expect(await missing(broken)).toBe(0);
    expect(await waits(well)).toMatchObject({ case: 1, suspense: 0 });
    expect(await missing(well)).toBeGreaterThan(0);
  });

  it('hangs in one channel: dates start in time, the other has its cases', async () => {
    const [hanging, well] = [channels[0]!, channels[1]!];
    const client = await database.pool.connect();
    await client.query('begin');
    await client.query('select from differences where channel = $1 for update', [hanging.channel]);
    try {
      const began = Date.now();
      const { due } = await round();
      expect(Date.now() - began).toBeLessThan(STEP_MS);
      for (const ch of channels) expect(dueOf(due, ch)).toBe(DAYS_BACK);
      expect(await waits(well)).toMatchObject({ case: 1, suspense: 0 });
    } finally {
      await client.query('rollback');
      client.release();
    }
    await waitFor(
      'the case of the channel that hung',
      async () => (await waits(hanging)).case === 1,
    );
  });
});
