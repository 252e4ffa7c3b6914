-- Up Migration

-- Telling the merchant, for years: the log of tries, addresses that said they are gone, secrets in
-- rotation, what was sent again by hand, and the order in which a merchant reads its events.

alter table merchants
  -- While a secret is being replaced both sign: the merchant may check with either.
  add column notify_previous_secret_ref text
    check (notify_previous_secret_ref is null or notify_secret_ref is not null),
  -- Its address answered 410 Gone: nothing is sent there until the address is set again.
  add column notify_stopped_at timestamptz,
  add column notify_stopped_because text;

create table notification_tries (
  try_id bigint generated always as identity primary key,
  notification_id bigint not null references notifications,
  tried_at timestamptz not null default now(),
  -- The merchant's HTTP status, or why there is none.
  status integer,
  error text,
  duration_ms integer not null check (duration_ms >= 0),
  check (status is not null or error is not null)
);
create index notification_tries_of_one on notification_tries (notification_id, try_id);

create table notification_resends (
  resend_id bigint generated always as identity primary key,
  notification_id bigint not null references notifications,
  from_status text not null,
  -- The operator's key, or the process, and why.
  actor text not null,
  reason text not null,
  created_at timestamptz not null default now()
);
create index notification_resends_of_one on notification_resends (notification_id, resend_id);

-- What was given up or kept may be sent after all, on a person's word.
insert into allowed_moves (subject, from_status, to_status) values ('notification', 'kept', 'pending');

-- A merchant's events in one order that never changes. The number is given when the feed is read, under
-- the feed's lock, to events that are committed by then: one that commits late gets a later number,
-- and no settlement waits for another one's transaction.
create table event_feeds (
  merchant_id identifier primary key references merchants,
  last_event_no bigint not null default 0
);
alter table notifications add column event_no bigint check (event_no > 0);
create unique index notifications_in_feed on notifications (merchant_id, event_no)
  where event_no is not null;
create index notifications_not_in_feed on notifications (merchant_id, notification_id)
  where event_no is null;
create index notifications_not_sent on notifications (status, notification_id)
  where status in ('pending', 'dead', 'kept');
create index notifications_not_sent_of_merchant on notifications (merchant_id, status, notification_id)
  where status in ('pending', 'dead', 'kept');

-- ---------------------------------------------------------------------------------------------
-- Who configured what

create table admin_acts (
  act_id bigint generated always as identity primary key,
  command text not null,
  subject text not null,
  -- What was set; never a key or a secret.
  detail jsonb not null default '{}',
  actor text not null,
  created_at timestamptz not null default now()
);
create trigger admin_acts_append_only before update or delete on admin_acts
  for each row execute function refuse_change();

-- Down Migration

-- There is no way down.
