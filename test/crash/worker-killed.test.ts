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

describe('a worker killed with SIGKILL', () => {
  let saga: Saga;
  let processes: SagaProcesses;
  beforeAll(async () => {
    // A killed worker's call is given up when its own limit has passed: a short one, so that the
    // test is quick.
    saga = await Saga.start({ workers: 0, policy: { callTimeoutMs: 1_000 } });
    processes = new SagaProcesses(saga);
    const worker = await bringToPoints(saga, processes);
    expect(await timed(worker, () => worker.kill())).toMatchObject({ signal: 'SIGKILL' });
    await processes.startWorker();
    await Promise.all(CRASH_POINTS.map((p) => goOnAfter(saga, p).catch(() => undefined)));
  });
  afterAll(async () => {
    await saga?.stop().finally(() => processes?.end());
  });

  it.each(CRASH_POINTS)('B112: $title: taken once, and final after a restart', async (p) => {
    await saga.untilSettled(orderAt(p));
    expect(await endOf(saga, p)).toEqual(rightEnd(saga, p));
  });

  it('B54: every call to the channel carried a number of a stored attempt or refund', async () => {
    expect(await numbersAtChannel(saga)).toEqual(await numbersOfOurs(saga));
  });
});
