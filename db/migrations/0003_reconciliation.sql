-- Up Migration

-- Reconciliation: the trade bills of a channel and business date, what they say and our books do not.
-- A business date is the channel's own (channels.time_zone). Amounts are integers of minor units.

-- From the business date on which a channel was configured its bills are due; earlier where its
-- captures are older.
alter table channels add column created_at timestamptz not null default now();
-- A zone nobody knows is refused where it is written: one such row would stop the dates of all channels.
alter table channels add constraint channels_time_zone_known
  check (timezone(time_zone, '2000-01-01T00:00:00Z'::timestamptz) is not null);

-- ---------------------------------------------------------------------------------------------
-- Bills

create table trade_bills (
  bill_id bigint generated always as identity primary key,
  channel identifier not null references channels,
  business_date date not null,
  -- `loaded`: its lines count. `superseded`: a newer file does. `rejected`: nothing of it was kept.
  status text not null check (status in ('loaded', 'superseded', 'rejected')),
  file_name text not null,
  -- As sent, in hex; of a rejected file perhaps unknown.
  sha256 text check (sha256 ~ '^[0-9a-f]{64}$'),
  bytes bigint not null default 0,
  line_count bigint not null default 0,
  row_errors bigint not null default 0,
  -- The sums that the file states, and those of its rows, per currency.
  stated jsonb,
  sums jsonb not null default '[]',
  fault text,
  message text,
  loaded_at timestamptz not null default now(),
  check ((status = 'rejected') = (fault is not null))
);
-- One bill of a business date counts.
create unique index trade_bills_one_loaded on trade_bills (channel, business_date)
  where status = 'loaded';
create index trade_bills_by_day on trade_bills (channel, business_date, bill_id);

-- Each bill is a partition of its own, filled by COPY before it is attached: a load that is broken off
-- leaves nothing, and an old bill goes by dropping its table. Its indexes are made after the COPY.
create table trade_bill_lines (
  bill_id bigint not null,
  line_no integer not null,
  kind text not null,
  status text not null,
  out_trade_no text,
  channel_trade_no text,
  out_refund_no text,
  channel_refund_no text,
  amount_minor bigint,
  currency text,
  fee_minor bigint,
  occurred_at timestamptz,
  word text not null,
  error text,
  -- By which numbers a row is looked for: ours, and the channel's own (ours where it gives none), which
  -- two rows of a kind never share. Hashed, because an index of numbers is made in half the time of one
  -- of texts. hashtextextended does not change from one release to the next: hash partitions rest on it.
  our_hash bigint generated always as
    (hashtextextended(coalesce(out_refund_no, out_trade_no), 0)) stored,
  their_hash bigint generated always as (hashtextextended(case
    when kind = 'refund' then coalesce(channel_refund_no, out_refund_no)
    else coalesce(channel_trade_no, out_trade_no) end, 0)) stored
) partition by list (bill_id);

-- ---------------------------------------------------------------------------------------------
-- Runs: one row per channel and business date, the one current report

create table reconciliation_runs (
  channel identifier not null references channels,
  business_date date not null,
  status text not null default 'running'
    check (status in ('running', 'waiting_bill', 'done', 'rejected', 'no_bill')),
  -- Of the run under way or last done: it compares, asks nobody and opens no case.
  dry_run boolean not null default false,
  actor text not null default 'system',
  reason text,
  bill_id bigint references trade_bills,
  -- What was compared, per currency and class (domain/reconciliation.ts).
  totals jsonb not null default '[]',
  fee_basis_points integer,
  started_at timestamptz not null default now(),
  asked_at timestamptz,
  compared_at timestamptz,
  finished_at timestamptz,
  -- Ended with a report and was no dry run: the day is not due any more.
  reported_at timestamptz,
  next_try_at timestamptz not null default now(),
  primary key (channel, business_date)
);

-- ---------------------------------------------------------------------------------------------
-- Differences: found again, the same row

create table differences (
  difference_id bigint generated always as identity primary key,
  channel identifier not null references channels,
  business_date date not null,
  kind text not null check (kind in ('row_error', 'unknown_row', 'adjustment', 'duplicate_row',
    'channel_only', 'ours_only', 'duplicate_payment', 'currency', 'amount', 'status',
    'refund_channel_only', 'refund_ours_only', 'refund_amount', 'refund_status', 'fee',
    'file_total')),
  -- What it is about, the same in every file of the day: a number, a line, a currency.
  subject text not null,
  status text not null default 'open'
    check (status in ('open', 'waiting', 'suspense', 'case', 'resolved')),
  reason text not null default '',
  bill_id bigint references trade_bills,
  line_no integer,
  capture_id bigint references captures,
  refund_id bigint references refunds,
  merchant_id identifier,
  order_id identifier,
  pay_record_id bigint references pay_records,
  refund_no text,
  -- Both sides as evidence; null where one has nothing.
  ours jsonb,
  channel_says jsonb,
  first_seen_at timestamptz not null default now(),
  resolved_at timestamptz,
  resolution text,
  unique (channel, business_date, kind, subject),
  foreign key (merchant_id, order_id) references orders
);
create index differences_standing on differences (channel, business_date, difference_id)
  where status in ('open', 'waiting', 'suspense');
create index differences_by_order on differences (merchant_id, order_id)
  where order_id is not null;

-- ---------------------------------------------------------------------------------------------
-- Our books by channel and instant, as the comparison reads them

create index captures_by_instant on captures (channel, (coalesce(paid_at, learnt_at)));
create index refunds_by_instant on refunds (channel, (coalesce(first_sent_at, created_at)))
  where status = 'succeeded';
create index refunds_by_channel_refund_no on refunds (channel, channel_refund_no);

-- ---------------------------------------------------------------------------------------------
-- Moves

insert into allowed_moves (subject, from_status, to_status) values
  ('trade_bill', 'loaded', 'superseded'),
  ('reconciliation_run', 'running', 'waiting_bill'),
  ('reconciliation_run', 'running', 'done'),
  ('reconciliation_run', 'running', 'rejected'),
  ('reconciliation_run', 'running', 'no_bill'),
  ('reconciliation_run', 'waiting_bill', 'running'),
  ('reconciliation_run', 'waiting_bill', 'rejected'),
  ('reconciliation_run', 'waiting_bill', 'no_bill'),
  ('reconciliation_run', 'done', 'running'),
  ('reconciliation_run', 'rejected', 'running'),
  ('reconciliation_run', 'no_bill', 'running'),
  ('difference', 'open', 'waiting'),
  ('difference', 'open', 'suspense'),
  ('difference', 'open', 'case'),
  ('difference', 'open', 'resolved'),
  ('difference', 'waiting', 'open'),
  ('difference', 'waiting', 'case'),
  ('difference', 'waiting', 'resolved'),
  ('difference', 'suspense', 'open'),
  ('difference', 'suspense', 'case'),
  ('difference', 'suspense', 'resolved'),
  ('difference', 'case', 'resolved'),
  ('difference', 'resolved', 'open'),
  ('difference', 'resolved', 'waiting'),
  ('difference', 'resolved', 'suspense');

create trigger trade_bills_allowed_moves before update of status on trade_bills
  for each row execute function refuse_move_outside_table('trade_bill');
create trigger reconciliation_runs_allowed_moves before update of status on reconciliation_runs
  for each row execute function refuse_move_outside_table('reconciliation_run');
create trigger differences_allowed_moves before update of status on differences
  for each row execute function refuse_move_outside_table('difference');

-- Down Migration

-- There is no way down.
