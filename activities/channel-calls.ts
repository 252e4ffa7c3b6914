import { Context } from '@temporalio/activity';
import type { ChannelAnswer } from '../channels/contract';
import { beginSubmit, savePayParameters } from '../db/attempts';
import { failpoint } from '../db/failpoint';
import { beginRefundSubmit } from '../db/refunds';
import { readOrderState } from '../db/rows';
import type { CallAnswer, PaymentAnswer, RefundAnswer } from '../domain/answers';
import { storableText } from '../domain/channel-facts';
import type { Capture, OrderRef, PayRecord, Refund } from '../domain/orders';
import type { ActivityDeps } from './deps';
import { configuredChannel, settlementDeps } from './deps';

type AttemptInput = OrderRef & { payRecordId: number };
type RefundInput = OrderRef & { refundNo: string };

/**
 * The calls to a channel, one try each: a run never lets Temporal repeat them, because a query comes
 * before any retry. The outcome is a value; an exception means that not even that is known.
 */
export function createChannelCalls(deps: ActivityDeps) {
  async function recordOf(input: AttemptInput): Promise<PayRecord & { readAt: string }> {
    const state = await readOrderState(deps.pool, input);
    const record = state?.records.find((r) => r.payRecordId === input.payRecordId);
    if (!state || !record)
      throw new Error(`no pay record ${input.payRecordId} of order ${input.orderId}`);
    return { ...record, readAt: state.readAt };
  }

  return {
    /** Sends the attempt to the channel, its number fixed and marked as sent beforehand. */
    async submitPayment(input: AttemptInput): Promise<PaymentAnswer> {
      await failpoint('submit:before', input.orderId);
      const attempt = await beginSubmit(deps.pool, input, input.payRecordId);
      if (!attempt) return { outcome: 'not_sent' };
      const { channel } = await configuredChannel(deps, attempt.channel);
      await failpoint('submit:marked', input.orderId);
      const answer = await channel.createPayment({
        outTradeNo: attempt.outTradeNo,
        amountMinor: attempt.amountMinor,
        currency: attempt.currency,
        subject: attempt.subject,
        expiresAt: attempt.expiresAt,
        method: attempt.method,
        returnUrl: attempt.returnUrl,
        clientIp: attempt.clientIp,
        payer: attempt.payer,
        signal: Context.current().cancellationSignal,
      });
      await failpoint('submit:answered', input.orderId);
      if (answer.payParameters) {
        await savePayParameters(deps.pool, input, input.payRecordId, answer.payParameters);
      }
      return compact(answer);
    },

    async queryPayment(input: AttemptInput): Promise<PaymentAnswer> {
      const record = await recordOf(input);
      const { outTradeNo, currency } = record;
      const { channel } = await configuredChannel(deps, record.channel);
      const signal = Context.current().cancellationSignal;
      const answer = await channel.queryPayment({ outTradeNo, currency, signal });
      return asked(answer, { sentBefore: record.lastSentAt, askedAt: record.readAt });
    },

    async closePayment(input: AttemptInput): Promise<PaymentAnswer> {
      const { outTradeNo, currency, channel: name } = await recordOf(input);
      const { channel } = await configuredChannel(deps, name);
      const signal = Context.current().cancellationSignal;
      return compact(await channel.closePayment({ outTradeNo, currency, signal }));
    },

    /** Sends the refund to the channel under its one number, marked as sent beforehand. */
    async submitRefund(input: RefundInput): Promise<RefundAnswer> {
      await failpoint('refund-submit:before', input.orderId);
      const { policyOf } = await settlementDeps(deps);
      const refund = await beginRefundSubmit(deps.pool, input, input.refundNo, policyOf);
      if (!refund) return { outcome: 'not_sent' };
      const { channel } = await configuredChannel(deps, refund.channel);
      await failpoint('refund-submit:marked', input.orderId);
      const answer = await channel.createRefund({
        outRefundNo: refund.outRefundNo,
        outTradeNo: refund.outTradeNo,
        channelTradeNo: refund.channelTradeNo,
        amountMinor: refund.amountMinor,
        captureAmountMinor: refund.captureAmountMinor,
        currency: refund.currency,
        reason: refund.reason,
        signal: Context.current().cancellationSignal,
      });
      await failpoint('refund-submit:answered', input.orderId);
      return compact(answer);
    },

    async queryRefund(input: RefundInput): Promise<RefundAnswer> {
      const state = await readOrderState(deps.pool, input);
      const refund = state?.refunds.find((r: Refund) => r.refundNo === input.refundNo);
      const capture = state?.captures.find((c: Capture) => c.captureId === refund?.captureId);
      const record = state?.records.find((r: PayRecord) => r.payRecordId === capture?.payRecordId);
      if (!state || !refund || !record)
        throw new Error(`no refund ${input.refundNo} of order ${input.orderId}`);
      const { channel } = await configuredChannel(deps, refund.channel);
      const answer = await channel.queryRefund({
        outRefundNo: refund.outRefundNo,
        outTradeNo: record.outTradeNo,
        currency: refund.currency,
        signal: Context.current().cancellationSignal,
      });
      return asked(answer, { sentBefore: refund.lastSentAt, askedAt: state.readAt });
    },
  };
}

/** An answer to a query, with what there had been when it was asked. */
function asked<Fact>(
  answer: ChannelAnswer<Fact>,
  then: { sentBefore: string | null; askedAt: string },
): CallAnswer<Fact> {
  const short = compact(answer);
  return short.outcome === 'answered' ? { ...short, ...then } : short;
}

/** What may travel through a history: the fact or the reason, no pay parameters, bounded texts. */
function compact<Fact>(answer: ChannelAnswer<Fact>): CallAnswer<Fact> {
  switch (answer.outcome) {
    case 'answered':
      return { outcome: 'answered', fact: answer.fact };
    case 'refused':
      return {
        outcome: 'refused',
        code: storableText(answer.code.slice(0, 64)),
        alreadyKnown: answer.alreadyKnown,
      };
    case 'never_left':
    case 'unknown':
      return {
        outcome: answer.outcome,
        reason: answer.reason.slice(0, 200),
        retryAfterMs: answer.retryAfterMs,
      };
  }
}
