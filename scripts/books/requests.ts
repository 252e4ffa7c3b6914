import type { Findings } from './findings';
import { inspect, together } from './findings';
import type { JournalLine } from './journal';
import { isAcknowledged, numberField, textField } from './journal';
import type { OrderRow, Snapshot } from './snapshot';
import { OpenCases, orderKey } from './snapshot';

const ORDER_PATH = /^\/v1\/orders\/([^/?]+)(?:\/(payments|refunds|cancel))?$/;

/** One acknowledged write, and the order it was about. */
interface Acknowledged {
  line: JournalLine;
  kind: 'order' | 'payments' | 'refunds' | 'cancel';
  orderId: string;
}

/**
 * I6: every acknowledged request has its row (the order with its amount, the attempt under the number
 * that was answered, the refund with its amount, the cancelled order closed or closing), and every
 * order a client was told of has ended (paid or closed, no work left) or is listed: as an order with
 * work, or by an open case. An order under review, and a refund on which a person must act, need an
 * open case.
 */
export function checkAcknowledged(snapshot: Snapshot, journal: readonly JournalLine[]): Findings {
  const cases = new OpenCases(snapshot.cases);
  const working = new Set(snapshot.work.map(orderKey));
  const requests = journal.flatMap((line) => acknowledged(line) ?? []);
  const orders = new Map<string, OrderRow[]>();
  for (const order of snapshot.orders) {
    orders.set(order.orderId, [...(orders.get(order.orderId) ?? []), order]);
  }
  const records = new Map(snapshot.records.map((r) => [r.outTradeNo, r.orderId]));
  const refunds = new Map(snapshot.refunds.map((r) => [`${r.orderId}/${r.refundNo}`, r]));
  const nameOf = ({ line }: Acknowledged) => `request ${line.method} ${line.path} at ${line.at}`;

  const rows = inspect('I6', requests, nameOf, function* ({ line, kind, orderId }) {
    const own = orders.get(orderId) ?? [];
    if (own.length === 0) {
      yield `was answered ${line.status}, there is no order ${orderId}`;
      return;
    }
    switch (kind) {
      case 'order': {
        const amount = numberField(line.answer, 'amount');
        if (!own.some(({ amountMinor }) => amount === undefined || amountMinor === amount)) {
          yield `was answered with amount ${amount}, the row has ${own[0]?.amountMinor}`;
        }
        return;
      }
      case 'payments': {
        const outTradeNo = textField(line.answer, 'out_trade_no');
        if (outTradeNo === undefined || records.get(outTradeNo) !== orderId) {
          yield `was answered ${line.status} with number ${outTradeNo}, no pay record has it`;
        }
        return;
      }
      case 'refunds': {
        const refundNo =
          textField(line.answer, 'refund_no') ?? textField(line.request, 'refund_no');
        const refund = refunds.get(`${orderId}/${refundNo}`);
        const amount = numberField(line.answer, 'amount');
        if (!refund) yield `was answered ${line.status}, there is no refund ${refundNo}`;
        else if (amount !== undefined && amount !== refund.amountMinor) {
          yield `was answered with amount ${amount}, the refund has ${refund.amountMinor}`;
        }
        return;
      }
      case 'cancel':
        if (own.every((o) => o.closeRequestedAt === null && isOpen(o))) {
          yield `was answered ${line.status}, the order is ${own[0]?.status} and not closing`;
        }
    }
  });

  const abnormal = new Set(
    snapshot.refunds.filter(({ status }) => status === 'abnormal').map(orderKey),
  );
  const told = new Set(requests.map(({ orderId }) => orderId));
  const toldOrders = snapshot.orders.filter(({ orderId }) => told.has(orderId));
  const ends = inspect(
    'I6',
    toldOrders,
    (o) => `order ${orderKey(o)}`,
    function* (order) {
      const isListed = working.has(orderKey(order)) || cases.holds(order);
      const hasEnded = order.status === 'paid' || order.status === 'closed';
      if (!hasEnded && !isListed) yield `is ${order.status}, without work and without an open case`;
      if (order.status === 'review' && !cases.holds(order))
        yield 'waits for a person in no open case';
      if (abnormal.has(orderKey(order)) && !cases.holds(order)) {
        yield 'has a refund on which a person must act, in no open case';
      }
    },
  );
  return together([rows, ends]);
}

/**
 * I10: no 5xx because of a duplicate. A 500 is a defect whatever was asked. A 503 says "unknown,
 * repeat": it is a fault when the same request (method, path, number or key) had been acknowledged
 * before, unless the client knew of an outage. Any other 5xx belongs to an outage or is a fault.
 */
export function checkNoServerErrors(journal: readonly JournalLine[]): Findings {
  const acknowledgedBefore = new Set<string>();
  const nameOf = (line: JournalLine) => `request ${line.method} ${line.path} at ${line.at}`;
  return inspect('I10', journal, nameOf, function* (line) {
    const identity = identityOf(line);
    const { status } = line;
    if (status === 500) yield 'was answered 500';
    else if (status !== null && status > 500 && !line.outage) {
      if (status !== 503) yield `was answered ${status}`;
      else if (identity !== null && acknowledgedBefore.has(identity)) {
        yield 'was answered 503 although the same request had been acknowledged before';
      }
    }
    if (identity !== null && isAcknowledged(line)) acknowledgedBefore.add(identity);
  });
}

/** What makes two writes the same request; null for reads. */
function identityOf({ method, path, key, request }: JournalLine): string | null {
  if (method !== 'POST') return null;
  const number =
    textField(request, 'request_no') ??
    textField(request, 'refund_no') ??
    textField(request, 'order_id') ??
    key;
  return `${path} ${number ?? ''}`;
}

function acknowledged(line: JournalLine): Acknowledged | undefined {
  if (line.method !== 'POST' || !isAcknowledged(line)) return undefined;
  if (line.path === '/v1/orders') {
    const orderId = textField(line.answer, 'order_id') ?? textField(line.request, 'order_id');
    return orderId === undefined ? undefined : { line, kind: 'order', orderId };
  }
  const [, orderId, kind] = ORDER_PATH.exec(line.path) ?? [];
  if (orderId === undefined || kind === undefined) return undefined;
  return { line, kind: kind as Acknowledged['kind'], orderId: decodeURIComponent(orderId) };
}

function isOpen({ status }: OrderRow): boolean {
  return status === 'created' || status === 'paying';
}
