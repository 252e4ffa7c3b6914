import type { Saga } from './saga';

/** The instants of an order's rows. Its events are append-only and keep their own. */
const INSTANTS: Record<string, string[]> = {
  orders: ['created_at', 'expires_at', 'paid_at', 'closed_at', 'next_due_at', 'doorbell_rung_at'],
  pay_records: [
    'created_at',
    'updated_at',
    'first_sent_at',
    'last_sent_at',
    'last_call_at',
    'close_requested_at',
    'next_due_at',
  ],
  captures: ['paid_at', 'learnt_at'],
  refunds: ['created_at', 'updated_at', 'first_sent_at', 'last_sent_at', 'finished_at'],
  channel_callbacks: ['received_at', 'last_received_at', 'applied_at', 'next_due_at'],
  notifications: ['created_at', 'sent_at', 'next_due_at'],
};

/**
 * Lets time pass for one order without waiting: every instant in its rows becomes older by a
 * PostgreSQL interval such as `30 days`.
 */
export async function ageOrder(saga: Saga, orderId: string, interval: string): Promise<void> {
  for (const [table, columns] of Object.entries(INSTANTS)) {
    const changes = columns.map((column) => `${column} = ${column} - $3::interval`).join(', ');
    await saga.rows(
      `update ${table} set ${changes} where merchant_id = $1::text and order_id = $2::text`,
      saga.merchantId,
      orderId,
      interval,
    );
  }
}
