import { confirmAct, finishAct, readAct, storeAct } from '../../db/act-rows';
import type { NewAct } from '../../db/act-rows';
import { openCase } from '../../db/cases';
import { performAct } from '../../db/operator-acts';
import { performOrphanAct } from '../../db/orphan-acts';
import { readProgress } from '../../db/progress';
import { BY_AMOUNT, BY_NUMBER, BY_STATUS } from '../../db/search';
import { readTimeline } from '../../db/timeline';
import { withTransaction } from '../../db/transaction';
import type { Pool } from '../../db/transaction';
import type { OrderRef } from '../../domain/orders';
import { aPolicy } from '../support/builders';
import { insertCapture, insertOrder, insertPayRecord, insertRow } from '../support/rows';
import { createStatementDatabase } from '../support/statement-database';
import type { StatementDatabase } from '../support/statement-database';

const DEPS = { policyOf: () => aPolicy(), numberSecret: 'secret' };

let database: StatementDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await createStatementDatabase();
  pool = database.pool;
});
afterAll(() => database?.end());

/** An order in review with one held capture of 90.00 and an open case at version 1. */
async function anOrderInReview() {
  const order = await insertOrder(pool, { status: 'review', status_reason: 'amount_mismatch' });
  const record = await insertPayRecord(pool, order, { status: 'paid' });
  const capture = await insertCapture(pool, record, {
    settles: false,
    kind: 'held',
    amount_minor: 9_000,
  });
  const ref: OrderRef = {
    merchantId: String(order['merchant_id']),
    orderId: String(order['order_id']),
  };
  await openCase(pool, ref, {
    kind: 'amount_mismatch',
    summary: 'received 9000 CNY against 10000 CNY due (minor units)',
    channel: 'ch-a',
    subjectNo: String(record['out_trade_no']),
    evidence: {},
  });
  const { rows } = await pool.query<{ case_id: number }>(
    `select case_id from cases where order_id = $1::text`,
    [ref.orderId],
  );
  return { ref, captureId: Number(capture['capture_id']), caseId: rows[0]!.case_id };
}

let numbers = 0;
function anAct(said: Partial<NewAct> & Pick<NewAct, 'kind'>): NewAct {
  return {
    actNo: `act-${++numbers}`,
    caseId: null,
    caseVersion: null,
    captureId: null,
    amountMinor: null,
    refundNo: null,
    callbackId: null,
    reason: 'because',
    evidence: null,
    merchantId: null,
    orderId: null,
    currency: null,
    actorKey: 'key-lin',
    actorName: 'Lin',
    fingerprint: Buffer.from('one content'),
    needsSecond: false,
    ...said,
  };
}

async function anAcceptance(said: Partial<NewAct> = {}) {
  const review = await anOrderInReview();
  const { ref, caseId, captureId } = review;
  const act = anAct({ kind: 'accept_money', ...ref, caseId, caseVersion: 1, captureId, ...said });
  await storeAct(pool, act);
  return { ...review, act };
}

describe('an act’s row', () => {
  it('is one for its number, whoever stores it at once', async () => {
    const { ref } = await anOrderInReview();
    const act = anAct({ kind: 'note', ...ref });
    const stored = await Promise.all(
      Array.from({ length: 10 }, (_, i) => storeAct(pool, { ...act, actorName: `person ${i}` })),
    );
    expect(stored.filter((one) => one.stored)).toHaveLength(1);
    expect(new Set(stored.map((one) => one.act.actorName)).size).toBe(1);
  });

  it('never changes what was asked, is never deleted, and ends once', async () => {
    const { act, ref } = await anAcceptance();
    const change = (set: string) =>
      pool.query(`update operator_acts set ${set} where act_no = $1::text`, [act.actNo]);
    for (const set of [
      `reason = 'another'`,
      `amount_minor = 1`,
      `capture_id = null`,
      `actor_name = 'Mo'`,
      `created_at = now()`,
      `fingerprint = 'x'`,
    ]) {
      await expect(change(set)).rejects.toThrow(/append-only/);
    }
    await expect(
      pool.query(`delete from operator_acts where act_no = $1::text`, [act.actNo]),
    ).rejects.toThrow(/append-only/);
    await expect(pool.query(`truncate operator_acts cascade`)).rejects.toThrow(/append-only/);
    await performAct(pool, ref, act.actNo, DEPS);
    await expect(change(`result = '{}'`)).rejects.toThrow(/append-only/);
    await expect(change(`status = 'accepted', finished_at = null`)).rejects.toThrow();
    await finishAct(pool, act.actNo, 'refused', { reason: 'not_bookable' });
    expect(await readAct(pool, act.actNo)).toMatchObject({ status: 'done' });
  });

  it('has a second person who is another, once', async () => {
    const { act } = await anAcceptance({ needsSecond: true });
    const confirm = (key: string) =>
      confirmAct(pool, { actNo: act.actNo, key, name: 'somebody', reason: 'seen' });
    expect(await readAct(pool, act.actNo)).toMatchObject({ status: 'waiting_second' });
    expect(await confirm('key-lin')).toBe(false);
    const confirmed = await Promise.all(['key-mo', 'key-wu', 'key-mo', 'key-wu'].map(confirm));
    expect(confirmed.filter(Boolean)).toHaveLength(1);
    expect(await readAct(pool, act.actNo)).toMatchObject({ status: 'accepted' });
  });

  it('cannot be moved on by hand without a second person where one is needed', async () => {
    const { act } = await anAcceptance({ needsSecond: true });
    const change = (set: string) =>
      pool.query(`update operator_acts set ${set} where act_no = $1::text`, [act.actNo]);
    await expect(change(`status = 'accepted'`)).rejects.toThrow(/second_confirmed/);
    await expect(
      change(`status = 'accepted', second_key = actor_key, confirmed_at = now()`),
    ).rejects.toThrow(/two_persons/);
    await expect(change(`status = 'done', finished_at = now()`)).rejects.toThrow();
  });

  it('is work of its order while it is accepted, and the run is told its number', async () => {
    const { act, ref } = await anAcceptance();
    expect((await readProgress(pool, ref, DEPS.policyOf))?.acts).toEqual([act.actNo]);
    const { rows } = await pool.query(
      `select reason from orders_with_work where order_id = $1::text`,
      [ref.orderId],
    );
    expect(rows).toEqual([{ reason: 'operator_act' }]);
    await performAct(pool, ref, act.actNo, DEPS);
    expect((await readProgress(pool, ref, DEPS.policyOf))?.acts).toEqual([]);
  });
});

describe('performing an act', () => {
  const orderOf = async (ref: OrderRef) =>
    (
      await pool.query(
        `select o.status, o.status_reason,
           (select count(*)::int from captures c where c.order_id = o.order_id and c.settles) as settling,
           (select jsonb_agg(jsonb_build_array(f.refund_no, f.amount_minor, f.origin) order by f.refund_id)
             from refunds f where f.order_id = o.order_id) as refunds,
           (select jsonb_agg(jsonb_build_array(k.status, k.version) order by k.case_id)
             from cases k where k.order_id = o.order_id) as cases
         from orders o where o.order_id = $1::text`,
        [ref.orderId],
      )
    ).rows[0];

  it('ten times at once has one effect', async () => {
    const { act, ref } = await anAcceptance();
    const performed = await Promise.all(
      Array.from({ length: 10 }, () => performAct(pool, ref, act.actNo, DEPS)),
    );
    for (const { outcome } of performed) expect(outcome).toEqual({ outcome: 'done' });
    expect(await orderOf(ref)).toMatchObject({
      status: 'paid',
      status_reason: 'accepted',
      settling: 1,
      refunds: null,
      cases: [['closed', 2]],
    });
    const { rows } = await pool.query(
      `select count(*)::int as told from notifications where order_id = $1::text`,
      [ref.orderId],
    );
    expect(rows).toEqual([{ told: 1 }]);
  });

  it('by two operators at once lets one decide', async () => {
    const { act, ref, caseId, captureId } = await anAcceptance();
    const other = anAct({ kind: 'refund_money', ...ref, caseId, caseVersion: 1, captureId });
    await storeAct(pool, other);
    const performed = await Promise.all(
      [act, other].map(({ actNo }) => performAct(pool, ref, actNo, DEPS)),
    );
    expect(performed.map(({ outcome }) => outcome.outcome).sort()).toEqual(['done', 'refused']);
    const { rows } = await pool.query(
      `select (amount_minor - reserved_minor) * settles::int + reserved_minor as placed
       from captures where capture_id = $1::bigint`,
      [captureId],
    );
    expect(rows).toEqual([{ placed: 9_000 }]);
  });

  it('on an older version changes nothing, for ever', async () => {
    const { act, ref } = await anAcceptance();
    await openCase(pool, ref, {
      ...{ kind: 'reversed', summary: 'news', channel: 'ch-a', subjectNo: 'x', evidence: {} },
    });
    for (let i = 0; i < 2; i++) {
      expect((await performAct(pool, ref, act.actNo, DEPS)).outcome).toEqual({
        outcome: 'refused',
        reason: 'case_version_outdated',
      });
    }
    expect(await orderOf(ref)).toMatchObject({ status: 'review', settling: 0 });
  });

  it('of another order is unknown there', async () => {
    const { act } = await anAcceptance();
    const { ref } = await anOrderInReview();
    const { outcome } = await performAct(pool, ref, act.actNo, DEPS);
    expect(outcome).toEqual({ outcome: 'act_unknown' });
    expect(await readAct(pool, act.actNo)).toMatchObject({ status: 'accepted' });
  });

  it('that the database does not allow ends as refused, and stops nothing', async () => {
    const { act, ref, captureId } = await anAcceptance();
    // Somebody settled another capture by hand: the index lets no second one settle.
    const record = await insertPayRecord(
      pool,
      {
        merchant_id: ref.merchantId,
        order_id: ref.orderId,
      },
      { status: 'paid' },
    );
    await pool.query(`alter table captures disable trigger all`);
    await insertCapture(pool, record, {
      settles: true,
      status: 'reversed',
      reversed_minor: 10_000,
    });
    await pool.query(`alter table captures enable trigger all`);
    await pool.query(`alter table captures add constraint nobody_settles_this
      check (capture_id <> ${captureId} or not settles)`);
    try {
      expect((await performAct(pool, ref, act.actNo, DEPS)).outcome).toEqual({
        outcome: 'refused',
        reason: 'not_bookable',
      });
    } finally {
      await pool.query(`alter table captures drop constraint nobody_settles_this`);
    }
    expect(await orderOf(ref)).toMatchObject({ status: 'review' });
  });

  it('refunds under numbers of the act, reserved in the same transaction', async () => {
    const { ref, caseId, captureId } = await anOrderInReview();
    const act = anAct({ kind: 'refund_money', ...ref, caseId, caseVersion: 1, captureId });
    await storeAct(pool, act);
    await performAct(pool, ref, act.actNo, DEPS);
    expect(await orderOf(ref)).toMatchObject({
      status: 'review',
      refunds: [[`act:${act.actNo}:${captureId}`, 9_000, 'operator']],
      cases: [['open', 2]],
    });
  });
});

describe('an act about a case of no order', () => {
  async function anOrphan(evidence: unknown[]) {
    const row = await insertRow(pool, 'cases', {
      channel: 'ch-a',
      subject_no: `N${++numbers}`,
      kind: 'unknown_number',
      summary: 'a number of nobody',
      evidence: JSON.stringify(evidence),
    });
    return Number(row['case_id']);
  }
  const caseOf = async (caseId: number) =>
    (await pool.query(`select status, version from cases where case_id = $1::bigint`, [caseId]))
      .rows[0];

  it('closes it once, on the version it names', async () => {
    const caseId = await anOrphan([]);
    const late = anAct({ kind: 'close_case', caseId, caseVersion: 1 });
    const note = anAct({ kind: 'note', caseId });
    const good = anAct({ kind: 'close_case', caseId, caseVersion: 2 });
    for (const act of [late, note, good]) await storeAct(pool, act);
    await performOrphanAct(pool, note.actNo);
    await performOrphanAct(pool, late.actNo);
    expect(await readAct(pool, late.actNo)).toMatchObject({
      status: 'refused',
      result: { reason: 'case_version_outdated' },
    });
    await Promise.all(Array.from({ length: 5 }, () => performOrphanAct(pool, good.actNo)));
    expect(await readAct(pool, good.actNo)).toMatchObject({ status: 'done' });
    expect(await caseOf(caseId)).toEqual({ status: 'closed', version: 3 });
  });

  it('that speaks of money needs evidence and a second person', async () => {
    const caseId = await anOrphan([{ fact: { kind: 'payment', state: 'paid' }, copies: 1 }]);
    const outcomes = [];
    for (const said of [{}, { evidence: 'it is of our other shop' }]) {
      const act = anAct({ kind: 'close_case', caseId, caseVersion: 1, ...said });
      await storeAct(pool, act);
      await performOrphanAct(pool, act.actNo);
      outcomes.push((await readAct(pool, act.actNo))?.result?.reason);
    }
    expect(outcomes).toEqual(['evidence_missing', 'second_person_needed']);
    const act = anAct({
      ...{ kind: 'close_case', caseId, caseVersion: 1, evidence: 'it is of our other shop' },
      needsSecond: true,
    });
    await storeAct(pool, act);
    await performOrphanAct(pool, act.actNo);
    expect(await caseOf(caseId)).toMatchObject({ status: 'open' });
    await confirmAct(pool, { actNo: act.actNo, key: 'key-mo', name: 'Mo', reason: 'I know it' });
    await performOrphanAct(pool, act.actNo);
    expect(await caseOf(caseId)).toMatchObject({ status: 'closed' });
  });
});

describe('what operators look for', () => {
  /** The nodes of a plan that read a table from one end to the other. */
  async function scansOf(sql: string, values: unknown[]): Promise<string[]> {
    return withTransaction(pool, async (client) => {
      await client.query('set local enable_seqscan = off');
      const { rows } = await client.query<{ 'QUERY PLAN': object[] }>(
        `explain (format json) ${sql}`,
        values,
      );
      return JSON.stringify(rows[0]!['QUERY PLAN']).match(/"Node Type":"Seq Scan"[^}]*/g) ?? [];
    });
  }

  it.each([
    ['a number', BY_NUMBER, ['T1']],
    ['an amount and a day', BY_AMOUNT, [10_000, '2026-05-12', 'Asia/Shanghai']],
    ['a status', `${BY_STATUS} limit 50`, ['paid']],
  ])('by %s is served by indexes', async (_name, sql, values) => {
    expect(await scansOf(sql, values)).toEqual([]);
  });

  it('reads a timeline in one order, page by page', async () => {
    const { act, ref } = await anAcceptance();
    await performAct(pool, ref, act.actNo, DEPS);
    const whole = await readTimeline(pool, ref, {
      withPrivate: true,
      after: undefined,
      limit: 1000,
    });
    expect(whole.next).toBeUndefined();
    expect(new Set(whole.entries.map(({ kind }) => kind))).toEqual(
      new Set(['attempt', 'capture', 'act', 'move', 'case', 'case_evidence', 'notification']),
    );
    const instants = whole.entries.map(({ at }) => Date.parse(at));
    expect(instants).toEqual([...instants].sort((a, b) => a - b));
    const paged = [];
    let after = undefined as (typeof whole)['next'];
    do {
      const page = await readTimeline(pool, ref, { withPrivate: true, after, limit: 2 });
      paged.push(...page.entries);
      after = page.next;
    } while (after);
    expect(paged).toEqual(whole.entries);
    const seen = await readTimeline(pool, ref, {
      withPrivate: false,
      after: undefined,
      limit: 1000,
    });
    expect(seen.entries.map(({ kind }) => kind)).not.toContain('act');
    expect(seen.entries.map(({ kind }) => kind)).not.toContain('case_evidence');
  });
});
