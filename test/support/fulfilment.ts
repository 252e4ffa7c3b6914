import type { Saga } from './saga';
import { waitFor } from './wait';

/** The order's fulfilment and its steps, `[name, status]`, as the database holds them. */
export async function fulfilmentOf(saga: Saga, orderId: string) {
  const [order] = await saga.rows<{ fulfilment_status: string; fulfilment_failure: string | null }>(
    `select fulfilment_status, fulfilment_failure from orders
     where merchant_id = $1::text and order_id = $2::text`,
    saga.merchantId,
    orderId,
  );
  const steps = await saga.rows<{ name: string; status: string }>(
    `select name, status from fulfilment_steps
     where merchant_id = $1::text and order_id = $2::text order by step_no`,
    saga.merchantId,
    orderId,
  );
  return {
    status: order?.fulfilment_status,
    failure: order?.fulfilment_failure ?? null,
    steps: steps.map(({ name, status }): [string, string] => [name, status]),
  };
}

export function untilFulfilment(saga: Saga, orderId: string, status: string, boundMs?: number) {
  return waitFor(
    `the fulfilment of ${orderId} ${status}`,
    async () => {
      const now = await fulfilmentOf(saga, orderId);
      if (now.status !== status) throw new Error(`it is ${JSON.stringify(now)}`);
      return now;
    },
    boundMs,
  );
}
