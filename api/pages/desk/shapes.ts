/** What the routes answer, as their own schemas say. */
import type { z } from '@hono/zod-openapi';
import type {
  notificationDetail,
  notificationList,
  reconciliationList,
  reconciliationReports,
} from '../../answer-schemas';
import type {
  act,
  actList,
  caseDetail,
  caseList,
  foundOrders,
  opsOrder,
  stuck,
  timeline,
} from '../../ops-answers';

export type Act = z.infer<typeof act>;
export type ActList = z.infer<typeof actList>;
export type CaseList = z.infer<typeof caseList>;
export type CaseDetail = z.infer<typeof caseDetail>;
export type HeldCapture = CaseDetail['captures'][number];
export type FoundOrders = z.infer<typeof foundOrders>;
export type OpsOrder = z.infer<typeof opsOrder>;
export type Timeline = z.infer<typeof timeline>;
export type TimelineEntry = Timeline['entries'][number];
export type Stuck = z.infer<typeof stuck>;
export type NotificationList = z.infer<typeof notificationList>;
export type NotificationDetail = z.infer<typeof notificationDetail>;
export type Reports = z.infer<typeof reconciliationReports>;
export type Report = Reports['reports'][number];
export type Difference = Report['differences'][number];
export type ReportList = z.infer<typeof reconciliationList>;
export type ReportHead = ReportList['reports'][number];
