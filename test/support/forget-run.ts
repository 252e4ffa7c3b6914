import { WorkflowNotFoundError } from '@temporalio/client';
import type { Saga } from './saga';
import { waitFor } from './wait';

/** The server deletes by a queue of its own, which a busy machine leaves waiting. */
export const FORGET_BOUND_MS = 120_000;

/** What retention does: the server no longer knows the order's closed run. Returns the run's id. */
export async function forgetRun(saga: Saga, orderId: string): Promise<string> {
  const { workflowId, runId } = await saga.handle(orderId).describe();
  await saga.client.workflowService.deleteWorkflowExecution({
    namespace: saga.client.options.namespace,
    workflowExecution: { workflowId, runId },
  });
  await waitFor(
    'the server to forget the run',
    async () => {
      const error = await saga.client.workflow
        .getHandle(workflowId, runId)
        .describe()
        .then(({ status }) => new Error(`it is still known as ${status.name}`))
        .catch((refusal: Error) => refusal);
      if (!(error instanceof WorkflowNotFoundError)) throw error;
      return true;
    },
    FORGET_BOUND_MS,
  );
  return runId;
}
