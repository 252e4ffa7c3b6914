-- Up Migration

-- A difference before a person that says something else when compared again is put there again.
insert into allowed_moves (subject, from_status, to_status) values ('difference', 'case', 'open');

-- Down Migration

-- There is no way down.
