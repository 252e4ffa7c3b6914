import { expectAlwaysTrue, figuresOf, money } from '../support/figures';
import { Operators } from '../support/operators';
import { SagaProcesses } from '../support/processes-saga';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

let saga: Saga;
let ops: Operators;
beforeAll(async () => {
  saga = await Saga.start({
    // What is settled here is told by callbacks; what is refunded is asked about soon.
    policy: { pollLadderMs: [30_000] },
  });
  ops = await Operators.of(saga);
});
afterAll(() => saga?.stop());

describe('two operators at once', () => {
  it('one accepts, one refunds: exactly one of them decides', async () => {
    const { orderId, held, captureId } = await ops.mismatch();
    const named = { ...held.named, capture_id: captureId };
    const [accepted, refunded] = await Promise.all([
      ops.act(orderId, { kind: 'accept_money', ...named }),
      ops.act(orderId, { kind: 'refund_money', ...named }, 'mo'),
    ]);
    expect([accepted.status, refunded.status].sort()).toEqual([201, 409]);
    await waitFor(
      'the case is closed',
      async () => (await ops.caseStatus(orderId))[0] === 'closed',
    );
    await expectAlwaysTrue(saga, orderId);
    const isAccepted = accepted.status === 201;
    expect(await figuresOf(saga, orderId)).toMatchObject({
      status: isAccepted ? 'paid' : 'closed',
      cap: money(1, 9_000),
      ref: isAccepted ? money(0, 0) : money(1, 9_000),
      evt: isAccepted ? 1 : 0,
    });
  });

  it('twenty acts of one number at once have one effect and one answer', async () => {
    const { orderId, held, captureId } = await ops.mismatch();
    const body = {
      act_no: ops.nextNo(),
      kind: 'refund_money',
      ...held.named,
      capture_id: captureId,
      amount: 1_000,
    };
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => ops.act(orderId, body, i % 2 === 0 ? 'lin' : 'mo')),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    for (const { status } of answers) expect([200, 201, 202]).toContain(status);
    const [refundNo] = answers[0]!.body.result.refund_nos;
    await saga.untilRefund(orderId, refundNo, 'succeeded');
    expect((await saga.books(orderId)).refunds).toEqual(money(1, 1_000));
    // A part went back: the rest is still to be decided.
    expect(await ops.caseStatus(orderId)).toEqual(['open']);
    expect((await ops.openCase(orderId)).captures).toMatchObject([{ held: 8_000 }]);
  });

  it('twenty acts of twenty numbers at once never give back more than came', async () => {
    const { orderId, held, captureId } = await ops.mismatch();
    const named = { ...held.named, capture_id: captureId, amount: 4_000 };
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => ops.act(orderId, { kind: 'refund_money', ...named })),
    );
    // The first decision makes the case another: all the others were made on an older picture.
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(19);
    await waitFor('the refund', async () => (await saga.books(orderId)).refunds.count === 1);
    expect((await saga.books(orderId)).refunds).toEqual(money(1, 4_000));
  });
});

describe('an act while something else happens', () => {
  it('and a callback arrives: both are taken, the money is where it belongs', async () => {
    const { orderId, outTradeNo, held, captureId } = await ops.mismatch();
    const [accepted] = await Promise.all([
      ops.act(orderId, { kind: 'accept_money', ...held.named, capture_id: captureId }),
      saga.mock.capture({ outTradeNo, amountMinor: 10_000 }),
    ]);
    await waitFor('both captures', async () => (await saga.captures(orderId)).length === 2);
    if (accepted.status === 201) {
      // The act came first: what came after it is a second payment, and goes back by itself.
      await waitFor('the surplus', async () => (await saga.books(orderId)).refunds.count === 1);
      await expectAlwaysTrue(saga, orderId);
      expect(await figuresOf(saga, orderId)).toMatchObject({
        status: 'paid',
        ref: money(1, 10_000),
        settling: 1,
        evt: 1,
      });
    } else {
      // The callback came first: the case knows more than was decided on.
      expect(accepted).toMatchObject({ status: 409, body: { code: 'case_version_outdated' } });
      expect((await saga.order(orderId)).status).toBe('review');
      await expectAlwaysTrue(saga, orderId);
    }
  });

  it('asks the channel now, long before the ladder would', async () => {
    const orderId = await saga.createOrder();
    await saga.pay(orderId);
    const outTradeNo = await saga.outTradeNo(orderId);
    await saga.mock.addFault({ match: { operation: 'callback', outTradeNo }, do: { drop: true } });
    await saga.mock.approve(outTradeNo);
    expect((await saga.order(orderId)).status).toBe('paying');
    expect(await ops.act(orderId, { kind: 'query_now' })).toMatchObject({ status: 201 });
    await saga.untilOrder(orderId, 'paid');
  });

  it('has a callback settled again without a second effect', async () => {
    const { orderId } = await saga.paidOrder();
    await saga.untilSettled(orderId);
    const [callback] = await saga.rows<{ callback_id: number }>(
      `select callback_id from channel_callbacks where merchant_id = $1::text and order_id = $2::text`,
      saga.merchantId,
      orderId,
    );
    const body = { kind: 'resend_callback', callback_id: String(callback!.callback_id) };
    expect(await ops.act(orderId, body)).toMatchObject({ status: 201 });
    await expectAlwaysTrue(saga, orderId);
    expect(
      await saga.rows(`select status, verdict from channel_callbacks
      where callback_id = ${callback!.callback_id}`),
    ).toEqual([{ status: 'no_effect', verdict: 'no_effect' }]);
    expect(await figuresOf(saga, orderId)).toMatchObject({ cap: money(1, 10_000), evt: 1 });
  });

  it('starts a run where none is open', async () => {
    const orderId = await saga.createOrder();
    await saga.handle(orderId).terminate('an operator’s slip');
    expect(await ops.act(orderId, { kind: 'restart_run' })).toMatchObject({ status: 201 });
    expect((await saga.handle(orderId).describe()).status.name).toBe('RUNNING');
    await saga.cancel(orderId);
  });
});

describe('an act whose worker or API dies', () => {
  let processes: SagaProcesses;
  beforeAll(() => {
    processes = new SagaProcesses(saga);
  });
  afterAll(async () => {
    await processes.end();
    if (saga.workers.length === 0) await saga.startWorker();
  });

  it.each(['act:before', 'act:after'])(
    'is performed once when the worker is killed at %s',
    async (point) => {
      const { orderId, held, captureId } = await ops.mismatch();
      await saga.stopWorkers();
      const worker = await processes.startWorker([`${point}#${orderId}`]);
      const body = {
        act_no: ops.nextNo(),
        kind: 'refund_money',
        ...held.named,
        capture_id: captureId,
      };
      const asked = ops.act(orderId, body);
      await processes.untilAt(worker, point, orderId);
      await worker.kill();
      await saga.startWorker();
      expect([200, 201, 202]).toContain((await asked).status);
      await saga.untilOrder(orderId, 'closed');
      expect(await ops.act(orderId, body)).toMatchObject({ status: 200, body: { status: 'done' } });
      await expectAlwaysTrue(saga, orderId);
      expect(await figuresOf(saga, orderId)).toMatchObject({
        cap: money(1, 9_000),
        ref: money(1, 9_000),
        evt: 0,
        review: 0,
      });
    },
  );

  it('is performed though the API that stored it died before it asked the run', async () => {
    const { orderId, held, captureId } = await ops.mismatch();
    const api = await processes.startApi([`api:act-stored#${orderId}`]);
    const actNo = ops.nextNo();
    const lost = fetch(`${api.url}${ops.pathOf(orderId)}/acts`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ops.keys.lin}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        act_no: actNo,
        kind: 'accept_money',
        ...held.named,
        capture_id: captureId,
        name: 'lin',
        reason: 'the shop agrees',
      }),
    }).catch(() => undefined);
    await processes.untilAt(api, 'api:act-stored', orderId);
    await processes.forgetApi(api);
    await api.kill();
    await lost;
    // Nobody repeats it: the sweep finds the order's work.
    await saga.untilOrder(orderId, 'paid', 30_000);
    expect(await ops.call('GET', `/ops/acts/${actNo}`)).toMatchObject({
      status: 200,
      body: { status: 'done', by: { name: 'lin' } },
    });
    await expectAlwaysTrue(saga, orderId);
    expect(await figuresOf(saga, orderId)).toMatchObject({ status: 'paid', settling: 1, evt: 1 });
  });
});
