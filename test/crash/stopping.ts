import { SagaProcesses, timed } from '../support/processes-saga';
import { Saga } from '../support/saga';
import { bringToPoints, CRASH_POINTS, endOf, goOnAfter, orderAt, rightEnd } from './points';
import { numbersAtChannel, numbersOfOurs } from './points';

const GRACE_MS = 4_000;
/** What the worker adds before it gives up what does not end (worker/run.ts). */
const FORCE_MS = 5_000;
/** Closing connections and the process itself, on a busy machine. */
const AIR_MS = 3_000;

/**
 * The tests of a worker that is sent a signal while an order is at each point, held there for
 * `holdMs` or for ever, and of what a clean worker makes of its orders.
 */
export function testsOfStopping(how: { signal: 'SIGTERM' | 'SIGKILL'; holdMs?: number }): void {
  let saga: Saga;
  let processes: SagaProcesses;
  let ended: Awaited<ReturnType<typeof timed>>;
  beforeAll(async () => {
    saga = await Saga.start({
      workers: 0,
      // A dead worker's call is given up when its own limit has passed: a short one, for speed.
      policy: { callTimeoutMs: 1_000 },
      env: { WORKER_SHUTDOWN_GRACE_MS: String(GRACE_MS) },
    });
    processes = new SagaProcesses(saga);
    const worker = await bringToPoints(saga, processes, how.holdMs);
    ended = await timed(worker, () => (how.signal === 'SIGKILL' ? worker.kill() : worker.stop()));
    await processes.startWorker();
    await Promise.all(CRASH_POINTS.map((p) => goOnAfter(saga, p).catch(() => undefined)));
  }, 120_000);
  afterAll(async () => {
    await saga?.stop().finally(() => processes?.end());
  });

  if (how.signal === 'SIGTERM') {
    it('B112: the process ends by itself within its grace time', () => {
      const hangs = how.holdMs === undefined;
      expect(ended).toMatchObject({ code: hangs ? 1 : 0, signal: null });
      expect(ended.tookMs).toBeLessThan(GRACE_MS + (hangs ? FORCE_MS : 0) + AIR_MS);
    });
  }

  it.each(CRASH_POINTS)('B112: $title: taken once, and final after a restart', async (p) => {
    await saga.untilSettled(orderAt(p));
    expect(await endOf(saga, p)).toEqual(rightEnd(saga, p));
  });

  it('B54: every call to the channel carried a number of a stored attempt or refund', async () => {
    expect(await numbersAtChannel(saga)).toEqual(await numbersOfOurs(saga));
  });
}
