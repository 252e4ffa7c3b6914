import { isDeepStrictEqual } from 'node:util';
import type { ChannelPolicy, ChannelRow } from '../domain/channel-policy';
import { ChannelConfigurationError } from './adapter';
import type { ChannelAdapter } from './adapter';
import type { PaymentChannel } from './contract';
import { createHttpClient } from './http-client';
import { createHttpDownload } from './http-download';
import { mockA } from './mock-a';
import { mockB } from './mock-b';
import { mergePolicy } from './policy';
import { withResilience } from './resilience';
import type { ResilienceHooks } from './resilience';
import { resolveSecrets } from './secrets';

/**
 * The adapters by the name that rows use. A new channel protocol is one more entry here, or in a
 * map of one's own that is handed to the registry.
 */
export const adapters: Readonly<Record<string, ChannelAdapter>> = {
  'mock-a': mockA,
  'mock-b': mockB,
};

/** A channel ready for use. */
export interface ConfiguredChannel {
  row: ChannelRow;
  /** The adapter's default policy with the row's overrides. */
  policy: ChannelPolicy;
  /** Calls already pass through time limit, bulkhead, breaker and brake. */
  channel: PaymentChannel;
}

export interface ChannelRegistry {
  /**
   * The channel as its row stands now (at most `refreshAfterMs` old); undefined when there is no
   * such row.
   * @throws ChannelConfigurationError when its row cannot be used; other channels are not affected
   */
  get(channel: string): Promise<ConfiguredChannel | undefined>;
  /** Every usable channel; the unusable ones go to `onConfigurationError`. */
  all(): Promise<ConfiguredChannel[]>;
}

export interface RegistryHooks extends ResilienceHooks {
  /** Once per refresh and unusable row. */
  onConfigurationError?: (error: ChannelConfigurationError, channel: string) => void;
  /** The rows could not be read; the ones read before stay in use. */
  onRefreshError?: (error: unknown) => void;
}

export interface RegistryOptions {
  readRows: () => Promise<ChannelRow[]>;
  env: Record<string, string | undefined>;
  hooks?: RegistryHooks;
  refreshAfterMs: number;
  /** Default: {@link adapters}. */
  adapters?: Readonly<Record<string, ChannelAdapter>>;
  now?: () => Date;
}

/** A callback for a channel just added must not wait for the next refresh, nor cause a flood of them. */
const UNKNOWN_CHANNEL_REFRESH_MS = 1_000;

type Entry = { row: ChannelRow; secrets: Record<string, string>; configured: ConfiguredChannel };
type Slot = { entry: Entry } | { error: ChannelConfigurationError };

/**
 * The channels of this process, made from rows that are read again every `refreshAfterMs`. An
 * instance, with the state of its breaker and brake, stays until its row or a secret changes.
 * When the rows cannot be read, the known ones stay in use.
 */
export function createChannelRegistry(options: RegistryOptions): ChannelRegistry {
  const known = options.adapters ?? adapters;
  const hooks = options.hooks ?? {};
  let slots = new Map<string, Slot>();
  let refreshedAt: number | undefined;
  let refreshing: Promise<void> | undefined;

  async function configure(row: ChannelRow): Promise<Slot> {
    try {
      const secrets = await resolveSecrets(row.channel, row.secretRefs, options.env);
      const before = slots.get(row.channel);
      if (
        before &&
        'entry' in before &&
        isDeepStrictEqual([before.entry.row, before.entry.secrets], [row, secrets])
      ) {
        return before;
      }
      return { entry: { row, secrets, configured: create(row, secrets) } };
    } catch (error) {
      if (!(error instanceof ChannelConfigurationError)) throw error;
      hooks.onConfigurationError?.(error, row.channel);
      return { error };
    }
  }

  function create(row: ChannelRow, secrets: Record<string, string>): ConfiguredChannel {
    const adapter = Object.hasOwn(known, row.adapter) ? known[row.adapter] : undefined;
    if (!adapter) {
      throw new ChannelConfigurationError(
        `channel ${row.channel}: no adapter "${row.adapter}", there are ${Object.keys(known).join(', ')}`,
      );
    }
    const policy = mergePolicy(row.channel, adapter.defaultPolicy, row.policy);
    // One more socket than calls: a connection that is being closed must not hold up a call.
    const http = createHttpClient({ maxSockets: policy.maxConcurrentCalls + 1 });
    const channel = adapter.create(row, secrets, {
      http,
      download: createHttpDownload(),
      now: options.now ?? (() => new Date()),
    });
    return { row, policy, channel: withResilience(channel, row.channel, policy, hooks) };
  }

  async function refresh(): Promise<void> {
    const rows = await options.readRows();
    const configured = await Promise.all(
      rows.map(async (row): Promise<[string, Slot]> => [row.channel, await configure(row)]),
    );
    slots = new Map(configured);
    refreshedAt = performance.now();
  }

  /** Callers at the same time share one refresh. */
  async function refreshIfOlderThan(ageMs: number): Promise<void> {
    if (refreshedAt !== undefined && performance.now() - refreshedAt < ageMs) return;
    refreshing ??= refresh().finally(() => (refreshing = undefined));
    try {
      await refreshing;
    } catch (error) {
      if (refreshedAt === undefined) throw error;
      hooks.onRefreshError?.(error);
    }
  }

  return {
    async get(channel) {
      await refreshIfOlderThan(options.refreshAfterMs);
      if (!slots.has(channel)) await refreshIfOlderThan(UNKNOWN_CHANNEL_REFRESH_MS);
      const slot = slots.get(channel);
      if (slot && 'error' in slot) throw slot.error;
      return slot?.entry.configured;
    },
    async all() {
      await refreshIfOlderThan(options.refreshAfterMs);
      return [...slots.values()].flatMap((slot) =>
        'entry' in slot ? [slot.entry.configured] : [],
      );
    },
  };
}
