import type { Pool, Queryable } from '../../db/transaction';
import { withTransaction } from '../../db/transaction';
import type {
  CaptureStatus,
  FulfilmentStepStatus,
  OrderStatus,
  PayRecordStatus,
  RefundState,
} from '../../domain/states';

interface OfOrder {
  merchantId: string;
  orderId: string;
}
export interface OrderRow extends OfOrder {
  amountMinor: number;
  currency: string;
  status: OrderStatus;
  fulfilmentStatus: string;
  fulfilmentFailure: string | null;
  closeRequestedAt: string | null;
}
export interface RecordRow extends OfOrder {
  payRecordId: number;
  outTradeNo: string;
  status: PayRecordStatus;
}
export interface CaptureRow extends OfOrder {
  captureId: number;
  channel: string;
  /** The adapter of its channel: the dialect of the channel's books. */
  dialect: string;
  outTradeNo: string;
  channelTradeNo: string;
  amountMinor: number;
  currency: string;
  settles: boolean;
  status: CaptureStatus;
  reservedMinor: number;
  refundedMinor: number;
  reversedMinor: number;
}
export interface RefundRow extends OfOrder {
  refundId: number;
  refundNo: string;
  captureId: number;
  channel: string;
  dialect: string;
  outRefundNo: string;
  amountMinor: number;
  status: RefundState;
}
export interface CaseRow {
  caseId: number;
  merchantId: string | null;
  orderId: string | null;
  status: 'open' | 'closed';
  /** Everything the case says, as one text to find numbers in. */
  text: string;
  /** Captures that its decision took care of. */
  settledCaptures: number[];
}
export interface EventRow extends OfOrder {
  subject: string;
  subjectId: string;
  from: string | null;
  to: string;
  cause: string;
}
export interface StepRow extends OfOrder {
  stepNo: number;
  name: string;
  status: FulfilmentStepStatus;
  canBeUndone: boolean;
}
export interface NotificationRow extends OfOrder {
  eventType: string;
  subjectNo: string;
}
/** An order with work; the earliest appointment that anything of it has. */
export interface WorkRow extends OfOrder {
  reasons: string;
  nextDueAt: string | null;
}

/** The database at one instant: everything the invariants speak of. */
export interface Snapshot {
  now: string;
  orders: OrderRow[];
  records: RecordRow[];
  captures: CaptureRow[];
  refunds: RefundRow[];
  cases: CaseRow[];
  events: EventRow[];
  notifications: NotificationRow[];
  steps: StepRow[];
  work: WorkRow[];
  /** Our numbers that callbacks name which nobody has applied yet. */
  waitingNumbers: Set<string>;
  /** `order created>paying`: the moves that the schema allows. */
  schemaMoves: Set<string>;
}

/** Reads one consistent picture of the named merchants' orders, or of everybody's. */
export function readSnapshot(pool: Pool, merchantIds: string[] | null): Promise<Snapshot> {
  return withTransaction(pool, async (client) => {
    await client.query('set transaction isolation level repeatable read, read only');
    const of = <Row>(sql: string) => read<Row>(client, sql, merchantIds);
    const [clock] = await read<{ now: string }>(client, `select now() as now`);
    const waiting = await read<{ ourNo: string }>(
      client,
      `select our_no as "ourNo" from channel_callbacks where status in ('stored', 'unmatched')`,
    );
    const moves = await read<{ move: string }>(
      client,
      `select subject || ' ' || from_status || '>' || to_status as move from allowed_moves`,
    );
    return {
      now: clock?.now ?? new Date().toISOString(),
      orders: await of<OrderRow>(
        `select merchant_id as "merchantId", order_id as "orderId", amount_minor as "amountMinor",
           currency, status, fulfilment_status as "fulfilmentStatus",
           fulfilment_failure as "fulfilmentFailure",
           close_requested_at as "closeRequestedAt"
         from orders where $1::text[] is null or merchant_id = any($1::text[])`,
      ),
      records: await of<RecordRow>(
        `select merchant_id as "merchantId", order_id as "orderId",
           pay_record_id as "payRecordId", out_trade_no as "outTradeNo", status
         from pay_records where $1::text[] is null or merchant_id = any($1::text[])`,
      ),
      captures: await of<CaptureRow>(
        `select c.merchant_id as "merchantId", c.order_id as "orderId",
           c.capture_id as "captureId", c.channel, h.adapter as dialect,
           r.out_trade_no as "outTradeNo", c.channel_trade_no as "channelTradeNo",
           c.amount_minor as "amountMinor", c.currency, c.settles, c.status,
           c.reserved_minor as "reservedMinor", c.refunded_minor as "refundedMinor",
           c.reversed_minor as "reversedMinor"
         from captures c join channels h using (channel) join pay_records r using (pay_record_id)
         where $1::text[] is null or c.merchant_id = any($1::text[])`,
      ),
      refunds: await of<RefundRow>(
        `select f.merchant_id as "merchantId", f.order_id as "orderId", f.refund_id as "refundId",
           f.refund_no as "refundNo", f.capture_id as "captureId", f.channel, h.adapter as dialect,
           f.out_refund_no as "outRefundNo", f.amount_minor as "amountMinor", f.status
         from refunds f join channels h using (channel)
         where $1::text[] is null or f.merchant_id = any($1::text[])`,
      ),
      cases: await of<CaseRow>(
        `select case_id as "caseId", merchant_id as "merchantId", order_id as "orderId", status,
           subject_no || ' ' || summary || ' ' || evidence::text as text,
           coalesce(decision->'settled_captures', '[]') as "settledCaptures"
         from cases
         where $1::text[] is null or merchant_id is null or merchant_id = any($1::text[])`,
      ),
      events: await of<EventRow>(
        `select merchant_id as "merchantId", order_id as "orderId", subject,
           subject_id as "subjectId", from_status as "from", to_status as "to", cause
         from order_events where $1::text[] is null or merchant_id = any($1::text[])
         order by event_id`,
      ),
      notifications: await of<NotificationRow>(
        `select merchant_id as "merchantId", order_id as "orderId",
           event_type as "eventType", subject_no as "subjectNo"
         from notifications where $1::text[] is null or merchant_id = any($1::text[])`,
      ),
      steps: await of<StepRow>(
        `select merchant_id as "merchantId", order_id as "orderId", step_no as "stepNo", name,
           status, undo_url is not null as "canBeUndone"
         from fulfilment_steps where $1::text[] is null or merchant_id = any($1::text[])
         order by step_no`,
      ),
      work: await of<WorkRow>(
        `select merchant_id as "merchantId", order_id as "orderId",
           string_agg(distinct reason, ', ') as reasons, min(next_due_at) as "nextDueAt"
         from orders_with_work where $1::text[] is null or merchant_id = any($1::text[])
         group by merchant_id, order_id`,
      ),
      waitingNumbers: new Set(waiting.map(({ ourNo }) => ourNo)),
      schemaMoves: new Set(moves.map(({ move }) => move)),
    };
  });
}

async function read<Row>(
  client: Queryable,
  sql: string,
  merchantIds?: string[] | null,
): Promise<Row[]> {
  const values = merchantIds === undefined ? [] : [merchantIds];
  return (await client.query(sql, values)).rows as Row[];
}

export function orderKey({ merchantId, orderId }: OfOrder): string {
  return `${merchantId}/${orderId}`;
}

/** Open cases, and what they answer for. */
export class OpenCases {
  private readonly open: CaseRow[];
  private readonly orders: Set<string>;
  private readonly settledCaptures: Set<number>;
  private readonly decidedOrders: Set<string>;

  constructor(cases: readonly CaseRow[]) {
    this.open = cases.filter(({ status }) => status === 'open');
    const ordersOf = (some: readonly CaseRow[]) =>
      new Set(
        some.flatMap((k) => (k.merchantId && k.orderId ? [`${k.merchantId}/${k.orderId}`] : [])),
      );
    this.orders = ordersOf(this.open);
    const closed = cases.filter(({ status }) => status === 'closed');
    this.decidedOrders = ordersOf(closed);
    this.settledCaptures = new Set(closed.flatMap((k) => k.settledCaptures));
  }

  /** An operator already sees this order. */
  holds(order: OfOrder): boolean {
    return this.orders.has(orderKey(order));
  }

  /** Somebody once decided about this order: it may differ from what was first asked. */
  wasDecided(order: OfOrder): boolean {
    return this.decidedOrders.has(orderKey(order));
  }

  /** A closed case's decision took care of this capture. */
  settled(captureId: number): boolean {
    return this.settledCaptures.has(captureId);
  }

  /** An open case names one of the numbers: the money or the difference is before a person. */
  name(...numbers: string[]): boolean {
    return this.open.some(({ text }) => numbers.some((number) => text.includes(number)));
  }
}
