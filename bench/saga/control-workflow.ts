/**
 * The floors of the bench, as workflows. `controlOrder` asks as much of Temporal as an order that is
 * paid by callback: the same activities, local activities, timers, update and signal, in the same
 * places, with nothing in them. `bareWait` is the least that waits for anything.
 */
import {
  allHandlersFinished,
  condition,
  defineSignal,
  defineUpdate,
  proxyActivities,
  proxyLocalActivities,
  setHandler,
} from '@temporalio/workflow';

export interface ControlActivities {
  load(): Promise<void>;
  open(): Promise<void>;
  submit(): Promise<void>;
  settle(): Promise<void>;
  readNews(): Promise<void>;
  tell(): Promise<void>;
}

export const controlPay = defineUpdate<void, [{ requestNo: string }]>('controlPay');
export const controlNews = defineSignal('controlNews');
export const bareEnd = defineSignal('bareEnd');

// Limits and repeats as workflows/activities.ts has them.
const { load, open, settle, readNews } = proxyLocalActivities<ControlActivities>({
  startToCloseTimeout: '3s',
  retry: { initialInterval: '100ms', maximumAttempts: 4 },
});
const { submit } = proxyActivities<ControlActivities>({
  startToCloseTimeout: '7s',
  retry: { maximumAttempts: 1 },
});
const { tell } = proxyActivities<ControlActivities>({
  startToCloseTimeout: '2m',
  heartbeatTimeout: '10s',
  retry: { initialInterval: '1s', maximumInterval: '30s' },
});

/** As long as an order's deadline, and as the poll that the bench gives its channel. */
const DEADLINE = '30m';
const POLL = '60s';

export async function controlOrder(): Promise<void> {
  let asked = false;
  let sent = false;
  let rang = false;
  setHandler(controlPay, async () => {
    asked = true;
    await condition(() => sent);
  });
  setHandler(controlNews, () => void (rang = true));
  await load();
  while (!(await condition(() => asked, DEADLINE)));
  await open();
  await submit();
  await settle();
  sent = true;
  while (!(await condition(() => rang, POLL)));
  await readNews();
  await tell();
  await condition(allHandlersFinished);
}

/** Waits until it is told to end. */
export async function bareWait(): Promise<void> {
  let ended = false;
  setHandler(bareEnd, () => void (ended = true));
  await condition(() => ended);
}

/** Does one local activity with nothing in it and waits under a timer, as an order's run begins. */
export async function bareLoad(): Promise<void> {
  let ended = false;
  setHandler(bareEnd, () => void (ended = true));
  await load();
  while (!(await condition(() => ended, DEADLINE)));
}
