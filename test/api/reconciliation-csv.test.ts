import { differencesCsv } from '../../api/reconciliation-csv';
import type { ReconciliationReport, ReportedDifference } from '../../domain/reconciliation';

function aDifference(said: Partial<ReportedDifference> = {}): ReportedDifference {
  return {
    kind: 'channel_only',
    subject: 'T1',
    status: 'case',
    reason: '',
    merchantId: null,
    orderId: null,
    refundNo: null,
    lineNo: 2,
    ours: null,
    channelSays: { amount_minor: 990, currency: 'CNY', channel_trade_no: 'T1', fee_minor: -6 },
    resolution: null,
    ...said,
  };
}

function aReport(differences: ReportedDifference[]): ReconciliationReport {
  return {
    channel: 'mock-a',
    day: '2026-05-01',
    timeZone: 'UTC',
    status: 'done',
    dryRun: false,
    reason: null,
    bill: null,
    rejected: null,
    totals: [],
    byKind: {},
    byStatus: { open: 0, waiting: 0, suspense: 0, case: 0, resolved: 0 },
    differences,
    differencesTotal: differences.length,
  };
}

const linesOf = (csv: string) => csv.split('\r\n').slice(0, -1);

describe('differences as CSV', () => {
  it('begins with the columns, also when there is no difference', () => {
    const [header, ...rest] = linesOf(differencesCsv([aReport([])]));
    expect(header).toMatch(
      /^channel,business_date,kind,status,reason,subject,merchant_id,order_id,/,
    );
    expect(rest).toEqual([]);
  });

  it('has a line per difference, as many cells as columns, and negative sums stay numbers', () => {
    const [header, line] = linesOf(differencesCsv([aReport([aDifference()])]));
    expect(line).toMatch(/^mock-a,2026-05-01,channel_only,case,,T1,,,,2,/);
    expect(line).toContain(',990,CNY,-6,');
    expect(line!.split(',')).toHaveLength(header!.split(',').length);
  });

  it.each([
    ['=HYPERLINK("http://x","y")', `"'=HYPERLINK(""http://x"",""y"")"`],
    ['+1', `'+1`],
    ['-1+cmd', `'-1+cmd`],
    ['@SUM(A1)', `'@SUM(A1)`],
    ['\tx', `'\tx`],
    ['plain, with comma', '"plain, with comma"'],
    ['two\r\nlines', '"two\r\nlines"'],
  ])('writes the word %j so that no spreadsheet runs it', (word, cell) => {
    const csv = differencesCsv([aReport([aDifference({ channelSays: { word } })])]);
    expect(csv).toContain(`,${cell},`);
  });
});
