import type { OrderProgress } from '../../domain/progress';
import { newRun, take, takeFromBeside } from '../../workflows/order-run';

const REF = { merchantId: 'shop', orderId: 'o-1' };

function aProgress(said: Partial<OrderProgress>): OrderProgress {
  return {
    ...REF,
    readAtMs: 10_000,
    status: 'paying',
    statusReason: null,
    refundStatus: 'none',
    needsReview: false,
    deadlineInMs: null,
    attempt: null,
    news: null,
    refunds: [],
    fulfilment: null,
    notification: null,
    acts: [],
    money: [],
    hasLooseSurplus: false,
    hasWork: true,
    ...said,
  };
}

describe('what a run believes of its order', () => {
  it('is what the last step found, also when the database’s clock has gone back since', () => {
    const run = newRun(REF);
    take(run, aProgress({ readAtMs: 10_000 }));
    take(run, aProgress({ readAtMs: 4_000, status: 'paid' }));
    expect(run.order?.status).toBe('paid');
  });

  it.each([
    ['events wait: the order is loaded again', { dueInMs: 0 }, true],
    ['none waits: nothing is to do', null, false],
  ])('is not replaced by an older picture from beside; %s', (_, notification, nudged) => {
    const run = newRun(REF);
    take(run, aProgress({ readAtMs: 10_000, status: 'paid', notification }));
    takeFromBeside(run, aProgress({ readAtMs: 9_999 }));
    expect([run.order?.status, run.nudged]).toEqual(['paid', nudged]);
  });

  it('is replaced by a later one', () => {
    const run = newRun(REF);
    take(run, aProgress({ readAtMs: 10_000 }));
    takeFromBeside(run, aProgress({ readAtMs: 10_001, status: 'paid' }));
    expect([run.order?.status, run.nudged]).toEqual(['paid', false]);
  });
});
