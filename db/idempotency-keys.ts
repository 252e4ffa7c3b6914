import type { Queryable } from './transaction';

/** Where a key counts: the caller, the method and the route's pattern. */
export interface KeyScope {
  merchantId: string;
  method: string;
  /** The pattern, e.g. `/v1/orders/{order_id}/payments`; the path's parameters are content. */
  route: string;
  key: string;
}

/** The thing a request made. Never a body: a repeat is answered from the row as it then stands. */
export type MadeThing =
  | { kind: 'order'; orderId: string }
  | { kind: 'payment'; orderId: string; payRecordId: number }
  | { kind: 'refund'; orderId: string; refundNo: string };

/** The lease's end is also its name: whoever holds it says so when finishing. */
export interface Lease {
  scope: KeyScope;
  leasedUntil: string;
}

export type BegunKey =
  | { state: 'new'; lease: Lease }
  | { state: 'done'; made: MadeThing }
  | { state: 'running'; retryAfterMs: number }
  | { state: 'other_content' };

/**
 * Takes the key for this request, or says what became of it. One statement decides: a free key, one
 * past its lifetime, and one whose holder's lease ran out (it died) are taken; everything else is
 * somebody's.
 */
export async function beginKey(
  client: Queryable,
  scope: KeyScope,
  fingerprint: Buffer,
  { leaseMs, lifetimeMs }: { leaseMs: number; lifetimeMs: number },
): Promise<BegunKey> {
  const taken = await client.query<{ leased_until: string }>(
    `insert into idempotency_keys as k
       (merchant_id, method, route, idempotency_key, fingerprint, leased_until, expires_at)
     values ($1::text, $2::text, $3::text, $4::text, $5::bytea,
       date_trunc('milliseconds', clock_timestamp() + $6::bigint * interval '1 millisecond'),
       clock_timestamp() + $7::bigint * interval '1 millisecond')
     on conflict (merchant_id, method, route, idempotency_key) do update set
       fingerprint = excluded.fingerprint, status = 'running', resource = null,
       leased_until = excluded.leased_until, created_at = now(), expires_at = excluded.expires_at
     where k.expires_at <= clock_timestamp()
        or (k.status = 'running' and k.leased_until <= clock_timestamp()
            and k.fingerprint = excluded.fingerprint)
     returning leased_until`,
    [...keyOf(scope), fingerprint, leaseMs, lifetimeMs],
  );
  const lease = taken.rows[0];
  if (lease) return { state: 'new', lease: { scope, leasedUntil: lease.leased_until } };

  const { rows } = await client.query<{
    same: boolean;
    status: string;
    resource: MadeThing | null;
    left_ms: number;
  }>(
    `select fingerprint = $5::bytea as same, status, resource,
       greatest(0, extract(epoch from leased_until - clock_timestamp()) * 1000)::float8 as left_ms
     from idempotency_keys
     where merchant_id = $1::text and method = $2::text and route = $3::text
       and idempotency_key = $4::text`,
    [...keyOf(scope), fingerprint],
  );
  const row = rows[0];
  // Freed between the two statements: the caller asks again.
  if (!row) return { state: 'running', retryAfterMs: 0 };
  if (!row.same) return { state: 'other_content' };
  if (row.status === 'done' && row.resource) return { state: 'done', made: row.resource };
  return { state: 'running', retryAfterMs: row.left_ms };
}

/** Keeps the thing made, unless the lease went to somebody else meanwhile. */
export async function finishKey(client: Queryable, lease: Lease, made: MadeThing): Promise<void> {
  await client.query(
    `update idempotency_keys set status = 'done', resource = $6::jsonb
     where merchant_id = $1::text and method = $2::text and route = $3::text
       and idempotency_key = $4::text and status = 'running' and leased_until = $5::timestamptz`,
    [...keyOf(lease.scope), lease.leasedUntil, JSON.stringify(made)],
  );
}

/** Frees the key of a request that failed or whose outcome is open: those are not remembered. */
export async function releaseKey(client: Queryable, lease: Lease): Promise<void> {
  await client.query(
    `delete from idempotency_keys
     where merchant_id = $1::text and method = $2::text and route = $3::text
       and idempotency_key = $4::text and status = 'running' and leased_until = $5::timestamptz`,
    [...keyOf(lease.scope), lease.leasedUntil],
  );
}

/** Deletes keys past their lifetime, at most `limit`. Returns how many went. */
export async function deleteExpiredKeys(client: Queryable, limit: number): Promise<number> {
  const { rowCount } = await client.query(
    `delete from idempotency_keys where ctid in (
       select ctid from idempotency_keys where expires_at <= now() limit $1::int
       for update skip locked)`,
    [limit],
  );
  return rowCount ?? 0;
}

function keyOf(scope: KeyScope): string[] {
  return [scope.merchantId, scope.method, scope.route, scope.key];
}
