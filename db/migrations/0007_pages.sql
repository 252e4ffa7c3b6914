-- Up Migration

-- The payer's page and the operators' desk.

alter table orders
  -- In the address of the payer's page: 244 random bits, so that who has it was given it.
  add column pay_token text not null unique
    default replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''),
  -- Where the shop wants its payer back.
  add column return_url text check (char_length(return_url) between 1 and 2048);

-- What payers read where they choose how to pay.
alter table channels add column display_name text check (char_length(display_name) between 1 and 60);

-- An operator who is logged in at the desk: as long as the key lives, and no longer than this.
create table desk_sessions (
  token_sha256 bytea primary key,
  key_id identifier not null references api_keys,
  csrf_token text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index desk_sessions_by_end on desk_sessions (expires_at);
