-- Up Migration

-- What operators do, for ever: who, why, on which picture, and what became of it.

create table operator_acts (
  act_id bigint generated always as identity primary key,
  -- Unique over all merchants and for ever: the same number again is the same act.
  act_no identifier not null unique,
  kind text not null check (kind in ('accept_money', 'refund_money', 'resend_refund', 'close_case',
    'note', 'query_now', 'resend_callback', 'restart_run')),
  -- Null for a case about a number that belongs to no order.
  merchant_id identifier,
  order_id identifier,
  -- The case that was open, or that the act is about; the version the decision was made on.
  case_id bigint references cases,
  case_version integer,
  capture_id bigint references captures,
  amount_minor amount_minor,
  currency currency_code,
  refund_no text,
  callback_id bigint references channel_callbacks,
  reason text not null check (char_length(reason) between 1 and 1000),
  -- What proves that held money is not ours any more.
  evidence text check (char_length(evidence) between 1 and 2000),
  -- The key that called, and the person who used it.
  actor_key identifier not null,
  actor_name text not null check (char_length(actor_name) between 1 and 64),
  -- SHA-256 of what was asked: the same number with other content is refused.
  fingerprint bytea not null,
  needs_second boolean not null,
  second_key identifier,
  second_name text check (char_length(second_name) between 1 and 64),
  second_reason text check (char_length(second_reason) between 1 and 2000),
  confirmed_at timestamptz,
  status text not null check (status in ('waiting_second', 'accepted', 'done', 'refused')),
  result jsonb,
  created_at timestamptz not null default now(),
  finished_at timestamptz,
  foreign key (merchant_id, order_id) references orders,
  check (merchant_id is not null or case_id is not null),
  -- Nobody is the second person of an act of their own, and none goes on without where one is needed.
  constraint operator_acts_two_persons check (second_key is null or second_key <> actor_key),
  constraint operator_acts_second_confirmed
    check (not needs_second or status = 'waiting_second' or second_key is not null),
  check ((second_key is null) = (confirmed_at is null)),
  check (finished_at is null or status in ('done', 'refused'))
);
create index operator_acts_by_order on operator_acts (merchant_id, order_id, act_id);
create index operator_acts_by_case on operator_acts (case_id) where case_id is not null;
create index operator_acts_open on operator_acts (act_id)
  where status in ('waiting_second', 'accepted');
create index operator_acts_due on operator_acts ((coalesce(confirmed_at, created_at)))
  where status = 'accepted' and order_id is not null;

insert into allowed_moves (subject, from_status, to_status) values
  ('operator_act', 'waiting_second', 'accepted'),
  ('operator_act', 'accepted', 'done'), ('operator_act', 'accepted', 'refused');

create trigger operator_acts_allowed_moves before update of status on operator_acts
  for each row execute function refuse_move_outside_table('operator_act');

-- What was asked never changes; the second person and the result are written once.
create function refuse_other_act() returns trigger language plpgsql as $$
begin
  if new is not distinct from old then
    return new;
  end if;
  if (to_jsonb(new) - array['status', 'second_key', 'second_name', 'second_reason', 'confirmed_at',
        'result', 'finished_at'])
     is distinct from
     (to_jsonb(old) - array['status', 'second_key', 'second_name', 'second_reason', 'confirmed_at',
        'result', 'finished_at'])
     or (old.second_key is not null and (new.second_key, new.second_name, new.second_reason,
        new.confirmed_at) is distinct from (old.second_key, old.second_name, old.second_reason,
        old.confirmed_at))
     or old.status in ('done', 'refused') then
    raise exception 'act % is append-only', old.act_no
      using errcode = 'restrict_violation', constraint = 'operator_acts_append_only';
  end if;
  return new;
end $$;
create trigger operator_acts_append_only before update on operator_acts
  for each row execute function refuse_other_act();
create trigger operator_acts_never_deleted before delete on operator_acts
  for each row execute function refuse_change();
create trigger operator_acts_never_truncated before truncate on operator_acts
  for each statement execute function refuse_change();

-- A refund that an operator's act made is named after the act, a form no merchant can choose.
do $$
declare
  name text;
begin
  select conname into strict name from pg_constraint
    where conrelid = 'refunds'::regclass and contype = 'c'
      and pg_get_constraintdef(oid) like '%external:%' and pg_get_constraintdef(oid) like '%refund_no%'
      and pg_get_constraintdef(oid) not like '%out_refund_no%';
  execute format('alter table refunds drop constraint %I', name);
end $$;
alter table refunds add constraint refunds_refund_no_check check (refund_no ~
  '^([A-Za-z0-9][A-Za-z0-9_.-]{0,63}|auto:[0-9]{1,19}|act:[A-Za-z0-9][A-Za-z0-9_.-]{0,63}:[0-9]{1,19}|external:.{1,128})$');

-- An act that was accepted is work: whoever stored it may have died before the order's run was asked.
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
    from notifications where status = 'pending'
  union all
  select merchant_id, order_id, 'operator_act', coalesce(confirmed_at, created_at)
    from operator_acts where status = 'accepted' and order_id is not null;

-- ---------------------------------------------------------------------------------------------
-- What operators look for (api/routes/ops-search.ts): over all merchants, by one word.

create index orders_by_id on orders (order_id);
create index orders_by_status_everywhere on orders (status, created_at desc, merchant_id, order_id);
create index orders_by_amount on orders (amount_minor, created_at);
create index captures_by_trade_no on captures (channel_trade_no);
create index captures_by_amount on captures (amount_minor, learnt_at);
create index pay_records_by_trade_no on pay_records (channel_trade_no)
  where channel_trade_no is not null;
create index refunds_by_refund_no on refunds (refund_no);
create index refunds_by_any_channel_refund_no on refunds (channel_refund_no)
  where channel_refund_no is not null;
create index refunds_by_amount on refunds (amount_minor, created_at);
-- The list of open cases, newest first; the closed ones are nearly all there are.
create index cases_open on cases (case_id) where status = 'open';

-- Down Migration

-- There is no way down.
