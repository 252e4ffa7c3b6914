import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type pg from 'pg';
import type { BillLine } from '../../domain/trade-bill';
import { aLine } from '../support/bills';
import { ReconciledChannel } from '../support/reconciled-day';
import type { ZoneInput } from '../support/reconcile-in-zone';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';

const ZONES = ['UTC', 'Asia/Shanghai', 'America/New_York'];
let database: StatementDatabase;

beforeAll(async () => {
  database = await createStatementDatabase({ bulk: true });
});
afterAll(() => database?.end());

const urlOf = (pool: unknown) =>
  (pool as { options: pg.PoolConfig }).options.connectionString ?? '';

async function reportIn(timeZone: string, input: Omit<ZoneInput, 'databaseUrl'>): Promise<string> {
  const url = new URL(urlOf(database.pool));
  // The server's own zone for the session too: instants are the same text whatever it is.
  await database.pool.query(
    `alter database ${url.pathname.slice(1)} set timezone to '${timeZone}'`,
  );
  await database.pool.query(
    `delete from differences; update reconciliation_runs set bill_id = null; delete from trade_bills`,
  );
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--import', 'tsx', join(__dirname, '..', 'support', 'reconcile-in-zone.ts')],
    {
      env: {
        ...process.env,
        TZ: timeZone,
        ZONE_INPUT: JSON.stringify({ ...input, databaseUrl: url.href }),
      },
    },
  );
  return stdout;
}

describe('B97: a report is the same to the byte whatever zone the process and the server keep', () => {
  it.each(['UTC', 'Asia/Shanghai', 'America/New_York'])(
    'of a channel whose business date is that of %s',
    async (zone) => {
      const ch = await ReconciledChannel.make(database.pool, { time_zone: zone });
      const day = '2026-05-02';
      const at = async (instant: string) => (await ch.paid(instant)).line;
      const lines: BillLine[] = [
        { ...(await at('2026-05-02T12:00:00Z')), amountMinor: 1 },
        { ...(await at('2026-05-02T18:30:00Z')), feeMinor: null },
        aLine({ channelTradeNo: 'T-nobody', outTradeNo: 'O-nobody' }),
      ];
      // Of the date in one zone and of the day before in another.
      for (const hour of ['00', '03', '05', '15', '17', '23'])
        for (const date of ['02', '03']) await at(`2026-05-${date}T${hour}:59:59.999Z`);
      const reports = [];
      for (const timeZone of ZONES)
        reports.push(await reportIn(timeZone, { channel: ch.channel, day, lines }));
      expect(new Set(reports).size).toBe(1);
      const report = JSON.parse(reports[0] ?? '') as { day: string; differences: unknown[] };
      expect(report.day).toBe(day);
      const expected = { UTC: 6, 'Asia/Shanghai': 4, 'America/New_York': 6 }[zone];
      const only = report.differences.filter((d) => (d as { kind: string }).kind === 'ours_only');
      expect(only).toHaveLength(expected ?? -1);
    },
  );

  it.each([
    ['2026-03-08', '2026-03-08T05:00:00Z', '2026-03-09T03:59:59.999Z'],
    ['2026-11-01', '2026-11-01T04:00:00Z', '2026-11-02T04:59:59.999Z'],
  ])('the %s has its own hours where clocks are put on or back', async (day, first, last) => {
    const ch = await ReconciledChannel.make(database.pool, { time_zone: 'America/New_York' });
    const before = new Date(Date.parse(first) - 1).toISOString();
    const after = new Date(Date.parse(last) + 1).toISOString();
    for (const instant of [before, first, last, after]) await ch.paid(instant);
    await ch.load(day, []);
    expect(await ch.compare(day, { now: after })).toMatchObject({ suspense: 2, open: 0 });
  });
});
