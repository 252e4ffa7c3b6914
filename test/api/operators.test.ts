import { insertRow } from '../support/rows';
import type { ApiHarness, Asking } from './api-harness';
import { countRows, startApiHarness } from './api-harness';
import { anOrderInReview } from './review-order';

/**
 * The operators' routes on an API alone: no worker runs, so an act that was stored stays accepted, and
 * what the database knows is answered all the same.
 */
let api: ApiHarness;
let lin: string;
let mo: string;
beforeAll(async () => {
  api = await startApiHarness({
    limits: {
      askWithinMs: 200,
      startWithinMs: 200,
      aloneUpTo: { otherwise: 20_000, byCurrency: { JPY: 10 } },
    },
    temporalUiUrl: 'http://temporal.example:8233/',
  });
  lin = await api.keyWith(['operator']);
  mo = await api.keyWith(['operator']);
});
afterAll(() => api?.close());

const get = (path: string, key = lin) => api.ask('GET', path, { key });
const post = (path: string, body: object, key = lin) => api.ask('POST', path, { key, body });
const actsOf = (orderId: string) => `/ops/orders/${api.merchantId}/${orderId}/acts`;

let acts = 0;
const nextNo = () => `api-act-${++acts}`;
const PERSON = { name: 'Lin', reason: 'a test' };

describe('an act', () => {
  test('that can move money is refused without a number: 400', async () => {
    const { orderId, captureId, named } = await anOrderInReview(api);
    for (const said of [
      { kind: 'accept_money', ...named, capture_id: captureId },
      { kind: 'refund_money', ...named, capture_id: captureId },
      { kind: 'resend_refund', ...named, refund_no: 'R1' },
      { kind: 'close_case', ...named },
    ]) {
      const answer = await api.ask('POST', actsOf(orderId), {
        key: lin,
        body: { ...PERSON, ...said },
        headers: { 'idempotency-key': 'a-header-is-no-number' },
      });
      expect([said.kind, answer.status]).toEqual([said.kind, 400]);
      expect(answer.body.detail).toContain('body.act_no');
    }
  });

  test.each([
    ['no name', { name: undefined }],
    ['an empty name', { name: '  ' }],
    ['no reason', { reason: undefined }],
    ['an empty reason', { reason: '' }],
    ['another kind', { kind: 'give_me_money' }],
    ['a version without its case', { case_id: undefined }],
    ['a case without its version', { case_version: undefined }],
    ['a version of 0', { case_version: 0 }],
    ['a version as text', { case_version: '1' }],
    ['a capture as a number', { capture_id: 1 }],
    ['a field of another kind', { evidence: 'x' }],
    ['a number with a space', { act_no: 'a b' }],
  ])('with %s is refused: 400, and leaves nothing', async (_name, said: object) => {
    const { orderId, captureId, named } = await anOrderInReview(api);
    const before = await countRows(api.pool);
    const body = { act_no: nextNo(), kind: 'refund_money', ...named, capture_id: captureId };
    const answer = await post(actsOf(orderId), { ...PERSON, ...body, ...said });
    expect([answer.status, answer.body.code]).toEqual([400, 'invalid_request']);
    expect(await countRows(api.pool)).toEqual(before);
  });

  test.each([
    ['of a capture of nobody', { capture_id: '999999' }, 422, 'capture_unknown'],
    ['of more than is left', { amount: 9_001 }, 422, 'over_the_rest'],
    ['of no amount', { amount: 0 }, 422, 'unacceptable_value'],
    ['on another version', { case_version: 2 }, 409, 'case_version_outdated'],
    ['on another case', { case_id: '999999' }, 409, 'case_version_outdated'],
    ['on no case', { case_id: undefined, case_version: undefined }, 409, 'case_version_outdated'],
  ])('%s is refused and binds no number', async (_name, said, status, code) => {
    const { orderId, captureId, named } = await anOrderInReview(api);
    const before = await countRows(api.pool);
    const body = {
      ...PERSON,
      act_no: nextNo(),
      kind: 'refund_money',
      ...named,
      capture_id: captureId,
    };
    const answer = await post(actsOf(orderId), { ...body, ...said });
    expect([answer.status, answer.body.code]).toEqual([status, code]);
    expect(await countRows(api.pool)).toEqual(before);
    expect((await post(actsOf(orderId), body)).status).toBe(202);
  });

  test('that no run performs in time stays accepted, and says so under its number', async () => {
    const { orderId, captureId, named } = await anOrderInReview(api);
    const body = {
      ...PERSON,
      act_no: nextNo(),
      kind: 'accept_money',
      ...named,
      capture_id: captureId,
    };
    const answer = await post(actsOf(orderId), body);
    expect(answer).toMatchObject({ status: 202, body: { status: 'accepted', result: null } });
    expect(answer.headers.get('retry-after')).toBe('2');
    expect(answer.headers.get('location')).toBe(`/ops/acts/${body.act_no}`);
    expect((await get(`/ops/acts/${body.act_no}`)).body).toEqual(answer.body);
    const again = await post(actsOf(orderId), { ...body, name: 'Mo', reason: 'once more' }, mo);
    expect(again).toMatchObject({ status: 202, body: { by: { name: 'Lin' }, reason: 'a test' } });
    const stuck = await get('/ops/stuck');
    expect(stuck.body.acts.map((act: { act_no: string }) => act.act_no)).toContain(body.act_no);
  });

  test('under a used number with other content is refused: 422, of another order too', async () => {
    const { orderId, captureId, named } = await anOrderInReview(api);
    const body = {
      ...PERSON,
      act_no: nextNo(),
      kind: 'refund_money',
      ...named,
      capture_id: captureId,
    };
    await post(actsOf(orderId), { ...body, amount: 1_000 });
    const other = await anOrderInReview(api);
    for (const [path, said] of [
      [actsOf(orderId), { ...body, amount: 1_001 }],
      [actsOf(orderId), body],
      [actsOf(orderId), { ...body, kind: 'accept_money' }],
      [actsOf(other.orderId), { ...body, amount: 1_000 }],
    ] as const) {
      const answer = await post(path, said);
      expect([answer.status, answer.body.code]).toEqual([422, 'act_no_reused']);
    }
  });

  test('twenty times at once is one row and no 5xx', async () => {
    const { orderId, captureId, named } = await anOrderInReview(api);
    const body = {
      ...PERSON,
      act_no: nextNo(),
      kind: 'accept_money',
      ...named,
      capture_id: captureId,
    };
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => post(actsOf(orderId), body, i % 2 ? lin : mo)),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
    const { rows } = await api.pool.query(
      `select count(*)::int as acts from operator_acts where act_no = $1`,
      [body.act_no],
    );
    expect(rows).toEqual([{ acts: 1 }]);
  });

  test('without a number takes its Idempotency-Key, or gets one of its own', async () => {
    const { orderId } = await anOrderInReview(api);
    const asking: Asking = {
      key: lin,
      body: { ...PERSON, kind: 'note' },
      headers: { 'idempotency-key': `click-${orderId}` },
    };
    const twice = [
      await api.ask('POST', actsOf(orderId), asking),
      await api.ask('POST', actsOf(orderId), asking),
    ];
    expect(twice.map(({ body }) => body.act_no)).toEqual([`click-${orderId}`, `click-${orderId}`]);
    const { body } = await post(actsOf(orderId), { ...PERSON, kind: 'note' });
    expect(body.act_no).toMatch(/^[0-9a-f-]{36}$/);
  });

  test('about an order that is not there: 404', async () => {
    const body = { ...PERSON, kind: 'query_now' };
    expect((await post(actsOf('nobody'), body)).status).toBe(404);
    expect((await post('/ops/orders/nobody/o-1/acts', body)).status).toBe(404);
  });
});

describe('a second person', () => {
  test.each([
    ['CNY', 20_000, false],
    ['CNY', 20_001, true],
    ['JPY', 10, false],
    ['JPY', 11, true],
  ])('for %s %i: %s', async (currency, amountMinor, needed) => {
    const { orderId, captureId, named } = await anOrderInReview(api, { currency, amountMinor });
    const body = {
      ...PERSON,
      act_no: nextNo(),
      kind: 'refund_money',
      ...named,
      capture_id: captureId,
    };
    const answer = await post(actsOf(orderId), body);
    expect(answer).toMatchObject({
      status: 202,
      body: {
        needs_second: needed,
        status: needed ? 'waiting_second' : 'accepted',
        amount: amountMinor,
      },
    });
  });

  test('is needed once the parts that one person gives back come to more, also at once', async () => {
    const { orderId, captureId, named } = await anOrderInReview(api, { amountMinor: 45_000 });
    const part = () => ({
      ...{ ...PERSON, act_no: nextNo(), kind: 'refund_money', ...named },
      ...{ capture_id: captureId, amount: 5_000 },
    });
    const bodies = Array.from({ length: 9 }, part);
    const answers = await Promise.all(bodies.map((body) => post(actsOf(orderId), body)));
    const count = (status: string) => answers.filter(({ body }) => body.status === status).length;
    expect([count('accepted'), count('waiting_second')]).toEqual([4, 5]);
    // Another order has its own.
    const other = await anOrderInReview(api, { amountMinor: 20_000 });
    const alone = { ...part(), ...other.named, capture_id: other.captureId, amount: 20_000 };
    expect((await post(actsOf(other.orderId), alone)).body.status).toBe('accepted');
  });

  test('is another key than the first, confirms once, and is named', async () => {
    const { orderId, captureId, named } = await anOrderInReview(api, { amountMinor: 30_000 });
    const body = {
      ...PERSON,
      act_no: nextNo(),
      kind: 'accept_money',
      ...named,
      capture_id: captureId,
    };
    await post(actsOf(orderId), body);
    const confirm = (key: string, name: string) =>
      post(`/ops/acts/${body.act_no}/confirm`, { name, reason: 'seen the statement' }, key);
    expect(await confirm(lin, 'Mo')).toMatchObject({
      status: 409,
      body: { code: 'second_person_needed' },
    });
    const answers = await Promise.all(Array.from({ length: 20 }, () => confirm(mo, 'Mo')));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
    expect(answers[0]!.body).toMatchObject({
      status: 'accepted',
      second: { name: 'Mo', reason: 'seen the statement' },
    });
    const third = await api.keyWith(['operator']);
    expect(await confirm(third, 'Wu')).toMatchObject({
      status: 409,
      body: { code: 'act_not_waiting' },
    });
  });

  test('has nothing to confirm where nothing waits', async () => {
    const { orderId } = await anOrderInReview(api);
    const { body } = await post(actsOf(orderId), { ...PERSON, kind: 'note' });
    const answer = await post(`/ops/acts/${body.act_no}/confirm`, PERSON, mo);
    expect(answer.body.code).toBe('act_not_waiting');
    expect((await post('/ops/acts/nobody/confirm', PERSON, mo)).body.code).toBe('act_not_found');
  });
});

describe('cases', () => {
  test('are listed by status and kind, page by page, and read with the money they hold', async () => {
    const { caseId, orderId, captureId } = await anOrderInReview(api);
    await anOrderInReview(api);
    const first = await get('/ops/cases?status=open&kind=amount_mismatch&limit=1');
    expect(first.body.cases).toHaveLength(1);
    const second = await get(`/ops/cases?limit=1&cursor=${first.body.next_cursor}`);
    expect(Number(second.body.cases[0].case_id)).toBeLessThan(Number(first.body.cases[0].case_id));
    expect((await get('/ops/cases?kind=reversed')).body.cases).toEqual([]);
    expect((await get('/ops/cases?status=closed')).body.cases).toEqual([]);
    expect((await get(`/ops/cases/${caseId}`)).body).toMatchObject({
      order_id: orderId,
      order_status: 'review',
      version: 1,
      evidence: [{ kind: 'amount_mismatch', evidence: { secret: 'for operators alone' } }],
      captures: [{ capture_id: captureId, amount: 9_000, rest: 9_000, held: 9_000 }],
      run_url: `http://temporal.example:8233/namespaces/default/workflows/order%3A${api.merchantId}%3A${orderId}`,
    });
    expect((await get('/ops/cases/999999999')).body.code).toBe('case_not_found');
  });

  test('of no order are noted and closed, by two persons when they speak of money', async () => {
    const orphan = async (evidence: unknown[]) => {
      const row = await insertRow(api.pool, 'cases', {
        ...{ channel: 'mock-a', subject_no: nextNo(), kind: 'unknown_number', summary: 'whose?' },
        evidence: JSON.stringify(evidence),
      });
      return `/ops/cases/${String(row['case_id'])}`;
    };
    const plain = await orphan([]);
    expect((await post(`${plain}/acts`, { ...PERSON, kind: 'note' })).status).toBe(201);
    const closing = { ...PERSON, act_no: nextNo(), kind: 'close_case', case_version: 1 };
    expect((await post(`${plain}/acts`, closing)).body.code).toBe('case_version_outdated');
    const good = { ...closing, case_version: 2 };
    expect((await post(`${plain}/acts`, good)).status).toBe(201);
    expect((await post(`${plain}/acts`, good)).status).toBe(200);
    expect((await get(plain)).body).toMatchObject({ status: 'closed', acts: [{}, {}] });
    expect((await post(`${plain}/acts`, { ...good, act_no: nextNo() })).body.code).toBe(
      'no_open_case',
    );

    const money = await orphan([{ fact: { kind: 'payment', state: 'paid' } }]);
    const closingMoney = { ...closing, act_no: nextNo() };
    expect((await post(`${money}/acts`, closingMoney)).body.code).toBe('evidence_missing');
    const proven = { ...closingMoney, evidence: 'of our other shop' };
    expect((await post(`${money}/acts`, proven)).body).toMatchObject({ status: 'waiting_second' });
    const confirmed = await post(`/ops/acts/${proven.act_no}/confirm`, PERSON, mo);
    expect(confirmed).toMatchObject({ status: 201, body: { status: 'done' } });
    expect((await get(money)).body.status).toBe('closed');
  });

  test('of an order are decided at the order', async () => {
    const { caseId } = await anOrderInReview(api);
    const body = { ...PERSON, act_no: nextNo(), kind: 'close_case', case_version: 1 };
    expect((await post(`/ops/cases/${caseId}/acts`, body)).body.code).toBe('case_of_order');
  });
});
