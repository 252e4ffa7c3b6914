import { SagaProcesses } from '../support/processes-saga';
import {
  begin,
  billCases,
  CHANNELS,
  dayHandle,
  daysAgo,
  ended,
  expectWhole,
  instantOf,
  paidOn,
  payingAt,
  report,
  standing,
  untilRun,
  zoneAtHour,
} from '../support/reconciliations';
import type { ChannelName } from '../support/reconciliations';
import { Saga } from '../support/saga';
import { waitFor } from '../support/wait';

/** Before and after each step, and in the middle of those that are long. */
const POINTS = [
  'recon-begin:before',
  'recon-begin:after',
  'recon-load:before',
  'bill:before-copy',
  'recon-load:half',
  'bill:copied',
  'bill:before-commit',
  'recon-load:after',
  'recon-compare:before',
  'recon-compare:after',
  'recon-ask:before',
  'recon-ask:half',
  'recon-ask:after',
  'recon-close:before',
  'recon-close:after',
].map((failpoint, index) => ({ failpoint, index, channel: CHANNELS[index % 2] as ChannelName }));

const FIRST_DAY_BACK = 20;
const HALF_AN_HOUR_MS = 1_800_000;

describe('a worker killed with SIGKILL while it reconciles', () => {
  let saga: Saga;
  let processes: SagaProcesses;
  const orders = new Map<string, { lost: string; tradeNo: string; orphan: string }>();
  const dayOf = ({ index }: { index: number }) => daysAgo(saga, FIRST_DAY_BACK + index);

  beforeAll(async () => {
    saga = await Saga.start({
      workers: 0,
      timeZone: zoneAtHour(6),
      policy: { pollLadderMs: [HALF_AN_HOUR_MS], reconcileAskMs: 10_000 },
      env: { RECONCILE_HEARTBEAT_MS: '4000' },
    });
    await saga.mock.addFault({
      match: { operation: 'callback', tag: 'silent' },
      do: { drop: true },
    });
    processes = new SagaProcesses(saga);
    const worker = await processes.startWorker(POINTS.map((p) => `${p.failpoint}#${dayOf(p)}`));
    for (const p of POINTS) await prepare(p);
    // A table that was attached and is not committed makes other bills wait for a moment: held, for ever.
    const last = POINTS.filter(({ failpoint }) => failpoint === 'bill:before-commit');
    for (const points of [POINTS.filter((p) => !last.includes(p)), last]) {
      for (const p of points) await begin(saga, p.channel, dayOf(p));
      for (const p of points) await processes.untilAt(worker, p.failpoint, dayOf(p));
    }
    await worker.kill();
    await processes.startWorker();
  }, 180_000);
  afterAll(async () => {
    await saga?.stop().finally(() => processes?.end());
  });

  /** A day with a payment that matches, one whose notices were lost, and one that is not ours. */
  async function prepare(p: (typeof POINTS)[number]): Promise<void> {
    const day = dayOf(p);
    const orphan = `ORPHAN${p.index}`;
    await paidOn(saga, p.channel, day);
    const { orderId, outTradeNo } = await payingAt(saga, p.channel, { subject: 'lost #silent' });
    await saga.mock.capture({ outTradeNo, at: instantOf(saga, day) });
    await saga.mock.addBillRow(
      { dialect: p.channel, day },
      { kind: 'payment', outTradeNo: orphan },
    );
    orders.set(p.failpoint, { lost: orderId, tradeNo: outTradeNo, orphan });
  }

  it.each(POINTS)(
    '$failpoint: one report, no difference twice, no repair twice',
    async (p) => {
      const day = dayOf(p);
      await untilRun(saga, p.channel, day, 'done', 60_000);
      expect(await ended(saga, p.channel, day)).toMatchObject({ status: 'done' });
      const found = await report(saga, p.channel, day);
      expect(standing(found)).toEqual(['channel_only case']);
      // The lost payment was found before it was settled, or settled before it was looked for.
      expect(found.differences.length).toBeLessThanOrEqual(2);
      expectWhole(found);

      const { lost, orphan } = orders.get(p.failpoint)!;
      await saga.untilOrder(lost, 'paid');
      await saga.untilSettled(lost);
      expect(await saga.captures(lost)).toMatchObject([{ amount_minor: 10_000, settles: true }]);
      expect(await saga.moves(lost)).toEqual(['null>created', 'created>paying', 'paying>paid']);
      expect(saga.merchant.effects(lost, 'order.paid')).toHaveLength(1);
      expect(await saga.openCases(lost)).toEqual([]);
      const bills = await saga.rows<{ status: string; tables: number }>(
        `select status, (select count(*) from pg_inherits
           where inhparent = 'trade_bill_lines'::regclass) as tables
         from trade_bills where channel = $1::text and business_date = $2::date`,
        p.channel,
        day,
      );
      expect(bills.map(({ status }) => status)).toEqual(['loaded']);
      const cases = await saga.rows(
        `select from cases where status = 'open' and subject_no = $1::text`,
        orphan,
      );
      expect(cases).toHaveLength(1);
      expect(await billCases(saga, p.channel, day)).toEqual([]);
      const { workflowId } = dayHandle(saga, p.channel, day);
      const query = `WorkflowId = '${workflowId}'`;
      // The server's list lags behind a little.
      await waitFor('one run there ever was, and it has ended well', async () => {
        const runs = [];
        for await (const run of saga.client.workflow.list({ query })) runs.push(run.status.name);
        return runs.join() === 'COMPLETED';
      });
    },
    90_000,
  );

  it('no table of a load that was broken off is left', async () => {
    await waitFor('every day is done', async () => {
      const open = await saga.rows(`select from reconciliation_runs where status <> 'done'`);
      return open.length === 0;
    });
    const loose = await saga.rows(
      `select relname from pg_class where relname ~ '^trade_bill_lines_[0-9]+$' and relkind = 'r'
         and not relispartition`,
    );
    expect(loose).toEqual([]);
  });
});

describe('a worker killed with SIGKILL while it looks for dates without a report', () => {
  it('recon-list:after: the next round starts them, each once', async () => {
    const saga = await Saga.start({
      workers: 0,
      timeZone: zoneAtHour(6),
      env: { RECONCILE_EVERY_MS: '1000' },
    });
    const processes = new SagaProcesses(saga);
    try {
      const worker = await processes.startWorker(['recon-list:after']);
      const day = daysAgo(saga, 1);
      await paidOn(saga, 'mock-b', day);
      await processes.untilAt(worker, 'recon-list:after');
      await worker.kill();
      await processes.startWorker();
      await untilRun(saga, 'mock-b', day, 'done', 60_000);
      await ended(saga, 'mock-b', day);
      expect((await report(saga, 'mock-b', day)).differences).toEqual([]);
    } finally {
      await saga.stop().finally(() => processes.end());
    }
  }, 120_000);
});
