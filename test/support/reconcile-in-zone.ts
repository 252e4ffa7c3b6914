/**
 * Loads, compares and reports one date in a process of its own, whose time zone the test sets, and
 * prints the report.
 */
import { beginRun, closeRun, compareDay } from '../../db/reconciliation';
import { readReport } from '../../db/reconciliation-reports';
import { loadTradeBill } from '../../db/trade-bills';
import { createPool } from '../../db/transaction';
import type { BillLine } from '../../domain/trade-bill';
import { aBill } from './bills';

export interface ZoneInput {
  databaseUrl: string;
  channel: string;
  day: string;
  lines: BillLine[];
}

async function main(input: ZoneInput): Promise<void> {
  const pool = createPool({
    databaseUrl: input.databaseUrl,
    max: 2,
    connectionTimeoutMs: 10_000,
    statementTimeoutMs: 10_000,
    applicationName: 'test',
    bulk: true,
    onIdleError: () => undefined,
  });
  const { channel, day, lines } = input;
  await beginRun(pool, { channel, day, dryRun: true });
  await loadTradeBill(pool, { channel, day, source: aBill(lines) });
  await compareDay(pool, { channel, day, feeBasisPoints: 60 });
  await closeRun(pool, { channel, day, dryRun: true });
  console.log(JSON.stringify(await readReport(pool, channel, day)));
  await pool.end();
}

main(JSON.parse(process.env['ZONE_INPUT'] ?? '{}') as ZoneInput).catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
