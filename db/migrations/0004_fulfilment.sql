-- Up Migration

-- What the shop does once an order is paid: steps that can be undone. They are copied from the merchant's
-- configuration in the transaction that makes the order paid, so that a later change of the configuration
-- changes no order that is under way.

-- Checked here as well as by whoever writes it: settling copies it, and must never fail because of it.
create function is_fulfilment_configuration(steps jsonb) returns boolean language sql immutable as $$
  select case when jsonb_typeof(steps) <> 'array' then false else
    jsonb_array_length(steps) <= 20
    and (select count(*) = count(distinct s->>'name') from jsonb_array_elements(steps) s)
    and not exists (
      select from jsonb_array_elements(steps) s
      where coalesce(jsonb_typeof(s->'name') <> 'string'
        or s->>'name' !~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$', true)
        or coalesce(jsonb_typeof(s->'url') <> 'string', true)
        or coalesce(jsonb_typeof(s->'undo_url') not in ('string', 'null'), false)
        or coalesce(jsonb_typeof(s->'timeout_ms') not in ('number', 'null'), false)
        or coalesce(s->>'timeout_ms' !~ '^[0-9]{3,5}$', false))
  end
$$;
alter table merchants add constraint merchants_fulfilment_steps_shape
  check (is_fulfilment_configuration(fulfilment_steps));
-- The calls are signed.
alter table merchants add constraint merchants_fulfilment_needs_secret
  check (fulfilment_steps = '[]' or notify_secret_ref is not null);

-- Why the steps of an order were stopped and undone.
alter table orders add column fulfilment_failure text
  check (fulfilment_failure in ('step_refused', 'refunded', 'review'));

create table fulfilment_steps (
  merchant_id identifier not null,
  order_id identifier not null,
  step_no integer not null check (step_no between 1 and 20),
  name identifier not null,
  url text not null,
  -- Null: there is nothing to undo.
  undo_url text,
  timeout_ms integer,
  -- `running` is written before the first call: from then on the step is undone, whatever is known of it.
  status text not null default 'waiting' check (status in
    ('waiting', 'running', 'done', 'refused', 'undoing', 'undone', 'undo_failed', 'skipped')),
  tries integer not null default 0,
  undo_tries integer not null default 0,
  -- A call may have had its effect although no answer said so.
  outcome_unknown boolean not null default false,
  last_error text,
  -- When it is its turn (again); null: it waits for another step, or is over.
  next_due_at timestamptz,
  first_sent_at timestamptz,
  last_sent_at timestamptz,
  -- Done, refused or skipped.
  finished_at timestamptz,
  -- Undone, or given up.
  undone_at timestamptz,
  created_at timestamptz not null default now(),
  primary key (merchant_id, order_id, step_no),
  unique (merchant_id, order_id, name),
  foreign key (merchant_id, order_id) references orders
);
create index fulfilment_steps_due on fulfilment_steps (next_due_at)
  where status in ('waiting', 'running', 'undoing');

alter table order_events drop constraint order_events_subject_check;
alter table order_events add constraint order_events_subject_check check (subject in
  ('order', 'pay_record', 'capture', 'refund', 'case', 'fulfilment_step'));

insert into allowed_moves (subject, from_status, to_status) values
  ('fulfilment', 'none', 'running'), ('fulfilment', 'running', 'done'),
  ('fulfilment', 'running', 'compensating'), ('fulfilment', 'compensating', 'failed'),
  ('fulfilment_step', 'waiting', 'running'), ('fulfilment_step', 'waiting', 'skipped'),
  ('fulfilment_step', 'running', 'done'), ('fulfilment_step', 'running', 'refused'),
  ('fulfilment_step', 'running', 'undoing'), ('fulfilment_step', 'running', 'undone'),
  ('fulfilment_step', 'done', 'undoing'), ('fulfilment_step', 'done', 'undone'),
  ('fulfilment_step', 'refused', 'undoing'), ('fulfilment_step', 'refused', 'undone'),
  ('fulfilment_step', 'undoing', 'undone'), ('fulfilment_step', 'undoing', 'undo_failed');

create trigger fulfilment_steps_allowed_moves before update of status on fulfilment_steps
  for each row execute function refuse_move_outside_table('fulfilment_step');

create function refuse_fulfilment_move_outside_table() returns trigger language plpgsql as $$
begin
  if new.fulfilment_status <> old.fulfilment_status and not exists (
    select from allowed_moves m
    where m.subject = tg_argv[0] and m.from_status = old.fulfilment_status
      and m.to_status = new.fulfilment_status
  ) then
    raise exception '% may not move from % to %', tg_argv[0], old.fulfilment_status, new.fulfilment_status
      using errcode = 'check_violation', constraint = tg_argv[0] || '_allowed_moves';
  end if;
  return new;
end $$;
create trigger orders_fulfilment_allowed_moves before update of fulfilment_status on orders
  for each row execute function refuse_fulfilment_move_outside_table('fulfilment');

-- The reason `fulfilment` has the due time of the step whose turn it is: as long as an order's
-- fulfilment is unfinished, exactly one of its steps has one.
drop index orders_fulfilling_due;
create or replace view orders_with_work as
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
    from fulfilment_steps where status in ('waiting', 'running', 'undoing')
  union all
  select merchant_id, order_id, 'callback', next_due_at
    from channel_callbacks where status = 'stored' and order_id is not null
  union all
  select merchant_id, order_id, 'notification', next_due_at
    from notifications where status = 'pending';

-- Down Migration

-- There is no way down.
