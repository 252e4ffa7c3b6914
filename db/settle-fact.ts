import { storableFact } from '../domain/channel-facts';
import type { ChannelFact } from '../domain/channel-facts';
import { settle } from '../domain/settlement';
import type { Settlement } from '../domain/verdicts';
import { applyChanges } from './changes';
import type { PolicyOf } from './progress';
import { closeRefundedCase } from './refunded-case';
import type { OrderState } from './rows';
import type { Client } from './transaction';
import { violatedConstraint } from './transaction';
import { holdUnbookable, isUnbookable } from './unbookable';

export interface SettlementDeps {
  policyOf: PolicyOf;
  numberSecret: string;
}

/** Settles one fact on a locked order: the rule decides, the changes are applied. */
export async function settleOne(
  client: Client,
  state: OrderState,
  toldFact: ChannelFact,
  now: string,
  deps: SettlementDeps,
): Promise<Settlement> {
  const fact = storableFact(toldFact);
  const settlement = settle(state, fact, await contextOf(client, state, fact, now, deps.policyOf));
  await applyChanges(client, state.order, settlement, {
    verdict: settlement.verdict,
    fact,
    channel: fact.channel,
    actor: fact.channel,
    numberSecret: deps.numberSecret,
  });
  if (settlement.verdict === 'refund_succeeded') {
    await closeRefundedCase(client, state.order, deps.numberSecret);
  }
  return settlement;
}

/**
 * What the rule must know beside the order: the channel's account as configured, and whether the
 * trade number already belongs to another order.
 */
export async function contextOf(
  client: Pick<Client, 'query'>,
  state: OrderState,
  fact: ChannelFact,
  now: string,
  policyOf: PolicyOf,
) {
  const { rows } = await client.query<{ account_id: string; app_id: string; elsewhere: boolean }>(
    `select account_id, app_id, exists (select from captures c
         where c.channel = $1::text and c.channel_trade_no = $2::text
           and (c.merchant_id, c.order_id) <> ($3::text, $4::text)) as elsewhere
     from channels where channel = $1::text`,
    [fact.channel, fact.channelTradeNo, state.order.merchantId, state.order.orderId],
  );
  return {
    now,
    policy: policyOf(fact.channel),
    account: { accountId: rows[0]?.account_id ?? '', appId: rows[0]?.app_id ?? '' },
    tradeNoTakenElsewhere: rows[0]?.elsewhere ?? false,
  };
}

/**
 * Runs a settling transaction; when a fact in it cannot be booked, once more with each fact for
 * itself, so that one that cannot be booked is put before a person and stops nothing else.
 */
export async function settleOrElseHold<T>(
  run: (settleFact: typeof settleOne) => Promise<T>,
): Promise<T> {
  try {
    return await retryOnTakenTradeNo(() => run(settleOne));
  } catch (error) {
    if (!isUnbookable(error)) throw error;
    return run(settleOrHold);
  }
}

/** Settles one fact, or undoes what it began and puts it before a person. */
async function settleOrHold(
  ...[client, state, fact, now, deps]: Parameters<typeof settleOne>
): Promise<Settlement> {
  await client.query('savepoint one_fact');
  try {
    const settlement = await settleOne(client, state, fact, now, deps);
    await client.query('release savepoint one_fact');
    return settlement;
  } catch (error) {
    if (!isUnbookable(error)) throw error;
    await client.query('rollback to savepoint one_fact');
    await holdUnbookable(client, state.order, fact, error);
    return { verdict: 'unbookable', changes: [], next: 'none' };
  }
}

/**
 * Two orders that claim one trade number at the same moment: the unique key stops the second, and
 * run again it sees that the number is taken.
 */
async function retryOnTakenTradeNo<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (violatedConstraint(error) !== 'captures_channel_channel_trade_no_key') throw error;
    return run();
  }
}
