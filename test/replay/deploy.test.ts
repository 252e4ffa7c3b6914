import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { expectAlwaysTrue, figuresOf, money } from '../support/figures';
import { Saga } from '../support/saga';
import { testServers } from '../support/servers';
import { waitFor } from '../support/wait';

describe('a deploy', () => {
  let saga: Saga;
  const nextBuild = `${testServers().workflowBundle}.next.js`;
  beforeAll(async () => {
    saga = await Saga.start();
    const code = readFileSync(testServers().workflowBundle, 'utf8');
    // In front: the source map must stay the last line.
    writeFileSync(nextBuild, `// the next build\n${code}`);
  });
  afterAll(async () => {
    await saga?.stop();
    rmSync(nextBuild, { force: true });
  });

  it('B109: orders in flight go on under the next build and finish', async () => {
    const pending = await saga.createOrder();
    await saga.pay(pending);
    const closing = await saga.createOrder();
    const closingNo = (await saga.pay(closing)).body.out_trade_no as string;
    const fault = await saga.mock.addFault({
      match: { operation: 'close', outTradeNo: closingNo },
      do: { effect: 'none', answer: 'http', status: 500 },
    });
    expect((await saga.cancel(closing)).status).toBe(202);
    const refunding = (await saga.paidOrder({ subject: 'slow #hold' })).orderId;
    await saga.mock.addFault({
      match: { operation: 'refund', tag: 'hold' },
      do: { refund: 'hold' },
    });
    await saga.refund(refunding, 'R1', 3_000);
    await saga.untilRefund(refunding, 'R1', 'processing');

    await saga.stopWorkers();
    saga.env['WORKFLOW_BUNDLE'] = nextBuild;
    await saga.startWorker();

    await saga.mock.approve(await saga.outTradeNo(pending));
    await saga.mock.removeFault(fault);
    const [outRefundNo] = (await saga.books(refunding)).refundNumbers;
    await saga.mock.finishRefund({ outRefundNo: outRefundNo ?? '', result: 'succeed' });
    await saga.untilOrder(pending, 'paid');
    await saga.untilOrder(closing, 'closed');
    await saga.untilRefund(refunding, 'R1', 'succeeded');
    for (const orderId of [pending, closing, refunding]) {
      await expectAlwaysTrue(saga, orderId);
      await waitFor(`the run of ${orderId} is over`, async () => {
        return (await saga.handle(orderId).describe()).status.name === 'COMPLETED';
      });
      expect((await saga.runs(orderId)).map(({ status }) => status.name)).not.toContain('FAILED');
    }
    const once = money(1, 10_000);
    expect(await figuresOf(saga, pending)).toMatchObject({ cap: once, calls: 1, rows: 1, evt: 1 });
    expect(await figuresOf(saga, closing)).toMatchObject({ cap: money(0, 0), calls: 1, evt: 0 });
    expect(await figuresOf(saga, refunding)).toMatchObject({ cap: once, ref: money(1, 3_000) });
  });
});
