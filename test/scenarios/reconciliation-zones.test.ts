import { SagaProcesses } from '../support/processes-saga';
import {
  begin,
  CHANNELS,
  daysAgo,
  ended,
  paidOn,
  reconcile,
  refundedOn,
  report,
  standing,
} from '../support/reconciliations';
import { Saga } from '../support/saga';

const ZONES = ['UTC', 'Asia/Shanghai', 'America/New_York'];
const HOUR_MS = 3_600_000;

describe('the same reconciliation by processes in other time zones', () => {
  let saga: Saga;
  let processes: SagaProcesses;
  beforeAll(async () => {
    saga = await Saga.start({ timeZone: 'Asia/Shanghai', policy: { reconcileAskMs: 2_000 } });
    processes = new SagaProcesses(saga);
  });
  afterAll(async () => {
    await saga?.stop().finally(() => processes?.end());
  });

  it.each(CHANNELS)(
    'B97: reports of %s are identical to the byte, and of the same date',
    async (channel) => {
      const day = daysAgo(saga, 20);
      // A quarter of an hour around both midnights of the channel's day, which are other days elsewhere.
      await paidOn(saga, channel, day, {}, -11.75 * HOUR_MS);
      await paidOn(saga, channel, day, {}, 11.75 * HOUR_MS);
      await paidOn(saga, channel, day, {}, 12.25 * HOUR_MS);
      const { orderId, outTradeNo } = await paidOn(saga, channel, day);
      await refundedOn(saga, day, orderId, 'R1', 500);
      const bill = { dialect: channel, day };
      await saga.mock.changeBillRow(bill, { outTradeNo, kind: 'payment' }, { feeMinor: 1 });
      await saga.mock.addBillRow(bill, { kind: 'payment', outTradeNo: 'ORPHAN97' });
      await saga.mock.addBillRow(bill, { kind: 'unknown' });
      const first = await reconcile(saga, channel, day);
      expect(standing(first)).toEqual(['channel_only case', 'fee case', 'unknown_row case']);
      expect(first.bill?.rows).toBe(6);
      await saga.stopWorkers();

      const texts = new Map<string, string>();
      for (const zone of ZONES) {
        saga.env['TZ'] = zone;
        const [worker, api] = [await processes.startWorker(), await processes.startApi()];
        await begin(saga, channel, day);
        await ended(saga, channel, day);
        for (const format of ['json', 'csv']) {
          const path = `/ops/reconciliations/${day}?channel=${channel}&format=${format}`;
          const response = await fetch(api.url + path, {
            headers: { authorization: `Bearer ${saga.apiKey}` },
          });
          expect(response.status).toBe(200);
          texts.set(`${format} ${zone}`, await response.text());
        }
        await processes.forgetApi(api);
        await api.stop();
        await worker.stop();
      }
      delete saga.env['TZ'];
      await saga.startWorker();
      for (const format of ['json', 'csv']) {
        const [one, ...others] = ZONES.map((zone) => texts.get(`${format} ${zone}`));
        expect(one).toContain(day);
        for (const other of others) expect(other).toBe(one);
      }
      expect(await report(saga, channel, day)).toEqual(first);
      const days = await saga.rows<{ day: string }>(
        `select business_date::text as day from reconciliation_runs where channel = $1::text
       and reported_at is not null`,
        channel,
      );
      expect(days).toEqual([{ day }]);
    },
    120_000,
  );
});
