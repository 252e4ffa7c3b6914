/** One protection taken out, and the test that must notice. */
export interface Guard {
  name: string;
  file: string;
  /** Occurs exactly once in the file (a test checks it, so the table cannot go stale). */
  find: string;
  replace: string;
  /** The test that goes around every other gate and fails by an assertion without this one. */
  test: { file: string; title: string };
}

const MIGRATION = 'db/migrations/0001_payment-saga.sql';
const ACTS_MIGRATION = 'db/migrations/0006_operator-acts.sql';

export const GUARDS: readonly Guard[] = [
  {
    name: 'one settling capture per order (index)',
    file: MIGRATION,
    find: 'create unique index captures_one_settles on captures (merchant_id, order_id) where settles;',
    replace: '',
    test: { file: 'test/db/unique-keys.test.ts', title: 'a capture that settles an order' },
  },
  {
    name: 'one live attempt per order (index)',
    file: MIGRATION,
    find:
      'create unique index pay_records_one_live_attempt on pay_records (merchant_id, order_id)\n' +
      "  where status in ('created', 'submitting', 'pending');",
    replace: '',
    test: {
      file: 'test/db/unique-keys.test.ts',
      title: 'B01, B02: an attempt that may still take',
    },
  },
  {
    name: 'one attempt per order, channel and request number (key)',
    file: MIGRATION,
    find: '  unique (merchant_id, order_id, channel, request_no),\n',
    replace: '',
    test: {
      file: 'test/db/unique-keys.test.ts',
      title: 'an attempt per order, channel and request',
    },
  },
  {
    name: 'moves outside the table are refused (trigger)',
    file: MIGRATION,
    find: 'create trigger pay_records_allowed_moves before update of status on pay_records',
    replace: 'create trigger pay_records_allowed_moves before update of request_no on pay_records',
    test: { file: 'test/db/moves.test.ts', title: 'pay_record' },
  },
  {
    name: 'reservations stay within the capture (trigger)',
    file: MIGRATION,
    find: 'create trigger captures_reservation_within_rest before update of reserved_minor on captures',
    replace: 'create trigger captures_reservation_within_rest before update of paid_at on captures',
    test: { file: 'test/db/guards.test.ts', title: 'B51: a reservation fills the capture' },
  },
  {
    name: 'a move names the state it expects (condition)',
    file: 'db/changes.ts',
    find: 'where pay_record_id = $1::bigint and status = $2::text returning 1`',
    replace: 'where pay_record_id = $1::bigint and $2::text is not null returning 1`',
    test: {
      file: 'test/db/change-statements.test.ts',
      title: 'a move whose expected state is gone',
    },
  },
  {
    name: 'the order row is locked first',
    file: 'db/rows.ts',
    find:
      'export async function lockOrder(client: Queryable, ref: OrderRef): Promise<boolean> {\n' +
      '  const locked = await client.query(\n' +
      '    `select 1 from orders where merchant_id = $1::text and order_id = $2::text for update`,',
    replace:
      'export async function lockOrder(client: Queryable, ref: OrderRef): Promise<boolean> {\n' +
      '  const locked = await client.query(\n' +
      '    `select 1 from orders where merchant_id = $1::text and order_id = $2::text`,',
    test: { file: 'test/db/change-statements.test.ts', title: 'whoever holds the order’s lock' },
  },
  {
    name: 'the sum is checked by the statement that reserves',
    file: 'db/refunds.ts',
    find: '       and reserved_minor + refunded_minor + reversed_minor + $2::bigint <= amount_minor`,',
    replace: '       and $2::bigint <= amount_minor`,',
    test: { file: 'test/db/change-statements.test.ts', title: 'reservations at once never pass' },
  },
  {
    name: 'our number at the channel is fixed',
    file: 'db/numbers.ts',
    find: '.update(JSON.stringify([...parts, counter]))',
    replace: '.update(JSON.stringify([...parts, counter, Math.random()]))',
    test: { file: 'test/db/attempt-statements.test.ts', title: 'one request at once ten times' },
  },
  {
    name: 'a query comes before any retry (statement)',
    file: 'db/attempts.ts',
    find: "         and (sends = 0 or (last_call = 'query' and last_fact_state in ('not_found', 'pending')))`,",
    replace: '`,',
    test: { file: 'test/db/attempt-statements.test.ts', title: 'a number may be sent once' },
  },
  {
    name: 'a query comes before any retry (rule)',
    file: 'domain/attempts.ts',
    find: "  if (record.lastCall !== 'query' || !mayResend(record, policy, now)) return 'query';",
    replace:
      "  if (!mayResend(record, policy, now)) return 'query';\n  if (record.lastCall !== 'query') return 'submit';",
    test: { file: 'test/domain/attempts.test.ts', title: '' },
  },
  {
    name: 'another attempt is closed before a new one opens',
    file: 'domain/attempts.ts',
    find: "    return { decision: 'close_first', record: live };",
    replace: "    return { decision: 'open' };",
    test: { file: 'test/domain/pay-requests.test.ts', title: 'B04: closes the live attempt first' },
  },
  {
    name: 'the amount must be the one due',
    file: 'domain/capture-settlement.ts',
    find: 'const isDue = amountMinor === order.amountMinor && currency === order.currency;',
    replace: 'const isDue = amountMinor > 0 && currency === order.currency;',
    test: { file: 'test/domain/settlement-money.test.ts', title: 'B47: amount_mismatch' },
  },
  {
    name: 'a second capture is surplus',
    file: 'domain/capture-settlement.ts',
    find: "        verdict: 'surplus_duplicate',\n        changes: [\n          ...recordPaid,\n          capture('surplus_duplicate'),",
    replace: "        verdict: 'surplus_duplicate',\n        changes: [\n          ...recordPaid,",
    test: { file: 'test/domain/settlement-money.test.ts', title: 'surplus_duplicate: B03' },
  },
  {
    name: 'callbacks are signed',
    file: 'channels/message-authenticity.ts',
    find: '  return matches === 1;',
    replace: '  return matches <= 1;',
    test: { file: 'test/channels/mock-a-callback.test.ts', title: 'compares signatures without' },
  },
  {
    name: 'a callback is stored before it is acknowledged',
    file: 'api/routes/callbacks.ts',
    find: 'const stored = await storeCallback(deps.pool, reading.fact, rawBody, (state, takenElsewhere) =>\n    hasNoEffect(state, reading.fact, configured, takenElsewhere),\n  );',
    replace:
      "const stored = { copies: 1, ring: false, ref: undefined, status: 'stored' } as StoredCallback;\n" +
      '  storeCallback(deps.pool, reading.fact, rawBody, (state, takenElsewhere) =>\n' +
      '    hasNoEffect(state, reading.fact, configured, takenElsewhere),\n' +
      '  ).catch(() => undefined);',
    test: {
      file: 'test/api/callbacks.test.ts',
      title: 'with the inbox held up a callback is answered 503',
    },
  },
  {
    name: 'a refund keeps its number on retry',
    file: 'activities/channel-calls.ts',
    find: '        outRefundNo: refund.outRefundNo,\n        outTradeNo: refund.outTradeNo,',
    replace:
      '        outRefundNo: `${refund.outRefundNo.slice(0, 29)}${refund.sends}`,\n' +
      '        outTradeNo: refund.outTradeNo,',
    test: {
      file: 'test/activities/channel-calls.test.ts',
      title: 'B54: a refund keeps its number',
    },
  },
  {
    name: 'a refund is checked again before it is sent',
    file: 'domain/refunds.ts',
    find: "  if (!capture || capture.status !== 'captured') return false;\n  const owed",
    replace: '  if (!capture) return false;\n  const owed',
    test: { file: 'test/domain/refunds.test.ts', title: 'whatever the order became' },
  },
  {
    name: 'a failed refund needs a query',
    file: 'domain/refund-settlement.ts',
    find: "      if (fact.learntFrom !== 'query' && fact.learntFrom !== 'trade_bill') {",
    replace: '      if (false) {',
    test: { file: 'test/domain/refund-settlement.test.ts', title: '' },
  },
  {
    name: 'a key with other content is refused',
    file: 'db/idempotency-keys.ts',
    find: '`select fingerprint = $5::bytea as same, status, resource,',
    replace: '`select $5::bytea is not null as same, status, resource,',
    test: { file: 'test/api/idempotency.test.ts', title: 'B65: the same key with other content' },
  },
  {
    name: 'a decision is about the case as it is (rule)',
    file: 'domain/operator-acts.ts',
    find: 'act.caseId === openCase.caseId && act.caseVersion === openCase.version;',
    replace: 'act.caseId === openCase.caseId;',
    test: { file: 'test/domain/operator-acts.test.ts', title: 'an older version' },
  },
  {
    name: 'a case that holds money is closed by two persons (rule)',
    file: 'domain/operator-acts.ts',
    find: "    if (!context.confirmed) return refuse('second_person_needed');\n",
    replace: '',
    test: { file: 'test/domain/operator-acts.test.ts', title: 'nor by the evidence of one person' },
  },
  {
    name: 'accepting gives all other captures back',
    file: 'domain/operator-acts.ts',
    find: '...others.flatMap((other): ActChange[] => [',
    replace: '...others.slice(1).flatMap((other): ActChange[] => [',
    test: { file: 'test/domain/operator-acts.test.ts', title: 'accepts one of two captures' },
  },
  {
    name: 'an act is performed once',
    file: 'db/operator-acts.ts',
    find: "  if (act.status !== 'accepted') return nothingFollows(outcomeOf(act));\n",
    replace: '',
    test: { file: 'test/db/operator-acts.test.ts', title: 'ten times at once has one effect' },
  },
  {
    name: 'what was asked of an act never changes (trigger)',
    file: ACTS_MIGRATION,
    find: 'create trigger operator_acts_append_only before update on operator_acts',
    replace: 'create trigger operator_acts_append_only before update of act_id on operator_acts',
    test: { file: 'test/db/operator-acts.test.ts', title: 'never changes what was asked' },
  },
  {
    name: 'nobody is the second person of an act of their own (check)',
    file: ACTS_MIGRATION,
    find: '  constraint operator_acts_two_persons check (second_key is null or second_key <> actor_key),\n',
    replace: '',
    test: {
      file: 'test/db/operator-acts.test.ts',
      title: 'cannot be moved on by hand without a second person',
    },
  },
  {
    name: 'an accepted act is work (view)',
    file: ACTS_MIGRATION,
    find:
      '  union all\n' +
      "  select merchant_id, order_id, 'operator_act', coalesce(confirmed_at, created_at)\n" +
      "    from operator_acts where status = 'accepted' and order_id is not null;",
    replace: ';',
    test: { file: 'test/db/operator-acts.test.ts', title: 'is work of its order while' },
  },
  {
    name: 'a step is not sent while a call of it is under way (condition)',
    file: 'db/fulfilment.ts',
    find: '         and next_due_at <= now()`,',
    replace: '         `,',
    test: {
      file: 'test/db/fulfilment.test.ts',
      title: 'are sent in their order, and not while a call of them is under way',
    },
  },
  {
    name: 'a step that is refused after a lost answer is undone (rule)',
    file: 'domain/fulfilment.ts',
    find: "return step.outcomeUnknown ? undone : 'refused';",
    replace: "return 'refused';",
    test: {
      file: 'test/domain/fulfilment.test.ts',
      title: 'undoes a refused step when an earlier try of it may have worked',
    },
  },
  {
    name: 'no further step once the payment is given back (rule)',
    file: 'domain/fulfilment.ts',
    find: "return settling && refundableMinor(settling) === 0 ? 'refunded' : undefined;",
    replace: 'return undefined;',
    test: { file: 'test/domain/fulfilment.test.ts', title: 'stops an order' },
  },
  {
    name: 'a form of the desk carries its session’s token (check)',
    file: 'api/pages/desk/desk.tsx',
    find: "      if (c.req.method === 'POST') requireCsrfToken(c.get('form')['csrf'], session.csrfToken);\n",
    replace: '',
    test: { file: 'test/api/desk.test.ts', title: 'without the session’s token' },
  },
  {
    name: 'no other site logs anybody in at the desk (check)',
    file: 'api/pages/desk/desk.tsx',
    find: '      requireOwnPage(c, deps.publicUrl());\n',
    replace: '',
    test: { file: 'test/api/desk-login.test.ts', title: 'is refused when another site sends' },
  },
  {
    name: 'a session of the desk ends with its key (condition)',
    file: 'db/desk-sessions.ts',
    find: 'and k.revoked_at is null and',
    replace: 'and',
    test: { file: 'test/api/desk-login.test.ts', title: 'ends at once when' },
  },
  {
    name: '"no such number" from before the last send says nothing of it (rule)',
    file: 'domain/answers.ts',
    find: "  return { outcome: 'unknown', reason: 'asked_before_the_last_send', retryAfterMs: null };",
    replace: '  return answer;',
    test: { file: 'test/db/sends.test.ts', title: 'asked between two sends' },
  },
  {
    name: 'a payment is sent again only on what the channel said (condition)',
    file: 'db/attempts.ts',
    find: " and last_fact_state in ('not_found', 'pending')",
    replace: '',
    test: { file: 'test/db/sends.test.ts', title: 'a query that never left' },
  },
  {
    name: 'a refund is sent again only on what the channel said (condition)',
    file: 'db/refunds.ts',
    find: "last_call = 'query' and last_fact_state = any ($2::text[])",
    replace: "last_call = 'query' and $2::text[] is not null",
    test: { file: 'test/db/sends.test.ts', title: 'a query that never left' },
  },
];
