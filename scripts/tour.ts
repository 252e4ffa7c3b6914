import type { Stack } from './servers/stack';
import { TourShop } from './tour-shop';
import { TOUR } from './tour-steps';

/**
 * Shows on the running stack what the saga promises, step by step: what was done, and what the
 * database and the channel's books prove. Every step counts as passed or failed; one that fails is
 * told and the next goes on. Orders of earlier starts stay, and are checked again at the end.
 */
export async function runTour(stack: Stack): Promise<{ passed: number; failed: number }> {
  const shop = await TourShop.open(stack);
  let passed = 0;
  try {
    console.log(`${await found(shop)}\n`);
    for (const [index, { title, run }] of TOUR.entries()) {
      const number = String(index + 1).padStart(2);
      try {
        const proof = await run(shop);
        passed++;
        console.log(`${number}  ok      ${title}\n            → ${proof}`);
      } catch (error) {
        console.log(`${number}  FAILED  ${title}\n            → ${reasonOf(error)}`);
      }
    }
  } finally {
    await shop.close();
  }
  return { passed, failed: TOUR.length - passed };
}

async function found(shop: TourShop): Promise<string> {
  const { rows } = await shop.pool.query<{ orders: number; paid: number }>(
    `select count(*) as orders, count(*) filter (where status = 'paid') as paid
     from orders where merchant_id = $1::text`,
    [shop.stack.demo.merchantId],
  );
  const { orders = 0, paid = 0 } = rows[0] ?? {};
  if (orders === 0) return 'The guided tour. No orders yet: this is the first start.';
  return `The guided tour. Found ${orders} orders of earlier starts, ${paid} of them paid.`;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
  return `${error.message}${cause}`.replaceAll('\n', '\n              ');
}
