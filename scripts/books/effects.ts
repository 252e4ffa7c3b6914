import { webhookIdOf } from '../../db/notifications';
import type { Findings } from './findings';
import { inspect, together } from './findings';
import type { NotificationRow, Snapshot } from './snapshot';
import { orderKey } from './snapshot';

/** One delivery that the merchant took: its `webhook-id`, and what it told. */
export interface ReceivedEvent {
  id: string;
  type: string;
  orderId: string;
  subject: string;
}

/**
 * I8: what follows from a payment happens once per paid order. `order.paid` is written exactly once
 * for an order that was ever paid and never for another, and nothing is fulfilled unpaid. Of the
 * deliveries the merchant took, one `webhook-id` always tells the same, and an order is told paid
 * under one id only, the id of its row.
 */
export function checkEffects(snapshot: Snapshot, received: readonly ReceivedEvent[]): Findings {
  const paid = new Set(
    snapshot.events
      .filter(({ subject, from, to }) => subject === 'order' && to === 'paid' && from !== null)
      .map(orderKey),
  );
  for (const order of snapshot.orders) if (order.status === 'paid') paid.add(orderKey(order));
  const told = new Map<string, NotificationRow[]>();
  for (const row of snapshot.notifications) {
    if (row.eventType !== 'order.paid') continue;
    told.set(orderKey(row), [...(told.get(orderKey(row)) ?? []), row]);
  }
  const nameOf = (row: { merchantId: string; orderId: string }) => `order ${orderKey(row)}`;
  const rows = inspect('I8', snapshot.orders, nameOf, function* (order) {
    const count = told.get(orderKey(order))?.length ?? 0;
    if (count > 1) yield `order.paid is written ${count} times`;
    if (count > 0 && !paid.has(orderKey(order))) yield 'order.paid is written, it was never paid';
    if (count === 0 && paid.has(orderKey(order))) yield 'was paid, order.paid is not written';
    if (order.fulfilmentStatus !== 'none' && !paid.has(orderKey(order))) {
      yield `its fulfilment is ${order.fulfilmentStatus}, it was never paid`;
    }
  });
  return together([rows, checkReceived(snapshot, received)]);
}

function checkReceived(snapshot: Snapshot, received: readonly ReceivedEvent[]): Findings {
  const rows = new Map(snapshot.notifications.map((row) => [webhookIdOf(row), row]));
  const deliveries = new Map<string, ReceivedEvent[]>();
  const paidIds = new Map<string, Set<string>>();
  for (const event of received) {
    deliveries.set(event.id, [...(deliveries.get(event.id) ?? []), event]);
    if (event.type !== 'order.paid') continue;
    paidIds.set(event.orderId, (paidIds.get(event.orderId) ?? new Set()).add(event.id));
  }
  const perId = inspect(
    'I8',
    deliveries,
    ([id]) => `event ${id}`,
    function* ([id, copies]) {
      const contents = new Set(copies.map((e) => `${e.type} of ${e.orderId} ${e.subject}`));
      if (contents.size > 1) yield `tells different things: ${[...contents].join('; ')}`;
      const row = rows.get(id);
      const [first] = copies;
      if (!row) yield `was delivered (${[...contents].join('; ')}), there is no such notification`;
      else if (first && (row.orderId !== first.orderId || row.eventType !== first.type)) {
        yield `told ${first.type} of ${first.orderId}, its row is ${row.eventType} of ${row.orderId}`;
      }
    },
  );
  const perOrder = inspect(
    'I8',
    paidIds,
    ([orderId]) => `order ${orderId}`,
    function* ([, ids]) {
      if (ids.size > 1) yield `the merchant was told order.paid under ${ids.size} ids`;
    },
  );
  return together([perId, perOrder]);
}
