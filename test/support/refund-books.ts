import type { Saga } from './saga';

export interface RefundRow {
  refund_id: number;
  refund_no: string;
  out_refund_no: string;
  amount_minor: number;
  status: string;
  status_reason: string | null;
  origin: string;
  sends: number;
  polls: number;
  last_call: string | null;
  first_sent_at: string | null;
}

/** The order's refunds as PostgreSQL holds them, oldest first. */
export function refundRows(saga: Saga, orderId: string): Promise<RefundRow[]> {
  return saga.rows<RefundRow>(
    `select * from refunds where merchant_id = $1::text and order_id = $2::text order by refund_id`,
    saga.merchantId,
    orderId,
  );
}

/** One refund; fails when there is none under the number. */
export async function refundRow(saga: Saga, orderId: string, refundNo: string): Promise<RefundRow> {
  const row = (await refundRows(saga, orderId)).find((r) => r.refund_no === refundNo);
  if (!row) throw new Error(`order ${orderId} has no refund ${refundNo}`);
  return row;
}

/** Every state the refund ever had, oldest first, from the append-only events. */
export async function refundStates(
  saga: Saga,
  orderId: string,
  refundNo: string,
): Promise<string[]> {
  const { refund_id } = await refundRow(saga, orderId, refundNo);
  const rows = await saga.rows<{ to_status: string }>(
    `select to_status from order_events where merchant_id = $1::text and order_id = $2::text
       and subject = 'refund' and subject_id = $3::text order by event_id`,
    saga.merchantId,
    orderId,
    String(refund_id),
  );
  return rows.map((row) => row.to_status);
}

/** What the channel was asked about one refund, and what it said: `refund ok`, `refund_query …`. */
export async function refundCalls(saga: Saga, outRefundNo: string): Promise<string[]> {
  const records = await saga.mock.books();
  return records.flatMap((record) =>
    record.type === 'request' && record.outRefundNo === outRefundNo
      ? [`${record.operation} ${record.outcome}`]
      : [],
  );
}

/** The order's own refund status over time: `none>pending`, … */
export async function refundStatusMoves(saga: Saga, orderId: string): Promise<string[]> {
  const moves = await saga.moves(orderId);
  return moves
    .filter((move) => move.startsWith('refund:'))
    .map((move) => move.replace(/refund:/g, ''));
}

/**
 * What holds at the end of every scenario: the channel and we agree on the order's money, no refund
 * exceeds its capture, and the merchant was told "paid" once at most.
 */
export async function expectBooksAgree(saga: Saga, orderId: string): Promise<void> {
  const books = await saga.books(orderId);
  const ours = await saga.rows<{ currency: string; net: number; over: boolean }>(
    `select currency, sum(amount_minor - refunded_minor - reversed_minor)::bigint as net,
       bool_or(refunded_minor + reserved_minor > amount_minor) as over
     from captures where merchant_id = $1::text and order_id = $2::text group by currency`,
    saga.merchantId,
    orderId,
  );
  expect(Object.fromEntries(ours.map(({ currency, net }) => [currency, net]))).toEqual(
    books.netMinor,
  );
  expect(ours.filter(({ over }) => over)).toEqual([]);
  for (const [currency, refunded] of Object.entries(books.refunds.sums)) {
    expect(refunded - (books.returned.sums[currency] ?? 0)).toBeLessThanOrEqual(
      books.captures.sums[currency] ?? 0,
    );
  }
  expect(saga.merchant.effects(orderId, 'order.paid').length).toBeLessThanOrEqual(1);
}
