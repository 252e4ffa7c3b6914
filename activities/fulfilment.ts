import { Context } from '@temporalio/activity';
import { failpoint } from '../db/failpoint';
import { advanceFulfilment, applyStepAnswer, beginStepCall } from '../db/fulfilment';
import type { FulfilmentProgress, StepToCall } from '../db/fulfilment';
import { stepAnswerOf, stepKey } from '../domain/fulfilment';
import type { StepAnswer, StepCall } from '../domain/fulfilment';
import { storableText } from '../domain/channel-facts';
import type { OrderRef } from '../domain/orders';
import { orderNotFound } from '../workflows/failures';
import type { ActivityDeps } from './deps';
import { whileBeating } from './heartbeats';
import { signedHeaders } from './merchant-signature';

export type { FulfilmentProgress } from '../db/fulfilment';

export interface StepInput extends OrderRef {
  stepNo: number;
  call: StepCall;
  tryNo: number;
}

/** What a reason may be, so that an answer stays small in a history. */
const REASON_MAX = 200;

/** The steps of a fulfilment: decided in the database, carried out by the merchant's own server. */
export function createFulfilmentSteps(deps: ActivityDeps) {
  const fulfilment = { policy: deps.fulfilment, numberSecret: deps.numberSecret };

  function found(ref: OrderRef, progress: FulfilmentProgress | undefined): FulfilmentProgress {
    if (!progress) throw orderNotFound(ref);
    return progress;
  }

  return {
    /** The fulfilment as PostgreSQL knows it, brought to its next call. */
    async loadFulfilment(ref: OrderRef): Promise<FulfilmentProgress> {
      return found(ref, await advanceFulfilment(deps.pool, ref, fulfilment));
    },

    /**
     * Does or undoes one step: one signed POST under the step's own key, the same on every try. The
     * outcome is a value; an exception means that not even that is known.
     */
    callFulfilmentStep: (input: StepInput): Promise<StepAnswer> =>
      whileBeating(async () => {
        await failpoint('step:before', input.orderId);
        const sending = await beginStepCall(deps.pool, input, input, fulfilment);
        if (!sending) return { outcome: 'not_sent' };
        await failpoint('step:marked', input.orderId);
        const answer = await send(deps, input, sending);
        await failpoint('step:answered', input.orderId);
        return answer;
      }),

    /** Settles what one call brought. */
    async settleFulfilmentStep(
      input: StepInput & { answer: StepAnswer },
    ): Promise<FulfilmentProgress> {
      await failpoint('step-settle:before', input.orderId);
      const progress = await applyStepAnswer(deps.pool, input, input, fulfilment);
      await failpoint('step-settle:after', input.orderId);
      return found(input, progress);
    },
  };
}

/**
 * One try. `webhook-id` is the idempotency key, so that the signature covers it, and the body is the
 * same on every try.
 */
async function send(
  { notifications, postToMerchant, fulfilment }: ActivityDeps,
  { call, ...ref }: StepInput,
  { step, amountMinor, currency, metadata, secretRefs }: StepToCall,
): Promise<StepAnswer> {
  const key = stepKey(ref, step.name, call);
  const body = JSON.stringify({
    order_id: ref.orderId,
    merchant_id: ref.merchantId,
    step: step.name,
    amount_minor: amountMinor,
    currency,
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
  });
  try {
    const { status, retryAfterMs } = await postToMerchant(
      new URL(call === 'do' ? step.url : (step.undoUrl ?? '')),
      {
        headers: {
          ...(await signedHeaders(notifications, secretRefs, { id: key, body })),
          'idempotency-key': key,
        },
        body,
        timeoutMs: step.timeoutMs ?? fulfilment.timeoutMs,
        signal: Context.current().cancellationSignal,
      },
    );
    return stepAnswerOf(status, retryAfterMs);
  } catch (error) {
    const reason = error instanceof Error ? `${error.name}: ${error.message}` : 'unknown error';
    return {
      outcome: 'unknown',
      reason: storableText(reason.slice(0, REASON_MAX)),
      retryAfterMs: null,
    };
  }
}
