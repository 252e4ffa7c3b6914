import type { Client } from '@temporalio/client';
import { inParallel } from '../../test/support/in-parallel';
import { waitFor } from '../../test/support/wait';

/** What runs cost on the server, by its own description: medians. */
export interface HistoryCost {
  transitions: number;
  events: number;
}

/** State transitions and history events of ended runs with these ids. */
export async function historyCost(
  client: Client,
  workflowIds: readonly string[],
): Promise<HistoryCost> {
  const transitions: number[] = [];
  const events: number[] = [];
  await inParallel(workflowIds, 4, async (id) => {
    const described = await waitFor(`run ${id} to end`, async () => {
      const found = await client.workflow.getHandle(id).describe();
      return found.status.name !== 'RUNNING' && found;
    });
    transitions.push(Number(described.raw.workflowExecutionInfo?.stateTransitionCount));
    events.push(described.historyLength);
  });
  return { transitions: median(transitions), events: median(events) };
}

/** The middle one of an odd number, the mean of the two in the middle of an even one; 0 of none. */
export function median(figures: readonly number[]): number {
  const sorted = [...figures].sort((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? 0;
  if (sorted.length % 2 === 1) return upper;
  return ((sorted[sorted.length / 2 - 1] ?? 0) + upper) / 2;
}
