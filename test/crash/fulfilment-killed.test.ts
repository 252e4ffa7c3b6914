import { SagaProcesses } from '../support/processes-saga';
import { fulfilmentOf, untilFulfilment } from '../support/fulfilment';
import { Saga } from '../support/saga';

const STEPS = ['reserve', 'grant', 'ship'];

/** A place in the life of a fulfilment at which its worker dies. */
interface Point {
  title: string;
  failpoint: string;
  /** The call it happens at: the second step is done, or the same step undone after the third is refused. */
  during: 'do' | 'undo';
}

/** Calls of an order up to the one in question: reserve, grant; or reserve, grant, ship, undo grant. */
const ARRIVAL = { do: 2, undo: 4 };

const POINTS: Point[] = (['do', 'undo'] as const).flatMap((during) =>
  (
    [
      ['before it is marked', 'step:before'],
      ['between the mark and the call', 'step:marked'],
      ['after the merchant has answered', 'step:answered'],
      ['before the answer is settled', 'step-settle:before'],
      ['after the answer is settled', 'step-settle:after'],
    ] as const
  ).map(([when, failpoint]) => ({ title: `${during} grant: ${when}`, failpoint, during })),
);

const orderAt = ({ failpoint, during }: Point) => `at-${during}-${failpoint.replace(':', '-')}`;

describe('a worker killed with SIGKILL in the middle of a fulfilment', () => {
  let saga: Saga;
  let processes: SagaProcesses;
  beforeAll(async () => {
    saga = await Saga.start({
      workers: 0,
      steps: STEPS,
      env: { FULFIL_UNDO_TRIES_MAX: '20', FULFIL_CASE_AFTER_MS: '600000' },
    });
    saga.merchant.steps.behave = ({ orderId, call, step }) =>
      orderId.startsWith('at-undo') && call === 'do' && step === 'ship' ? { status: 422 } : {};
    processes = new SagaProcesses(saga);
    const worker = await processes.startWorker(
      POINTS.map((p) => `${p.failpoint}#${orderAt(p)}@${ARRIVAL[p.during]}`),
    );
    await Promise.all(
      POINTS.map(async (p) => {
        await saga.paidOrder({ order_id: orderAt(p) });
        await processes.untilAt(worker, p.failpoint, orderAt(p));
      }),
    );
    await worker.kill();
    await processes.startWorker();
  }, 120_000);
  afterAll(async () => {
    await saga?.stop().finally(() => processes?.end());
  });

  it.each(POINTS)('B112: $title: once, and to its end after a restart', async (p) => {
    const orderId = orderAt(p);
    await untilFulfilment(saga, orderId, p.during === 'do' ? 'done' : 'failed', 40_000);
    await saga.untilSettled(orderId);
    const { steps } = saga.merchant;
    const grants = steps.effects.filter((e) => e.orderId === orderId && e.step === 'grant');
    const books = await saga.books(orderId);
    const told = saga.merchant.effects(orderId).map(({ type }) => type);
    expect({
      story: steps.story(orderId),
      keys: new Set(grants.map(({ key }) => key)).size,
      steps: (await fulfilmentOf(saga, orderId)).steps.map(([, status]) => status),
      captures: books.captures.count,
      refunds: books.refunds,
      refundNumbers: books.refundNumbers.length,
      told: [...new Set(told)].sort(),
      cases: (await saga.openCases(orderId)).length,
    }).toEqual(
      p.during === 'do'
        ? {
            story: ['do reserve', 'do grant', 'do ship'],
            keys: 1,
            steps: ['done', 'done', 'done'],
            captures: 1,
            refunds: { count: 0, sums: {} },
            refundNumbers: 0,
            told: ['order.fulfilled', 'order.paid'],
            cases: 0,
          }
        : {
            story: ['do reserve', 'do grant', 'undo grant', 'undo reserve'],
            keys: 2,
            steps: ['undone', 'undone', 'refused'],
            captures: 1,
            refunds: { count: 1, sums: { CNY: 10_000 } },
            refundNumbers: 1,
            told: ['order.fulfilment_failed', 'order.paid', 'refund.succeeded'],
            cases: 0,
          },
    );
  });
});
