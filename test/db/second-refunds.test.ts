import { ReconciledChannel } from '../support/reconciled-day';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';

const D = '2026-05-02';
const NOON = '2026-05-02T12:00:00Z';
const LONG_AGO = '2026-04-01T12:00:00Z';
const NEXT = '2026-05-03';

let database: StatementDatabase;

beforeAll(async () => {
  database = await createStatementDatabase({ bulk: true });
});
afterAll(() => database?.end());

/** A refund of 100.00, and the row of a second one that the channel made under its out_refund_no. */
async function paidTwice(said: Record<string, unknown> = {}) {
  const ch = await ReconciledChannel.make(database.pool);
  const { capture, orderId } = await ch.paid(LONG_AGO);
  const { refund, line } = await ch.refunded(capture, NOON, said);
  const first = { ...line, channelRefundNo: 'CR-first' };
  const second = { ...line, channelRefundNo: 'CR-second' };
  const no = String(refund['out_refund_no']);
  return { ch, orderId, first, second, no };
}

/** Kind, reason, line and the channel's own number of what stands of the date. */
async function standing(ch: ReconciledChannel, day: string) {
  const { differences } = await ch.report(day);
  return differences
    .filter(({ status }) => status !== 'resolved')
    .map((d) => [d.kind, d.reason, d.lineNo, d.channelSays?.['channel_refund_no']]);
}

const KNOWN = { channel_refund_no: 'CR-first' };
const NOT_KNOWN = { channel_refund_no: null };

describe('a refund that the channel paid twice under our number', () => {
  it('in one bill: the row with the number we know is ours, the other is a difference and a case', async () => {
    const { ch, orderId, first, second } = await paidTwice(KNOWN);
    expect(await ch.reconcile(D, [second, first])).toMatchObject({ rows: 2, case: 1 });
    expect(await standing(ch, D)).toEqual([
      ['refund_channel_only', 'second_refund', 2, 'CR-second'],
    ]);
    const { totals } = await ch.report(D);
    expect(totals).toEqual([
      expect.objectContaining({
        matched: { rows: 1, netMinor: -10_000 },
        differences: { rows: 1, netMinor: -10_000 },
        oursOnly: { rows: 0, netMinor: 0 },
      }),
    ]);
    const [found] = await ch.cases(orderId);
    expect(found?.['summary']).toContain('a second time under the number of our refund');
  });

  it.each([
    ['we know none', NOT_KNOWN],
    ['the rows do not say it', KNOWN],
  ])('in one bill, where %s: the first row by line is ours', async (_name, said) => {
    const { ch, first, second } = await paidTwice(said);
    const unsaid = said === KNOWN ? { ...first, channelRefundNo: null } : first;
    await ch.reconcile(D, [unsaid, second]);
    expect(await standing(ch, D)).toEqual([
      ['refund_channel_only', 'second_refund', 3, 'CR-second'],
    ]);
  });

  it('a row without the channel’s number is not ours where another has the number we know', async () => {
    const { ch, first } = await paidTwice(KNOWN);
    await ch.reconcile(D, [{ ...first, channelRefundNo: null }, first]);
    expect(await standing(ch, D)).toEqual([['refund_channel_only', 'second_refund', 2, null]]);
  });

  it.each([
    ['that we know', KNOWN],
    ['that we do not know', NOT_KNOWN],
  ])('the second in the bill of the next date, the first with a number %s', async (_name, said) => {
    const { ch, first, second } = await paidTwice(said);
    await ch.reconcile(D, [first]);
    await ch.reconcile(NEXT, [second]);
    expect(await standing(ch, NEXT)).toEqual([
      ['refund_channel_only', 'second_refund', 2, 'CR-second'],
    ]);
    await ch.compare(D);
    expect(await standing(ch, D)).toEqual([]);
  });

  it('one row alone with another number than we know is not ours', async () => {
    const { ch, second } = await paidTwice(KNOWN);
    await ch.reconcile(D, [second]);
    expect(await standing(ch, D)).toEqual([
      ['refund_channel_only', 'second_refund', 2, 'CR-second'],
    ]);
  });

  it('no second one: the same row again, one that failed first, a number we do not know', async () => {
    const known = await paidTwice(KNOWN);
    await known.ch.reconcile(D, [known.first, { ...known.first }]);
    expect(await standing(known.ch, D)).toEqual([['duplicate_row', 'repeated', 3, 'CR-first']]);
    const failed = await paidTwice(NOT_KNOWN);
    await failed.ch.reconcile(D, [{ ...failed.first, status: 'failed' }, failed.second]);
    expect(await standing(failed.ch, D)).toEqual([
      ['refund_status', 'failed_there', 2, 'CR-first'],
    ]);
    const unknown = await paidTwice(NOT_KNOWN);
    await unknown.ch.reconcile(D, [unknown.first]);
    expect(await standing(unknown.ch, D)).toEqual([]);
  });
});
