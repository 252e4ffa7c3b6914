import type { OrderRef } from '../domain/orders';
import { recordEvent } from './order-events';
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
  const { rows } = await client.query<{ name: string }>(
    `with started as (
       update orders o set fulfilment_status = 'running' from merchants m
       where o.merchant_id = $1::text and o.order_id = $2::text and o.fulfilment_status = 'none'
         and m.merchant_id = o.merchant_id and m.fulfilment_steps <> '[]'
       returning m.fulfilment_steps as steps)
     insert into fulfilment_steps (merchant_id, order_id, step_no, name, url, undo_url, timeout_ms,
       next_due_at)
     select $1::text, $2::text, s.no, s.step->>'name', s.step->>'url', s.step->>'undo_url',
       (s.step->>'timeout_ms')::int, case when s.no = 1 then now() end
     from started, jsonb_array_elements(started.steps) with ordinality as s(step, no)
     returning name`,
    [ref.merchantId, ref.orderId],
  );
  if (rows.length === 0) return;
  await recordEvent(client, ref, {
    subject: 'order',
    subjectId: ref.orderId,
    from: 'fulfilment:none',
    to: 'fulfilment:running',
    cause: cause.verdict,
    evidence: { steps: rows.map(({ name }) => name) },
    actor: cause.actor,
  });
}
