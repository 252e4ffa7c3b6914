import { aLine } from '../support/bills';
import { ReconciledChannel } from '../support/reconciled-day';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';

const D = '2026-05-02';
const NOON = '2026-05-02T12:00:00Z';

let database: StatementDatabase;

beforeAll(async () => {
  database = await createStatementDatabase({ bulk: true });
});
afterAll(() => database?.end());

const channel = () => ReconciledChannel.make(database.pool);
/** What the channel says in each entry of a case. */
const amounts = (found: Record<string, unknown> | undefined) =>
  (found?.['evidence'] as { evidence: { channel_says: Record<string, unknown> } }[]).map(
    ({ evidence }) => evidence.channel_says['amount_minor'],
  );

describe('a difference that is in a case', () => {
  it('goes to the case again when a later bill has other figures, once', async () => {
    const ch = await channel();
    const { line, orderId } = await ch.paid(NOON);
    await ch.reconcile(D, [{ ...line, amountMinor: 9_999 }]);
    expect(await ch.reconcile(D, [{ ...line, amountMinor: 5_000 }])).toMatchObject({ cases: 1 });
    expect(await ch.reconcile(D, [{ ...line, amountMinor: 5_000 }])).toMatchObject({ cases: 0 });
    const cases = await ch.cases(orderId);
    expect(cases).toHaveLength(1);
    expect(cases[0]).toMatchObject({ version: 2, status: 'open' });
    expect(amounts(cases[0])).toEqual([9_999, 5_000]);
    expect(await ch.differences(D)).toEqual([`amount case ${line.channelTradeNo}`]);
  });

  it('stays as it is in a later file that says the same on another line, and after refunds', async () => {
    const ch = await channel();
    const [{ line, orderId, capture }, other] = [await ch.paid(NOON), await ch.paid(NOON)];
    const wrong = { ...line, amountMinor: 9_999 };
    await ch.reconcile(D, [wrong, other.line]);
    await database.pool.query(
      'update captures set refunded_minor = 10 where capture_id = $1::bigint',
      [capture['capture_id']],
    );
    expect(await ch.reconcile(D, [other.line, wrong])).toMatchObject({ cases: 0, case: 1 });
    expect(await ch.cases(orderId)).toEqual([expect.objectContaining({ version: 1 })]);
  });

  it('whose case was closed is a new case when its line has another row now', async () => {
    const ch = await channel();
    await ch.reconcile(D, [aLine({ kind: 'adjustment', amountMinor: -500 })]);
    await database.pool.query(
      `update cases set status = 'closed', closed_at = now() where channel = $1::text`,
      [ch.channel],
    );
    await ch.reconcile(D, [aLine({ kind: 'adjustment', amountMinor: -500 })]);
    expect(await ch.cases()).toHaveLength(1);
    await ch.reconcile(D, [aLine({ kind: 'adjustment', amountMinor: -700 })]);
    expect((await ch.cases()).map(({ status }) => status)).toEqual(['closed', 'open']);
  });
});
