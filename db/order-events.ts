import type { OrderRef } from '../domain/orders';
import type { Queryable } from './transaction';

export interface OrderEvent {
  subject: 'order' | 'pay_record' | 'capture' | 'refund' | 'case' | 'fulfilment_step';
  subjectId: string | number;
  from: string | null;
  to: string;
  /** The verdict or the act that moved it. */
  cause: string;
  evidence?: unknown;
  /** `system`, a channel's name, or `merchant:<key>` / `operator:<key>`. */
  actor: string;
}

/** Writes one line of an order's append-only history, in the transaction of the move itself. */
export async function recordEvent(
  client: Queryable,
  ref: OrderRef,
  event: OrderEvent,
): Promise<void> {
  await client.query(
    `insert into order_events
       (merchant_id, order_id, subject, subject_id, from_status, to_status, cause, evidence, actor)
     values ($1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::jsonb, $9::text)`,
    [
      ref.merchantId,
      ref.orderId,
      event.subject,
      String(event.subjectId),
      event.from,
      event.to,
      event.cause,
      JSON.stringify(event.evidence ?? {}),
      event.actor,
    ],
  );
}
