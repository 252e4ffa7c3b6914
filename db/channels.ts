import type { ChannelRow } from '../domain/channel-policy';
import { fromRow } from './rows';
import type { Queryable } from './transaction';

/** Every configured channel. A handful of rows: one per account at a payment provider. */
export async function readChannelRows(client: Queryable): Promise<ChannelRow[]> {
  const { rows } = await client.query<Record<string, unknown>>(
    `select channel, adapter, account_id, app_id, gateway_url, time_zone, pay_enabled,
       refund_enabled, secret_refs, policy, display_name
     from channels order by channel`,
  );
  return rows.map((row) => fromRow<ChannelRow>(row));
}

/** Stores a channel, or replaces its configuration. Secrets are references, never the secrets. */
export async function upsertChannel(client: Queryable, row: ChannelRow): Promise<void> {
  await client.query(
    `insert into channels (channel, adapter, account_id, app_id, gateway_url, time_zone,
       pay_enabled, refund_enabled, secret_refs, policy, display_name)
     values ($1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::boolean,
       $8::boolean, $9::jsonb, $10::jsonb, $11::text)
     on conflict (channel) do update set adapter = excluded.adapter,
       account_id = excluded.account_id, app_id = excluded.app_id,
       gateway_url = excluded.gateway_url, time_zone = excluded.time_zone,
       pay_enabled = excluded.pay_enabled, refund_enabled = excluded.refund_enabled,
       secret_refs = excluded.secret_refs, policy = excluded.policy,
       display_name = excluded.display_name, updated_at = now()`,
    [
      row.channel,
      row.adapter,
      row.accountId,
      row.appId,
      row.gatewayUrl,
      row.timeZone,
      row.payEnabled,
      row.refundEnabled,
      JSON.stringify(row.secretRefs),
      JSON.stringify(row.policy),
      row.displayName ?? null,
    ],
  );
}
