import { adapters } from '../../channels/registry';
import { mergePolicy } from '../../channels/policy';
import { readChannelRows, upsertChannel } from '../../db/channels';
import type { ChannelPolicy, ChannelRow } from '../../domain/channel-policy';
import { AdminRefusal, identifier, json, one, oneOf } from './command';
import { secretReference, table, UsageError, webAddress } from './command';
import type { Command, CommandInput, CommandResult } from './command';

const SETTINGS = {
  adapter: Object.keys(adapters).join('|'),
  account: 'ID',
  app: 'ID',
  gateway: 'URL',
  'time-zone': 'IANA zone',
  'display-name': 'TEXT',
  pay: 'on|off',
  refund: 'on|off',
  secret: 'ROLE=env:NAME|ROLE=file:/path|ROLE=none',
  policy: 'JSON',
};

export const channelCommands: Record<string, Command> = {
  'channel add': {
    usage:
      'channel add NAME --adapter A --account ID --app ID --gateway URL --secret current=env:NAME',
    summary: 'a new account at a payment provider',
    options: SETTINGS,
    words: { least: 1, most: 1 },
    async run({ words, options, client }) {
      const channel = identifier('the channel’s name', words[0]!);
      if (await existing(client, channel))
        throw new AdminRefusal(`channel ${channel} exists: change it with "channel set"`);
      const missing = ['adapter', 'account', 'app', 'gateway', 'secret'].filter((o) => !options[o]);
      if (missing.length > 0)
        throw new UsageError(`missing: ${missing.map((name) => `--${name}`).join(', ')}`);
      return store(client, options, {
        channel,
        adapter: '',
        accountId: '',
        appId: '',
        gatewayUrl: '',
        timeZone: 'UTC',
        payEnabled: true,
        refundEnabled: true,
        secretRefs: {},
        policy: {},
      });
    },
  },
  'channel set': {
    usage: 'channel set NAME',
    summary: 'changes what is named, and nothing else',
    options: SETTINGS,
    words: { least: 1, most: 1 },
    async run({ words, options, client }) {
      const row = await existing(client, words[0]!);
      if (!row) throw new AdminRefusal(`there is no channel ${words[0]}`);
      if (Object.keys(options).length === 0) throw new UsageError('name what to set');
      return store(client, options, row);
    },
  },
  'channel list': {
    usage: 'channel list',
    summary: 'every channel; secrets as references',
    options: {},
    words: { least: 0, most: 0 },
    async run({ client }) {
      const rows = await readChannelRows(client);
      return {
        value: rows,
        lines: table(
          [
            'channel',
            'adapter',
            'account',
            'app',
            'gateway',
            'time zone',
            'pay',
            'refund',
            'secrets',
          ],
          rows.map((row) => [
            row.channel,
            row.adapter,
            row.accountId,
            row.appId,
            row.gatewayUrl,
            row.timeZone,
            row.payEnabled ? 'on' : 'off',
            row.refundEnabled ? 'on' : 'off',
            Object.entries(row.secretRefs)
              .map(([role, reference]) => `${role}=${reference}`)
              .join(' '),
          ]),
        ),
      };
    },
  },
};

async function existing(
  client: CommandInput['client'],
  name: string,
): Promise<ChannelRow | undefined> {
  // Two administrators must not take each other's settings back.
  await client.query(`select 1 from channels where channel = $1::text for no key update`, [name]);
  return (await readChannelRows(client)).find(({ channel }) => channel === name);
}

async function store(
  client: CommandInput['client'],
  options: Record<string, string[]>,
  row: ChannelRow,
): Promise<CommandResult> {
  const changed = withOptions(options, row);
  await upsertChannel(client, changed);
  return {
    value: changed,
    lines: [`channel ${changed.channel} is stored; running processes read it within seconds`],
    note: { subject: changed.channel, detail: options },
  };
}

/** What payers read where they choose how to pay. */
function displayName(value: string): string {
  if (value.trim() !== '' && value.length <= 60) return value;
  throw new AdminRefusal('--display-name must be 1 to 60 characters');
}

function withOptions(options: Record<string, string[]>, row: ChannelRow): ChannelRow {
  const given = <T>(name: string, otherwise: T, read: (value: string) => T): T => {
    const value = one(options, name);
    return value === undefined ? otherwise : read(value);
  };
  const isOn = (name: string) => (value: string) => oneOf(name, value, ['on', 'off']) === 'on';
  const changed: ChannelRow = {
    channel: row.channel,
    adapter: given('adapter', row.adapter, (v) => oneOf('adapter', v, Object.keys(adapters))),
    accountId: given('account', row.accountId, (v) => filled('account', v)),
    appId: given('app', row.appId, (v) => filled('app', v)),
    gatewayUrl: given('gateway', row.gatewayUrl, (v) => webAddress('gateway', v)),
    timeZone: given('time-zone', row.timeZone, zone),
    displayName: given('display-name', row.displayName ?? null, displayName),
    payEnabled: given('pay', row.payEnabled, isOn('pay')),
    refundEnabled: given('refund', row.refundEnabled, isOn('refund')),
    secretRefs: secretsOf(options['secret'] ?? [], row.secretRefs),
    policy: given('policy', row.policy, policyOf),
  };
  const adapter = adapters[changed.adapter];
  try {
    if (adapter) mergePolicy(changed.channel, adapter.defaultPolicy, changed.policy);
  } catch (error) {
    throw new AdminRefusal((error as Error).message, { cause: error });
  }
  if (!changed.secretRefs['current'])
    throw new AdminRefusal('a channel needs a secret: --secret current=env:NAME');
  return changed;
}

function filled(name: string, value: string): string {
  if (value.trim() === '') throw new AdminRefusal(`--${name} must not be empty`);
  return value;
}

function zone(value: string): string {
  try {
    new Intl.DateTimeFormat('en', { timeZone: value });
    return value;
  } catch {
    throw new AdminRefusal(
      `--time-zone must be an IANA zone such as Asia/Shanghai, not "${value}"`,
    );
  }
}

function policyOf(text: string): Partial<ChannelPolicy> {
  const value = json('policy', text);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw new AdminRefusal('--policy must be a JSON object of overrides');
}

function secretsOf(
  given: readonly string[],
  before: Record<string, string>,
): Record<string, string> {
  const refs = new Map(Object.entries(before));
  for (const text of given) {
    const [, role, reference] = /^([a-z][a-z0-9_]{0,31})=(.*)$/.exec(text) ?? [];
    if (!role || reference === undefined)
      throw new AdminRefusal('--secret must be ROLE=env:NAME, ROLE=file:/path or ROLE=none');
    if (reference === 'none') refs.delete(role);
    else refs.set(role, secretReference('secret', reference));
  }
  return Object.fromEntries(refs);
}
