import type { OrderRef } from '../domain/orders';
import type { RefundState } from '../domain/states';
import { touchOrder } from './changes';
import { deriveNumber } from './numbers';
import { recordEvent } from './order-events';
import type { OrderState } from './rows';
import type { Client } from './transaction';

/**
 * A refund under the number this request would get was paid before we knew of the request: the
 * database is an older backup, and the channel's news came first, booked as nobody's. It is this
 * refund, so it gets its name back instead of being paid a second time. Returns its status.
 */
export async function adoptPaidRefund(
  client: Client,
  { order, refunds }: OrderState,
  refundNo: string,
  secret: string,
): Promise<RefundState | undefined> {
  const outRefundNo = refundNumber(secret, order, refundNo, 0);
  const paid = refunds.find((r) => r.origin === 'external' && r.outRefundNo === outRefundNo);
  if (!paid) return undefined;
  await client.query(
    `update refunds set refund_no = $2::text, origin = 'merchant', updated_at = now()
     where refund_id = $1::bigint and origin = 'external'`,
    [paid.refundId, refundNo],
  );
  await recordEvent(client, order, {
    subject: 'refund',
    subjectId: paid.refundId,
    from: null,
    to: paid.status,
    cause: 'refund_requested',
    evidence: { refund_no: refundNo, was: paid.refundNo, out_refund_no: outRefundNo },
    actor: 'merchant',
  });
  await touchOrder(client, order, { verdict: 'refund_requested', actor: 'merchant' });
  return paid.status;
}

const COLLISIONS_MAX = 5;

/** The refund's number at the channel: free, and the same whenever it is derived again. */
export async function freeRefundNumber(
  client: Client,
  ref: OrderRef,
  refundNo: string,
  secret: string,
): Promise<string> {
  for (let counter = 0; counter < COLLISIONS_MAX; counter++) {
    const number = refundNumber(secret, ref, refundNo, counter);
    const taken = await client.query(`select 1 from refunds where out_refund_no = $1::text`, [
      number,
    ]);
    if (taken.rowCount === 0) return number;
  }
  throw new Error(`no free refund number for order ${ref.orderId} after ${COLLISIONS_MAX} tries`);
}

function refundNumber(secret: string, ref: OrderRef, refundNo: string, counter: number): string {
  return deriveNumber(secret, ['refund', ref.merchantId, ref.orderId, refundNo], counter);
}
