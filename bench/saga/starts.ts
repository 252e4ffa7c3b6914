import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { insertOrder } from '../../db/new-orders';
import { inParallel } from '../../test/support/in-parallel';
import { orderStartOptions } from '../../workflows/start-options';
import type { Control } from './control';
import { usageOf } from './process-usage';
import type { BenchStack } from './stack';

/** Processor time of the worker that one start of a run costs, in milliseconds. */
export interface StartCost {
  /** An order's run: it loads the order from PostgreSQL and waits. */
  order: number;
  /** A run that only waits. */
  bare: number;
  /** A run that does one local activity with nothing in it and waits under a timer. */
  bare_with_step: number;
}

const AT_ONCE = 16;
const QUIET_MS = 300;
const QUIET_WITHIN_MS = 5_000;
/** A relay's round or a poll that comes back empty is quiet enough. */
const QUIET_CPU_MS = 30;

/**
 * Starts `count` runs of each kind in turn, so often, and reads what the workers used; what they use
 * while nothing happens is taken off. The order's runs are started as the API starts them, on rows that
 * are there, so that nothing but the start is counted.
 */
export async function startCosts(
  stack: BenchStack,
  control: Control,
  { count, rounds, idleMs }: { count: number; rounds: number; idleMs: number },
): Promise<StartCost> {
  const { saga } = stack;
  const totals: StartCost = { order: 0, bare: 0, bare_with_step: 0 };
  const bare = (type: string, round: number) =>
    measure(control.worker.pid, { count, idleMs }, (i) =>
      startBare(saga.client, control, type, round, i),
    );
  for (let round = 0; round < rounds; round++) {
    const ids = Array.from({ length: count }, (_, i) => `start-${round}-${i}`);
    await inParallel(ids, AT_ONCE, (orderId) =>
      insertOrder(saga.pool, {
        merchantId: saga.merchantId,
        orderId,
        amountMinor: 10_000,
        currency: 'CNY',
        subject: 'start',
        expiresInS: 86_400,
        metadata: {},
        returnUrl: null,
        actor: 'bench',
      }),
    );
    totals.bare += await bare('bareWait', round);
    totals.order += await measure(stack.worker.pid, { count, idleMs }, (i) =>
      saga.client.workflow.start(
        'orderPayment',
        orderStartOptions(
          {
            merchantId: saga.merchantId,
            orderId: ids[i] ?? '',
            amountMinor: 10_000,
            currency: 'CNY',
            status: 'created',
          },
          saga.taskQueue,
        ),
      ),
    );
    totals.bare_with_step += await bare('bareLoad', round);
  }
  const each = (ms: number) => Math.round((ms / rounds / count) * 1_000) / 1_000;
  return {
    order: each(totals.order),
    bare: each(totals.bare),
    bare_with_step: each(totals.bare_with_step),
  };
}

async function startBare(
  client: Client,
  control: Control,
  type: string,
  round: number,
  index: number,
): Promise<void> {
  const options = orderStartOptions(
    {
      merchantId: 'control',
      orderId: `${type}-${round}-${index}`,
      amountMinor: 10_000,
      currency: 'CNY',
      status: 'created',
    },
    control.taskQueue,
  );
  await client.workflow.start(type, { ...options, args: [] });
}

/** Processor time of the process while these are started and until it is quiet again, less its idle time. */
async function measure(
  pid: number,
  { count, idleMs }: { count: number; idleMs: number },
  start: (index: number) => Promise<unknown>,
): Promise<number> {
  const idlePerMs = await idle(pid, idleMs);
  const [cpuBefore, at] = [cpu(pid), performance.now()];
  await inParallel(
    Array.from({ length: count }, (_, i) => i),
    AT_ONCE,
    start,
  );
  await untilQuiet(pid);
  return cpu(pid) - cpuBefore - idlePerMs * (performance.now() - at);
}

async function idle(pid: number, idleMs: number): Promise<number> {
  await untilQuiet(pid);
  const [before, at] = [cpu(pid), performance.now()];
  await delay(idleMs);
  return (cpu(pid) - before) / (performance.now() - at);
}

async function untilQuiet(pid: number): Promise<void> {
  const until = performance.now() + QUIET_WITHIN_MS;
  for (let quiet = 0; quiet < 3 && performance.now() < until;) {
    const before = cpu(pid);
    await delay(QUIET_MS);
    quiet = cpu(pid) - before <= QUIET_CPU_MS ? quiet + 1 : 0;
  }
}

function cpu(pid: number): number {
  return usageOf(pid)?.cpuMs ?? 0;
}
