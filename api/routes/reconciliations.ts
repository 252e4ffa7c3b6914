import type { z } from '@hono/zod-openapi';
import type { ConfiguredChannel } from '../../channels/registry';
import { differencesOfOrder, listReports, readReport } from '../../db/reconciliation-reports';
import { readOrderState } from '../../db/rows';
import { addDays, dayAt } from '../../domain/business-day';
import { isIdentifier } from '../../domain/orders';
import type { OrderRef } from '../../domain/orders';
import type { ReconciliationReport } from '../../domain/reconciliation';
import {
  reconciliationList,
  reconciliationReports,
  reconciliationStarted,
} from '../answer-schemas';
import { whatToDo } from '../order-calls';
import { Problem } from '../problems';
import { differencesCsv } from '../reconciliation-csv';
import { differenceView, reportView, summaryView } from '../reconciliation-views';
import { route } from '../route';
import type { ApiAnswer, RouteDeps } from '../route';
import {
  newReconciliation,
  reconciliationListQuery,
  reconciliationParams,
  reconciliationQuery,
} from '../schemas';
import type { NewReconciliationBody } from '../schemas';
import { NoAnswerInTime } from '../within';

const RETRY_AFTER_MS = 2_000;
/** Providers keep their bills for about three months. */
const DAYS_BACK_MAX = 92;
/** Questions in one signal to an order's run. */
const ASKS_MAX = 100;
/** Differences in one answer: a person reads fewer, a spreadsheet takes more. */
const JSON_DIFFERENCES_MAX = 1_000;
const CSV_DIFFERENCES_MAX = 100_000;
/** How often a date whose run ends at this very moment is started anew. */
const ROUNDS_MAX = 3;

export const startReconciliation = route<undefined, undefined, NewReconciliationBody>({
  method: 'post',
  path: '/ops/reconciliations',
  scope: 'operator',
  summary: 'Reconcile a date of a channel, or ask the channel about one order',
  body: newReconciliation as z.ZodType<NewReconciliationBody>,
  answers: {
    202: { description: 'It has begun.', schema: reconciliationStarted },
    200: { description: 'A run for this date is open already.', schema: reconciliationStarted },
  },
  refusals: [404],
  act({ body, caller }, deps) {
    const { channel, day, merchant_id: merchantId, order_id: orderId } = body;
    if (merchantId !== undefined && orderId !== undefined) {
      return reconcileOrder(deps, { merchantId, orderId });
    }
    const input = { dryRun: body.dry_run ?? false, actor: `key:${caller.keyId}` };
    return reconcileDay(deps, { ...input, channel: channel ?? '', day: day ?? '' });
  },
});

export const readReconciliation = route<
  z.infer<typeof reconciliationParams>,
  z.infer<typeof reconciliationQuery>,
  undefined
>({
  method: 'get',
  path: '/ops/reconciliations/{day}',
  scope: 'operator',
  summary: 'Read the reports of a date, as JSON or as CSV',
  params: reconciliationParams,
  query: reconciliationQuery,
  answers: {
    200: {
      description: 'One report per channel; none yet where no run has begun.',
      schema: reconciliationReports,
      alsoAs: 'text/csv',
    },
  },
  refusals: [404],
  async act({ params: { day }, query, accept }, deps) {
    const names = query.channel
      ? [(await requireChannel(deps, query.channel)).row.channel]
      : (await listReports(deps.pool, { from: day, to: day })).map(({ channel }) => channel);
    const isCsv = query.format ? query.format === 'csv' : prefersCsv(accept);
    const limit = isCsv ? CSV_DIFFERENCES_MAX : JSON_DIFFERENCES_MAX;
    const reports: ReconciliationReport[] = [];
    for (const channel of names) {
      const report = await readReport(deps.pool, channel, day, { limit });
      if (report) reports.push(report);
    }
    const body = { day, reports: reports.map(reportView) };
    if (!isCsv) return { status: 200, body };
    return {
      status: 200,
      body,
      document: { contentType: 'text/csv; charset=utf-8', text: differencesCsv(reports) },
      headers: {
        'content-disposition': `attachment; filename="reconciliation-${day}.csv"`,
        vary: 'accept',
      },
    };
  },
});

export const listReconciliations = route<
  undefined,
  z.infer<typeof reconciliationListQuery>,
  undefined
>({
  method: 'get',
  path: '/ops/reconciliations',
  scope: 'operator',
  summary: 'List the reports of a range of dates, without their differences',
  query: reconciliationListQuery,
  answers: { 200: { description: 'By date and channel.', schema: reconciliationList } },
  refusals: [404],
  async act({ query: { from, to, channel } }, deps) {
    if (channel !== undefined) await requireChannel(deps, channel);
    const range = { from, to, ...(channel === undefined ? {} : { channel }) };
    const reports = await listReports(deps.pool, range);
    return { status: 200, body: { reports: reports.map(summaryView) } };
  },
});

async function reconcileDay(
  deps: RouteDeps,
  input: { channel: string; day: string; dryRun: boolean; actor: string },
): Promise<ApiAnswer> {
  const { channel, day } = input;
  const { row } = await requireChannel(deps, channel);
  const today = dayAt(new Date(), row.timeZone);
  if (day >= today) {
    throw new Problem(
      'day_not_ended',
      `day: ${day} has not ended in ${row.timeZone}, the zone of ${channel}: ${addDays(today, -1)} is the last that has`,
    );
  }
  const first = addDays(today, -DAYS_BACK_MAX);
  if (day < first) throw new Problem('day_too_far_back', `day: must be ${first} or later`);
  const begun = await beginOrFind(deps, input);
  const report = await readReport(deps.pool, channel, day, { limit: 0 });
  const statusUrl = `/ops/reconciliations/${day}?channel=${channel}`;
  return {
    status: begun === 'started' ? 202 : 200,
    body: {
      channel,
      day,
      dry_run: begun === 'started' ? input.dryRun : (report?.dryRun ?? input.dryRun),
      status: begun === 'started' ? 'running' : (report?.status ?? 'running'),
      status_url: statusUrl,
    },
    headers: { Location: statusUrl },
  };
}

/** The unique workflow id decides between two that ask at once; what waits for its bill tries now. */
async function beginOrFind(
  deps: RouteDeps,
  input: { channel: string; day: string; dryRun: boolean; actor: string },
): Promise<'started' | 'open'> {
  for (let round = 1; ; round++) {
    if ((await toTemporal(deps, () => deps.reconciliations.startDay(input))) === 'started') {
      return 'started';
    }
    const report = await readReport(deps.pool, input.channel, input.day, { limit: 0 });
    if (report?.status !== 'waiting_bill') return 'open';
    const isOpen = await toTemporal(deps, () => deps.reconciliations.tryNow(input));
    if (isOpen || round === ROUNDS_MAX) return 'open';
  }
}

/** Asks about every number of the order that may have reached a channel, the newest first. */
async function reconcileOrder(deps: RouteDeps, ref: OrderRef): Promise<ApiAnswer> {
  const state = await readOrderState(deps.pool, ref);
  if (!state) {
    throw new Problem('order_not_found', `merchant ${ref.merchantId} has no order ${ref.orderId}`);
  }
  const payRecordIds = state.records
    .filter(({ sends, status }) => sends > 0 || status === 'paid')
    .map(({ payRecordId }) => payRecordId)
    .sort((a, b) => b - a)
    .slice(0, ASKS_MAX / 2);
  const refundNos = [...state.refunds]
    .filter(({ sends, origin }) => sends > 0 || origin === 'external')
    .sort((a, b) => b.refundId - a.refundId)
    .map(({ refundNo }) => refundNo)
    .slice(0, ASKS_MAX / 2);
  const asked = payRecordIds.length + refundNos.length;
  if (asked > 0) {
    await toTemporal(deps, () =>
      deps.reconciliations.askChannel(state.order, { payRecordIds, refundNos }),
    );
  }
  const differences = await differencesOfOrder(deps.pool, ref);
  return {
    status: 202,
    body: {
      merchant_id: ref.merchantId,
      order_id: ref.orderId,
      asked,
      differences: differences.map(({ channel, day, ...difference }) => ({
        channel,
        day,
        ...differenceView(difference),
      })),
    },
  };
}

/** @throws Problem unavailable when Temporal cannot be asked now: a repeat is safe */
async function toTemporal<T>(deps: RouteDeps, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof NoAnswerInTime) && whatToDo(error) === 'throw') throw error;
    deps.log.warn({ err: error }, 'Temporal could not be asked');
    throw new Problem('unavailable', 'Temporal is away or busy: repeat the request', {
      retryAfterMs: RETRY_AFTER_MS,
      cause: error,
    });
  }
}

/** @throws Problem channel_not_found */
async function requireChannel(deps: RouteDeps, name: string): Promise<ConfiguredChannel> {
  const configured = isIdentifier(name) ? await deps.channels.get(name) : undefined;
  if (configured) return configured;
  throw new Problem('channel_not_found', `channel: there is no channel ${name}`);
}

/** Whether the header names CSV and does not name JSON before it. */
function prefersCsv(accept: string): boolean {
  const types = accept.split(',').map((type) => type.split(';')[0]?.trim().toLowerCase());
  const csv = types.indexOf('text/csv');
  const json = types.indexOf('application/json');
  return csv >= 0 && (json < 0 || csv < json);
}
