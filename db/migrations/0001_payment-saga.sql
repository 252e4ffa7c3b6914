-- Up Migration

-- The words of the tables are those of docs/words.md. Times are timestamptz, amounts are bigint
-- minor units between 1 and 2^53 - 1 so that every reader can hold them exactly.

create domain identifier as text check (value ~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$');
create domain amount_minor as bigint check (value between 1 and 9007199254740991);
create domain sum_minor as bigint check (value between 0 and 9007199254740991);
create domain currency_code as text check (value ~ '^[A-Z]{3}$');

-- ---------------------------------------------------------------------------------------------
-- Who may call, and where the money goes

create table merchants (
  merchant_id identifier primary key,
  name text not null,
  -- Where events are told, and where the signing secret is (env:NAME or file:/path), never the secret.
  notify_url text,
  notify_secret_ref text check (notify_url is null or notify_secret_ref is not null),
  -- What becomes of money that arrives on a closed order.
  late_payment_policy text not null default 'refund' check (late_payment_policy in ('refund', 'revive')),
  fulfilment_steps jsonb not null default '[]',
  created_at timestamptz not null default now()
);

create table api_keys (
  key_id identifier primary key,
  merchant_id identifier not null references merchants,
  -- SHA-256 of the key: keys are 256 random bits, so a slow hash would add nothing.
  key_sha256 bytea not null unique,
  scopes text[] not null check (scopes <@ array['pay', 'refund', 'read', 'operator']),
  expires_at timestamptz,
  revoked_at timestamptz,
  created_at timestamptz not null default now()
);

create table channels (
  channel identifier primary key,
  adapter text not null,
  account_id text not null,
  app_id text not null,
  gateway_url text not null,
  time_zone text not null default 'UTC',
  pay_enabled boolean not null default true,
  refund_enabled boolean not null default true,
  secret_refs jsonb not null default '{}',
  policy jsonb not null default '{}',
  updated_at timestamptz not null default now()
);

-- ---------------------------------------------------------------------------------------------
-- The money

create table orders (
  merchant_id identifier not null references merchants,
  order_id identifier not null,
  amount_minor amount_minor not null,
  currency currency_code not null,
  subject text not null,
  metadata jsonb not null default '{}',
  status text not null default 'created'
    check (status in ('created', 'paying', 'paid', 'closed', 'review')),
  -- Why it is closed or under review: expired, cancelled, or the verdict that asked for a review.
  status_reason text,
  refund_status text not null default 'none'
    check (refund_status in ('none', 'pending', 'partial', 'full')),
  fulfilment_status text not null default 'none'
    check (fulfilment_status in ('none', 'running', 'done', 'compensating', 'failed')),
  expires_at timestamptz not null,
  -- Set when the order is to be closed (deadline or cancel); it closes once no attempt is live.
  close_requested_at timestamptz,
  close_reason text check (close_reason in ('expired', 'cancelled')),
  -- An unanswered ring at the workflow's door; cleared when the run reads the inbox.
  doorbell_rung_at timestamptz,
  -- How often, and when last, sweep or relay told the run and it has not looked since: they wait longer
  -- each time, because a run that cannot look must not collect signals without end.
  nudges integer not null default 0,
  nudged_at timestamptz,
  -- When a run must have looked at this order again.
  next_due_at timestamptz not null default now(),
  -- Grows with every change of the order or of what belongs to it; long polls compare it.
  version bigint not null default 1,
  created_at timestamptz not null default now(),
  paid_at timestamptz,
  closed_at timestamptz,
  primary key (merchant_id, order_id)
);
create index orders_by_status on orders (merchant_id, status, created_at, order_id);
create index orders_open_due on orders (next_due_at) where status in ('created', 'paying');

-- What the merchant asked under a number of its own, kept out of Temporal's histories (it may hold
-- personal data) and the judge of "the same number with other content".
create table merchant_requests (
  merchant_id identifier not null,
  order_id identifier not null,
  kind text not null check (kind in ('pay', 'refund')),
  request_no identifier not null,
  fingerprint bytea not null,
  params jsonb not null,
  -- The pay record this request opened or joined.
  pay_record_id bigint,
  created_at timestamptz not null default now(),
  primary key (merchant_id, order_id, kind, request_no),
  foreign key (merchant_id, order_id) references orders
);

create table pay_records (
  pay_record_id bigint generated always as identity primary key,
  merchant_id identifier not null,
  order_id identifier not null,
  channel identifier not null references channels,
  request_no identifier not null,
  -- Our number at the channel: fixed before the first call, the same on every retry.
  out_trade_no text not null unique check (out_trade_no ~ '^[A-Za-z0-9]{1,32}$'),
  amount_minor amount_minor not null,
  currency currency_code not null,
  status text not null default 'created'
    check (status in ('created', 'submitting', 'pending', 'paid', 'failed', 'closed')),
  status_reason text,
  channel_trade_no text,
  method text,
  return_url text,
  client_ip text,
  payer jsonb,
  -- What the payer needs next, as the channel handed it out.
  pay_parameters jsonb,
  -- How often the number was (perhaps) sent, and whether the outcome of a send was ever unknown.
  sends integer not null default 0,
  outcome_unknown boolean not null default false,
  first_sent_at timestamptz,
  last_sent_at timestamptz,
  -- Rungs climbed on the poll ladder since the last change.
  polls integer not null default 0,
  close_requested_at timestamptz,
  close_reason text,
  -- The last call to the channel and what it learnt: together they say which call comes next.
  last_call text check (last_call in ('submit', 'query', 'close')),
  last_call_at timestamptz,
  last_fact_state text,
  next_due_at timestamptz not null default now(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (merchant_id, order_id, channel, request_no),
  foreign key (merchant_id, order_id) references orders
);
-- At most one attempt per order may still take money.
create unique index pay_records_one_live_attempt on pay_records (merchant_id, order_id)
  where status in ('created', 'submitting', 'pending');
create index pay_records_live_due on pay_records (next_due_at)
  where status in ('created', 'submitting', 'pending');
alter table merchant_requests add foreign key (pay_record_id) references pay_records;

create table captures (
  capture_id bigint generated always as identity primary key,
  channel identifier not null references channels,
  channel_trade_no text not null,
  merchant_id identifier not null,
  order_id identifier not null,
  pay_record_id bigint not null references pay_records,
  -- As the channel reports it, whatever the order says.
  amount_minor amount_minor not null,
  currency currency_code not null,
  payer_total_minor sum_minor,
  -- The one capture that pays the order; every other one is surplus or held by a case.
  settles boolean not null default false,
  kind text not null check (kind in ('settling', 'surplus_duplicate', 'surplus_late', 'held', 'early_reversal')),
  status text not null default 'captured' check (status in ('captured', 'reversed')),
  reserved_minor sum_minor not null default 0,
  refunded_minor sum_minor not null default 0,
  reversed_minor sum_minor not null default 0,
  -- The channel gave it back after a reversal: an old word of the reversal is asked about from then on.
  reinstated_at timestamptz,
  paid_at timestamptz,
  learnt_from text not null,
  learnt_at timestamptz not null default now(),
  unique (channel, channel_trade_no),
  foreign key (merchant_id, order_id) references orders
);
create unique index captures_one_settles on captures (merchant_id, order_id) where settles;
create index captures_by_order on captures (merchant_id, order_id);

create table refunds (
  refund_id bigint generated always as identity primary key,
  merchant_id identifier not null,
  order_id identifier not null,
  -- The merchant's number; the system's own are auto:<capture_id>, a form no merchant can choose.
  refund_no text not null
    check (refund_no ~ '^([A-Za-z0-9][A-Za-z0-9_.-]{0,63}|auto:[0-9]{1,19}|external:.{1,128})$'),
  capture_id bigint not null references captures,
  channel identifier not null references channels,
  out_refund_no text not null,
  amount_minor amount_minor not null,
  currency currency_code not null,
  reason text not null default '',
  origin text not null check (origin in ('merchant', 'surplus', 'fulfilment', 'operator', 'external')),
  status text not null default 'created' check (status in
    ('created', 'submitting', 'processing', 'succeeded', 'failed', 'returned', 'abnormal')),
  status_reason text,
  channel_refund_no text,
  sends integer not null default 0,
  outcome_unknown boolean not null default false,
  first_sent_at timestamptz,
  last_sent_at timestamptz,
  polls integer not null default 0,
  last_call text check (last_call in ('submit', 'query')),
  last_call_at timestamptz,
  last_fact_state text,
  -- A definite refusal of the first send, final once a query confirms it.
  refusal_code text,
  next_due_at timestamptz not null default now(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  finished_at timestamptz,
  unique (merchant_id, order_id, refund_no),
  unique (channel, out_refund_no),
  -- Ours are letters and digits; one that we never made (`external`) is whatever the channel says.
  check (out_refund_no ~ '^[A-Za-z0-9]{1,32}$'
    or (origin = 'external' and char_length(out_refund_no) between 1 and 128)),
  foreign key (merchant_id, order_id) references orders
);
create index refunds_by_capture on refunds (capture_id);
create index refunds_open_due on refunds (next_due_at)
  where status in ('created', 'submitting', 'processing');

-- ---------------------------------------------------------------------------------------------
-- What was heard, what was told, what only a person may decide

create table channel_callbacks (
  callback_id bigint generated always as identity primary key,
  channel identifier not null references channels,
  -- SHA-256 over the business facts: the same news twice is one row with a counter.
  fact_sha256 bytea not null,
  fact jsonb not null,
  event_id text,
  -- Our number the channel named: an out_trade_no or an out_refund_no.
  our_no text not null,
  raw_body bytea not null,
  copies integer not null default 1,
  status text not null default 'stored'
    check (status in ('stored', 'applied', 'no_effect', 'unmatched')),
  verdict text,
  merchant_id identifier,
  order_id identifier,
  received_at timestamptz not null default now(),
  last_received_at timestamptz not null default now(),
  applied_at timestamptz,
  -- When somebody must have read it; the relay rings again after that.
  next_due_at timestamptz not null default now(),
  unique (channel, fact_sha256),
  foreign key (merchant_id, order_id) references orders
);
create index channel_callbacks_waiting on channel_callbacks (next_due_at)
  where status in ('stored', 'unmatched');
create index channel_callbacks_by_order on channel_callbacks (merchant_id, order_id, callback_id);
create index channel_callbacks_by_our_no on channel_callbacks (channel, our_no)
  where status = 'unmatched';

create table order_events (
  event_id bigint generated always as identity primary key,
  merchant_id identifier not null,
  order_id identifier not null,
  subject text not null check (subject in ('order', 'pay_record', 'capture', 'refund', 'case')),
  subject_id text not null,
  from_status text,
  to_status text not null,
  -- The verdict or the act that moved it, and what proved it.
  cause text not null,
  evidence jsonb not null default '{}',
  actor text not null,
  created_at timestamptz not null default now()
);
create index order_events_by_order on order_events (merchant_id, order_id, event_id);

create table cases (
  case_id bigint generated always as identity primary key,
  -- Of an order, or of a number nobody knows (then the order is null).
  merchant_id identifier,
  order_id identifier,
  channel identifier,
  subject_no text not null,
  kind text not null,
  status text not null default 'open' check (status in ('open', 'closed')),
  summary text not null,
  -- Grows with every piece of evidence; a decision names the version it was made on.
  version integer not null default 1,
  evidence jsonb not null default '[]',
  decision jsonb,
  opened_at timestamptz not null default now(),
  closed_at timestamptz,
  foreign key (merchant_id, order_id) references orders
);
create unique index cases_one_open_per_order on cases (merchant_id, order_id) where status = 'open';
create unique index cases_one_open_per_number on cases (channel, subject_no)
  where status = 'open' and order_id is null;

create table notifications (
  notification_id bigint generated always as identity primary key,
  merchant_id identifier not null,
  order_id identifier not null,
  -- Delivered in this order, one after the other, per order.
  seq integer not null,
  event_type text not null,
  -- What the event is about (a refund number, a capture, or ''): one event per subject for ever.
  subject_no text not null default '',
  payload jsonb not null,
  -- `kept`: the merchant has no address; the event can only be read.
  status text not null default 'pending' check (status in ('pending', 'sent', 'dead', 'kept')),
  tries integer not null default 0,
  last_error text,
  next_due_at timestamptz not null default now(),
  created_at timestamptz not null default now(),
  sent_at timestamptz,
  unique (merchant_id, order_id, seq),
  unique (merchant_id, order_id, event_type, subject_no),
  foreign key (merchant_id, order_id) references orders
);
create index notifications_waiting on notifications (next_due_at) where status = 'pending';

create table idempotency_keys (
  merchant_id identifier not null,
  method text not null,
  route text not null,
  idempotency_key text not null,
  fingerprint bytea not null,
  status text not null default 'running' check (status in ('running', 'done')),
  -- A lease, not a lock: a process that died blocks nobody after this.
  leased_until timestamptz not null,
  -- The thing made ({kind, ids}), never a body: repeats are answered from the row as it stands.
  resource jsonb,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  primary key (merchant_id, method, route, idempotency_key)
);
create index idempotency_keys_expired on idempotency_keys (expires_at);

-- ---------------------------------------------------------------------------------------------
-- The moves that are allowed (the same table as domain/states.ts; a test compares them)

create table allowed_moves (
  subject text not null,
  from_status text not null,
  to_status text not null,
  primary key (subject, from_status, to_status)
);

insert into allowed_moves (subject, from_status, to_status) values
  ('order', 'created', 'paying'), ('order', 'created', 'closed'), ('order', 'created', 'review'),
  ('order', 'paying', 'paid'), ('order', 'paying', 'closed'), ('order', 'paying', 'review'),
  ('order', 'paid', 'review'), ('order', 'closed', 'review'), ('order', 'closed', 'paid'),
  ('order', 'review', 'paid'), ('order', 'review', 'closed'),
  ('pay_record', 'created', 'submitting'), ('pay_record', 'created', 'pending'),
  ('pay_record', 'created', 'paid'), ('pay_record', 'created', 'failed'), ('pay_record', 'created', 'closed'),
  ('pay_record', 'submitting', 'pending'), ('pay_record', 'submitting', 'paid'),
  ('pay_record', 'submitting', 'failed'), ('pay_record', 'submitting', 'closed'),
  ('pay_record', 'pending', 'paid'), ('pay_record', 'pending', 'failed'), ('pay_record', 'pending', 'closed'),
  ('pay_record', 'failed', 'paid'), ('pay_record', 'closed', 'paid'),
  ('capture', 'captured', 'reversed'), ('capture', 'reversed', 'captured'),
  ('refund', 'created', 'submitting'), ('refund', 'created', 'processing'), ('refund', 'created', 'succeeded'),
  ('refund', 'created', 'failed'), ('refund', 'created', 'abnormal'),
  ('refund', 'submitting', 'processing'), ('refund', 'submitting', 'succeeded'),
  ('refund', 'submitting', 'failed'), ('refund', 'submitting', 'abnormal'),
  ('refund', 'processing', 'succeeded'), ('refund', 'processing', 'failed'), ('refund', 'processing', 'abnormal'),
  ('refund', 'abnormal', 'submitting'), ('refund', 'abnormal', 'processing'), ('refund', 'abnormal', 'succeeded'),
  ('refund', 'abnormal', 'failed'),
  ('refund', 'failed', 'succeeded'), ('refund', 'succeeded', 'returned'),
  ('case', 'open', 'closed'),
  ('callback', 'stored', 'applied'), ('callback', 'stored', 'no_effect'), ('callback', 'stored', 'unmatched'),
  ('callback', 'unmatched', 'stored'), ('callback', 'applied', 'stored'), ('callback', 'no_effect', 'stored'),
  ('notification', 'pending', 'sent'), ('notification', 'pending', 'dead'), ('notification', 'dead', 'pending');

create function refuse_move_outside_table() returns trigger language plpgsql as $$
begin
  if new.status <> old.status and not exists (
    select from allowed_moves m
    where m.subject = tg_argv[0] and m.from_status = old.status and m.to_status = new.status
  ) then
    raise exception '% may not move from % to %', tg_argv[0], old.status, new.status
      using errcode = 'check_violation', constraint = tg_argv[0] || '_allowed_moves';
  end if;
  return new;
end $$;

create trigger orders_allowed_moves before update of status on orders
  for each row execute function refuse_move_outside_table('order');
create trigger pay_records_allowed_moves before update of status on pay_records
  for each row execute function refuse_move_outside_table('pay_record');
create trigger captures_allowed_moves before update of status on captures
  for each row execute function refuse_move_outside_table('capture');
create trigger refunds_allowed_moves before update of status on refunds
  for each row execute function refuse_move_outside_table('refund');
create trigger cases_allowed_moves before update of status on cases
  for each row execute function refuse_move_outside_table('case');
create trigger channel_callbacks_allowed_moves before update of status on channel_callbacks
  for each row execute function refuse_move_outside_table('callback');
create trigger notifications_allowed_moves before update of status on notifications
  for each row execute function refuse_move_outside_table('notification');

-- An order may close only when no attempt is live: the same lock that opens an attempt guards it.
create function refuse_close_while_live() returns trigger language plpgsql as $$
begin
  if new.status = 'closed' and old.status in ('created', 'paying') and exists (
    select from pay_records r
    where r.merchant_id = new.merchant_id and r.order_id = new.order_id
      and r.status in ('created', 'submitting', 'pending')
  ) then
    raise exception 'order %/% has a live attempt', new.merchant_id, new.order_id
      using errcode = 'check_violation', constraint = 'orders_close_needs_no_live_attempt';
  end if;
  return new;
end $$;
create trigger orders_close_needs_no_live_attempt before update of status on orders
  for each row execute function refuse_close_while_live();

-- And an attempt may open only while its order takes money.
create function refuse_attempt_of_final_order() returns trigger language plpgsql as $$
begin
  if exists (
    select from orders o
    where o.merchant_id = new.merchant_id and o.order_id = new.order_id
      and (o.status not in ('created', 'paying') or o.close_requested_at is not null)
  ) then
    raise exception 'order %/% takes no money', new.merchant_id, new.order_id
      using errcode = 'check_violation', constraint = 'pay_records_need_open_order';
  end if;
  return new;
end $$;
create trigger pay_records_need_open_order before insert on pay_records
  for each row when (new.status in ('created', 'submitting', 'pending'))
  execute function refuse_attempt_of_final_order();

-- Promises are checked: a reservation may only grow inside what is left. Facts are never refused:
-- refunded and reversed sums may grow past the capture (a case tells), so this is no plain CHECK.
create function refuse_over_reservation() returns trigger language plpgsql as $$
begin
  if new.reserved_minor > old.reserved_minor
     and new.reserved_minor + new.refunded_minor + new.reversed_minor > new.amount_minor then
    raise exception 'capture % has no % left to reserve', new.capture_id, new.reserved_minor - old.reserved_minor
      using errcode = 'check_violation', constraint = 'captures_reservation_within_rest';
  end if;
  return new;
end $$;
create trigger captures_reservation_within_rest before update of reserved_minor on captures
  for each row execute function refuse_over_reservation();

-- The history of an order is only ever written once.
create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name using errcode = 'restrict_violation';
end $$;
create trigger order_events_append_only before update or delete on order_events
  for each row execute function refuse_change();
create trigger order_events_never_truncated before truncate on order_events
  for each statement execute function refuse_change();

-- ---------------------------------------------------------------------------------------------
-- What still has to be done, one row per reason. The end of a run, the sweep, the checker and
-- "final" all ask this view and nothing else.

create view orders_with_work as
  -- An order that is being closed waits for its live attempt, which has a due time of its own.
  select merchant_id, order_id, 'open' as reason,
      case when close_requested_at is null then next_due_at end as next_due_at
    from orders where status in ('created', 'paying')
  union all
  select merchant_id, order_id, 'live_attempt', next_due_at
    from pay_records where status in ('created', 'submitting', 'pending')
  union all
  select merchant_id, order_id, 'refund', next_due_at
    from refunds where status in ('created', 'submitting', 'processing')
  union all
  select c.merchant_id, c.order_id, 'surplus', c.learnt_at
    from captures c
    where not c.settles and c.status = 'captured'
      and c.amount_minor > c.reserved_minor + c.refunded_minor + c.reversed_minor
      and not exists (select from cases k where k.merchant_id = c.merchant_id
        and k.order_id = c.order_id and k.status = 'open')
      and not exists (select from cases k where k.merchant_id = c.merchant_id
        and k.order_id = c.order_id and k.status = 'closed'
        and k.decision->'settled_captures' @> to_jsonb(c.capture_id))
  union all
  select merchant_id, order_id, 'fulfilment', next_due_at
    from orders where fulfilment_status in ('running', 'compensating')
  union all
  select merchant_id, order_id, 'callback', next_due_at
    from channel_callbacks where status = 'stored' and order_id is not null
  union all
  select merchant_id, order_id, 'notification', next_due_at
    from notifications where status = 'pending';

-- Down Migration

-- There is no way down: money already recorded is never dropped by a deployment.
