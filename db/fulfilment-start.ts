import type { OrderRef } from '../domain/orders';
import type { Queryable } from './transaction';

/**
 * Copies the merchant's steps to an order that becomes paid, in the transaction that makes it so. An
 * order is fulfilled once: one whose fulfilment ever began keeps what it has. Nothing happens where no
 * steps are configured.
 */
export async function startFulfilment(
  client: Queryable,
  ref: OrderRef,
  cause: { verdict: string; actor: string },
): Promise<void> {
  await client.query(
    `with started as (
       update orders o set fulfilment_status = 'running' from merchants m
       where o.merchant_id = $1::text and o.order_id = $2::text and o.fulfilment_status = 'none'
         and m.merchant_id = o.merchant_id and m.fulfilment_steps <> '[]'
       returning m.fulfilment_steps as steps),
     copied as (
       insert into fulfilment_steps (merchant_id, order_id, step_no, name, url, undo_url, timeout_ms,
         next_due_at)
       select $1::text, $2::text, s.no, s.step->>'name', s.step->>'url', s.step->>'undo_url',
         (s.step->>'timeout_ms')::int, case when s.no = 1 then now() end
       from started, jsonb_array_elements(started.steps) with ordinality as s(step, no)
       returning step_no, name)
     insert into order_events
       (merchant_id, order_id, subject, subject_id, from_status, to_status, cause, evidence, actor)
     select $1::text, $2::text, 'order', $2::text, 'fulfilment:none', 'fulfilment:running', $3::text,
       jsonb_build_object('steps', jsonb_agg(name order by step_no)), $4::text
     from copied having count(*) > 0`,
    [ref.merchantId, ref.orderId, cause.verdict, cause.actor],
  );
}
