-- Up Migration

-- Every reason of orders_with_work is found by its due time: the sweep asks several times a minute, and
-- what it costs must follow from what waits, not from how many orders there ever were.

create index orders_fulfilling_due on orders (next_due_at)
  where fulfilment_status in ('running', 'compensating');
-- The expression is the view's own, so that its due time is an index condition.
drop index orders_open_due;
create index orders_open_due on orders
  ((case when close_requested_at is null then next_due_at end))
  where status in ('created', 'paying');
create index captures_loose on captures (learnt_at)
  where not settles and status = 'captured'
    and amount_minor > reserved_minor + refunded_minor + reversed_minor;

-- Cases of an order, or of a number nobody knows, closed ones too.
create index cases_by_order on cases (merchant_id, order_id);
create index cases_by_number on cases (channel, subject_no) where order_id is null;

-- A new refund number is looked for at every channel.
create index refunds_by_out_refund_no on refunds (out_refund_no);

-- The metrics count a day. These grow with time, so a block range index says enough and costs nothing.
create index orders_by_day on orders using brin (created_at);
create index channel_callbacks_by_day on channel_callbacks using brin (received_at);

-- Down Migration

-- There is no way down.
