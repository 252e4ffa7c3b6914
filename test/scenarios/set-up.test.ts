import { randomBytes } from 'node:crypto';
import type { Connection } from '@temporalio/client';
import { Client } from '@temporalio/client';
import { ensureNamespace, registerSearchAttributes } from '../../scripts/servers/namespace';
import { connectTemporal } from '../../scripts/servers/temporal';
import { expectAlwaysTrue, figuresOf, money } from '../support/figures';
import { SagaProcesses } from '../support/processes-saga';
import { Saga } from '../support/saga';
import { testServers } from '../support/servers';

const AT_ONCE = 10;

let connection: Connection;
beforeAll(async () => {
  connection = await connectTemporal(testServers().temporalAddress);
});
afterAll(() => connection?.close());

/** A saga in a namespace that is its own. */
async function sagaIn(namespace: string, workers: number): Promise<Saga> {
  const saga = await Saga.start({ workers, env: { TEMPORAL_NAMESPACE: namespace } });
  saga.client = new Client({ connection: saga.client.connection as Connection, namespace });
  return saga;
}

describe('a namespace that was made a moment ago', () => {
  let saga: Saga;
  beforeAll(async () => {
    const namespace = `fresh-${randomBytes(4).toString('hex')}`;
    // What scripts/migrate.ts does at every set-up.
    await ensureNamespace(connection, namespace);
    await registerSearchAttributes(connection, namespace);
    saga = await sagaIn(namespace, 1);
  });
  afterAll(() => saga?.stop());

  it('B124: takes PAY at once, never answers 500, and no pay record is without a run', async () => {
    const answers = await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        const orderId = await saga.createOrder();
        return { orderId, ...(await saga.pay(orderId)) };
      }),
    );
    for (const { orderId, status } of answers) {
      expect([200, 201, 202]).toContain(status);
      expect(await saga.records(orderId)).toHaveLength(1);
      expect((await saga.handle(orderId).describe()).status.name).toBe('RUNNING');
    }
    const { orderId } = answers[0]!;
    await saga.mock.approve(await saga.outTradeNo(orderId));
    await saga.untilOrder(orderId, 'paid');
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: 'paid',
      cap: money(1, 10_000),
      runs: 1,
      rows: 1,
      evt: 1,
    });
    await Promise.all(answers.slice(1).map((answer) => saga.cancel(answer.orderId)));
  });
});

describe('a namespace that was never prepared', () => {
  let saga: Saga;
  beforeAll(async () => {
    const namespace = `bare-${randomBytes(4).toString('hex')}`;
    await ensureNamespace(connection, namespace);
    saga = await sagaIn(namespace, 0);
    saga.final.skip('no run can ever start here, so its orders stay open');
  });
  afterAll(() => saga?.stop());

  it('B124: the worker refuses to start, and says what is missing and what to run', async () => {
    const processes = new SagaProcesses(saga);
    try {
      await expect(processes.startWorker()).rejects.toThrow(
        /lacks the search attributes OrderId, MerchantId, PaymentStatus, Channel, FulfilmentStatus, NeedsReview[^]*scripts\/migrate\.ts/,
      );
    } finally {
      await processes.end();
    }
  });

  it('B124: PAY is answered 503, and leaves no pay record behind', async () => {
    const orderId = await saga.createOrder();
    for (const requestNo of ['K1', 'K1', 'K2']) {
      const answer = await saga.pay(orderId, requestNo);
      expect(answer).toMatchObject({ status: 503, body: { code: 'outcome_unknown' } });
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    }
    expect((await saga.cancel(orderId)).status).toBe(503);
    expect(await saga.records(orderId)).toEqual([]);
    expect((await saga.order(orderId)).status).toBe('created');
  });
});
