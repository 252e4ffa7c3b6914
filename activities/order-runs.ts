/** Telling orders' runs that they should look, from outside of them: what sweep and relay share. */
import type { Client } from '@temporalio/client';
import { isGrpcServiceError, ServiceError } from '@temporalio/client';
import type { SignalDefinition } from '@temporalio/common';
import { readOrder } from '../db/rows';
import type { Pool } from '../db/transaction';
import { isDatabaseUnavailable } from '../db/transaction';
import { noteNudge } from '../db/work';
import type { OrderRef } from '../domain/orders';
import { ORDER_WORKFLOW_TYPE, orderStartOptions } from '../workflows/start-options';

/** Orders told at the same time: quick after an outage, yet no storm on the server. */
const AT_ONCE_MAX = 10;

/**
 * Signals each order's run, starting one where none is open. An order whose run cannot be told (it has
 * had more signals than the server allows, say) is reported and keeps no other from being told.
 *
 * @returns how many were told
 * @throws what the server or the database said when it is away: then nobody else can be told either
 */
export async function tellRuns(
  { pool, client, taskQueue }: { pool: Pool; client: Client; taskQueue: string },
  refs: readonly OrderRef[],
  signal: SignalDefinition<[]>,
  onFailure: (ref: OrderRef, error: unknown) => void,
): Promise<number> {
  let told = 0;
  await inParallel(refs, async (ref) => {
    try {
      const order = await readOrder(pool, ref);
      if (!order) return;
      await client.workflow.signalWithStart(ORDER_WORKFLOW_TYPE, {
        ...orderStartOptions(order, taskQueue),
        signal,
        signalArgs: [],
      });
      await noteNudge(pool, ref);
      told++;
    } catch (error) {
      if (isServerAway(error) || isDatabaseUnavailable(error)) throw error;
      onFailure(ref, error);
    }
  });
  return told;
}

/** Does the work for every item, a bounded number at a time; the first failure ends it. */
export async function inParallel<T>(
  items: readonly T[],
  work: (item: T) => Promise<void>,
): Promise<void> {
  const rest = items.values();
  let failed = false;
  await Promise.all(
    Array.from({ length: AT_ONCE_MAX }, async () => {
      // The lanes share one iterator, so each item is taken once.
      for (const item of rest) {
        if (failed) return;
        try {
          await work(item);
        } catch (error) {
          failed = true;
          throw error;
        }
      }
    }),
  );
}

/** gRPC: CANCELLED, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, UNAVAILABLE. */
const AWAY = [1, 4, 8, 14];

/** Whether the server could not be reached or was too busy, as opposed to one run that refuses. */
export function isServerAway(error: unknown): boolean {
  const cause = error instanceof ServiceError ? error.cause : error;
  return isGrpcServiceError(cause) && AWAY.includes(Number(cause.code));
}
