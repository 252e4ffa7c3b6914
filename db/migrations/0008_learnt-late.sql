-- Up Migration

-- Payments that we learnt of long after they were made: a date whose bill was compared before is compared
-- again for them (db/reconciliation.ts). Few among all, so the rounds read only these.
create index captures_learnt_late on captures (channel, (coalesce(paid_at, learnt_at)))
  where learnt_at - paid_at > interval '10 minutes';

-- Down Migration

-- There is no way down.
