import { openCase } from '../../db/cases';
import { insertCapture, insertPayRecord } from '../support/rows';
import type { ApiHarness } from './api-harness';
import { aNewOrder } from './api-harness';

/** An order in review, its money of 90.00 held by a case. */
export async function anOrderInReview(
  api: ApiHarness,
  said: { amountMinor?: number; currency?: string } = {},
) {
  const body = aNewOrder();
  await api.ask('POST', '/v1/orders', { body });
  const ref = { merchantId: api.merchantId, orderId: body.order_id };
  const order = { merchant_id: ref.merchantId, order_id: ref.orderId };
  await api.pool.query(`update orders set status = 'paying' where order_id = $1`, [ref.orderId]);
  const record = await insertPayRecord(api.pool, order, { channel: 'mock-a', status: 'paid' });
  const capture = await insertCapture(api.pool, record, {
    ...{ settles: false, kind: 'held' },
    ...{ amount_minor: said.amountMinor ?? 9_000, currency: said.currency ?? 'CNY' },
  });
  await api.pool.query(`update orders set status = 'review' where order_id = $1`, [ref.orderId]);
  await openCase(api.pool, ref, {
    kind: 'amount_mismatch',
    summary: 'another amount',
    channel: 'mock-a',
    subjectNo: String(record['out_trade_no']),
    evidence: { secret: 'for operators alone' },
  });
  const { rows } = await api.pool.query<{ case_id: number }>(
    `select case_id from cases where order_id = $1`,
    [ref.orderId],
  );
  const caseId = String(rows[0]!.case_id);
  return {
    ...ref,
    caseId,
    captureId: String(capture['capture_id']),
    tradeNo: String(capture['channel_trade_no']),
    outTradeNo: String(record['out_trade_no']),
    named: { case_id: caseId, case_version: 1 },
  };
}
