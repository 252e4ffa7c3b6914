import type { Client } from '@temporalio/client';
import { WorkflowNotFoundError } from '@temporalio/client';
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import { reconciliationWorkflowId } from '../workflows/ids';
import { askChannelSignal, nudgeSignal } from '../workflows/messages';
import type { AskChannel, DayInput } from '../workflows/messages';
import {
  DAY_WORKFLOW_TYPE,
  dayStartOptions,
  ORDER_WORKFLOW_TYPE,
  orderStartOptions,
} from '../workflows/start-options';
import type { OrderToStart } from '../workflows/start-options';
import type { Outstanding } from './outstanding';
import { within } from './within';

export interface ReconciliationCalls {
  /** Starts the date's run. `open`: there was one already. Rejects after the bound at the latest. */
  startDay(input: DayInput): Promise<'started' | 'open'>;
  /** A run that waits for its bill tries at once; false when none is open. */
  tryNow(day: Pick<DayInput, 'channel' | 'day'>): Promise<boolean>;
  /** Has the order's run ask the channel and settle what it says. */
  askChannel(order: OrderToStart, asked: AskChannel): Promise<void>;
}

/** Starts and tells runs of reconciliation; every call may be repeated. */
export function createReconciliationCalls(options: {
  client: Client;
  taskQueue: string;
  outstanding: Outstanding;
  withinMs: number;
}): ReconciliationCalls {
  const { client, taskQueue, withinMs } = options;
  return {
    startDay: (input) =>
      within(withinMs, options, async () => {
        try {
          await client.workflow.start(DAY_WORKFLOW_TYPE, dayStartOptions(input, taskQueue));
          return 'started';
        } catch (error) {
          if (error instanceof WorkflowExecutionAlreadyStartedError) return 'open';
          throw error;
        }
      }),
    tryNow: (day) =>
      within(withinMs, options, async () => {
        try {
          const workflowId = reconciliationWorkflowId(day, taskQueue);
          await client.workflow.getHandle(workflowId).signal(nudgeSignal);
          return true;
        } catch (error) {
          if (error instanceof WorkflowNotFoundError) return false;
          throw error;
        }
      }),
    askChannel: (order, asked) =>
      within(withinMs, options, async () => {
        await client.workflow.signalWithStart(ORDER_WORKFLOW_TYPE, {
          ...orderStartOptions(order, taskQueue),
          signal: askChannelSignal,
          signalArgs: [asked],
        });
      }),
  };
}
