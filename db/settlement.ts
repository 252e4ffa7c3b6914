import { isClosing, isUseless, liveAttempt } from '../domain/attempts';
import { stillTrue, type PaymentAnswer } from '../domain/answers';
import type { ChannelFact, PaymentFact } from '../domain/channel-facts';
import type { ChannelPolicy } from '../domain/channel-policy';
import { nextTry } from '../domain/ladders';
import type { ChannelCall, OrderRef, PayRecord } from '../domain/orders';
import type { Settlement } from '../domain/verdicts';
import { openCase } from './cases';
import type { OrderState } from './rows';
import { readOrderState, withLockedState } from './rows';
import type { Client, Pool } from './transaction';
import { together } from './transaction';
import { settleOrElseHold } from './settle-fact';
import type { SettlementDeps, settleOne } from './settle-fact';

/** What a callback said that only the answer to our own question makes sure of. */
const ASKED_VERDICTS = ['contradicts_paid', 'amount_mismatch', 'reversed', 'reinstated'];
/** Of these, the ones that took effect at once: told again, they would seem to be no news. */
const ASKED_AFTER_EFFECT = ['reversed', 'reinstated'];

/** Callbacks read from the inbox in one transaction; the rest are read by the next. */
const NEWS_BATCH = 20;

/**
 * Settles every stored callback of the order, oldest first, and answers the doorbell: whatever is
 * stored after this transaction rings anew. Returns the records that must be asked about before what
 * was said of them is believed.
 */
export async function settleNews(
  pool: Pool,
  ref: OrderRef,
  deps: SettlementDeps,
): Promise<{ ask: number[]; nudgeRefunds: string[] }> {
  return settleOrElseHold((settleFact) => readInbox(pool, ref, deps, settleFact));
}

function readInbox(
  pool: Pool,
  ref: OrderRef,
  deps: SettlementDeps,
  settleFact: typeof settleOne,
): Promise<{ ask: number[]; nudgeRefunds: string[] }> {
  return withLockedState(pool, ref, async (client, locked) => {
    const ask = new Set<number>();
    const nudgeRefunds = new Set<string>();
    let state = locked;
    if (!state) return { ask: [], nudgeRefunds: [] };
    const [{ rows }] = await together([
      client.query<{
        callback_id: number;
        fact: ChannelFact;
        verdict: string | null;
        now: string;
      }>(
        `select callback_id, fact, verdict, now() as now from channel_callbacks
           where merchant_id = $1::text and order_id = $2::text and status = 'stored'
           order by callback_id limit $3::int`,
        [ref.merchantId, ref.orderId, NEWS_BATCH],
      ),
      client.query(
        `update orders set doorbell_rung_at = null, nudges = 0, nudged_at = null
           where merchant_id = $1::text and order_id = $2::text
             and (doorbell_rung_at is not null or nudges > 0)`,
        [ref.merchantId, ref.orderId],
      ),
    ]);
    for (const row of rows) {
      if (ASKED_AFTER_EFFECT.includes(row.verdict ?? '')) {
        // It had its effect, and its question is not answered yet: only asked again.
        askAboutOwn(state, row.fact, ask);
        await putOff(client, row.callback_id, deps.policyOf(row.fact.channel));
        continue;
      }
      const settlement = await settleFact(client, state, row.fact, row.now, deps);
      const asked = await askAgain(client, state, row.fact, settlement, ask, nudgeRefunds);
      // A word that is being asked about stays in the inbox until the answer is settled.
      await client.query(
        `update channel_callbacks set verdict = $2::text,
             status = case when $3::boolean then status when $2::text = 'no_effect' then 'no_effect'
               else 'applied' end,
             applied_at = case when $3::boolean then null else now() end,
             next_due_at = now() + make_interval(secs => $4::double precision)
           where callback_id = $1::bigint and status = 'stored'`,
        [
          row.callback_id,
          settlement.verdict,
          asked,
          deps.policyOf(row.fact.channel).callTimeoutMs / 500,
        ],
      );
      if (settlement.changes.length > 0 && row !== rows.at(-1))
        state = (await readOrderState(client, ref)) ?? state;
    }
    return { ask: [...ask], nudgeRefunds: [...nudgeRefunds] };
  });
}

/** Makes what must be asked due now. True when the callback itself has to wait for the answer. */
async function askAgain(
  client: Client,
  state: OrderState,
  fact: ChannelFact,
  settlement: Settlement,
  ask: Set<number>,
  nudgeRefunds: Set<string>,
): Promise<boolean> {
  if (fact.kind === 'refund') {
    const refund = state.refunds.find((r) => r.outRefundNo === fact.outRefundNo);
    if (!refund) return false;
    if (settlement.changes.length > 0 || settlement.next === 'query')
      nudgeRefunds.add(refund.refundNo);
    if (settlement.next === 'query') {
      await client.query(`update refunds set next_due_at = now() where refund_id = $1::bigint`, [
        refund.refundId,
      ]);
    }
    return false;
  }
  if (settlement.next !== 'query') return false;
  if (ASKED_AFTER_EFFECT.includes(settlement.verdict)) return askAboutOwn(state, fact, ask);
  const record = state.records.find((r) => r.outTradeNo === fact.outTradeNo);
  if (!record) return false;
  if (liveAttempt([record])) {
    await client.query(
      `update pay_records set next_due_at = now() where pay_record_id = $1::bigint`,
      [record.payRecordId],
    );
    return false;
  }
  ask.add(record.payRecordId);
  return true;
}

/** The attempt that a payment's news is about, to be asked about whatever state it is in. */
function askAboutOwn(state: OrderState, fact: ChannelFact, ask: Set<number>): boolean {
  const record = state.records.find((r) => r.outTradeNo === fact.outTradeNo);
  if (record) ask.add(record.payRecordId);
  return record !== undefined;
}

async function putOff(client: Client, callbackId: number, policy: ChannelPolicy): Promise<void> {
  await client.query(
    `update channel_callbacks set next_due_at = now() + make_interval(secs => $2::double precision)
     where callback_id = $1::bigint and status = 'stored'`,
    [callbackId, policy.callTimeoutMs / 500],
  );
}

/**
 * Settles what one call to the channel brought, and says when the next call is due. Every outcome
 * ends here: an answer is a fact; a refusal ends an attempt only when it was the only send ever; an
 * unknown outcome changes nothing but the ladder. An answer may be older than what was told after it
 * was asked: it ends no question about that, and when it moves a reversed sum, the channel is asked again.
 */
export async function applyPaymentAnswer(
  pool: Pool,
  ref: OrderRef,
  input: { payRecordId: number; call: ChannelCall; answer: PaymentAnswer },
  deps: SettlementDeps,
): Promise<{ ask: number[] }> {
  if (input.answer.outcome === 'not_sent') return { ask: [] };
  return settleOrElseHold((settleFact) =>
    withLockedState(pool, ref, async (client, state) => {
      const record = state?.records.find((r) => r.payRecordId === input.payRecordId);
      if (!state || !record) return { ask: [] };
      const answer = stillTrue(input.answer, record.lastSentAt);
      const policy = deps.policyOf(record.channel);
      const now = state.readAt;
      const fact = answeredFact(answer, input.call, record, now);
      let settlement: Settlement | undefined;
      if (fact) {
        settlement = await settleFact(client, state, fact, now, deps);
        if (answer.outcome === 'answered' && answer.askedAt !== undefined) {
          await closeAskedCallbacks(client, record, answer.askedAt);
          if (ASKED_AFTER_EFFECT.includes(settlement.verdict))
            await doubtIfToldSince(client, record, settlement.verdict, answer.askedAt);
        }
      }
      const noted = noteCall(client, record, input.call, answer, fact, policy);
      const status = movedTo(settlement, record) ?? record.status;
      if (!liveAttempt([{ ...record, status }])) {
        await noted;
        // A close or a refused re-send that contradicts a paid record: the channel is asked once.
        const mustAsk = settlement?.next === 'query' && input.call !== 'query';
        return { ask: mustAsk ? [record.payRecordId] : [] };
      }
      const [, after] = await together([noted, readOrderState(client, ref)]);
      const still = after?.records.find((r) => r.payRecordId === input.payRecordId);
      if (!after || !still) return { ask: [] };
      await scheduleNextCall(client, after, still, { ...input, answer, settlement, policy, now });
      return { ask: [] };
    }),
  );
}

/** Where the settlement moved the record; undefined: nowhere. */
function movedTo(settlement: Settlement | undefined, { payRecordId }: PayRecord) {
  for (const change of settlement?.changes ?? [])
    if (change.change === 'move_record' && change.payRecordId === payRecordId) return change.to;
  return undefined;
}

/** The fact an answer amounts to; a first and only send that is refused is a definite "failed". */
function answeredFact(
  answer: PaymentAnswer,
  call: ChannelCall,
  record: PayRecord,
  now: string,
): PaymentFact | undefined {
  if (answer.outcome === 'answered') return answer.fact;
  if (answer.outcome !== 'refused' || answer.alreadyKnown || call !== 'submit') return undefined;
  return {
    kind: 'payment',
    state: 'failed',
    channel: record.channel,
    accountId: null,
    appId: null,
    learntFrom: 'submit',
    learntAt: now,
    word: answer.code,
    eventId: null,
    outTradeNo: record.outTradeNo,
    channelTradeNo: null,
    amountMinor: null,
    currency: null,
    payerTotalMinor: null,
    reversedMinor: null,
    paidAt: null,
  };
}

/** Books the call on the record: what was called last and what it learnt decide the next call. */
async function noteCall(
  client: Client,
  record: PayRecord,
  call: ChannelCall,
  answer: PaymentAnswer,
  fact: PaymentFact | undefined,
  policy: ChannelPolicy,
): Promise<void> {
  const neverLeft = answer.outcome === 'never_left' && call === 'submit';
  const next = nextTry(answer, policy.pollLadderMs, record.polls, Math.random());
  await client.query(
    `update pay_records set last_call = $2::text, last_call_at = now(), last_fact_state = $3::text,
       polls = polls + case when $6::boolean then 1 else 0 end,
       -- A send that never left is taken back once, also when this step runs twice: the mark before
       -- the send is the only statement that gives both times the same value.
       sends = sends - case
         when $4::boolean and sends > 0 and last_call_at = last_sent_at then 1 else 0 end,
       outcome_unknown = case
         when $4::boolean and sends <= 1 and last_call_at = last_sent_at then false
         when $2::text = 'submit' and $3::text is not null then false
         else outcome_unknown end,
       next_due_at = now() + make_interval(secs => $5::double precision / 1000),
       updated_at = now()
     where pay_record_id = $1::bigint`,
    [record.payRecordId, call, fact?.state ?? null, neverLeft, next.waitMs, next.climbs],
  );
}

/** Calls of one closing round (query, close, query) follow each other at once; later ones climb. */
const CLOSING_ROUND_CALLS = 3;

async function scheduleNextCall(
  client: Client,
  state: OrderState,
  record: PayRecord,
  input: {
    call: ChannelCall;
    answer: PaymentAnswer;
    settlement: Settlement | undefined;
    policy: ChannelPolicy;
    now: string;
  },
): Promise<void> {
  const { policy, now, answer } = input;
  const closing = isClosing(state.order, record);
  const definite = answer.outcome === 'answered' || answer.outcome === 'refused';
  const atOnce =
    (input.settlement?.next === 'query' && input.call !== 'query') ||
    (answer.outcome === 'refused' && answer.alreadyKnown) ||
    (closing &&
      definite &&
      record.polls < CLOSING_ROUND_CALLS &&
      record.lastFactState !== 'not_found');
  if (atOnce) await dueNow(client, record);
  if (!closing && isUseless(record, policy, now)) {
    await client.query(
      `update pay_records set close_requested_at = now(), close_reason = 'no_pay_parameters', polls = 0,
         next_due_at = now()
       where pay_record_id = $1::bigint and close_requested_at is null`,
      [record.payRecordId],
    );
    return;
  }
  const since = record.closeRequestedAt ?? state.order.closeRequestedAt;
  if (
    closing &&
    since &&
    Date.parse(now) - Date.parse(since) > policy.unconfirmedCloseCaseAfterMs
  ) {
    await openCase(client, state.order, {
      kind: 'close_unconfirmed',
      summary: `${record.channel} does not confirm that ${record.outTradeNo} is closed; asking goes on`,
      channel: record.channel,
      subjectNo: record.outTradeNo,
      evidence: { last_call: record.lastCall, last_fact_state: record.lastFactState },
    });
  }
  if (isForgotten(record, policy, now)) {
    await openCase(client, state.order, {
      kind: 'outcome_unknown',
      summary: `${record.outTradeNo} may have reached ${record.channel}, which no longer keeps its key: nothing is sent again`,
      channel: record.channel,
      subjectNo: record.outTradeNo,
      evidence: { first_sent_at: record.firstSentAt, sends: record.sends },
    });
  }
}

async function dueNow(client: Client, record: PayRecord): Promise<void> {
  await client.query(
    `update pay_records set next_due_at = now() where pay_record_id = $1::bigint`,
    [record.payRecordId],
  );
}

function isForgotten(record: PayRecord, policy: ChannelPolicy, now: string): boolean {
  return (
    record.status === 'submitting' &&
    record.firstSentAt !== null &&
    Date.parse(now) - Date.parse(record.firstSentAt) >= policy.keyLifetimeMs
  );
}

/** The answer to our own question is settled: the callbacks that raised it before it was asked are done. */
async function closeAskedCallbacks(
  client: Client,
  record: PayRecord,
  askedAt: string,
): Promise<void> {
  await client.query(
    `update channel_callbacks set status = 'applied', applied_at = now()
     where channel = $1::text and our_no = $2::text and status = 'stored'
       and merchant_id = $3::text and order_id = $4::text
       and verdict = any ($5::text[]) and last_received_at <= $6::timestamptz`,
    [record.channel, record.outTradeNo, record.merchantId, record.orderId, ASKED_VERDICTS, askedAt],
  );
}

/**
 * Sums that are reversed and given back are in no order that tells which word is newer. What was told
 * while the question was under way was judged by what we held before its answer, and may have been
 * nothing new then: the last of it stands as the question until an answer asked after it.
 */
async function doubtIfToldSince(
  client: Client,
  record: PayRecord,
  verdict: string,
  askedAt: string,
): Promise<void> {
  await client.query(
    `update channel_callbacks set status = 'stored', verdict = $5::text, next_due_at = now()
     where callback_id = (select callback_id from channel_callbacks
         where channel = $1::text and our_no = $2::text and merchant_id = $3::text
           and order_id = $4::text and last_received_at > $6::timestamptz
         order by last_received_at desc limit 1)
       and status in ('applied', 'no_effect')`,
    [record.channel, record.outTradeNo, record.merchantId, record.orderId, verdict, askedAt],
  );
}
