import { SagaProcesses, timed } from '../support/processes-saga';
import { Saga } from '../support/saga';
import {
  bringToPoints,
  CRASH_POINTS,
  endOf,
  goOnAfter,
  numbersAtChannel,
  numbersOfOurs,
  orderAt,
  rightEnd,
} from './points';

const GRACE_MS = 4_000;
/** What the worker adds before it gives up what does not end (worker/run.ts). */
const FORCE_MS = 5_000;
/** Closing connections and the process itself, on a busy machine. */
const AIR_MS = 3_000;

describe.each([
  // Below the 3 s after which a database step would be tried once more.
  { name: 'lets what is under way finish', holdMs: 1_500, withinMs: GRACE_MS, code: 0 },
  {
    name: 'waits for nothing that hangs',
    holdMs: undefined,
    withinMs: GRACE_MS + FORCE_MS,
    code: 1,
  },
])('a worker stopped with SIGTERM $name', ({ holdMs, withinMs, code }) => {
  let saga: Saga;
  let processes: SagaProcesses;
  let ended: Awaited<ReturnType<typeof timed>>;
  beforeAll(async () => {
    saga = await Saga.start({
      workers: 0,
      env: { WORKER_SHUTDOWN_GRACE_MS: String(GRACE_MS) },
    });
    processes = new SagaProcesses(saga);
    const worker = await bringToPoints(saga, processes, holdMs);
    ended = await timed(worker, () => worker.stop());
    await processes.startWorker();
    await Promise.all(CRASH_POINTS.map((p) => goOnAfter(saga, p).catch(() => undefined)));
  });
  afterAll(async () => {
    await saga?.stop().finally(() => processes?.end());
  });

  it('B112: the process ends by itself within its grace time', () => {
    expect(ended).toMatchObject({ code, signal: null });
    expect(ended.tookMs).toBeLessThan(withinMs + AIR_MS);
  });

  it.each(CRASH_POINTS)('B112: $title: taken once, and final after a restart', async (p) => {
    await saga.untilSettled(orderAt(p));
    expect(await endOf(saga, p)).toEqual(rightEnd(saga, p));
  });

  it('B54: every call to the channel carried a number of a stored attempt or refund', async () => {
    expect(await numbersAtChannel(saga)).toEqual(await numbersOfOurs(saga));
  });
});
