import type {
  ReconciliationReport,
  ReportedDifference,
  ReportSummary,
} from '../domain/reconciliation';

/** Reports as the API shows them. Nothing in them depends on this process: not its zone, not its clock. */

export function reportView(report: ReconciliationReport) {
  return {
    ...summaryView(report),
    totals: report.totals.map((totals) => ({
      currency: totals.currency,
      file: {
        rows: totals.file.rows,
        net_minor: totals.file.netMinor,
        payments_minor: totals.file.paymentsMinor,
        refunds_minor: totals.file.refundsMinor,
        reversals_minor: totals.file.reversalsMinor,
        other_minor: totals.file.otherMinor,
        fees_minor: totals.file.feesMinor,
      },
      matched: sumsView(totals.matched),
      differences: sumsView(totals.differences),
      unknown: sumsView(totals.unknown),
      ours_only: sumsView(totals.oursOnly),
    })),
    differences: report.differences.map(differenceView),
  };
}

export function summaryView(report: ReportSummary) {
  return {
    channel: report.channel,
    day: report.day,
    time_zone: report.timeZone,
    status: report.status,
    dry_run: report.dryRun,
    reason: report.reason,
    bill: report.bill && {
      file_name: report.bill.fileName,
      sha256: report.bill.sha256,
      bytes: report.bill.bytes,
      rows: report.bill.rows,
      row_errors: report.bill.rowErrors,
    },
    rejected: report.rejected && {
      file_name: report.rejected.fileName,
      fault: report.rejected.fault,
      message: report.rejected.message,
    },
    by_kind: report.byKind,
    by_status: report.byStatus,
    differences_total: report.differencesTotal,
  };
}

export function differenceView(difference: ReportedDifference) {
  return {
    kind: difference.kind,
    subject: difference.subject,
    status: difference.status,
    reason: difference.reason,
    merchant_id: difference.merchantId,
    order_id: difference.orderId,
    refund_no: difference.refundNo,
    line_no: difference.lineNo,
    ours: difference.ours,
    channel_says: difference.channelSays,
    resolution: difference.resolution,
  };
}

function sumsView({ rows, netMinor }: { rows: number; netMinor: number | string }) {
  return { rows, net_minor: netMinor };
}
