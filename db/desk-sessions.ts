import { createHash, randomBytes } from 'node:crypto';
import type { Caller, Scope } from './merchants';
import type { Queryable } from './transaction';

/** An operator who is logged in at the desk, and the token that its forms carry. */
export interface DeskSession {
  caller: Caller;
  csrfToken: string;
  expiresAt: string;
}

/** A shift; then the key is asked for again. */
export const SESSION_S = 8 * 60 * 60;
/** Ended sessions that one login clears away. */
const FORGET_MAX = 1_000;

/**
 * Opens a session for the key and gives its token, 256 random bits: only its SHA-256 is stored, so
 * that who reads the table cannot be anybody.
 */
export async function openDeskSession(client: Queryable, keyId: string): Promise<string> {
  const token = newToken();
  await client.query(
    `with ended as (
       delete from desk_sessions where token_sha256 in (
         select token_sha256 from desk_sessions where expires_at <= now() limit $5::int))
     insert into desk_sessions (token_sha256, key_id, csrf_token, expires_at)
     values ($1::bytea, $2::text, $3::text, now() + make_interval(secs => $4::int))`,
    [hashOf(token), keyId, newToken(), SESSION_S, FORGET_MAX],
  );
  return token;
}

/**
 * The session behind a token, or undefined when it is over. The key is asked each time: revoked, past
 * its end or without the scope it ends its sessions at once.
 */
export async function readDeskSession(
  client: Queryable,
  token: string,
): Promise<DeskSession | undefined> {
  const { rows } = await client.query<Omit<DeskSession, 'caller'> & Caller & { scopes: Scope[] }>(
    `select k.merchant_id as "merchantId", k.key_id as "keyId", k.scopes,
       s.csrf_token as "csrfToken", s.expires_at as "expiresAt"
     from desk_sessions s join api_keys k using (key_id)
     where s.token_sha256 = $1::bytea and s.expires_at > now()
       and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
       and 'operator' = any (k.scopes)`,
    [hashOf(token)],
  );
  const row = rows[0];
  if (!row) return undefined;
  const { csrfToken, expiresAt, ...caller } = row;
  return { caller, csrfToken, expiresAt };
}

/** Ends a session at once; of no other one. */
export async function closeDeskSession(client: Queryable, token: string): Promise<void> {
  await client.query(`delete from desk_sessions where token_sha256 = $1::bytea`, [hashOf(token)]);
}

function newToken(): string {
  return randomBytes(32).toString('base64url');
}

function hashOf(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest();
}
