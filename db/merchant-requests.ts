import type { OrderRef } from '../domain/orders';
import { fromRow } from './rows';
import type { Queryable } from './transaction';

/**
 * What the merchant asked under a number of its own. It is stored before the order's run is asked,
 * so Temporal's histories carry only the number, and it is the judge of "the same number with other
 * content".
 */
export interface PayParams {
  channel: string;
  method: string | null;
  returnUrl: string | null;
  clientIp: string | null;
  payer: Record<string, string> | null;
}

export interface RefundParams {
  /** Minor units; null: whatever is left. */
  amountMinor: number | null;
  reason: string;
}

export interface MerchantRequest<Params> extends OrderRef {
  requestNo: string;
  /** SHA-256 of the content's canonical form. */
  fingerprint: Buffer;
  params: Params;
  /** The pay record that serves the request: the one it opened, or the live one it joined. */
  payRecordId: number | null;
  createdAt: string;
}

interface ParamsOf {
  pay: PayParams;
  refund: RefundParams;
}
export type RequestKind = keyof ParamsOf;

/** The request stored under the number, or undefined. */
export async function readRequest<K extends RequestKind>(
  client: Queryable,
  ref: OrderRef,
  kind: K,
  requestNo: string,
): Promise<MerchantRequest<ParamsOf[K]> | undefined> {
  const { rows } = await client.query<Record<string, unknown>>(
    `select merchant_id, order_id, request_no, fingerprint, params, pay_record_id, created_at
     from merchant_requests
     where merchant_id = $1::text and order_id = $2::text and kind = $3::text
       and request_no = $4::text`,
    [ref.merchantId, ref.orderId, kind, requestNo],
  );
  return rows[0] && fromRow<MerchantRequest<ParamsOf[K]>>(rows[0]);
}

/**
 * Stores the request, or finds the one stored before under the same number. The caller compares
 * fingerprints: the first content wins for ever.
 */
export async function storeRequest<K extends RequestKind>(
  client: Queryable,
  ref: OrderRef,
  kind: K,
  request: { requestNo: string; fingerprint: Buffer; params: ParamsOf[K] },
): Promise<MerchantRequest<ParamsOf[K]>> {
  const { rows } = await client.query<Record<string, unknown>>(
    `insert into merchant_requests (merchant_id, order_id, kind, request_no, fingerprint, params)
     values ($1::text, $2::text, $3::text, $4::text, $5::bytea, $6::jsonb)
     on conflict (merchant_id, order_id, kind, request_no) do nothing
     returning merchant_id, order_id, request_no, fingerprint, params, pay_record_id, created_at`,
    [
      ref.merchantId,
      ref.orderId,
      kind,
      request.requestNo,
      request.fingerprint,
      JSON.stringify(request.params),
    ],
  );
  if (rows[0]) return fromRow<MerchantRequest<ParamsOf[K]>>(rows[0]);
  const stored = await readRequest(client, ref, kind, request.requestNo);
  // Between the two statements a refusal may have freed the number: then it is ours to take.
  return stored ?? storeRequest(client, ref, kind, request);
}

/**
 * Frees a number after a definite refusal, so that it may be used with other content. A request that
 * a pay record or a refund already serves is kept.
 */
export async function forgetRequest(
  client: Queryable,
  ref: OrderRef,
  kind: RequestKind,
  requestNo: string,
): Promise<void> {
  await client.query(
    `delete from merchant_requests q
     where q.merchant_id = $1::text and q.order_id = $2::text and q.kind = $3::text
       and q.request_no = $4::text and q.pay_record_id is null
       and not exists (select from refunds f where q.kind = 'refund'
         and f.merchant_id = q.merchant_id and f.order_id = q.order_id
         and f.refund_no = q.request_no)`,
    [ref.merchantId, ref.orderId, kind, requestNo],
  );
}

/**
 * Says which pay record serves the request. Inside the transaction that opened or joined it; the
 * first binding stays.
 */
export async function bindPayRequest(
  client: Queryable,
  ref: OrderRef,
  requestNo: string,
  payRecordId: number,
): Promise<void> {
  await client.query(
    `update merchant_requests set pay_record_id = $4::bigint
     where merchant_id = $1::text and order_id = $2::text and kind = 'pay'
       and request_no = $3::text and pay_record_id is null`,
    [ref.merchantId, ref.orderId, requestNo, payRecordId],
  );
}
