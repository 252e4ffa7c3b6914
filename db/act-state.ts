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
    callback_status: string | null;
  }>(
    `select k.case_id, k.version,
       (select coalesce(jsonb_agg(c.capture_id), '[]')
         from cases d, jsonb_array_elements_text(d.decision->'settled_captures') s(capture_id),
           lateral (select s.capture_id::bigint as capture_id) c
         where d.merchant_id = $1::text and d.order_id = $2::text and d.status = 'closed') as settled,
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
    callback: row.callback_status === null ? undefined : { status: row.callback_status },
  };
}
