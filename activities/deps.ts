import type { Client } from '@temporalio/client';
import type { ChannelRegistry, ConfiguredChannel } from '../channels/registry';
import type { SettlementDeps } from '../db/settle-fact';
import type { Pool } from '../db/transaction';
import type { FulfilmentPolicy } from '../domain/fulfilment';

/** What the activities of a worker share. */
export interface ActivityDeps {
  pool: Pool;
  channels: ChannelRegistry;
  /** For signals to other runs: a refund tells its order, the sweep nudges. */
  client: Client;
  taskQueue: string;
  /** Secret of the derived numbers; the same for the life of a deployment's data. */
  numberSecret: string;
  notifications: NotificationDeps;
  fulfilment: FulfilmentPolicy;
  reconciliation: ReconciliationDeps;
  /** How a merchant's server is called, for notifications and fulfilment alike. */
  postToMerchant: PostToMerchant;
}

/**
 * POSTs to an address that a merchant has named. The connection goes to an address that was checked
 * (private ranges are refused unless configuration allows the host), redirects are not followed.
 *
 * @throws Error when there was no answer: the address is refused, nobody answers, the time is over
 */
export type PostToMerchant = (
  url: URL,
  request: {
    headers: Record<string, string>;
    body: string;
    timeoutMs: number;
    /** Lets go of the call before its time is over. */
    signal?: AbortSignal;
  },
) => Promise<MerchantAnswer>;

export interface MerchantAnswer {
  status: number;
  /** From the Retry-After header; null without one. */
  retryAfterMs: number | null;
  /** The beginning of the body, for a log or a reason. */
  body: string;
}

export interface ReconciliationDeps {
  /** Connections whose statements may take minutes: whole bills are loaded and compared. */
  pool: Pool;
  /** A worker that says nothing for so long is taken for dead. */
  heartbeatMs: number;
  /** A download from which nothing comes for so long is given up and begun again. */
  stallMs: number;
}

export interface NotificationDeps {
  /** Waits between the tries of one event; after the last an event is dead. */
  ladderMs: number[];
  timeoutMs: number;
  resolveSecret: (reference: string) => Promise<string>;
}

/** The settlement's view of the channels, as their rows stand now. */
export async function settlementDeps(deps: ActivityDeps): Promise<SettlementDeps> {
  const byName = new Map((await deps.channels.all()).map((c) => [c.row.channel, c.policy]));
  return {
    numberSecret: deps.numberSecret,
    policyOf(channel) {
      const policy = byName.get(channel);
      if (!policy)
        throw new Error(`channel ${channel} is not configured (or its row cannot be used)`);
      return policy;
    },
  };
}

/** @throws Error that names the channel when it is not usable */
export async function configuredChannel(
  deps: ActivityDeps,
  channel: string,
): Promise<ConfiguredChannel> {
  const configured = await deps.channels.get(channel);
  if (!configured) throw new Error(`channel ${channel} is not configured`);
  return configured;
}
