/** What an administrator sees and changes: merchants, their keys, and who changed what. */
import { hashApiKey } from './merchants';
import type { Scope } from './merchants';
import type { Queryable } from './transaction';

/** A merchant as it is configured; secrets are references only. */
export interface MerchantRow {
  merchantId: string;
  name: string;
  notifyUrl: string | null;
  notifySecretRef: string | null;
  notifyPreviousSecretRef: string | null;
  /** Since when nothing is sent to its address any more, and why; null while it is in use. */
  notifyStoppedAt: string | null;
  notifyStoppedBecause: string | null;
  latePaymentPolicy: 'refund' | 'revive';
  fulfilmentSteps: unknown[];
  createdAt: string;
}

const MERCHANT = `merchant_id as "merchantId", name, notify_url as "notifyUrl",
  notify_secret_ref as "notifySecretRef", notify_previous_secret_ref as "notifyPreviousSecretRef",
  notify_stopped_at as "notifyStoppedAt", notify_stopped_because as "notifyStoppedBecause",
  late_payment_policy as "latePaymentPolicy", fulfilment_steps as "fulfilmentSteps",
  created_at as "createdAt"`;

export async function listMerchants(client: Queryable): Promise<MerchantRow[]> {
  const { rows } = await client.query<MerchantRow>(
    `select ${MERCHANT} from merchants order by merchant_id`,
  );
  return rows;
}

/** The merchant, locked for a change; undefined when there is none. */
export async function lockMerchant(
  client: Queryable,
  merchantId: string,
): Promise<MerchantRow | undefined> {
  const { rows } = await client.query<MerchantRow>(
    `select ${MERCHANT} from merchants where merchant_id = $1::text for no key update`,
    [merchantId],
  );
  return rows[0];
}

export type MerchantSettings = Omit<
  MerchantRow,
  'createdAt' | 'notifyStoppedAt' | 'notifyStoppedBecause'
>;

/** False when the merchant exists already: then nothing changes. */
export async function insertMerchant(
  client: Queryable,
  merchant: MerchantSettings,
): Promise<boolean> {
  const { rowCount } = await client.query(
    `insert into merchants (merchant_id, name, notify_url, notify_secret_ref,
       notify_previous_secret_ref, late_payment_policy, fulfilment_steps)
     values ($1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::jsonb)
     on conflict (merchant_id) do nothing`,
    settingsOf(merchant),
  );
  return rowCount === 1;
}

/** @param setsAddress the address was named, be it the same: what stopped it is forgotten */
export async function updateMerchant(
  client: Queryable,
  merchant: MerchantSettings,
  setsAddress: boolean,
): Promise<void> {
  await client.query(
    `update merchants set name = $2::text, notify_url = $3::text, notify_secret_ref = $4::text,
       notify_previous_secret_ref = $5::text, late_payment_policy = $6::text,
       fulfilment_steps = $7::jsonb,
       notify_stopped_at = case when $8::boolean then null else notify_stopped_at end,
       notify_stopped_because = case when $8::boolean then null else notify_stopped_because end
     where merchant_id = $1::text`,
    [...settingsOf(merchant), setsAddress],
  );
}

function settingsOf(merchant: MerchantSettings): unknown[] {
  return [
    merchant.merchantId,
    merchant.name,
    merchant.notifyUrl,
    merchant.notifySecretRef,
    merchant.notifyPreviousSecretRef,
    merchant.latePaymentPolicy,
    JSON.stringify(merchant.fulfilmentSteps),
  ];
}

/** A key without what opens anything: of the key itself only a hash is stored, and not shown. */
export interface KeyRow {
  keyId: string;
  merchantId: string;
  scopes: Scope[];
  state: 'valid' | 'expired' | 'revoked';
  expiresAt: string | null;
  revokedAt: string | null;
  createdAt: string;
}

export async function listKeys(client: Queryable, merchantId: string | null): Promise<KeyRow[]> {
  const { rows } = await client.query<KeyRow>(
    `select key_id as "keyId", merchant_id as "merchantId", scopes,
       case when revoked_at is not null then 'revoked' when expires_at <= now() then 'expired'
         else 'valid' end as state,
       expires_at as "expiresAt", revoked_at as "revokedAt", created_at as "createdAt"
     from api_keys where $1::text is null or merchant_id = $1::text
     order by merchant_id, created_at, key_id`,
    [merchantId],
  );
  return rows;
}

/** False when a key of that id exists already: then nothing changes. */
export async function insertKey(
  client: Queryable,
  key: {
    keyId: string;
    merchantId: string;
    apiKey: string;
    scopes: readonly Scope[];
    expiresAt: string | null;
  },
): Promise<boolean> {
  const { rowCount } = await client.query(
    `insert into api_keys (key_id, merchant_id, key_sha256, scopes, expires_at)
     values ($1::text, $2::text, $3::bytea, $4::text[], $5::timestamptz)
     on conflict (key_id) do nothing`,
    [key.keyId, key.merchantId, hashApiKey(key.apiKey), key.scopes, key.expiresAt],
  );
  return rowCount === 1;
}

/** Ends a key at once. */
export async function revokeKey(
  client: Queryable,
  keyId: string,
): Promise<'revoked' | 'was_revoked' | 'unknown'> {
  const { rowCount } = await client.query(
    `update api_keys set revoked_at = now() where key_id = $1::text and revoked_at is null`,
    [keyId],
  );
  if (rowCount === 1) return 'revoked';
  const { rows } = await client.query(`select 1 from api_keys where key_id = $1::text`, [keyId]);
  return rows.length === 1 ? 'was_revoked' : 'unknown';
}

/** Who changed what, kept for ever; never a key or a secret. */
export async function noteAdminAct(
  client: Queryable,
  act: { command: string; subject: string; detail: object; actor: string },
): Promise<void> {
  await client.query(
    `insert into admin_acts (command, subject, detail, actor)
     values ($1::text, $2::text, $3::jsonb, $4::text)`,
    [act.command, act.subject, JSON.stringify(act.detail), act.actor],
  );
}
