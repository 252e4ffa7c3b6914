import { createHash, randomBytes } from 'node:crypto';
import { readFulfilmentSteps } from './fulfilment-configuration';
import type { FulfilmentStepConfiguration } from './fulfilment-configuration';
import type { Queryable } from './transaction';

export type Scope = 'pay' | 'refund' | 'read' | 'operator';

/** Who calls: the merchant behind an API key, and what the key may do. */
export interface Caller {
  merchantId: string;
  keyId: string;
  scopes: Scope[];
}

export interface NewMerchant {
  merchantId: string;
  name: string;
  notifyUrl?: string | null;
  /** `env:NAME` or `file:/path`, never the secret. */
  notifySecretRef?: string | null;
  latePaymentPolicy?: 'refund' | 'revive';
  /** Done in this order once an order is paid, by signed calls: they need `notifySecretRef`, too. */
  fulfilmentSteps?: FulfilmentStepConfiguration[];
}

/** A new API key: 256 random bits. It is shown once; only its hash is stored. */
export function generateApiKey(): string {
  return `psk_${randomBytes(32).toString('base64url')}`;
}

/** SHA-256, not a slow hash: keys are random, so there is nothing to guess. */
export function hashApiKey(apiKey: string): Buffer {
  return createHash('sha256').update(apiKey, 'utf8').digest();
}

/** The caller behind a key, or undefined when it is unknown, revoked or past its end. */
export async function readCaller(client: Queryable, apiKey: string): Promise<Caller | undefined> {
  const { rows } = await client.query<{ merchant_id: string; key_id: string; scopes: Scope[] }>(
    `select merchant_id, key_id, scopes from api_keys
     where key_sha256 = $1::bytea and revoked_at is null
       and (expires_at is null or expires_at > now())`,
    [hashApiKey(apiKey)],
  );
  const row = rows[0];
  return row && { merchantId: row.merchant_id, keyId: row.key_id, scopes: row.scopes };
}

/**
 * Stores a merchant, or replaces what is configured for it.
 * @throws Error that names what is wrong with its fulfilment steps
 */
export async function upsertMerchant(client: Queryable, merchant: NewMerchant): Promise<void> {
  await client.query(
    `insert into merchants (merchant_id, name, notify_url, notify_secret_ref,
       late_payment_policy, fulfilment_steps)
     values ($1::text, $2::text, $3::text, $4::text, $5::text, $6::jsonb)
     on conflict (merchant_id) do update set name = excluded.name,
       notify_url = excluded.notify_url, notify_secret_ref = excluded.notify_secret_ref,
       late_payment_policy = excluded.late_payment_policy,
       fulfilment_steps = excluded.fulfilment_steps,
       notify_stopped_at = null, notify_stopped_because = null`,
    [
      merchant.merchantId,
      merchant.name,
      merchant.notifyUrl ?? null,
      merchant.notifySecretRef ?? null,
      merchant.latePaymentPolicy ?? 'refund',
      JSON.stringify(readFulfilmentSteps(merchant.fulfilmentSteps ?? [])),
    ],
  );
}

/** Stores a key's hash; the same key id again keeps the key that is there. */
export async function insertApiKey(
  client: Queryable,
  key: { keyId: string; merchantId: string; apiKey: string; scopes: Scope[] },
): Promise<void> {
  await client.query(
    `insert into api_keys (key_id, merchant_id, key_sha256, scopes)
     values ($1::text, $2::text, $3::bytea, $4::text[])
     on conflict (key_id) do nothing`,
    [key.keyId, key.merchantId, hashApiKey(key.apiKey), key.scopes],
  );
}

/** Ends a key at once. */
export async function revokeApiKey(client: Queryable, keyId: string): Promise<void> {
  await client.query(
    `update api_keys set revoked_at = now() where key_id = $1::text and revoked_at is null`,
    [keyId],
  );
}
