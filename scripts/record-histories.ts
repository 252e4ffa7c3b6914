/**
 * `npm run record:histories`: drives orders into every shape that a run can have and writes the
 * histories to test/replay/histories, where the tests replay them against each build. Recorded anew
 * only when a release changes what its runs do, and then beside the old ones for as long as such
 * runs may be open: an old history that no longer replays is an order in flight that gets stuck.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { upsertMerchant } from '../db/merchants';
import type { ChannelPolicy } from '../domain/channel-policy';
import startServers from '../test/support/servers-start';
import { takeRunning } from '../test/support/servers-running';
import { FAST_POLICY, Saga } from '../test/support/saga';
import { begin, dayHandle, daysAgo, instantOf, untilRun } from '../test/support/reconciliations';
import { paidOn, zoneAtHour } from '../test/support/reconciliations';
import { startTcpProxy } from '../test/support/tcp-proxy';
import { waitFor } from '../test/support/wait';
import {
  fulfilmentWorkflowId,
  reconciliationScheduleId,
  refundWorkflowId,
  sweepScheduleId,
} from '../workflows/ids';
import { nudgeSignal } from '../workflows/messages';
import { writeHistory } from './histories/history-text';
import { MerchantSteps } from './merchant-steps';

const FOLDER = path.join(__dirname, '..', 'test', 'replay', 'histories');
/** More events than a run may have, so that it continues as new in its first task. */
const SIGNALS_PAST_THE_BOUND = 252;

type Shape = (saga: Saga, record: Recorder) => Promise<void>;

interface Recorder {
  /** Writes the history of an order's newest run, or of the named one. */
  order(name: string, orderId: string, runId?: string): Promise<void>;
  workflow(name: string, workflowId: string, runId?: string): Promise<void>;
}

const shapes: Record<string, Shape> = {
  async pending(saga, record) {
    const orderId = await pendingOrder(saga);
    await record.order('pending', orderId);
    await finish(saga, orderId);
  },

  async polling(saga, record) {
    const { orderId, outTradeNo } = await silentOrder(saga);
    await polls(saga, orderId, 3);
    await record.order('polling', orderId);
    await saga.mock.approve(outTradeNo);
    await ended(saga, orderId);
    await record.order('paid-by-poll', orderId);
  },

  async notified(saga, record) {
    const { orderId } = await saga.paidOrder();
    await ended(saga, orderId);
    await record.order('notified', orderId);
  },

  async telling(saga, record) {
    saga.merchant.answer = () => 503;
    const { orderId } = await saga.paidOrder();
    await waitFor('a second try', async () => {
      const [row] = await saga.rows<{ tries: number }>(
        `select tries from notifications where order_id = $1::text`,
        orderId,
      );
      return (row?.tries ?? 0) >= 2;
    });
    await record.order('telling', orderId);
    saga.merchant.answer = () => 200;
    await ended(saga, orderId);
  },

  async toldAgain(saga, record) {
    saga.merchant.answer = () => 503;
    saga.merchant.headers = { 'retry-after': '3600' };
    const { orderId } = await saga.paidOrder();
    const waiting = await waitFor('the next try is an hour away', async () => {
      const [row] = await saga.rows<{ notification_id: number }>(
        `select notification_id from notifications where order_id = $1::text and tries > 0`,
        orderId,
      );
      return row;
    });
    saga.merchant.answer = () => 200;
    saga.merchant.headers = {};
    await saga.call('POST', `/ops/notifications/${waiting.notification_id}/resend`, {
      reason: 'their server is back',
    });
    await ended(saga, orderId);
    await record.order('told-again', orderId);
  },

  async refunding(saga, record) {
    const { orderId } = await saga.paidOrder({ subject: 'slow refund #hold' });
    await saga.mock.addFault({
      match: { operation: 'refund', tag: 'hold' },
      do: { refund: 'hold' },
    });
    await saga.refund(orderId, 'R1', 3_000);
    await saga.untilRefund(orderId, 'R1', 'processing');
    await waitFor('a question about the refund', async () => {
      return (await saga.books(orderId)).calls.refund_query > 1;
    });
    const child = refundWorkflowId({ merchantId: saga.merchantId, orderId }, 'R1');
    await record.order('refunding', orderId);
    await record.workflow('refund-asked', child);
    const [outRefundNo] = (await saga.books(orderId)).refundNumbers;
    await saga.mock.finishRefund({ outRefundNo: outRefundNo ?? '', result: 'succeed' });
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await ended(saga, orderId);
    await record.workflow('refund-done', child);
    await record.order('refunded', orderId);
  },

  async surplus(saga, record) {
    const { orderId, outTradeNo } = await saga.paidOrder();
    await saga.mock.capture({ outTradeNo });
    await waitFor('the surplus is given back', async () => {
      return (await saga.books(orderId)).refunds.count === 1;
    });
    await ended(saga, orderId);
    await record.order('surplus', orderId);
  },

  async fulfilled(saga, record) {
    const { orderId } = await fulfilledOrder(saga, () => ({}));
    await ended(saga, orderId);
    await record.order('fulfilled', orderId);
    await record.workflow('fulfilment-done', childOf(saga, orderId));
  },

  async fulfilmentStopped(saga, record) {
    const { orderId } = await fulfilledOrder(saga, ({ step, call }) =>
      step === 'grant' && call === 'do' ? { status: 503 } : {},
    );
    const tries = () => saga.merchant.steps.calls.filter((c) => c.orderId === orderId).length;
    await waitFor('a second try', () => tries() > 2);
    await record.workflow('fulfilment-retrying', childOf(saga, orderId));
    await saga.refund(orderId, 'R1');
    await ended(saga, orderId);
    await record.order('fulfilment-told', orderId);
    await record.workflow('fulfilment-stopped', childOf(saga, orderId));
  },

  async fulfilmentRefused(saga, record) {
    const { orderId } = await fulfilledOrder(saga, ({ step, call }) =>
      step === 'ship' && call === 'do' ? { status: 422 } : {},
    );
    await ended(saga, orderId);
    await record.order('fulfilment-refused', orderId);
    await record.workflow('fulfilment-undone', childOf(saga, orderId));
  },

  async acted(saga, record) {
    const orderId = await pendingOrder(saga);
    await saga.mock.capture({ outTradeNo: await saga.outTradeNo(orderId), amountMinor: 9_000 });
    await saga.untilOrder(orderId, 'review');
    await ended(saga, orderId);
    const path = `/ops/orders/${saga.merchantId}/${orderId}`;
    const { body } = await saga.call('GET', path);
    const actor = { name: 'Lin', reason: 'a recording' };
    await saga.call('POST', `${path}/acts`, { kind: 'query_now', ...actor });
    await saga.call('POST', `${path}/acts`, {
      act_no: `recorded-${orderId}`,
      kind: 'refund_money',
      case_id: body.cases[0].case_id,
      case_version: body.cases[0].version,
      capture_id: body.captures[0].capture_id,
      ...actor,
    });
    await saga.untilOrder(orderId, 'closed');
    await ended(saga, orderId);
    await record.order('acted', orderId);
  },

  async failed(saga, record) {
    const orderId = await pendingOrder(saga);
    await saga.mock.decline(await saga.outTradeNo(orderId));
    await waitFor('the attempt failed', async () =>
      (await saga.records(orderId)).some(({ status }) => status === 'failed'),
    );
    await saga.pay(orderId, 'K2', { channel: 'mock-b' });
    await record.order('second-attempt', orderId);
    await finish(saga, orderId);
  },

  async unknownOutcome(saga, record) {
    const orderId = await saga.createOrder({ subject: 'dropped #drop' });
    await saga.mock.addFault({
      match: { operation: 'create', tag: 'drop' },
      times: 1,
      do: { effect: 'none', answer: 'drop' },
    });
    await saga.pay(orderId);
    await waitFor('it was sent again', async () => (await saga.books(orderId)).calls.create === 2);
    await record.order('unknown-outcome', orderId);
    await finish(saga, orderId);
  },

  async closing(saga, record) {
    const orderId = await pendingOrder(saga);
    const outTradeNo = await saga.outTradeNo(orderId);
    const fault = await saga.mock.addFault({
      match: { operation: 'close', outTradeNo },
      do: { effect: 'none', answer: 'http', status: 500 },
    });
    await saga.cancel(orderId);
    await waitFor('a close failed', async () => (await saga.books(orderId)).calls.close > 0);
    await record.order('closing', orderId);
    await saga.mock.removeFault(fault);
    await saga.untilOrder(orderId, 'closed');
    await ended(saga, orderId);
    await record.order('closed', orderId);
  },

  async expired(saga, record) {
    const orderId = await saga.createOrder({ expires_in: 2 });
    await saga.pay(orderId);
    await saga.untilOrder(orderId, 'closed');
    await ended(saga, orderId);
    await record.order('expired', orderId);
  },

  async stopped(saga, record) {
    const { orderId, outTradeNo } = await silentOrder(saga);
    const { runId } = await saga.handle(orderId).describe();
    await saga.handle(orderId).cancel();
    await waitFor('the run stopped', async () => {
      const run = saga.client.workflow.getHandle(saga.handle(orderId).workflowId, runId);
      return (await run.describe()).status.name === 'CANCELLED';
    });
    await record.order('stopped', orderId, runId);
    await saga.mock.approve(outTradeNo);
    await ended(saga, orderId);
  },

  async continued(saga, record) {
    const orderId = await pendingOrder(saga);
    const { runId } = await saga.handle(orderId).describe();
    await saga.stopWorkers();
    for (let i = 0; i < SIGNALS_PAST_THE_BOUND; i++) {
      await saga.handle(orderId).signal(nudgeSignal);
    }
    await saga.startWorker();
    const next = await waitFor('the run continued as new', async () => {
      const run = await saga.handle(orderId).describe();
      return run.runId !== runId && run.historyLength > 4 && run.runId;
    });
    await record.order('continued', orderId, runId);
    await finish(saga, orderId);
    await ended(saga, orderId);
    await record.order('continued-next', orderId, next);
  },

  async asked(saga, record) {
    const { orderId } = await saga.paidOrder();
    await saga.refund(orderId, 'R1', 3_000);
    await saga.untilRefund(orderId, 'R1', 'succeeded');
    await ended(saga, orderId);
    await saga.call('POST', '/ops/reconciliations', {
      merchant_id: saga.merchantId,
      order_id: orderId,
    });
    await waitFor('both were asked about', async () => {
      const { calls } = await saga.books(orderId);
      return calls.query > 0 && calls.refund_query > 0;
    });
    await ended(saga, orderId);
    await record.order('asked', orderId);
  },

  async reconciled(saga, record) {
    const day = daysAgo(saga, 1);
    await paidOn(saga, 'mock-a', day);
    const { orderId, outTradeNo } = await silentOrder(saga);
    await saga.mock.capture({ outTradeNo, at: instantOf(saga, day) });
    await saga.mock.addFault({
      match: { operation: 'query', outTradeNo },
      times: 1,
      do: { delayBeforeAnswerMs: 1_500 },
    });
    await saga.mock.addBillRow({ dialect: 'mock-a', day }, { kind: 'payment' });
    const schedule = saga.client.schedule.getHandle(reconciliationScheduleId(saga.taskQueue));
    await schedule.trigger();
    const parent = await waitFor('the parent', async () => {
      const [action] = (await schedule.describe()).info.recentActions;
      return action?.action.type === 'startWorkflow' && action.action.workflow.workflowId;
    });
    await untilRun(saga, 'mock-a', day, 'done');
    await record.workflow('reconciliation', parent);
    const child = dayHandle(saga, 'mock-a', day);
    await child.result();
    await record.workflow('reconciled', child.workflowId);
    await ended(saga, orderId);
  },

  async billMissing(saga, record) {
    const day = daysAgo(saga, 1);
    await saga.mock.holdBill({ dialect: 'mock-b', day });
    await begin(saga, 'mock-b', day);
    await untilRun(saga, 'mock-b', day, 'waiting_bill');
    const child = dayHandle(saga, 'mock-b', day);
    await waitFor('a second try', async () => (await child.describe()).historyLength > 20);
    await record.workflow('bill-missing', child.workflowId);
    await saga.mock.releaseBill({ dialect: 'mock-b', day });
    await child.result();
  },

  async billRejected(saga, record) {
    const day = daysAgo(saga, 20);
    await saga.mock.spoilBill({ dialect: 'mock-b', day }, { wrongHash: true });
    await begin(saga, 'mock-b', day);
    const child = dayHandle(saga, 'mock-b', day);
    await child.result();
    await record.workflow('bill-rejected', child.workflowId);
  },

  async postgresAway(saga, record) {
    const { orderId, outTradeNo } = await silentOrder(saga);
    await saga.stopWorkers();
    const direct = saga.env['DATABASE_URL'] ?? '';
    const url = new URL(direct);
    const proxy = await startTcpProxy({ host: url.hostname, port: Number(url.port) });
    url.hostname = '127.0.0.1';
    url.port = String(proxy.port);
    saga.env['DATABASE_URL'] = url.href;
    await saga.startWorker();
    await polls(saga, orderId, 1);
    proxy.cut();
    await waitFor('the patient step waits', async () => {
      const { raw } = await saga.handle(orderId).describe();
      return raw.pendingActivities?.some((a) => a.activityType?.name === 'settleAnswer') === true;
    });
    proxy.restore();
    await saga.mock.approve(outTradeNo);
    await ended(saga, orderId);
    await record.order('postgres-away', orderId);
    await saga.stopWorkers();
    saga.env['DATABASE_URL'] = direct;
    await saga.startWorker();
    await proxy.close();
  },

  async sweep(saga, record) {
    const id = sweepScheduleId(saga.taskQueue);
    const query = `WorkflowType = 'sweep' and ExecutionStatus = 'Completed'`;
    const run = await waitFor('a sweep has ended', async () => {
      for await (const found of saga.client.workflow.list({ query })) {
        if (found.workflowId.startsWith(id)) return found;
      }
      return undefined;
    });
    await record.workflow('sweep', run.workflowId, run.runId);
  },
};

async function pendingOrder(saga: Saga): Promise<string> {
  const orderId = await saga.createOrder();
  await saga.pay(orderId);
  return orderId;
}

/** A paid order of a shop with three steps that behaves as said; later orders have none again. */
async function fulfilledOrder(saga: Saga, behave: MerchantSteps['behave']) {
  const shop = {
    merchantId: saga.merchantId,
    name: 'Test shop',
    notifyUrl: saga.merchant.url,
    notifySecretRef: 'env:NOTIFY_SECRET',
  };
  saga.merchant.steps.behave = behave;
  await upsertMerchant(saga.pool, {
    ...shop,
    fulfilmentSteps: MerchantSteps.configured(saga.merchant.base, ['reserve', 'grant', 'ship']),
  });
  const paid = await saga.paidOrder();
  await upsertMerchant(saga.pool, shop);
  return paid;
}

function childOf(saga: Saga, orderId: string): string {
  return fulfilmentWorkflowId({ merchantId: saga.merchantId, orderId });
}

/** A pending order of whose money only polls can tell. */
async function silentOrder(saga: Saga) {
  const orderId = await pendingOrder(saga);
  const outTradeNo = await saga.outTradeNo(orderId);
  await saga.mock.addFault({ match: { operation: 'callback', outTradeNo }, do: { drop: true } });
  return { orderId, outTradeNo };
}

async function polls(saga: Saga, orderId: string, count: number): Promise<void> {
  const soFar = (await saga.books(orderId)).calls.query;
  await waitFor(`${count} polls`, async () => {
    return (await saga.books(orderId)).calls.query >= soFar + count;
  });
}

async function finish(saga: Saga, orderId: string): Promise<void> {
  await saga.mock.approve(await saga.outTradeNo(orderId));
  await ended(saga, orderId);
}

async function ended(saga: Saga, orderId: string): Promise<void> {
  await saga.untilSettled(orderId);
  await waitFor(`the run of ${orderId} is over`, async () => {
    return (await saga.handle(orderId).describe()).status.name !== 'RUNNING';
  });
}

function recorderOf(saga: Saga, written: string[]): Recorder {
  async function workflow(name: string, workflowId: string, runId?: string): Promise<void> {
    const history = await saga.client.workflow.getHandle(workflowId, runId).fetchHistory();
    const text = writeHistory(history);
    writeFileSync(path.join(FOLDER, `${name}.json`), text);
    written.push(`${name} (${history.events?.length ?? 0} events, ${text.length} bytes)`);
  }
  return {
    workflow,
    order: (name, orderId, runId) => workflow(name, saga.handle(orderId).workflowId, runId),
  };
}

async function main(): Promise<void> {
  const only = process.argv.slice(2);
  mkdirSync(FOLDER, { recursive: true });
  await startServers();
  const policy: Partial<ChannelPolicy> = { ...FAST_POLICY, pollLadderMs: [500, 1_000, 2_000] };
  const saga = await Saga.start({ policy, timeZone: zoneAtHour(6) });
  try {
    const written: string[] = [];
    for (const [name, shape] of Object.entries(shapes)) {
      if (only.length > 0 && !only.includes(name)) continue;
      await shape(saga, recorderOf(saga, written));
      for (const line of written.splice(0)) console.log(`recorded ${line}`);
    }
  } finally {
    await saga.stop().finally(() => takeRunning()?.stop());
  }
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
