/**
 * How a run calls its activities. Database steps are local activities: short, idempotent, and no
 * state transition of their own. When PostgreSQL stays away the same step goes on as an ordinary
 * activity that is repeated until it succeeds. Channel calls are tried once: a query comes before any
 * retry, and that is the run's decision.
 */
import { ApplicationFailure, proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { Activities } from '../activities';

// 3 s is far above what a step takes and far below the workflow task's own 10 s. Never a
// schedule-to-close limit here: with one, a step that runs out of it is repeated without end.
const QUICK = {
  startToCloseTimeout: '3s',
  retry: { initialInterval: '100ms', maximumAttempts: 4 },
} as const;

const PATIENT = {
  startToCloseTimeout: '10s',
  retry: { initialInterval: '1s', maximumInterval: '10s' },
} as const;

const quick = proxyLocalActivities<Activities>(QUICK);
const patient = proxyActivities<Activities>(PATIENT);

type Step =
  | 'loadOrder'
  | 'openAttempt'
  | 'settleAnswer'
  | 'settleNews'
  | 'requestClose'
  | 'holdSurplus'
  | 'openRefund'
  | 'performAct'
  | 'loadRefund'
  | 'settleRefundAnswer'
  | 'settleAskedRefund'
  | 'listDueReconciliations'
  | 'beginReconciliation'
  | 'noteBillMissing'
  | 'noteBillRejected'
  | 'countOpenQuestions'
  | 'closeReconciliation'
  | 'loadFulfilment'
  | 'settleFulfilmentStep';

type Long = 'loadBill' | 'compareWithBill' | 'askAboutDifferences' | 'closeReconciliation';

type Result<Name extends keyof Activities> = Awaited<ReturnType<Activities[Name]>>;
/** The SDK's proxies lose the link between a generic name and its types; this states it again. */
interface Call<Name extends keyof Activities> {
  executeWithOptions(
    options: object,
    args: [Parameters<Activities[Name]>[0]],
  ): Promise<Result<Name>>;
}

/**
 * Runs one database step: quickly, else patiently. Only a failure marked as final (an order that
 * does not exist) is thrown.
 */
export async function step<Name extends Step>(
  name: Name,
  input: Parameters<Activities[Name]>[0],
  summary: string,
): Promise<Result<Name>> {
  try {
    return await (quick[name] as unknown as Call<Name>).executeWithOptions({ ...QUICK, summary }, [
      input,
    ]);
  } catch (error) {
    // An exhausted local activity rejects with the bare failure of its last try.
    if (error instanceof ApplicationFailure && error.nonRetryable) throw error;
  }
  return (patient[name] as unknown as Call<Name>).executeWithOptions({ ...PATIENT, summary }, [
    input,
  ]);
}

/** Far above what the largest bill takes: only what is stuck in spite of its heartbeats meets it. */
const LONGEST_STEP = '2h';

/**
 * Runs a step that may take minutes. It tells that it lives, so that a worker that died is noticed soon,
 * and is repeated until it succeeds: each is idempotent.
 */
export function longStep<Name extends Long>(
  name: Name,
  input: Parameters<Activities[Name]>[0],
  { heartbeatMs }: { heartbeatMs: number },
  summary: string,
): Promise<Result<Name>> {
  return (patient[name] as unknown as Call<Name>).executeWithOptions(
    {
      startToCloseTimeout: LONGEST_STEP,
      heartbeatTimeout: heartbeatMs,
      retry: { initialInterval: '1s', maximumInterval: '30s' },
      summary,
    },
    [input],
  );
}

/** Room above the adapter's own limit for the activity's two database steps. */
const CALL_MARGIN_MS = 2_000;

/** A call to a channel, tried once; it rejects when its outcome is not known. */
export function channelCall<
  Name extends 'submitPayment' | 'queryPayment' | 'closePayment' | 'submitRefund' | 'queryRefund',
>(
  name: Name,
  input: Parameters<Activities[Name]>[0],
  options: { callTimeoutMs: number; summary: string },
): Promise<Result<Name>> {
  return (patient[name] as unknown as Call<Name>).executeWithOptions(
    {
      startToCloseTimeout: options.callTimeoutMs + CALL_MARGIN_MS,
      retry: { maximumAttempts: 1 },
      summary: options.summary,
    },
    [input],
  );
}

/**
 * One call of a fulfilment's step, tried once; it rejects when its outcome is not known. A worker that
 * died is noticed by its silence, long before a slow merchant's time is over.
 */
export function callStep(
  input: Parameters<Activities['callFulfilmentStep']>[0],
  options: { timeoutMs: number; summary: string },
): Promise<Result<'callFulfilmentStep'>> {
  const call = patient.callFulfilmentStep as unknown as Call<'callFulfilmentStep'>;
  return call.executeWithOptions(
    {
      startToCloseTimeout: options.timeoutMs + CALL_MARGIN_MS,
      heartbeatTimeout: '10s',
      retry: { maximumAttempts: 1 },
      summary: options.summary,
    },
    [input],
  );
}

/**
 * Tells the merchant; Temporal repeats it with the delay that each failed try carries. The policy's
 * own intervals are for failures of ours (PostgreSQL away), which must not wait like a merchant's.
 */
export const { deliverNotifications } = proxyActivities<Activities>({
  startToCloseTimeout: '2m',
  // A worker that died is noticed by its silence: the merchant does not wait for the two minutes.
  heartbeatTimeout: '10s',
  retry: { initialInterval: '1s', maximumInterval: '30s' },
  summary: 'tell the merchant',
});

/** Short: a worker that died with it is noticed soon. */
export const { nudgeOrder } = proxyActivities<Activities>({
  startToCloseTimeout: '10s',
  retry: { initialInterval: '1s', maximumInterval: '30s' },
  summary: 'tell the order that its child has ended',
});

export const { sweepOrders } = proxyActivities<Activities>({
  startToCloseTimeout: '1m',
  retry: { initialInterval: '1s', maximumInterval: '30s' },
  summary: 'find orders that nobody carries',
});
