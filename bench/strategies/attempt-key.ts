/**
 * 6 · Ours: unique attempt key, row lock and conditional moves, by the product's own functions on its own
 * schema. A request is stored under its number, opens (or joins) the one live attempt under the
 * order's row lock, is marked as sent before the call, and the answer is settled under the lock again.
 * What the order's run decides in the product (when a call's time is over, that a query comes before any
 * retry) is decided here by the same rule, `nextCall`.
 *
 * Cannot: keep a channel that does not know numbers from being called by a process that stands still
 * between its last look at the clock and the wire; there the channel's own number is the gate.
 */
import { createHash } from 'node:crypto';
import { MOCK_POLICY } from '../../channels/adapter';
import { beginSubmit, openAttempt } from '../../db/attempts';
import { storeRequest } from '../../db/merchant-requests';
import { insertOrder } from '../../db/new-orders';
import { readProgress } from '../../db/progress';
import { readOrder, readOrderState } from '../../db/rows';
import { applyPaymentAnswer } from '../../db/settlement';
import type { PaymentFact } from '../../domain/channel-facts';
import type { PayRecord } from '../../domain/orders';
import { idsOf } from './strategy';
import type { Order, PayOutcome, StrategyKind } from './strategy';

const MERCHANT = 'bench';
const CHANNEL = 'bench';
const ACCOUNT = { accountId: 'account', appId: 'app' };
const CURRENCY = 'CNY';
/** A call that left at the very end of its sender's time is still on its way. */
const ARRIVAL_GRACE = 1.5;
/** Longer than any run. */
const EXPIRES_IN_S = 7 * 24 * 3_600;
const NUMBER_SECRET = 'a secret of the bench';

export const attemptKey: StrategyKind = {
  number: 6,
  usesRedis: false,
  usesProductSchema: true,
  make({ pool, channel, times }) {
    const policy = { ...MOCK_POLICY, callTimeoutMs: times.lease };
    const deps = { numberSecret: NUMBER_SECRET, policyOf: () => policy };
    const refOf = ({ orderId }: Order) => ({ merchantId: MERCHANT, orderId });

    async function submit(order: Order, payRecordId: number): Promise<PayOutcome> {
      const sendBefore = performance.now() + times.lease;
      const record = await beginSubmit(pool, refOf(order), payRecordId);
      if (!record) return 'busy';
      await channel.charge(order, record.outTradeNo, sendBefore);
      // As with an activity whose time is over: its result is not taken, the channel is asked.
      if (performance.now() > sendBefore) throw new Error('the answer came after the time limit');
      return settle(order, record, 'submit', 'paid');
    }

    async function settle(
      order: Order,
      record: PayRecord,
      call: 'submit' | 'query',
      state: 'paid' | 'not_found',
    ): Promise<PayOutcome> {
      const fact = factOf(record, call, state);
      const sentBefore = call === 'query' ? { sentBefore: record.lastSentAt } : {};
      const answer = { outcome: 'answered' as const, fact, ...sentBefore };
      const input = { payRecordId: record.payRecordId, call, answer };
      await applyPaymentAnswer(pool, refOf(order), input, deps);
      return state === 'paid' ? 'paid' : 'busy';
    }

    /** Goes on with an attempt whose sender is gone: what its run would do next. */
    async function resume(order: Order, payRecordId: number): Promise<PayOutcome> {
      const progress = await readProgress(pool, refOf(order), deps.policyOf);
      if (progress?.status === 'paid') return 'paid';
      if (progress?.attempt?.payRecordId !== payRecordId) return 'busy';
      if (progress.attempt.call === 'submit') return submit(order, payRecordId);
      const state = await readOrderState(pool, refOf(order));
      const record = state?.records.find((r) => r.payRecordId === payRecordId);
      if (!record?.lastSentAt) return 'busy';
      const ageMs = progress.readAtMs - Date.parse(record.lastSentAt);
      if (ageMs < times.lease * ARRIVAL_GRACE) return 'busy';
      const found = await channel.query(record.outTradeNo);
      return settle(order, record, 'query', found ? 'paid' : 'not_found');
    }

    return {
      async setUp() {
        await pool.query(`
          insert into merchants (merchant_id, name) values ('${MERCHANT}', 'bench');
          insert into channels (channel, adapter, account_id, app_id, gateway_url) values
            ('${CHANNEL}', 'bench', '${ACCOUNT.accountId}', '${ACCOUNT.appId}', 'http://127.0.0.1:9')`);
      },
      openPage: (order, earlier) =>
        Promise.resolve(earlier === undefined ? `pay-${order.orderId}` : `${earlier}-again`),
      async create(order) {
        const { same } = await insertOrder(pool, {
          ...refOf(order),
          amountMinor: order.amountMinor,
          currency: CURRENCY,
          subject: 'an order of the bench',
          expiresInS: EXPIRES_IN_S,
          metadata: {},
          returnUrl: null,
          actor: 'merchant:bench',
        });
        if (!same) throw new Error(`another order is stored as ${order.orderId}`);
      },
      async pay(order, requestNo) {
        const params = { ...NO_PARAMS, channel: CHANNEL };
        const fingerprint = fingerprintOf(order);
        const stored = await storeRequest(pool, refOf(order), 'pay', {
          ...{ requestNo, fingerprint, params },
        });
        if (!stored.fingerprint.equals(fingerprint))
          throw new Error('the number has other content');
        const answer = await openAttempt(pool, refOf(order), requestNo, deps);
        switch (answer.outcome) {
          case 'paid':
            return 'paid';
          case 'attempt':
            if (answer.opened) return submit(order, answer.payRecordId);
            if (answer.status === 'paid') return 'paid';
            return resume(order, answer.payRecordId);
          case 'wait':
          case 'conflict':
            return 'busy';
          case 'refused':
            throw new Error(`refused: ${answer.reason}`);
        }
      },
      isPaid: async (order) => (await readOrder(pool, refOf(order)))?.status === 'paid',
      paidOrders: () => idsOf(pool, `select order_id as id from orders where status = 'paid'`),
    };
  },
};

const NO_PARAMS = { method: null, returnUrl: null, clientIp: null, payer: null };

function fingerprintOf({ orderId, amountMinor }: Order): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([orderId, amountMinor]))
    .digest();
}

function factOf(
  record: PayRecord,
  learntFrom: 'submit' | 'query',
  state: 'paid' | 'not_found',
): PaymentFact {
  const now = new Date().toISOString();
  const paid = state === 'paid';
  return {
    kind: 'payment',
    channel: CHANNEL,
    ...ACCOUNT,
    learntFrom,
    learntAt: now,
    word: state.toUpperCase(),
    eventId: null,
    state,
    outTradeNo: record.outTradeNo,
    channelTradeNo: paid ? `T${record.outTradeNo}` : null,
    amountMinor: paid ? record.amountMinor : null,
    currency: paid ? record.currency : null,
    payerTotalMinor: null,
    reversedMinor: null,
    paidAt: paid ? now : null,
  };
}
