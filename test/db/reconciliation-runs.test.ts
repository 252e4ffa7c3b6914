import {
  beginRun,
  closeRun,
  compareDay,
  differencesToAsk,
  dueDays,
  noteNoBill,
  noteRejected,
  noteWaiting,
  openMissingReportCases,
  openQuestions,
} from '../../db/reconciliation';
import { aLine } from '../support/bills';
import { ReconciledChannel } from '../support/reconciled-day';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';

const D = '2026-05-02';
const NOON = '2026-05-02T12:00:00Z';
const SHANGHAI = { time_zone: 'Asia/Shanghai' };

let database: StatementDatabase;

beforeEach(async () => {
  database = await createStatementDatabase({ bulk: true });
  // Configured before anything that a test speaks of, but with no day of their own to speak of.
  await database.pool.query(`update channels set created_at = '2099-01-01T00:00:00Z'`);
});
afterEach(() => database?.end());

const channel = (said: Record<string, unknown> = {}) =>
  ReconciledChannel.make(database.pool, { created_at: '2026-05-01T12:00:00Z', ...said });
const due = async (now: string, daysBack = 7) =>
  (await dueDays(database.pool, { daysBack, limit: 100, now })).map(
    ({ channel: c, day }) => `${c} ${day}`,
  );

describe('which dates are due', () => {
  it('those that have ended in the channel’s own zone, from the date it was configured', async () => {
    const [utc, shanghai] = [await channel(), await channel(SHANGHAI)];
    // 16:00 UTC is midnight in Shanghai.
    expect(await due('2026-05-02T15:59:59Z')).toEqual([
      `${utc.channel} 2026-05-01`,
      `${shanghai.channel} 2026-05-01`,
    ]);
    expect(await due('2026-05-02T16:00:00Z')).toEqual([
      `${utc.channel} 2026-05-01`,
      `${shanghai.channel} 2026-05-01`,
      `${shanghai.channel} 2026-05-02`,
    ]);
  });

  it('earlier ones from the first capture on, but no more than seven', async () => {
    const ch = await channel({ created_at: '2026-05-02T12:00:00Z' });
    await ch.paid('2026-04-29T12:00:00Z');
    expect(await due('2026-05-03T01:00:00Z')).toEqual(
      ['29', '30', '01', '02'].map((d) => `${ch.channel} 2026-${d > '20' ? '04' : '05'}-${d}`),
    );
    expect(await due('2026-05-20T01:00:00Z')).toHaveLength(7);
    expect((await due('2026-05-20T01:00:00Z'))[0]).toBe(`${ch.channel} 2026-05-13`);
  });

  it('a day of 23 hours ends an hour earlier, one of 25 an hour later', async () => {
    const ch = await channel({ time_zone: 'America/New_York', created_at: '2026-01-01T00:00:00Z' });
    // Clocks go forward on 8 March 2026: the day has 05:00Z to 04:00Z.
    expect(await due('2026-03-09T03:59:59Z', 1)).toEqual([`${ch.channel} 2026-03-07`]);
    expect(await due('2026-03-09T04:00:00Z', 1)).toEqual([`${ch.channel} 2026-03-08`]);
    // And back on 1 November: 04:00Z to 05:00Z.
    expect(await due('2026-11-02T04:59:59Z', 1)).toEqual([`${ch.channel} 2026-10-31`]);
    expect(await due('2026-11-02T05:00:00Z', 1)).toEqual([`${ch.channel} 2026-11-01`]);
  });

  it('a zone nobody knows is refused where it is written, before it stops all dates', async () => {
    await expect(channel({ time_zone: 'Mars/Olympus' })).rejects.toThrow(
      /time zone "Mars\/Olympus"/,
    );
  });

  it('a report ends it, a dry run does not, and a next try puts it off', async () => {
    const ch = await channel();
    const now = '2026-05-02T01:00:00Z';
    const day = '2026-05-01';
    const key = { channel: ch.channel, day };
    await ch.reconcile(day, [], { dryRun: true });
    expect(await due('2099-01-01T00:00:00Z', 40_000)).toContain(`${ch.channel} ${day}`);
    expect((await ch.report(day)).status).toBe('done');
    await beginRun(database.pool, { ...key, dryRun: false });
    await noteWaiting(database.pool, { ...key, reason: 'no bill', nextTryInMs: 60_000 });
    expect((await ch.report(day)).status).toBe('waiting_bill');
    expect(await due(now)).toEqual([]);
    expect(await due('2099-01-01T00:00:00Z', 40_000)).toContain(`${ch.channel} ${day}`);
    await ch.reconcile(day, []);
    expect(await due('2099-01-01T00:00:00Z', 40_000)).not.toContain(`${ch.channel} ${day}`);
    // Nor is it due again after a dry run of what has its report.
    await ch.reconcile(day, [], { dryRun: true });
    expect(await due('2099-01-01T00:00:00Z', 40_000)).not.toContain(`${ch.channel} ${day}`);
  });
});

describe('a date of which more became ours after it was compared', () => {
  const HOURS = 3_600_000;
  const later = (hours: number) => new Date(Date.now() + hours * HOURS).toISOString();
  /** Noon of the day before yesterday: compared now, it lies in the days that are looked at. */
  const at = `${new Date(Date.now() - 48 * HOURS).toISOString().slice(0, 10)}T12:00:00Z`;
  const day = at.slice(0, 10);
  const run = (sql: string, ...values: unknown[]) => database.pool.query(sql, values);
  const comparedAgo = (ch: ReconciledChannel, hours: number) =>
    run(
      `update reconciliation_runs set compared_at = now() - make_interval(hours => $2::int)
       where channel = $1::text and business_date = $3::date`,
      ch.channel,
      hours,
      day,
    );

  it('a refund under way then and done since, which the bill does not have, is found after all', async () => {
    const ch = await channel({ created_at: at });
    const { capture, line } = await ch.paid(at);
    const { refund } = await ch.refunded(capture, at, {
      status: 'processing',
      finished_at: null,
      channel_refund_no: null,
    });
    expect(await ch.reconcile(day, [line])).toMatchObject({ rows: 1, open: 0, case: 0 });
    const isDue = async (hours: number) =>
      (await due(later(hours))).includes(`${ch.channel} ${day}`);
    expect(await isDue(7)).toBe(false);
    await run(
      `update refunds set status = 'succeeded', finished_at = clock_timestamp()
       where refund_id = $1::bigint`,
      refund['refund_id'],
    );
    // Not in every round: a day's refunds end one by one.
    expect(await isDue(5)).toBe(false);
    expect(await isDue(7)).toBe(true);
    await ch.reconcile(day, [line], { now: later(24 * 5) });
    expect(await ch.differences(day)).toEqual([
      `refund_ours_only case ${String(refund['out_refund_no'])}`,
    ]);
    expect(await isDue(7)).toBe(false);
  });

  it('a payment that we learnt later is; one learnt before, a dry run and an old date are not', async () => {
    const ch = await channel({ created_at: at });
    const isDue = async (daysBack = 7) =>
      (await due(later(0), daysBack)).includes(`${ch.channel} ${day}`);
    await ch.paid(at);
    await ch.reconcile(day, []);
    await comparedAgo(ch, 7);
    await run(`update captures set learnt_at = now() - interval '8 hours'`);
    expect(await isDue()).toBe(false);
    const { line } = await ch.paid(at);
    expect(await isDue()).toBe(true);
    expect(await isDue(1)).toBe(false);
    await run('update reconciliation_runs set dry_run = true');
    expect(await isDue()).toBe(false);
    await run('update reconciliation_runs set dry_run = false');
    await ch.reconcile(day, []);
    expect(await ch.differences(day)).toContain(`ours_only case ${line.channelTradeNo}`);
    await comparedAgo(ch, -1);
    expect((await due(later(8))).includes(`${ch.channel} ${day}`)).toBe(false);
  });
});

describe('a run that lost its workflow', () => {
  const inMinutes = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString();

  it('is due again after ten minutes, whatever its date, though it had a report before', async () => {
    const ch = await channel();
    const key = { channel: ch.channel, day: '2026-05-01' };
    await ch.reconcile(key.day, []);
    expect(await due(inMinutes(60), 1)).not.toContain(`${ch.channel} ${key.day}`);
    await beginRun(database.pool, { ...key, dryRun: false });
    expect(await due(inMinutes(9), 1)).not.toContain(`${ch.channel} ${key.day}`);
    expect(await due(inMinutes(11), 1)).toContain(`${ch.channel} ${key.day}`);
    await noteWaiting(database.pool, { ...key, reason: 'no bill', nextTryInMs: 3_600_000 });
    expect(await due(inMinutes(30), 1)).not.toContain(`${ch.channel} ${key.day}`);
    expect(await due(inMinutes(61), 1)).toContain(`${ch.channel} ${key.day}`);
    await beginRun(database.pool, { ...key, dryRun: true });
    expect(await due(inMinutes(90), 1)).not.toContain(`${ch.channel} ${key.day}`);
  });
});

describe('yesterday has no report', () => {
  it('is a case from noon of the channel’s zone on, once, whatever became of it', async () => {
    const ch = await channel(SHANGHAI);
    const missing = (now: string) => openMissingReportCases(database.pool, { now });
    // Noon of 3 May in Shanghai is 04:00Z; the 1st is missing since the 2nd.
    expect(await missing('2026-05-02T03:59:59Z')).toBe(0);
    expect(await missing('2026-05-02T04:00:00Z')).toBe(1);
    expect(await missing('2026-05-02T04:00:01Z')).toBe(0);
    await beginRun(database.pool, { channel: ch.channel, day: D, dryRun: false });
    expect(await missing('2026-05-03T03:59:59Z')).toBe(0);
    expect(await missing('2026-05-03T04:00:00Z')).toBe(1);
    expect((await ch.cases()).map((c) => [c['subject_no'], c['kind']])).toEqual([
      ['bill:2026-05-01:missing', 'reconciliation'],
      ['bill:2026-05-02:missing', 'reconciliation'],
    ]);
    await database.pool.query(
      `update cases set status = 'closed' where subject_no = 'bill:2026-05-02:missing'`,
    );
    expect(await missing('2026-05-03T05:00:00Z')).toBe(0);
  });

  it('noon is the zone’s own on the days on which clocks are put on or back', async () => {
    await channel({ time_zone: 'America/New_York', created_at: '2026-03-07T12:00:00Z' });
    const missing = (now: string) => openMissingReportCases(database.pool, { now, daysBack: 1 });
    // Noon of 8 March is 16:00Z already, of the day before it was 17:00Z.
    expect(await missing('2026-03-08T15:59:59Z')).toBe(0);
    expect(await missing('2026-03-08T16:00:00Z')).toBe(1);
    await database.pool.query(`update channels set created_at = '2026-10-31T12:00:00Z'
      where time_zone = 'America/New_York'`);
    expect(await missing('2026-11-01T16:59:59Z')).toBe(0);
    expect(await missing('2026-11-01T17:00:00Z')).toBe(1);
  });

  it('the report that comes after all is said in the case, which stays open', async () => {
    const ch = await channel();
    await openMissingReportCases(database.pool, { now: '2026-05-02T12:00:00Z' });
    await ch.reconcile('2026-05-01', []);
    await ch.reconcile('2026-05-01', []);
    const [found] = await ch.cases();
    expect(found).toMatchObject({ status: 'open', version: 2 });
    expect(found?.['evidence']).toHaveLength(2);
  });
});

describe('how a run ends without a report', () => {
  it('no bill in time: a word, a case, and a next try; a dry run opens none', async () => {
    const ch = await channel();
    const key = { channel: ch.channel, day: '2026-05-01' };
    for (const dryRun of [true, false]) {
      await beginRun(database.pool, { ...key, dryRun });
      await noteNoBill(database.pool, { ...key, dryRun, reason: 'no such bill' });
      expect(await ch.report('2026-05-01')).toMatchObject({
        status: 'no_bill',
        reason: 'no such bill',
        dryRun,
        bill: null,
        differencesTotal: 0,
      });
      expect(await ch.cases()).toHaveLength(dryRun ? 0 : 1);
    }
    expect((await ch.cases())[0]).toMatchObject({ subject_no: 'bill:2026-05-01:missing' });
  });

  it('a file that is no good: its fault in the report and in a case, the file’s own case', async () => {
    const ch = await channel();
    const key = { channel: ch.channel, day: '2026-05-01' };
    await beginRun(database.pool, { ...key, dryRun: false });
    await noteRejected(database.pool, {
      ...key,
      dryRun: false,
      fault: 'cut_off',
      message: 'line 7',
    });
    expect(await ch.report('2026-05-01')).toMatchObject({
      status: 'rejected',
      reason: 'cut_off: line 7',
    });
    expect((await ch.cases()).map((c) => c['subject_no'])).toEqual(['bill:2026-05-01:rejected']);
  });
});

describe('asking and closing', () => {
  async function differing(ch: ReconciledChannel) {
    const [amount, fee, gone] = [await ch.paid(NOON), await ch.paid(NOON), await ch.paid(NOON)];
    const refund = await ch.refunded(gone.capture, NOON, { status: 'processing' });
    await ch.load(D, [
      { ...amount.line, amountMinor: 1 },
      { ...fee.line, feeMinor: null },
      gone.line,
      { ...refund.line, status: 'processing' },
      aLine({ channelTradeNo: 'T-nobody', outTradeNo: 'O-nobody' }),
      aLine({ kind: 'adjustment', amountMinor: -5 }),
      aLine({ kind: 'adjustment', amountMinor: -6 }),
    ]);
    return { amount, fee, gone, refund };
  }

  it('asks about payments and refunds of known orders, and knows what is not answered', async () => {
    const ch = await channel();
    const key = { channel: ch.channel, day: D };
    const { amount, refund, gone } = await differing(ch);
    await beginRun(database.pool, { ...key, dryRun: false });
    await ch.compare(D);
    const ask = (after = 0, limit = 100) =>
      differencesToAsk(database.pool, { ...key, after, limit });
    const questions = await ask();
    expect(questions.map(({ differenceId: _, ...question }) => question)).toEqual([
      {
        merchantId: 'shop',
        orderId: amount.orderId,
        payRecordId: amount.record['pay_record_id'],
        refundNo: null,
      },
      {
        merchantId: 'shop',
        orderId: gone.orderId,
        payRecordId: null,
        refundNo: refund.refund['refund_no'],
      },
    ]);
    expect(await ask(questions[0]?.differenceId, 1)).toEqual([questions[1]]);
    const askedAt = new Date().toISOString();
    const unanswered = () => openQuestions(database.pool, { ...key, askedAt });
    expect(await unanswered()).toBe(2);
    await database.pool.query(
      `update pay_records set last_call = 'query', last_fact_state = 'paid',
         last_call_at = $2::timestamptz + interval '1 second' where pay_record_id = $1`,
      [amount.record['pay_record_id'], askedAt],
    );
    expect(await unanswered()).toBe(1);
    await database.pool.query(
      `update refunds set last_call = 'query', last_fact_state = 'processing',
         last_call_at = $2::timestamptz + interval '1 second' where refund_id = $1`,
      [refund.refund['refund_id'], askedAt],
    );
    expect(await unanswered()).toBe(0);
    // B101: still under way, as the channel says itself: nothing is wrong yet.
    expect(await compareDay(database.pool, { ...key, feeBasisPoints: 60 })).toMatchObject({
      waiting: 1,
      byKind: { refund_status: 1 },
    });
  });

  it('what remains becomes cases: of the order, of the number, one for all rows of a kind', async () => {
    const ch = await channel();
    const key = { channel: ch.channel, day: D };
    const { amount, fee, gone } = await differing(ch);
    await beginRun(database.pool, { ...key, dryRun: false });
    await ch.compare(D);
    const closed = await closeRun(database.pool, { ...key, dryRun: false });
    expect(closed).toMatchObject({ cases: 5, case: 5, open: 0, waiting: 1 });
    expect(await ch.cases(amount.orderId)).toEqual([
      expect.objectContaining({
        kind: 'reconciliation',
        subject_no: amount.line.outTradeNo,
        summary: expect.stringContaining('line 2') as unknown,
      }),
    ]);
    expect(await ch.cases(fee.orderId)).toHaveLength(1);
    expect(await ch.cases(gone.orderId)).toEqual([]);
    expect((await ch.cases()).map((c) => c['subject_no'])).toEqual([
      `bill:${D}:adjustment`,
      'O-nobody',
    ]);
    const [bill] = await ch.cases();
    expect((bill?.['evidence'] as { evidence: unknown[] }[])[0]?.evidence).toHaveLength(2);
    // Closed again, as after a worker that died: nothing twice.
    expect(await closeRun(database.pool, { ...key, dryRun: false })).toMatchObject({ cases: 0 });
    await ch.compare(D);
    expect(await closeRun(database.pool, { ...key, dryRun: false })).toMatchObject({
      cases: 0,
      case: 5,
    });
    expect(await ch.cases()).toHaveLength(2);
    expect(await ch.cases(amount.orderId)).toEqual([expect.objectContaining({ version: 1 })]);
    expect((await ch.report(D)).status).toBe('done');
  });

  it('a dry run opens no case and asks nobody', async () => {
    const ch = await channel();
    const key = { channel: ch.channel, day: D };
    await differing(ch);
    await beginRun(database.pool, { ...key, dryRun: true });
    await ch.compare(D);
    expect(await closeRun(database.pool, { ...key, dryRun: true })).toMatchObject({
      cases: 0,
      open: 6,
    });
    expect(await ch.cases()).toEqual([]);
    expect(await ch.report(D)).toMatchObject({ status: 'done', dryRun: true });
  });

  it('more differences of a kind than people can read are one case', async () => {
    const ch = await channel();
    const lines = Array.from({ length: 1_001 }, (_, i) =>
      aLine({ channelTradeNo: `T-${i}`, outTradeNo: `O-${i}` }),
    );
    const closed = await ch.reconcile(D, lines);
    expect(closed).toMatchObject({ cases: 1_001, case: 1_001, open: 0 });
    const cases = await ch.cases();
    expect(cases.map((c) => c['subject_no'])).toEqual([`bill:${D}:channel_only`]);
    expect((cases[0]?.['evidence'] as { evidence: unknown[] }[])[0]?.evidence).toHaveLength(100);
  });
});
