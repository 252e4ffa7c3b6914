import type { ActState } from '../domain/operator-acts';
import type { OrderRef } from '../domain/orders';
import { lockOrderState, readOrderState } from './rows';
import type { OrderState } from './rows';
import type { Queryable } from './transaction';

/**
 * Everything that an act's rule may want to see of an order.
 * @param callbackId the callback that the act names
 */
export async function readActState(
  client: Queryable,
  ref: OrderRef,
  callbackId: number | null,
): Promise<ActState | undefined> {
  const state = await readOrderState(client, ref);
  return state && withCase(client, state, callbackId);
}

/** The same with the order's lock held: decisions are made on this. */
export async function lockActState(
  client: Queryable,
  ref: OrderRef,
  callbackId: number | null,
): Promise<ActState | undefined> {
  const state = await lockOrderState(client, ref);
  return state && withCase(client, state, callbackId);
}

async function withCase(
  client: Queryable,
  state: OrderState,
  callbackId: number | null,
): Promise<ActState> {
  const { merchantId, orderId } = state.order;
  const { rows } = await client.query<{
    case_id: number | null;
    version: number | null;
    settled: number[];
    channel_money: number[];
    decided_alone: Record<string, number>;
    callback_status: string | null;
  }>(
    `select k.case_id, k.version,
       (select coalesce(jsonb_agg(c.capture_id), '[]')
         from cases d, jsonb_array_elements_text(d.decision->'settled_captures') s(capture_id),
           lateral (select s.capture_id::bigint as capture_id) c
         where d.merchant_id = $1::text and d.order_id = $2::text and d.status = 'closed') as settled,
       (select coalesce(jsonb_agg(f.difference_id order by f.difference_id), '[]') from differences f
         where f.merchant_id = $1::text and f.order_id = $2::text and f.status <> 'resolved'
           and f.kind in ('channel_only', 'duplicate_payment') and f.reason <> 'reversal'
           and f.capture_id is null
           -- Booked since the bill was compared: it is held by its capture.
           and not exists (select from captures c where c.channel = f.channel
             and c.channel_trade_no = f.channel_says->>'channel_trade_no')
           and not exists (select from cases d where d.merchant_id = $1::text
             and d.order_id = $2::text and d.status = 'closed'
             and d.decision->'settled_differences' @> to_jsonb(f.difference_id))) as channel_money,
       (select coalesce(jsonb_object_agg(g.currency, g.minor), '{}') from (
          select a.currency, sum(a.amount_minor) as minor
          from operator_acts a left join refunds f
            on f.merchant_id = a.merchant_id and f.order_id = a.order_id
              and f.refund_no = 'act:' || a.act_no || ':' || a.capture_id
          where a.merchant_id = $1::text and a.order_id = $2::text and a.kind = 'refund_money'
            and a.second_key is null and a.status in ('accepted', 'done')
            and a.currency is not null and a.amount_minor is not null
            and f.status is distinct from 'failed'
          group by a.currency) g) as decided_alone,
       (select b.status from channel_callbacks b where b.callback_id = $3::bigint
         and b.merchant_id = $1::text and b.order_id = $2::text) as callback_status
     from (select 1) one left join cases k
       on k.merchant_id = $1::text and k.order_id = $2::text and k.status = 'open'`,
    [merchantId, orderId, callbackId],
  );
  const row = rows[0]!;
  return {
    ...state,
    openCase:
      row.case_id === null || row.version === null
        ? undefined
        : { caseId: row.case_id, version: row.version },
    settledCaptures: row.settled,
    channelMoney: row.channel_money,
    decidedAlone: row.decided_alone,
    callback: row.callback_status === null ? undefined : { status: row.callback_status },
  };
}
